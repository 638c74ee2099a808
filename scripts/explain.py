"""Walk through attention step by step: python scripts/explain.py example=list.

A sentence of a trained run is asked with text="..." run=outputs/demo, one's own numbers with matrices=FILE.
"""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("explain")
