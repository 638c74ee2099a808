"""Train, measure and plot on the built-in corpus: python scripts/demo.py.

A finished run is reused, an unfinished one resumed. `make demo` calls this script.
"""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("demo")
