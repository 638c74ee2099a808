"""Write the evidence on a run as one offline page: python scripts/report.py run=outputs/demo.

Earlier measurements are read from metrics.json; trained controls are included if scripts/controls.py has been run.
"""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("report")
