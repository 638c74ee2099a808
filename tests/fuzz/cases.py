"""Settings of the fuzz tests: numbers of cases, allowed outcomes, and values that have caused errors."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as draw

from anaphora.base.errors import LONGEST_MESSAGE
from anaphora.cli import user_errors_exit

ALL_CASES = settings.get_profile("fuzz").max_examples
"""Number of cases of `make fuzz`."""
Result = TypeVar("Result")


def cases(share: float, quick: int) -> Callable[[Any], Any]:
    """Return a decorator with a test's share of the cases of `make fuzz`, or `quick` cases in ordinary test runs."""
    is_long = settings().max_examples == ALL_CASES
    return settings(
        max_examples=round(share * ALL_CASES) if is_long else quick,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def result_or_one_line(work: Callable[[], Result]) -> Result | None:
    """Return the result of a function, or None if it raises a one-line user error; any other failure fails the test."""
    written = io.StringIO()
    try:
        with contextlib.redirect_stderr(written), user_errors_exit():
            return work()
    except SystemExit as left:
        status = left.code
    begin, line = "error: ", written.getvalue()
    assert status == 2 and line.startswith(begin) and line.count("\n") == 1, line[:600]
    assert 0 < len(line.removeprefix(begin).strip()) <= LONGEST_MESSAGE, line[:600]
    return None


TROUBLE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3, 10**6, 10**9, 10**22, -(10**22), 2**31, 2**63, 2**64),
    *(0.5, -0.5, 1.5, 1e-9, 1e-320, 1e300, float("nan"), float("inf"), -float("inf")),
    *("", " ", "\n", "a\nb", "\t", "\0", "\ud800", "\udcff", "x" * 3000, "9" * 5000, "nan", "1e400", "-1", "[/bold]"),
    *(r"\${x}", "she ${x}"),
    *("${nothing}", "${oc.env:HOME}", "${", "???", "null", "..", "/", "~", "~nouser/x", "hf://", "hf:///"),
    *("\u202e", "她", "𠮷", "e\u0301", "*", "a" * 255 + "/b", "/dev/null", "[", "data=jsonl"),
    *([], [None], [0, 0], [-1, 2], ["a", "a"], [[]], ["", ""], {}, {"a": 1}, {"kind": "none"}, [{}], [1.5, "x"]),
)
"""Values that no setting expects, or that have caused errors."""


def plain_values(depth: int = 2) -> draw.SearchStrategy[Any]:
    """Return a strategy for values that YAML or JSON can represent."""
    leaves = draw.one_of(
        draw.sampled_from(TROUBLE), draw.integers(), draw.floats(), draw.text(max_size=20), draw.booleans()
    )
    if not depth:
        return leaves
    inner = plain_values(depth - 1)
    groups = draw.dictionaries(draw.text(max_size=5), inner, max_size=3)
    return draw.one_of(leaves, draw.lists(inner, max_size=4), groups)
