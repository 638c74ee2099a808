"""Typed and checked settings of training runs, and their parsing; no heavy imports."""
