"""Export a run for transformers or as a page: python scripts/export.py run=outputs/mine format=page output=try.html."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("export")
