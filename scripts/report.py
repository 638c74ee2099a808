"""The evidence on a run as one offline page: python scripts/report.py run=outputs/demo.

What was measured before is read from metrics.json; trained controls are shown once scripts/controls.py has made them.
"""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("report")
