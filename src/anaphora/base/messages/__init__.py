"""Error messages in the language of the interface; the Chinese of each stands in zh.toml."""
