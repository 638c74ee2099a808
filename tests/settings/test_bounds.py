"""No setting takes a number that is none, or one beyond every use; no name leads elsewhere."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from anaphora.base.errors import UserError
from anaphora.settings.run import Config
from anaphora.settings.typed import construct

Settings = Callable[..., Config]


def leaves(settings: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting that holds a number, with its type."""
    hints = typing.get_type_hints(type(settings))
    for one in dataclasses.fields(settings):
        value, path = getattr(settings, one.name), f"{before}{one.name}"
        if dataclasses.is_dataclass(value):
            yield from leaves(value, f"{path}.")
        elif hints[one.name] in (int, float, int | None, float | None):
            yield path, hints[one.name]


def with_leaf(config: Config, path: str, value: Any) -> dict[str, Any]:
    """The settings as plain values, one of them another."""
    plain = dataclasses.asdict(config)
    *folders, last = path.split(".")
    place = plain
    for folder in folders:
        place = place[folder]
    place[last] = value
    return plain


def test_no_number_is_infinite_or_none(settings: Settings) -> None:
    config = settings("experiment=demo")
    numbers = [path for path, hint in leaves(config) if hint in (float, float | None)]
    assert len(numbers) > 15
    for path in numbers:
        for value in ("nan", math.nan, math.inf, -math.inf, "1e400"):
            with pytest.raises(UserError) as caught:
                construct(Config, with_leaf(config, path, value), "")
            assert path in str(caught.value) and "\n" not in str(caught.value)


def test_no_whole_number_is_beyond_every_use(settings: Settings) -> None:
    config = settings("experiment=demo")
    whole = [path for path, hint in leaves(config) if hint in (int, int | None)]
    assert len(whole) > 10
    for path in whole:
        for value in (10**22, -(10**22), math.nan, "inf"):
            with pytest.raises(UserError):
                construct(Config, with_leaf(config, path, value), "")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed=-1", r"seed \(-1\) must be at least 0"),
        (f"seed={2**63}", r"must be at least 0 and below 2\*\*63"),
        ("data.seed=-1", r"data.seed \(-1\) must be at least 0"),
        ("model.width=1000000", r"model.width \(1000000\).* weights; at most 2e\+09 fit"),
        ("model.feed_forward.expansion=1e9", r"model.feed_forward.expansion \(1e\+09\).* weights; at most"),
        ("model.layers=100000000", r"model.layers \(100000000\).* weights; at most"),
        ("name=../../x", r"name \('../../x'\) must be the name of one directory"),
        ("name=/abs", "must be the name of one directory"),
        ("name=.", "no dot in front"),
        (f"name={'x' * 300}", "at most 200 bytes"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_made(override: str, message: str, settings: Settings) -> None:
    with pytest.raises(UserError, match=message):
        settings("experiment=demo", override)


def test_seeds_of_63_bits_are_taken(settings: Settings) -> None:
    assert settings(f"seed={2**63 - 1}").seed == 2**63 - 1
