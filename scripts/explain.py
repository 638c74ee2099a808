"""Explain attention step by step: python scripts/explain.py example=list.

Alternatives to an example: text="..." run=outputs/demo for a sentence, matrices=FILE for your own matrices.
"""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("explain")
