"""Benchmarks of speed, and the comparison of two commits; they import the package, and it never imports them."""
