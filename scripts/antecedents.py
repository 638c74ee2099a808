"""Evaluate heads as antecedent selectors: python scripts/antecedents.py run=outputs/demo."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("antecedents")
