"""Train, extract, score and plot on the built-in corpus: python scripts/demo.py.

A finished run is re-used, an unfinished one resumed; `make demo` calls this.
"""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("demo")
