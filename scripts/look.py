"""The live page of the run that comes with the package: python scripts/look.py; run=outputs/demo shows another."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("look")
