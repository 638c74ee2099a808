"""Cross-validate runs on folds: python scripts/cross_validate.py runs=[outputs/fold_0,outputs/fold_1]."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("cross_validate")
