"""Compute F1 of name decisions on GAP: python scripts/gap.py 'runs=[outputs/gap]' data.path=gap-coreference."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("gap")
