"""From text to tokens: words, tokenizers, vocabularies."""
