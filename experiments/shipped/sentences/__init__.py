"""Which everyday sentences does an encoder resolve? Four hundred in each language, written by hand for evaluation."""
