"""How many items and seeds does a claim need: python scripts/sample_size.py 'runs=[outputs/seed_*]' points=5."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("sample_size")
