"""Studies: experiments that answer a question by comparing several recipes, each trained with several seeds.

Before training, a study states its question, its recipes (cells), and rules (conditions on the results) that decide the
answer. The results are shown on an HTML page.
"""
