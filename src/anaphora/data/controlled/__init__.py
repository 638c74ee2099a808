"""Built-in corpus in English and Chinese: lexicon, templates, balanced groups (quads and octads) and splits."""
