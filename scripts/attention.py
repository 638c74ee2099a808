"""Show the attention of any model in one text: python scripts/attention.py run=outputs/demo text='...' pronoun=she."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("attention")
