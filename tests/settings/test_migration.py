from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from anaphora.base.errors import UserError
from anaphora.settings.migration import with_present_keys
from anaphora.settings.run import Config
from anaphora.settings.stored import from_plain


@pytest.mark.parametrize(
    ("shuffled", "labels", "changes"),
    [(True, "shuffled", ["task.shuffled_labels -> task.labels=shuffled"]), (False, "gold", [])],
)
def test_a_run_stored_with_shuffled_labels_or_without_is_read_as_it_was(
    shuffled: bool, labels: str, changes: list[str], settings: Callable[..., Config]
) -> None:
    present = settings(f"task.labels={labels}")
    older: dict[str, Any] = dataclasses.asdict(present)
    del older["task"]["labels"]
    older["task"]["shuffled_labels"] = shuffled
    assert with_present_keys(older)[1] == changes
    assert older["task"]["shuffled_labels"] is shuffled
    assert from_plain(older, "a run") == present


@pytest.mark.parametrize("precision", [["16-mixed"], {"kind": "16-mixed"}])
def test_a_stored_value_of_a_wrong_kind_is_reported_by_its_setting(
    precision: Any, settings: Callable[..., Config]
) -> None:
    stored: dict[str, Any] = dataclasses.asdict(settings())
    stored["trainer"]["precision"] = precision
    assert with_present_keys(stored) == (stored, [])
    with pytest.raises(UserError, match=r"trainer.precision \(.*16-mixed.*\) must be of type"):
        from_plain(stored, "a run")
