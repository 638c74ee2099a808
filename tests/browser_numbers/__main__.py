"""Compare a run's page with Python: python tests/browser_numbers RUN ITEMS...

ITEMS are files of data=jsonl, whose dev split is used. The exit status is 1 if a token differs, or if a weight or
answer differs by more than 0.001. With --half, the page always has 16-bit weights.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from browser_numbers.compare import compare  # noqa: E402
from chromium import CHROMIUM  # noqa: E402

from anaphora.api.browser import page as module  # noqa: E402
from anaphora.data.store import load as load_corpus  # noqa: E402
from anaphora.runs.directory import load  # noqa: E402
from anaphora.settings.data import OwnExamples  # noqa: E402

CLOSE = 1e-3


def main() -> int:
    """Run the comparison and print the differences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("items", type=Path, nargs="+")
    parser.add_argument("--half", action="store_true", help="weights of 16 bits")
    parser.add_argument("--count", type=int, default=200, help="how many sentences")
    chosen = parser.parse_args()
    if CHROMIUM is None:
        sys.exit("no Chromium on this machine")
    run = load(chosen.run)
    corpora = [load_corpus(OwnExamples(path=str(path))) for path in chosen.items]
    examples = [example for corpus in corpora for example in corpus.examples("dev")]
    examples = examples[:: max(1, len(examples) // chosen.count)][: chosen.count]
    page = module._page(run, module._pack_weights(run, 16)) if chosen.half else module.browser_page(run)
    with tempfile.TemporaryDirectory() as folder:
        found = compare(run, page, examples, Path(folder))
    print(
        f"{len(examples)} sentences, page of {len(page.encode()) / 1e6:.1f} MB: tokens equal, "
        f"maps differ by {found.maps:.2g} and answers by {found.answers:.2g} at most"
    )
    return int(max(found.maps, found.answers) > CLOSE)


if __name__ == "__main__":
    sys.exit(main())
