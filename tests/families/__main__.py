"""Test the maps and edits of tiny models of every family of transformers: python tests/families

`--help` lists the options. The exit status is 1 if a family is read wrongly, raises a traceback or cannot be built, or
if the numbers on the pages about models are outdated.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import signal
import sys
import time
import traceback
from collections import Counter
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import torch  # noqa: E402
from families.registry import Family, find_family, text_families  # noqa: E402
from families.verify import Outcome, verify  # noqa: E402

COMMON = ("modeling_utils", "generation.utils", "models.llama.modeling_llama", "models.bert.modeling_bert")
"""Modules that nearly all families import, loaded before the processes are forked."""

PAGES = ("any_model.md", "any_model.zh.md")
WHAT_USERS_GET = ("verified and editable", "verified and not editable", "refused with a reason", "wrong")
"""Outcomes for users of a model; a traceback or a model that cannot be built also counts as wrong."""


def _what_users_get(outcome: Outcome) -> str:
    if outcome.kind == "verified":
        return WHAT_USERS_GET[0 if outcome.edits == "yes" else 1]
    return WHAT_USERS_GET[2 if outcome.kind in ("refused", "not built") else 3]


def differing_pages(total: int, attending: Counter[str]) -> list[str]:
    """Return the pages whose paragraph on `make families` has other numbers."""
    counts = [attending[name] for name in WHAT_USERS_GET]
    share = f"{counts[0] / max(attending.total(), 1):.1%}".rstrip("%")
    version = ".".join(import_module("transformers").__version__.split(".")[:2])
    expected = sorted([version, share, *map(str, (total, attending.total(), *counts))])
    return [name for name in PAGES if sorted(numbers_of_page(name)) != expected]


def numbers_of_page(name: str) -> list[str]:
    """Return the numbers in a page's paragraph on `make families`."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    (paragraph,) = (one for one in page.split("\n\n") if one.startswith("`make families`"))
    return re.findall(r"\d+(?:\.\d+)?", paragraph)


def in_a_fork(family: Family, seconds: float) -> Outcome:
    """Verify a family in a separate process, which may crash or hang."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            try:
                outcome = verify(family)
            except Exception as error:
                outcome = Outcome("FAILED", reason=f"the checks themselves: {_where(error)}")
            with os.fdopen(writing, "w") as pipe:
                json.dump(asdict(outcome), pipe)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        ready, _, _ = select.select([pipe], [], [], seconds)
        if not ready:
            os.kill(child, signal.SIGKILL)
        data = pipe.read()
    status = os.waitpid(child, 0)[1]
    if status or not data:
        return Outcome("FAILED", reason=f"it took longer than {seconds:.0f} s" if not ready else f"crashed ({status})")
    return Outcome(**json.loads(data))


def _where(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    places = ", ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[-3:])
    return f"{type(error).__name__}: {str(error)[:200]} ({places})"


def main() -> int:
    """Test the families and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("family", nargs="*", help="these model types alone")
    parser.add_argument("--seconds", type=float, default=120, help="for each family")
    options = parser.parse_args()
    torch.set_num_threads(1)
    import_module("transformers").logging.set_verbosity_error()
    for name in COMMON:
        import_module(f"transformers.{name}")
    named = {name: find_family(name) for name in options.family}
    for name, family in named.items():
        if family is None:
            parser.error(f"{name} is no model type with an Auto class of texts")
    families = [family for family in named.values() if family] if named else text_families()
    outcomes: Counter[str] = Counter()
    attending: Counter[str] = Counter()
    begun = time.perf_counter()
    print(
        "| family | layers x heads | outcome | edits | seconds | why |",
        "|---|---|---|---|---|---|",
        sep="\n",
        flush=True,
    )
    for family in families:
        started = time.perf_counter()
        outcome = in_a_fork(family, options.seconds)
        outcomes[outcome.kind] += 1
        if outcome.attends:
            attending[_what_users_get(outcome)] += 1
        seconds = time.perf_counter() - started
        why = "; ".join(filter(None, (outcome.reason.replace("\n", "; "), outcome.note and f"({outcome.note})")))
        print(
            f"| {family.model_type} | {outcome.shape} | {outcome.kind} | {outcome.edits} | {seconds:.1f} | {why} |",
            flush=True,
        )
    counts = ", ".join(f"{count} {kind}" for kind, count in outcomes.most_common())
    print(f"\n{sum(outcomes.values())} families: {counts}; {time.perf_counter() - begun:.0f} seconds")
    total = max(attending.total(), 1)
    print(
        f"of the {attending.total()} in which a softmax mixes tokens in at least one layer, or that read no text here:"
    )
    for name in WHAT_USERS_GET:
        print(f"  {name}: {attending[name]} ({attending[name] / total:.1%})")
    differing = [] if named else differing_pages(outcomes.total(), attending)
    for page in differing:
        print(f"docs/{page} has other numbers: {', '.join(numbers_of_page(page))}")
    return int(bool(outcomes["FAILED"] + outcomes["NOT BUILT"] or differing))


if __name__ == "__main__":
    sys.exit(main())
