"""How well does a small encoder resolve the pronouns of everyday sentences, and does one of its heads point?"""
