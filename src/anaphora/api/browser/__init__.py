"""A page that runs a model in the browser: one file with its weights, without network access."""
