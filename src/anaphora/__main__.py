"""Entry point of the command line: python -m anaphora train --help."""

from anaphora.cli import main

if __name__ == "__main__":
    main()
