"""HTML pages and figures of studies, in the language of the interface (English or Chinese)."""
