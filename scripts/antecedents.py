"""Heads as antecedent selectors, Clark et al. 2019, table 2: python scripts/antecedents.py run=outputs/demo."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("antecedents")
