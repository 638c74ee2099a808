"""Studies: experiments that answer a question by comparing several recipes, each trained with several seeds.

A study states its question, its recipes (cells) and rules that decide the answer before training. The results are shown
on an HTML page.
"""
