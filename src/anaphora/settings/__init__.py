"""Typed and checked settings of training runs, and code that parses them.

Importing these modules does not import torch.
"""
