"""Minimal pairs of everyday sentences written by hand, to train on."""
