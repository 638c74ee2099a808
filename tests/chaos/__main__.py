"""Interrupt commands in many ways and check the files that they leave: python tests/chaos

`--help` lists the options. The exit status is 1 if anything is wrong; the folders of failed trials are kept.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import ForkServerContext
from pathlib import Path

FOLDERS = [str(folder) for folder in Path(__file__).parents[:3]]  # this one, that of the tests, and the repository
sys.path[:0] = FOLDERS
os.environ["PYTHONPATH"] = os.pathsep.join(
    [*FOLDERS, os.environ.get("PYTHONPATH", "")]
)  # of the processes' common start

import trials  # noqa: E402
from faults import SIGNALS, Fault  # noqa: E402
from trials import Outcome, Plan, Reference  # noqa: E402
from works import WORKS  # noqa: E402

COLUMNS = (*SIGNALS, "cut", "full", "few files", "small disk", "read-only", "no cache", "clock", "twice")


def plans(reference: Reference, options: argparse.Namespace) -> list[Plan]:
    """Return the planned trials of a command."""
    chance = random.Random(f"{options.seed} {reference.work.name}")

    def spread(operations: Sequence[int], count: int) -> list[int]:
        """Return `count` file operations, one from each interval of equal length; all of them if `count` is 0."""
        stretches = min(count or len(operations), len(operations))
        return [
            operations[int((number + chance.random()) * len(operations) / stretches)] for number in range(stretches)
        ]

    alone = reference.work.ranks == 1 and not reference.work.own_processes
    every = range(1, reference.operations + 1)
    planned: list[Plan] = []
    for name in SIGNALS:
        if not reference.work.own_processes:
            kills = name == "kill -9"
            points = spread(reference.changes, options.kills) if kills else spread(every, options.others)
            planned += [Plan(Fault(name, number)) for number in points]
        planned += [Plan(Fault(name), chance.uniform(0.1, 1.0) * reference.seconds) for _ in range(options.moments)]
    if not alone:
        return planned
    sizes = [round(reference.largest_file * share / options.sizes) for share in range(options.sizes)]
    planned += [Plan(Fault("cut", size)) for size in sizes]
    for kind in ("full", "few files", "no cache"):
        planned += [Plan(Fault(kind, number)) for number in spread(every, options.others)]
    planned += [Plan(Fault("clock")), Plan(Fault("twice"))]
    if os.geteuid() == 0:  # who may become another user, and mount
        planned += [Plan(Fault("read-only")), *(Plan(Fault("small disk", size)) for size in sizes)]
    return planned


def main() -> int:
    """Run the trials and print the table."""
    options = _options()
    place = Path(options.folder or tempfile.mkdtemp(prefix="chaos-"))
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o755)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([trials.WARM])
    begun = time.perf_counter()
    tried: list[Outcome] = []
    print(
        "|".join(["", "command", "file operations (states)", *COLUMNS, ""]),
        "|".join(["", *["---"] * (len(COLUMNS) + 2), ""]),
        sep="\n",
    )
    for work in WORKS:
        if not options.only or work.name in options.only:
            folder = place / work.name.replace(" ", "_").replace(",", "")
            reference = trials.unbroken(context, work, folder)
            outcomes = _try(context, reference, folder, options)
            tried += outcomes
            print(_row(reference, outcomes), flush=True)
    wrong = [outcome for outcome in tried if outcome.problem]
    kills = [outcome for outcome in tried if outcome.befell and outcome.fault.kind in (*SIGNALS, "cut")]
    print(
        f"\n{sum(not outcome.problem for outcome in kills)} of {len(kills)} kills end as the unbroken command; "
        f"{len(wrong)} of {len(tried)} trials went wrong; {time.perf_counter() - begun:.0f} seconds"
    )
    if wrong:
        print(f"their folders are in {place}")
    else:
        shutil.rmtree(place, ignore_errors=True)
    return int(bool(wrong))


def _try(context: ForkServerContext, reference: Reference, place: Path, options: argparse.Namespace) -> list[Outcome]:
    planned = plans(reference, options)
    with ThreadPoolExecutor(options.side_by_side) as pool:
        outcomes = []
        for outcome in pool.map(
            lambda numbered: trials.trial(context, reference, place / f"trial_{numbered[0]}", numbered[1]),
            enumerate(planned),
        ):
            if outcome.problem:
                print(f"  {outcome.work}, {outcome.fault}: {outcome.problem}", file=sys.stderr, flush=True)
            outcomes.append(outcome)
        return outcomes


def _row(reference: Reference, outcomes: Sequence[Outcome]) -> str:
    cells = [reference.work.name, f"{reference.operations} ({len(reference.changes)})"]
    for kind in COLUMNS:
        befallen = [outcome for outcome in outcomes if outcome.fault.kind == kind and outcome.befell]
        right = sum(not outcome.problem for outcome in befallen)
        cells.append(f"{right} of {len(befallen)}" if befallen else "")
    return f"| {' | '.join(cells)} |"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--only", action="append", choices=[work.name for work in WORKS], help="this command alone")
    parser.add_argument(
        "--kills",
        type=int,
        default=0,
        help="kill -9 at so many file operations; 0: at every one that another state of the disk comes before",
    )
    parser.add_argument("--others", type=int, default=20, help="the same for each other signal and fault")
    parser.add_argument("--moments", type=int, default=5, help="moments by chance for each signal")
    parser.add_argument("--sizes", type=int, default=8, help="sizes of files and disks")
    parser.add_argument("--side-by-side", type=int, default=os.cpu_count(), help="trials at a time")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--folder", help="where the trials take place, by default a temporary folder")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
