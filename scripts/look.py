"""The live page: python scripts/look.py 'runs=[outputs/demo]'; then open the address that it prints."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("look")
