"""Attention rows -> scores -> a chosen head, measured; knows no Lightning."""
