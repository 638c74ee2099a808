"""Put several scored runs side by side: python scripts/compare.py runs=[outputs/a,outputs/b]."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("compare")
