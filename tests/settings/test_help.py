"""Tests that each command's help explains its settings briefly, without importing torch."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass, field

import pytest

from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.cli import COMMANDS, help_of
from anaphora.settings.arguments import default_groups
from anaphora.settings.data import ControlledCorpus, Data
from anaphora.settings.help import _entries, check_arguments, listed_settings, options_of, setting_keys
from anaphora.settings.typed import construct
from anaphora.settings.variants import SLOTS

MOST_LINES = 90
COMPOSED = [name for name, command in COMMANDS.items() if command.is_composed]


@dataclass(kw_only=True)
class Program:
    """What a program of one's own does."""

    seeds: list[int] = field(default_factory=lambda: [0])  # one run each
    # How fast it
    # learns.
    rate: float = 0.1
    output: str | None = None  # the file
    data: Data = field(default_factory=ControlledCorpus)
    trainer: Device = field(default_factory=Device)


def named_in(page: str) -> set[str]:
    """Return the settings and groups that a help text explains."""
    return {found[1] for line in page.splitlines() if (found := re.match(r"  ([a-z_][\w./]*)(=| |$)", line))}


def test_a_setting_is_shown_with_type_default_and_meaning() -> None:
    page = re.sub(r" +", " ", listed_settings(Program))
    assert " seeds=[0] list of whole numbers: one run each\n" in page
    assert " rate=0.1 number: how fast it learns\n" in page
    assert " output text, optional: the file\n" in page
    assert " trainer.device=cpu text: `cpu` or `cuda`" in page
    assert " data=controlled name: one of controlled, jsonl" in page and "compositions" in page


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_each_setting_of_its_command_and_no_other(name: str) -> None:
    command = COMMANDS[name]
    own = {entry.key for entry in _entries(command.schema)}
    page = help_of(command, [])
    assert named_in(help_of(command, ["all"])) == own
    if command.is_composed:
        assert named_in(page) - set(default_groups(name)) <= own
        assert set(default_groups(name)) <= named_in(page)
    else:
        assert named_in(page) == own


def test_a_list_of_settings_begins_with_what_the_command_is_about() -> None:
    keys = [entry.key for entry in _entries(COMMANDS["score"].schema)]
    assert (keys[0], keys[-1]) == ("run", "overwrite")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_short_fits_the_terminal_and_has_an_example_of_existing_settings(name: str) -> None:
    command = COMMANDS[name]
    lines = help_of(command, []).splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, [*lines, *help_of(command, ["all"]).splitlines()])) <= 100
    example = next(line for line in lines if line.startswith("example: "))
    words = example.removeprefix(f"example: anaphora {name}").split()
    assert words or name == "demo"
    keys = {word.strip("'").partition("=")[0] for word in words if re.match(r"'?[a-z_./]+=", word)}
    groups = default_groups(name) if command.is_composed else {}
    assert keys <= {*setting_keys(command.schema), *groups}
    assert lines[0] and "docs/commands.md" in lines[-1]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_setting_has_a_meaning(name: str) -> None:
    for entry in _entries(COMMANDS[name].schema):
        explained = " ".join(entry.lines).partition(": ")[2]
        assert explained.strip() or entry.field.name == "kind", entry.key


@pytest.mark.parametrize("name", COMMANDS)
def test_a_setting_of_a_few_values_names_them(name: str) -> None:
    """The allowed values are those listed in the command's error message."""
    for entry in _entries(COMMANDS[name].schema):
        if entry.hint is not str or "." in entry.key:
            continue
        given = {one.key: "x" for one in _entries(COMMANDS[name].schema) if ", required" in one.lines[0]}
        try:
            construct(
                COMMANDS[name].schema, {key: given[key] for key in given if "." not in key} | {entry.key: "zzz"}, ""
            )
        except UserError as error:
            if found := re.match(rf"{entry.key} \('zzz'\) must be one of ([\w, ]+)$", str(error)):
                page, values = " ".join(entry.lines), found[1].split(", ")
                assert "`list` lists them" in page or all(re.search(rf"\b{one}\b", page) for one in values), page


@pytest.mark.parametrize("slot", SLOTS)
def test_the_help_of_a_slot_names_every_variant_and_each_of_their_settings(slot: str) -> None:
    page = help_of(COMMANDS["train"], [slot])
    assert {f"{slot}={option}" for option in options_of(slot)} >= set(re.findall(rf"  ({slot}=\w+)", page))
    keys = {key for key in setting_keys(COMMANDS["train"].schema) if key.startswith(f"{slot.replace('/', '.')}.")}
    assert {key for key in keys if not key.endswith(".kind")} <= named_in(page)


@pytest.mark.parametrize("name", COMPOSED)
def test_a_wrong_topic_names_the_nearest(name: str) -> None:
    with pytest.raises(UserError, match="did you mean trainer"):
        help_of(COMMANDS[name], ["triner"])
    check_arguments([], COMMANDS[name].schema)


def test_the_help_of_every_command_imports_no_torch_and_is_fast() -> None:
    code = (
        "import sys, time; from anaphora.cli import COMMANDS, help_of; "
        "[help_of(command, topics) for command in COMMANDS.values() for topics in ([], ['all'])]; "
        "assert not {'torch', 'pandas', 'rich', 'numpy'} & set(sys.modules); print(time.process_time())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 6  # of all together; one takes less than 0.6 s
