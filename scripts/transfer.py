"""Ask runs about another corpus than their own.

python scripts/transfer.py 'runs=[outputs/dpr_0]' data=knowref data.path=knowref_test.json
"""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("transfer")
