"""Measure speed against Hugging Face's BertModel: python scripts/benchmark.py what=extraction sizes=[m]."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("benchmark")
