"""Token ids -> hidden states -> answers; knows nothing of where the data come from."""
