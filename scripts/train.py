"""Train an encoder: python scripts/train.py experiment=compositions seed=3."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("train")
