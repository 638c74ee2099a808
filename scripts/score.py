"""Score every head against the antecedents: python scripts/score.py run=outputs/demo."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("score")
