"""Answer every item of a split: python scripts/evaluate.py run=outputs/demo split=dev."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("evaluate")
