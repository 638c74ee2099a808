"""Tests that settings reject invalid numbers, blank words and duplicate entries, and that names are not paths."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from anaphora.base.errors import UserError
from anaphora.cli import COMMANDS
from anaphora.settings.arguments import settings_from
from anaphora.settings.help import comment_on
from anaphora.settings.run import Config
from anaphora.settings.typed import construct, resolve
from anaphora.studies.plan import StudyPlan

Settings = Callable[..., Config]


def leaves(settings: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and type of every numeric setting."""
    hints = typing.get_type_hints(type(settings))
    for one in dataclasses.fields(settings):
        value, path = getattr(settings, one.name), f"{before}{one.name}"
        if dataclasses.is_dataclass(value):
            yield from leaves(value, f"{path}.")
        elif hints[one.name] in (int, float, int | None, float | None):
            yield path, hints[one.name]


def with_leaf(config: Config, path: str, value: Any) -> dict[str, Any]:
    """Return the settings as plain values, with one of them changed."""
    plain = dataclasses.asdict(config)
    *folders, last = path.split(".")
    place = plain
    for folder in folders:
        place = place[folder]
    place[last] = value
    return plain


def test_no_number_is_infinite_or_none(settings: Settings) -> None:
    config = settings("experiment=token_values")
    numbers = [path for path, hint in leaves(config) if hint in (float, float | None)]
    assert len(numbers) > 15
    for path in numbers:
        for value in ("nan", math.nan, math.inf, -math.inf, "1e400"):
            with pytest.raises(UserError) as caught:
                construct(Config, with_leaf(config, path, value), "")
            assert path in str(caught.value) and "\n" not in str(caught.value)


def test_no_whole_number_is_beyond_every_use(settings: Settings) -> None:
    config = settings("experiment=token_values")
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
        ("task/prediction=slot; task.prediction.slots=100000000", r"slots \(100000000\) must be .* below 10000"),
        ("model/position=learned; model.position.max_length=1000000000", r"max_length \(1000000000\) .* below 1e\+06"),
        ("model/position=t5_relative; model.position.buckets=100000000", r"buckets \(100000000\) .* below 1e\+06"),
        ("vocabulary=bpe; vocabulary.size=1000000000", r"vocabulary.size \(1000000000\) .* below 1e\+07"),
        ("name=../../x", r"name \('../../x'\) must be the name of one directory"),
        ("name=/abs", "must be the name of one directory"),
        ("name=.", "no dot at the start"),
        (f"name={'x' * 300}", "at most 200 bytes"),
        ("output='  '", r"output \('  '\) is blank"),
        (r"output='\${x}'", r"output \('\$\{x\}'\) must not contain \$\{"),
        ("output='a\0b'", "output .* contains a character that no text can have"),
        ("output='\udcff'", "output .* contains a character that no text can have"),
        ("optimizer.frozen=[query,query]", r"optimizer.frozen .* must name each entry once; 'query' is listed twice"),
        ("task.supervision.heads=[0,0]", r"task.supervision.heads .* must name each entry once; 0 is listed twice"),
        ("data.types=[[]]", r"data.types \(\[\[\]\]\) must be of type"),
        ("data.types=[gender,gender]", r"data.types .* must name each entry once"),
    ],
)
def test_what_cannot_be_is_reported_before_anything_is_made(override: str, message: str, settings: Settings) -> None:
    with pytest.raises(UserError, match=message):
        settings("experiment=token_values", *override.split("; "))


def test_seeds_of_63_bits_are_taken(settings: Settings) -> None:
    assert settings(f"seed={2**63 - 1}").seed == 2**63 - 1


def test_shares_of_epochs_may_be_the_same(settings: Settings) -> None:
    assert settings("batching.shortest_first=[0.5,0.5]").batching.shortest_first == [0.5, 0.5]


def test_one_layer_is_supervised_once_whichever_end_it_is_counted_from(settings: Settings) -> None:
    supervised = ("task.supervision.weight=1", "model.layers=3")
    with pytest.raises(UserError, match=r"task.supervision.layers \(\[-1, 2\]\) names one of the 3 layers twice"):
        settings(*supervised, "task.supervision.layers=[-1,2]")
    assert settings(*supervised, "task.supervision.layers=[-1,1]").task.supervision.layers == [-1, 1]


@pytest.mark.parametrize(
    ("command", "overrides", "message"),
    [
        ("attention", ("text=x", "pronoun=she", "candidates=[Anna,' ']"), r"candidates \(' '\) is blank"),
        ("attention", ("text=x", "pronoun= "), r"pronoun \(' '\) is blank"),
        ("report", ("formats=[png,png]",), r"formats .* must name each entry once"),
        ("antecedents", ("by=[form,form]",), r"by .* must name each entry once; 'form' is listed twice"),
        ("cross_validate", ("runs=[]",), r"runs \(\[\]\) must name the runs of all folds"),
        ("evaluate", ("runs=[a,'']",), r"runs \(''\) is blank"),
        ("study", ("study=mirror", "more=['']"), r"more \(''\) is blank"),
    ],
)
def test_lists_hold_something_and_nothing_twice(
    command: str, overrides: tuple[str, ...], message: str, compose: Callable[..., Any]
) -> None:
    schema = COMMANDS[command].schema
    with pytest.raises(UserError, match=message):
        resolve(compose(*overrides, primary=command), schema) if command == "study" else settings_from(
            overrides, schema
        )


def test_overrides_behind_every_cell_are_written_as_their_comment_says(compose: Callable[..., Any]) -> None:
    example = "['trainer=smoke']"
    assert f"for instance {example}" in comment_on(StudyPlan, "more")
    assert compose("study=mirror", f"more={example}", primary="study").more == ["trainer=smoke"]


@pytest.mark.parametrize(
    ("overrides", "supervised"),
    [
        (["task/prediction=word"], set()),
        (["task/prediction=pointer"], {(1, 0)}),
        (["task/prediction=pointer", "task.prediction.layer=0", "task.prediction.head=1"], {(0, 1)}),
        (["task/prediction=word", "task.supervision.weight=0.1", "task.supervision.layers=[-2,1]"], {(0, 0), (1, 0)}),
        (["task/prediction=word", "task.supervision.layers=[-2,1]"], set()),
        (["task/prediction=pair_with_attention"], {(0, 0), (0, 1), (1, 0), (1, 1)}),
        (["task/prediction=pair"], set()),
    ],
)
def test_a_head_is_supervised_if_a_loss_trains_its_rows(
    settings: Callable[..., Config], overrides: list[str], supervised: set[tuple[int, int]]
) -> None:
    config = settings("model.layers=2", "model.attention.heads=2", *overrides)
    heads = {(layer, head) for layer in range(2) for head in range(2) if config.supervises(layer, head)}
    assert heads == supervised
