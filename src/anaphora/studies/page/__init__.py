"""Pages of studies, in the language of the interface."""
