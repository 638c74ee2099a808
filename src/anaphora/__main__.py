"""The scripts by name, from anywhere: python -m anaphora train --help."""

from anaphora.cli import main

if __name__ == "__main__":
    main()
