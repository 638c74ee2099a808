"""Tests that any values of one or two settings yield valid settings or a one-line error that names the problem."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from cases import TROUBLE, cases, plain_values, result_or_one_line
from hydra import compose, initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as draw
from omegaconf import DictConfig, OmegaConf

from anaphora.cli import COMMANDS, register_commands
from anaphora.settings.arguments import CONFIGS, settings_from
from anaphora.settings.run import Config, config_yaml, read_config
from anaphora.settings.typed import construct
from anaphora.settings.variants import SLOTS, VARIANTS

NEEDED = {
    "attention": ("text=she",),
    "explain": ("example=by_hand",),
    "export": ("output=somewhere",),
    "gap": ("data.path=somewhere", "weights=somewhere"),
    "study": ("study=mirror",),
    "coreference": ("key=somewhere", "response=somewhere"),
    "cross_validate": ("runs=[a,b]",),
}
"""Required arguments of commands."""
VARIANT_NAMES = sorted((group, name) for group, slot in SLOTS.items() for name in VARIANTS[slot.settings])


@functools.cache
def composed(name: str) -> DictConfig:
    """Return the default settings of a command."""
    if not COMMANDS[name].is_composed:
        return OmegaConf.create(dataclasses.asdict(settings_from(NEEDED.get(name, ()), COMMANDS[name].schema)))
    register_commands()
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        return compose(name, overrides=list(NEEDED.get(name, ())))


@functools.cache
def leaves(name: str) -> dict[str, Any]:
    """Return the path and value of every leaf of a command's settings."""
    plain = OmegaConf.to_container(composed(name), resolve=False)
    assert isinstance(plain, dict)
    return dict(_leaves(plain))


def _leaves(plain: Mapping[Any, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in plain.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def like(value: Any) -> draw.SearchStrategy[Any]:
    """Return a strategy for values of the same type, mostly small numbers."""
    match value:
        case bool():
            return draw.booleans()
        case int():
            return draw.one_of(draw.integers(-3, 12), draw.integers())
        case float():
            return draw.one_of(draw.floats(0, 1), draw.floats())
        case list():
            inner = like(value[0]) if value else draw.one_of(draw.integers(-3, 3), draw.text(max_size=5))
            return draw.lists(draw.one_of(inner, draw.sampled_from(value)) if value else inner, max_size=4)
        case _:
            return draw.one_of(draw.none(), draw.integers(0, 9), draw.text(max_size=12))


@draw.composite
def changes(draws: draw.DrawFn, name: str, most: int) -> list[tuple[str, Any]]:
    """Draw one or more settings of a command, each with a new value of its type or of any type."""
    paths = draws(draw.lists(draw.sampled_from(sorted(leaves(name))), min_size=1, max_size=most, unique=True))
    return [(path, draws(draw.one_of(like(leaves(name)[path]), plain_values()))) for path in paths]


def changed(base: DictConfig, new: list[tuple[str, Any]]) -> DictConfig:
    """Return a copy with other values, converted to the settings' types as overrides are."""
    config = copy.deepcopy(base)
    for path, value in new:
        OmegaConf.update(config, path, value, merge=False)
    return config


def numbers_and_words(value: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(value):
        for one in dataclasses.fields(value):
            yield from numbers_and_words(getattr(value, one.name))
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from numbers_and_words(one)
    else:
        yield value


def holds(settings: Any) -> None:
    """Check the invariants of accepted settings."""
    for value in numbers_and_words(settings):
        if isinstance(value, float):
            assert math.isfinite(value)
        if isinstance(value, str):
            assert "\0" not in value
            value.encode("utf-8")


@cases(share=0.35, quick=120)
@given(draw.data())
def test_any_value_of_one_setting_or_two_is_taken_or_refused_in_one_line(data: draw.DataObject) -> None:
    name = data.draw(draw.sampled_from(sorted(COMMANDS)))
    new = data.draw(changes(name, most=2))
    settings = result_or_one_line(lambda: COMMANDS[name].settings(changed(composed(name), new)))
    if settings is not None:
        holds(settings)


@cases(share=0.15, quick=40)
@given(draw.data())
def test_whatever_stands_behind_the_sign_of_equality_is_taken_or_refused_in_one_line(data: draw.DataObject) -> None:
    name = data.draw(draw.sampled_from(sorted(COMMANDS)))
    path = data.draw(draw.sampled_from(sorted(leaves(name))))
    signs = draw.text("[]{}()'\"\\,:=+-~/@#$!*?. \n\taZ09她", max_size=12)
    written = data.draw(draw.one_of(signs, draw.text(max_size=12), draw.sampled_from([str(one) for one in TROUBLE])))
    begin = data.draw(draw.sampled_from(["", "", "", "+", "++", "~"]))

    def settled() -> Any:
        if not COMMANDS[name].is_composed:
            return settings_from([*NEEDED.get(name, ()), f"{begin}{path}={written}"], COMMANDS[name].schema)
        parsed = OverridesParser.create().parse_overrides([f"{begin}{path}={written}"])
        config = copy.deepcopy(composed(name))
        ConfigLoaderImpl._apply_overrides_to_config(parsed, config)
        return COMMANDS[name].settings(config)

    settings = result_or_one_line(settled)
    if settings is not None:
        holds(settings)


@cases(share=0.15, quick=100)
@given(draw.data())
def test_any_value_of_a_variant_is_taken_or_refused_in_one_line(data: draw.DataObject) -> None:
    group, name = data.draw(draw.sampled_from(VARIANT_NAMES))
    variant = VARIANTS[SLOTS[group].settings][name]
    plain = dataclasses.asdict(variant())
    plain |= {"path": "somewhere"} if "path" in plain else {}
    for path in data.draw(draw.lists(draw.sampled_from(sorted(plain)), min_size=1, max_size=2, unique=True)):
        plain[path] = data.draw(draw.one_of(like(plain[path]), plain_values()))
    settings = result_or_one_line(lambda: construct(SLOTS[group].settings, plain, group.replace("/", ".")))
    if settings is not None:
        holds(settings)


@cases(share=0.05, quick=25)
@given(draw.data())
def test_settings_that_a_run_takes_are_read_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, data: draw.DataObject
) -> None:
    new = data.draw(changes("train", most=2))
    config = result_or_one_line(lambda: COMMANDS["train"].settings(changed(composed("train"), new)))
    if config is not None:
        assert isinstance(config, Config)
        path = tmp_path_factory.getbasetemp() / "fuzzed_config.yaml"
        path.write_text(config_yaml(config), encoding="utf-8")
        assert read_config(path) == config


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_leaf_of_a_command_is_tried(name: str) -> None:
    hints = typing.get_type_hints(COMMANDS[name].schema)
    assert {path.partition(".")[0] for path in leaves(name)} <= set(hints)
    assert len(leaves(name)) >= 2
