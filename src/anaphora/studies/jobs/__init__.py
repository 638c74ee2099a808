"""Execution of a study's runs: in this process, in other processes, or on a cluster."""
