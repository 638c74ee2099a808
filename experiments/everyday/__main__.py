"""Run any command with the everyday corpus registered: python -m experiments.everyday train name=everyday_0.

Training uses the demo's recipe with this corpus and twice the steps; further arguments override these settings.
"""

from __future__ import annotations

import sys

from anaphora.cli import main
from experiments.everyday.corpus import register
from experiments.everyday.settings import RECIPE

if __name__ == "__main__":
    register()
    if sys.argv[1:2] == ["train"] and not any(argument.startswith("resume=") for argument in sys.argv):
        sys.argv[2:2] = RECIPE
    main()
