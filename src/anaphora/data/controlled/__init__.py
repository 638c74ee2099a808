"""The built-in corpus in English and Chinese: lexicon, templates, blocks, splits."""
