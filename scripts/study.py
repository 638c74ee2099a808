"""Train and measure the models of a study, and write its page: python scripts/study.py study=emergence_first.

Finished runs are reused, unfinished ones resumed.
"""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("study")
