"""Models side by side on one page: python scripts/atlas.py runs=[outputs/demo,outputs/seed_1]."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("atlas")
