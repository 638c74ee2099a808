"""Label the texts of a split by runs and by linear models: python scripts/labels.py runs=[outputs/sentiment]."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("labels")
