"""Serve the live page of the shipped run: python scripts/look.py; run=outputs/demo shows another run."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("look")
