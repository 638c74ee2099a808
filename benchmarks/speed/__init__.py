"""How fast are training, pre-training and extraction beside Hugging Face's BertModel, in one process?"""
