"""Evaluations other than the evidence on a run, such as GAP and text labels; extraction of attention rows."""
