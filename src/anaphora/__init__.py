"""Trainable mini-Transformer encoders, and whether their pronouns attend to their antecedents."""
