"""Attention maps against ablation importance, Abnar and Zuidema 2020, table 1: python scripts/replicate.py.

Finished seeds in the output directory are used again.
"""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("replicate")
