"""Any command that knows the corpus: python -m experiments.everyday train name=everyday_0.

A training begins with the demo's recipe, this corpus and twice its steps; settings of your own follow.
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
