"""Which everyday sentences does an encoder resolve? Six hundred in each language, in two sets, written by hand."""
