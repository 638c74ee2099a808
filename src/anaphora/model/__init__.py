"""Model from token ids to hidden states and answers, independent of the data source."""
