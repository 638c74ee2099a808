"""Built-in corpus in English and Chinese: lexicon, templates, quads, octads and splits."""
