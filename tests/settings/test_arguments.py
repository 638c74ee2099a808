"""Settings from `key=value`, without Hydra: read as typed, and every mistake is one line."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.settings.arguments import listed_settings, settings_from
from anaphora.settings.data import ControlledCorpus, Data, Gap


@dataclass(kw_only=True)
class Program:
    """What a program of one's own does."""

    runs: list[str] = field(default_factory=list)
    seeds: list[int] = field(default_factory=lambda: [0])
    output: str | None = None
    rate: float = 0.1
    steps: int | None = None
    data: Data = field(default_factory=ControlledCorpus)
    trainer: Device = field(default_factory=Device)


def test_values_are_read_as_they_are_typed() -> None:
    read = settings_from(
        ["runs=[a,2024_10,null]", "seeds=1,2", "output=2024_10_05", "rate=1e-3", "steps=null"], Program
    )
    assert (read.runs, read.seeds, read.output) == (["a", "2024_10", "null"], [1, 2], "2024_10_05")
    assert (read.rate, read.steps) == (0.001, None)
    assert settings_from(["output=a: [b, 'c'", "runs=x"], Program).output == "a: [b, 'c'"
    assert settings_from(["output=null"], Program).output is None


def test_a_slot_takes_a_variant_and_its_settings() -> None:
    chosen = ["data=gap", "data.path=7", "trainer.device=cuda"]
    for arguments in (chosen, chosen[::-1]):
        assert settings_from(arguments, Program).data == Gap(path="7")
    assert settings_from([], Program) == Program()


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("rats=1", "unknown setting rats; did you mean rate?"),
        ("trainer.devise=cpu", "unknown setting trainer.devise"),
        ("nothing.at.all=1", "unknown setting nothing"),
        ("runs.first=1", "runs"),
        ("output.x=1", "output"),
        ("rate", "'rate' must be a setting and its value, as in seed=3"),
        ("=1", "'=1' must be a setting and its value"),
        (".=1", "unknown setting"),
        ("rate=fast", "rate ('fast') must be of type float"),
        ("rate=[1", "rate=[1: this value cannot be read"),
        ("seeds=a", "seeds (['a']) must be of type list[int]"),
        ("seeds=[[1]]", "seeds"),
        ("steps=2024-99-99", "this value cannot be read"),
        ("rate=", "rate (None) must be of type float"),
        ("data=none", "data.kind ('none') must be one of controlled"),
        ("data.path=x", "data.kind"),
        ("trainer=gpu", "trainer ('gpu') must be a group of settings"),
        ("rate=*x", "rate=*x: this value cannot be read"),
        ("rate=!!python/object:os.system", "rate=!!python/object:os.system: this value cannot be read"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_setting(argument: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        settings_from([argument], Program)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_group_that_is_given_as_a_value_is_named() -> None:
    with pytest.raises(UserError, match=r"trainer.device=cpu: trainer \('x'\) is no group of settings"):
        settings_from(["trainer.device=cpu", "trainer=x"], Program)


def test_help_lists_every_setting_with_its_default() -> None:
    lines = listed_settings(Program).splitlines()
    assert lines[0] == "What a program of one's own does."
    assert "  rate: float = 0.1" in lines and "  seeds: list[int] = [0]" in lines
