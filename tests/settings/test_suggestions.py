"""Tests of suggestions for every setting with a typing error, or in the syntax of other programs' options."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

import pytest

from anaphora.base.errors import UserError
from anaphora.cli import COMMANDS
from anaphora.settings.arguments import OPTIONS_OF_HYDRA, default_groups
from anaphora.settings.help import check_arguments, nearest, setting_keys

Script = Callable[..., tuple[int, str, str]]
COMPOSED = [name for name, command in COMMANDS.items() if command.is_composed]


@cache
def keys_of(name: str) -> list[str]:
    return list(dict.fromkeys([*setting_keys(COMMANDS[name].schema), *(groups_of(name) or ())]))


@cache
def groups_of(name: str) -> list[str] | None:
    return list(default_groups(name)) if COMMANDS[name].is_composed else None


def message(name: str, *arguments: str) -> str:
    with pytest.raises(UserError) as error:
        check_arguments(arguments, COMMANDS[name].schema, groups_of(name))
    return str(error.value)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_setting_is_known_and_a_key_below_a_dictionary_is_free(name: str) -> None:
    check_arguments([f"{key}=1" for key in keys_of(name)], COMMANDS[name].schema, groups_of(name))
    check_arguments(["names.some_cell=x"], COMMANDS["study"].schema, groups_of("study"))


@pytest.mark.parametrize("name", COMMANDS)
def test_two_exchanged_letters_of_a_setting_are_noticed(name: str) -> None:
    keys = keys_of(name)
    for key in keys:
        start, last = re.fullmatch(r"(.*[./])?(\w+)", key).groups(default="")  # type: ignore[union-attr]
        middle = len(last) // 2
        wrong = start + last[: middle - 1] + last[middle] + last[middle - 1] + last[middle + 1 :]
        if len(last) > 4 and wrong not in keys:
            assert f"unknown setting {wrong}; did you mean {key}?" == message(name, f"{wrong}=1")


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_of_other_programs_names_the_full_key_or_several(name: str) -> None:
    keys = keys_of(name)
    for key in keys:
        last = re.split(r"[./]", key)[-1]
        ending = [last] if last in keys else [other for other in keys if re.search(rf"[./]{last}$", other)]
        for typed in ([f"--{last.replace('_', '-')}", "7"], [f"--{last}=7"], [last, "7"]):
            said = message(name, *typed)
            assert said.startswith(f"{' '.join(typed)}: write {ending[0]}=7")
            assert all(f"{other}=7" in said for other in ending[:4])


@pytest.mark.parametrize("name", COMPOSED)
def test_options_of_hydra_keep_their_meaning(name: str) -> None:
    for option, values in OPTIONS_OF_HYDRA.items():
        check_arguments([option, *["value"] * values, "output=x"], COMMANDS[name].schema, groups_of(name))
    assert "there is no such option" in message(name, "--zzzz")


def test_a_list_that_is_given_twice_is_refused_before_the_settings_are_composed() -> None:
    train = COMMANDS["train"].schema
    with pytest.raises(UserError, match=r"data.also=\[b\]: data.also is given twice; write one list"):
        check_arguments(["data.also=[a]", "seed=1", "data.also=[b]"], train, groups_of("train"))
    check_arguments(["data.also=[a]", "data.without=[b]", "seed=1", "seed=2"], train, groups_of("train"))


def test_nothing_is_suggested_for_what_is_like_nothing() -> None:
    check_arguments(["qqqq=1", "zz"], COMMANDS["corpus"].schema)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_command_names_the_nearest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert nearest(name[:-2] + name[-1] + name[-2], COMMANDS) == name
    assert nearest("zzzz", COMMANDS) is None


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("train", "--steps", "10"), "--steps 10: write optimizer.steps=10"),
        (("train", "optimizer.step=10"), "unknown setting optimizer.step; did you mean optimizer.steps?"),
        (("train", "-m", "nmae=a,b"), "unknown setting nmae; did you mean name?"),
        (("train", "data=dpt"), "Could not find 'data/dpt'; did you mean dpr?"),
        (("study", "study=claims/scalin"), "mirror, supervision_links, claims/cross_attention, "),
        (("attention", "--text", "Anna left."), "--text Anna left.: write 'text=Anna left.'"),
        (("attention", "trainer.devise=cpu"), "did you mean trainer.device?"),
    ],
)
def test_a_command_reports_what_was_meant_in_one_line(arguments: tuple[str, ...], error: str, script: Script) -> None:
    status, out, err = script(*arguments)
    assert (status, out) == (2, "")
    assert error in err and err.count("\n") == 1


@pytest.mark.skipif(find_spec("hydra_plugins") is not None, reason="the extra [cluster] is installed")
@pytest.mark.parametrize("plugin", ["hydra/launcher=joblib", "hydra/launcher=submitit_slurm", "hydra/sweeper=optuna"])
def test_a_launcher_that_is_not_installed_is_named_with_its_extra(plugin: str, script: Script) -> None:
    status, out, err = script("train", "-m", plugin, "seed=0,1")
    assert (status, out) == (2, "")
    assert err.startswith(f"error: {plugin} is not installed: ") and err.endswith("pip install 'anaphora[cluster]'\n")
