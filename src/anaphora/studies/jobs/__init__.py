"""Execution of a study's runs: in this process, in others, or on a cluster."""
