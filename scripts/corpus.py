"""Describe a corpus and evaluate every shortcut on it: python scripts/corpus.py data=controlled."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("corpus")
