"""Train a run's controls and measure them: python scripts/controls.py run=outputs/demo.

A finished control is reused, an unfinished one resumed. `make evidence` calls this script.
"""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("controls")
