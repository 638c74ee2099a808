"""Speed of training, pre-training and extraction, compared with Hugging Face's BertModel in the same process."""
