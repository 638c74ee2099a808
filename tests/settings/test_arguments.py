"""Tests of `key=value` parsing without Hydra, and of one-line errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hypothesis import given
from hypothesis import strategies as draw
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.settings.arguments import CONFIGS, settings_from
from anaphora.settings.compose import with_quoted_texts
from anaphora.settings.data import ControlledCorpus, Data, Gap
from anaphora.settings.typed import construct


@dataclass(kw_only=True)
class Program:
    """Settings of a user's program."""

    runs: list[str] = field(default_factory=list)
    seeds: list[int] = field(default_factory=lambda: [0])
    output: str | None = None
    rate: float = 0.1
    keep: bool = True
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


def test_a_list_that_is_given_twice_loses_no_entry_without_a_word() -> None:
    with pytest.raises(UserError, match=r"runs=b: runs is given twice; write one list, as in runs=\[first,second\]"):
        settings_from(["runs=a", "runs=b"], Program)
    assert settings_from(["rate=1", "rate=2"], Program).rate == 2


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
        ("rate=[1", "rate ('[1') must be of type float"),
        ("seeds=a", "seeds (['a']) must be of type list[int]"),
        ("seeds=[[1]]", "seeds"),
        ("seeds=null", "seeds cannot be null; leave it out to keep its default"),
        ("steps=1:30", "steps ('1:30') must be of type int"),
        ("steps=0x10", "steps"),
        ("steps=2024-99-99", "steps ('2024-99-99') must be of type int"),
        ("rate=", "rate ('') must be of type float"),
        ("data=none", "data.kind ('none') must be one of controlled"),
        ("data=jsn", "chnsenticorp; did you mean jsonl?"),
        ("data.path=x", "unknown setting data.path"),
        ("data=null", "data cannot be null"),
        ("data=../trainer/gpu", "data.kind ('../trainer/gpu') must be one of controlled"),
        ("trainer=x", "trainer=x: there is no configs/trainer/x.yaml; allowed: default, gpu, smoke"),
        ("trainer=smoke", "unknown setting trainer."),
        ("rate=*x", "rate ('*x') must be of type float"),
        ("rate=!!python/object:os.system", "rate ('!!python/object:os.system') must be of type float"),
        ("output=${rate}", "must not contain ${"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_setting(argument: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        settings_from([argument], Program)
    assert message in str(error.value) and "\n" not in str(error.value)


PRESETS = sorted(path.stem for path in (CONFIGS / "data").glob("*.yaml"))
ON_FILES = ("cluewsc_folds", "gap_fine_tuning")
ENTRIES = draw.one_of(
    draw.text("abzAZ019_./-", min_size=1, max_size=6), draw.integers(-5, 2000).map(str), draw.just("'a, b'")
).filter(lambda entry: entry not in ("null", "true", "false"))


@pytest.mark.parametrize("preset", PRESETS)
def test_the_files_of_data_are_read_as_hydra_reads_them(preset: str, compose: Callable[..., Any]) -> None:
    arguments = [f"data={preset}", *(["data.path=x"] if preset in ON_FILES else [])]
    composed = OmegaConf.to_container(compose(*arguments).data)
    assert isinstance(composed, dict)
    assert settings_from(arguments, Program).data == construct(Data, composed, "")


def both(argument: str) -> tuple[Any, Any]:
    """Parse an argument with Hydra and with this package, and return both settings, with None for an error."""
    read: list[Program | None] = []
    for parse in (by_hydra, lambda one: settings_from([one], Program)):
        try:
            read.append(parse(argument))
        except (UserError, HydraException, OmegaConfBaseException):
            read.append(None)
    return read[0], read[1]


def by_hydra(argument: str) -> Program:
    (override,) = OverridesParser.create().parse_overrides(with_quoted_texts([argument], Program))
    config = OmegaConf.structured(Program)
    value = override.value()
    OmegaConf.update(config, override.key_or_group, getattr(value, "text", value), merge=True)
    return construct(Program, {"data": {"kind": "controlled"}} | plain_of(config), "")


def plain_of(config: Any) -> dict[str, Any]:
    plain = OmegaConf.to_container(config)
    assert isinstance(plain, dict)
    return {str(name): value for name, value in plain.items() if name != "data"}


@given(draw.lists(ENTRIES, max_size=4, unique=True), draw.booleans())
def test_lists_are_read_as_hydra_reads_them(entries: list[str], brackets: bool) -> None:
    written = ",".join(entries)
    hydra, own = both(f"runs=[{written}]" if brackets or not entries else f"runs={written}")
    assert hydra == own


@pytest.mark.parametrize(
    "argument",
    [
        *("runs=null", "seeds=null", "steps=null", "output=null", "rate=null", "seeds=[1,2]", "seeds=3", "seeds=[1,a]"),
        *(
            "seeds=[]",
            "runs=[]",
            "steps=07",
            "steps=1_000",
            "steps=1.0",
            "steps=true",
            "rate=1",
            "rate=1e-3",
            "rate=.5",
        ),
        *("rate=true", "keep=yes", "keep=false", "keep=no", "keep=x", "keep=null", "steps=-3", "steps=+3"),
    ],
)
def test_numbers_and_nulls_are_read_as_hydra_reads_them(argument: str) -> None:
    hydra, own = both(argument)
    assert hydra == own


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ('output="It fell," said Anna.', '"It fell," said Anna.'),
        ('output="It fell."', '"It fell."'),
        ("output='Tis she, he said.", "'Tis she, he said."),
        ("output=小红被美玲救了，因为她很虚弱。", "小红被美玲救了，因为她很虚弱。"),
        ("output=[MASK] was = 1", "[MASK] was = 1"),
        ("output=7:15", "7:15"),
        ("output=true", "true"),
        ("output=1e5", "1e5"),
        ("runs=[7:15,9:40]", ["7:15", "9:40"]),
        ("runs=7:15,9:40", ["7:15", "9:40"]),
        ("runs=[3,2:1,007:015]", ["3", "2:1", "007:015"]),
        ("runs=['Tis he,O'Brien's,'a, b' , \"Anna]", ["'Tis he", "O'Brien's", "a, b", '"Anna']),
        ('runs=[小红, "美玲"]', ["小红", "美玲"]),
        ("runs=小红", ["小红"]),
        ("runs=[true,No,null,1e3,2024_10_05]", ["true", "No", "null", "1e3", "2024_10_05"]),
        ("runs=[]", []),
    ],
)
def test_texts_are_read_as_they_are_typed(typed: str, read: object) -> None:
    assert getattr(settings_from([typed], Program), typed.partition("=")[0]) == read
