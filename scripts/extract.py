"""Write the attention rows of pronouns: python scripts/extract.py run=outputs/demo."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("extract")
