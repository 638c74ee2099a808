"""Hand-written everyday sentences in English and Chinese, in three sets, with tests of their format."""
