"""Experiments, each in a folder with its code, settings, tests and results.

Experiments import the package, and the package imports no experiment.
"""
