"""Write a run's encoder for transformers: python scripts/export.py run=outputs/mine output=exported."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("export")
