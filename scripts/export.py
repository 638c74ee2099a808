"""Write a run for transformers: python scripts/export.py run=outputs/mine output=exported format=anaphora."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("export")
