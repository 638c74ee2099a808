"""Score coreference clusters: python scripts/coreference.py key=gold.jsonlines response=predicted.jsonlines."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("coreference")
