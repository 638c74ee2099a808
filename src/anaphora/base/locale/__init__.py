"""Sentences that the code holds in English, in the language of the interface; their Chinese is in zh.po."""
