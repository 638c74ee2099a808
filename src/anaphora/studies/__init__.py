"""Studies: experiments that answer a question by comparing several training configurations, each with several seeds.

Before training, a study states its question, its configurations (cells), and rules (conditions on the results) that
decide the verdict. The results are shown on an HTML page.
"""
