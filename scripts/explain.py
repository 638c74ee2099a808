"""Walk through attention step by step: python scripts/explain.py example=list.

text="..." run=outputs/demo takes a sentence of a trained run, matrices=FILE takes matrices of your own.
"""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("explain")
