"""Built-in (controlled) corpus in English and Chinese: lexicon, templates, counterbalanced sentences, and splits."""
