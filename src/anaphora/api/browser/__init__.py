"""HTML page that runs a model in the browser, without network access."""
