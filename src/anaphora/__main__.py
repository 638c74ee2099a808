"""Entry point of `python -m anaphora`, for example of `python -m anaphora train --help`."""

from anaphora.cli import main

if __name__ == "__main__":
    main()
