"""Write a self-contained page on a run: python scripts/report.py run=outputs/demo.

Earlier measurements are read from metrics.json; trained controls are included if scripts/controls.py has been run.
"""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("report")
