"""Composition of settings with Hydra, and sweeps (several runs of one command)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.default_element import GroupDefault
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import QuotedString, Sweep
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from anaphora.base.errors import UserError
from anaphora.base.files import new_draft, write_json
from anaphora.settings.arguments import CONFIGS, ENTRY, settings_and_options
from anaphora.settings.run import Config, MovedData
from anaphora.settings.training import DECIDE_RESULTS, refuse_without_effect
from anaphora.settings.typed import error_message, refuse_number, resolve, values_by_name
from anaphora.settings.variants import SLOTS, VARIANTS

_FAILURES_FOLDER = "ANAPHORA_SWEEP_FAILURES"
"""Environment variable for the folder in which sweep jobs record failures, including jobs on other machines."""
_SWEEP = "ANAPHORA_SWEEP"
"""Environment variable for the overrides of a sweep as they were typed, as a list in JSON."""
_WITHOUT_EFFECT = ("name=", "output=", "objective=", "trainer.progress=", "trainer.loggers=", "trainer.pictures=")
"""Overrides that do not change what a run computes, and are left out of the name of a job's run."""
_REGISTERED: dict[tuple[str | None, str], type[Any]] = {}
_LONGEST_NAME = 60  # characters, without the digest
_PLACES = ("name", "output", "resume", "start", "data.path", "resume_data.path", "data.seen_in")
"""Settings that hold the name or path of a file or folder."""
_LISTS = ("list[str]", "list[int]", "list[float]")
_PLACE = (str, QuotedString, type(None), list, dict, Sweep)
"""Types of parsed values that can be file or folder names; a list, dictionary or sweep holds several names."""


def register_configs(schemas: Mapping[str, type[Any]]) -> None:
    """Register the options of all config groups, and a schema for each config file, in Hydra's ConfigStore."""
    nodes: dict[tuple[str | None, str], type[Any]] = {(None, f"{name}_schema"): node for name, node in schemas.items()}
    for group, slot in SLOTS.items():
        nodes |= {(group, name): variant for name, variant in VARIANTS[slot.settings].items()}
    for place, node in nodes.items():
        if _REGISTERED.get(place) is not node:  # storing is slow: Hydra converts the schema each time
            ConfigStore.instance().store(group=place[0], name=place[1], node=node)
            _REGISTERED[place] = node


def with_quoted_texts(arguments: Sequence[str], schema: type[Any]) -> list[str]:
    """Return command-line arguments with quotes around file names that Hydra would misread, and brackets around lists.

    For example, Hydra parses the file name 2024_10_05 as a number and rejects Chinese characters. File names stay
    unchanged if Hydra parses them as a string, null, list, dictionary or sweep, or if they refer to another setting
    (`${...}`). Brackets are added only to lists of top-level settings; list elements that Hydra would not parse as
    strings are quoted. In a sweep, where commas separate the values for different jobs, lists are not changed, and a
    file name is quoted only if Hydra parses it as a number.
    """
    names = {field.name: str(field.type) for field in fields(schema)}
    sweeps = bool({"-m", "--multirun"} & set(arguments))
    quoted: list[str] = []
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if equals and names.get(key) in _LISTS and not sweeps:
            argument = f"{key}={_bracketed(value, of_texts=names[key] == 'list[str]')}"
        elif equals and key.split(".")[0] in names and key in _PLACES:
            is_misread = not sweeps and "${" not in value and not _is_read(argument, _PLACE)
            if is_misread or _is_read(argument, (int, float)):
                argument = f"{key}={_in_quotes(value)}"
        quoted.append(argument)
    return quoted


def checked_resume(arguments: Sequence[str]) -> list[str]:
    """Check the arguments of `train` for resuming a run, and return them with some keys renamed.

    The user gives new paths of moved data as `data.path=`, `data.also=` and `data.without=`. Hydra cannot compose these
    keys, since the kind of the data is only in the run's stored settings. The keys are therefore renamed to
    `resume_data.path=` and so on. Without `resume=`, the arguments are returned unchecked.

    Raises:
        UserError: an argument changes a setting that must not change, or `data.also` or `data.without` is not a list.
    """
    if not any(argument.startswith("resume=") for argument in arguments):
        return list(arguments)
    places = "|".join(field.name for field in fields(MovedData))
    resumed = [re.sub(rf"^data\.({places})=", r"resume_data.\1=", argument) for argument in arguments]
    for argument in resumed:
        if re.match(r"resume_data\.(also|without)=(?!\[)", argument):
            asked = argument.removeprefix("resume_")
            raise UserError(f"{asked} must be a list, as in {asked.replace('=', '=[', 1)}]")
        key = argument.lstrip("+~").partition("=")[0]
        group, _, name = key.partition(".")
        is_kept = key == "resume" or group == "resume_data" or (group == "trainer" and name not in DECIDE_RESULTS)
        if not is_kept and group != "hydra" and not argument.startswith("-"):
            raise UserError(
                f"{argument}: a resumed run keeps its settings; beside resume= only data.path, data.also and "
                "data.without (of data that were moved) and those of trainer are allowed, without "
                f"{', '.join(DECIDE_RESULTS)}"
            )
    return resumed


def for_hydra(arguments: Sequence[str]) -> list[str]:
    """Return command-line arguments in the form that Hydra reads.

    Options come last, because Hydra rejects settings on both sides of an option. A relative path after `--config-path`,
    which Hydra would look for in the package, becomes absolute.

    Raises:
        UserError: an option that changes only printed settings is given without `--cfg`; `hydra.run.dir` is given
            without another setting of Hydra, and so has no effect; or the folder of `--config-path` does not exist.
    """
    settings, options = settings_and_options(arguments)
    names = [option.partition("=")[0] for option in options]
    for name in ("--resolve", "--package", "-p"):
        if name in names and not {"--cfg", "-c"} & set(names):
            raise UserError(f"{name} changes only how settings are printed: write --cfg job too")
    of_hydra = [setting for setting in settings if setting.lstrip("+").startswith("hydra")]
    if len(of_hydra) == 1 and "hydra.run.dir=" in of_hydra[0] and not {"--config-name", "-cn"} & set(names):
        raise UserError(
            f"{of_hydra[0]} does not move the run, whose folder is set by output=... and name=...; with "
            "hydra.job.chdir=true, relative paths start from it"
        )
    for place, option in enumerate(options):
        name, equals, path = option.partition("=")
        if name in ("--config-path", "-cp") and equals:
            options[place] = f"{name}={_absolute(path)}"
        elif name in ("--config-path", "-cp") and place + 1 < len(options):
            options[place + 1] = _absolute(options[place + 1])
    return [*settings, *options]


def _absolute(path: str) -> str:
    if path.startswith("pkg://"):
        return path
    folder = Path(path).expanduser().absolute()
    if not folder.is_dir():
        raise UserError(f"--config-path ({path}): there is no such folder")
    return str(folder)


def _bracketed(value: str, of_texts: bool) -> str:
    """Put a list in brackets; return null, references to other settings (`${...}`) and function calls unchanged.

    If `of_texts`, entries that Hydra would not parse as strings are quoted.
    """
    if not value or value == "null" or "${" in value or re.fullmatch(r"\w+\(.*\)", value):
        return value
    entries = ENTRY.findall(value[1:-1] if value[0] + value[-1] == "[]" else value)
    if of_texts:
        texts = [entry.strip() for entry in entries]
        entries = [text if _is_read(f"entry={text}", (str, QuotedString)) else _in_quotes(text) for text in texts]
    return f"[{','.join(entries)}]"


def _is_read(argument: str, kinds: tuple[type[Any], ...]) -> bool:
    """Return whether Hydra parses the value of an argument as one of the types `kinds`."""
    try:
        value: Any = OverridesParser.create().parse_override(argument).value()
    except HydraException:
        return False
    return isinstance(value, kinds)


def _in_quotes(text: str) -> str:
    """Put a string in quotes and escape its special characters, so that Hydra takes the string literally."""
    escaped = re.sub(r'(\\*)("|$)', lambda found: 2 * found[1] + ('\\"' if found[2] else ""), text)
    return '"' + escaped.replace("${", "\\${") + '"'


def config_folder() -> Path:
    """Return the folder of the running command's YAML configuration; `CONFIGS` if the command does not use Hydra."""
    if not HydraConfig.initialized():
        return CONFIGS
    sources = HydraConfig.get().runtime.config_sources
    return Path(next(source.path for source in sources if source.provider == "main"))


def composed(folder: Path, command: str, overrides: Sequence[str], *, in_study: bool = False) -> DictConfig:
    """Compose the settings of a command with Hydra, even inside another command that Hydra runs.

    If `in_study` is true, overrides need not have an effect, since an override of a study applies to all its cells
    (configurations), and may have an effect in only some of them.

    Raises:
        HydraException: an override is invalid.
        UserError: the errors of `check_effects` or, if `in_study`, only those of `check_overrides`.
    """
    from hydra import compose, initialize_config_dir

    running = GlobalHydra.instance()
    outer, running.hydra = running.hydra, None  # Hydra allows one instance at a time
    try:
        with initialize_config_dir(str(folder.absolute()), version_base="1.3"):
            settings = compose(command, overrides=list(overrides))
            (check_overrides if in_study else check_effects)(overrides, settings)
            return settings
    finally:
        running.hydra = outer


def check_effects(overrides: Sequence[str], settings: DictConfig) -> None:
    """Check that the overrides of a command have an effect on the composed settings.

    In a job of a sweep, an override without effect is accepted if its effect depends on another override, or if it has
    an effect in another job of the sweep. Hydra must be initialised, because the check reads files of config groups.

    Raises:
        UserError: `objective` is set outside a sweep; also the errors of `refuse_without_effect` and `check_overrides`.
    """
    typed = _typed_values(overrides)
    if "objective" in typed and not is_sweep_job():
        raise UserError(f"objective={typed['objective']} has no effect without -m: it is what a sweep minimises")
    swept = [name.replace("/", ".") for name in typed] if is_sweep_job() else []
    refuse_without_effect(typed, partial(OmegaConf.select, settings), swept, _elsewhere)
    check_overrides(overrides, settings)


def check_overrides(overrides: Sequence[str], settings: DictConfig) -> None:
    """Check that no boolean is given as a number, and that no recipe or experiment overrides a file chosen by the user.

    Recipes and experiments are composed after the other config groups. In model=mine recipe=small, the recipe would
    therefore replace values of the file that model=mine names. An experiment may replace the values of a recipe,
    because this is its purpose.

    Raises:
        UserError: a boolean is a number, on the command line or in a file that it names, or a recipe or an experiment
            replaces a value of a file chosen by the user.
    """
    typed = _typed_values(overrides)
    for group, option in typed.items():
        for name, value in {group: option, **_file_settings(group, option)}.items():
            if isinstance(OmegaConf.select(settings, name.replace("/", ".")), bool):
                refuse_number(name if name == group else f"{group}={option}: {name}", value)
    replacing = [f"{group}={typed[group]}" for group in ("recipe", "experiment") if group in typed]
    chosen = {group: option for group, option in typed.items() if group not in ("recipe", "experiment")}
    for group, option in chosen.items() if replacing else ():
        for name, wanted in _values_of_file(group, option).items():
            place = name.replace("/", ".")
            others = [one.replace("/", ".") for one in typed if one != group]
            is_typed = any(place == one or place.startswith(f"{one}.") for one in others)
            given = OmegaConf.select(settings, f"{place}.kind" if "/" in name else place)
            if not is_typed and given != wanted and str(given) != str(wanted):
                raise UserError(
                    f"{group}={option} sets {name} to {wanted}, but {' '.join(replacing)} sets it to {given}: write "
                    f"{name}={wanted} too, or leave {group}={option} out"
                )


def _elsewhere() -> Iterator[Callable[[str], Any]]:
    """Yield, for each combination of options in the running sweep, a function that returns the value of a setting."""
    loader = GlobalHydra.instance().config_loader()
    typed = OverridesParser.create(loader).parse_overrides(json.loads(os.environ.get(_SWEEP, "[]")))
    options = {
        one.get_key_element(): list(one.sweep_string_iterator())
        for one in typed
        if one.is_choice_sweep() and loader.repository.group_exists(one.key_or_group)  # type: ignore[attr-defined]
    }
    others = [one for one in typed_overrides() if one.partition("=")[0] not in options]
    for chosen in product(*options.values()) if options else ():
        choices = [f"{group}={option}" for group, option in zip(options, chosen, strict=True)]
        with suppress(HydraException):  # this combination of options is invalid, and its job will fail
            name = HydraConfig.get().job.config_name
            yield partial(OmegaConf.select, loader.load_configuration(name, [*others, *choices], RunMode.RUN))


def _typed_values(overrides: Sequence[str]) -> dict[str, str]:
    """Return the values of the overrides, keyed by setting or config group; deletions (`~name`) are left out."""
    return {
        name: value
        for name, _, value in (one.lstrip("+").partition("=") for one in overrides if not one.startswith("~"))
    }


def _values_of_file(group: str, option: str) -> dict[str, Any]:
    """Return the values that the file of an option of a config group sets, keyed by the dotted name of the setting.

    Variants that the file chooses, such as a prediction head, are keyed by their group. References to other settings
    are left out. The result is empty if there is no such group, or if the option is no YAML file or sets values outside
    its group.
    """
    file = _file_of(group, option)
    if file is None or file.header["package"] is not None:
        return {}
    values: dict[str, Any] = {
        default.group.lstrip("/"): default.value
        for default in file.defaults_list
        if isinstance(default, GroupDefault) and default.override and default.group is not None
    }
    values = {slot: kind for slot, kind in values.items() if slot in SLOTS and kind in VARIANTS[SLOTS[slot].settings]}
    return values | _file_settings(group, option)


def _file_settings(group: str, option: str) -> dict[str, Any]:
    """Return the values that the file of an option sets, without references, keyed by the dotted setting name."""
    if (file := _file_of(group, option)) is None:
        return {}
    package = (file.header["package"] or group.replace("/", ".")).replace("_global_", "")
    return values_by_name(OmegaConf.to_container(file.config), package)


def _file_of(group: str, option: str) -> Any:
    repository = GlobalHydra.instance().config_loader().repository  # type: ignore[attr-defined]
    is_group = re.fullmatch(r"[\w/]+", group) and repository.group_exists(group)
    file = repository.load_config(f"{group}/{option}") if is_group else None
    return None if file is None or file.is_schema_source else file


def compose_run(folder: Path, overrides: Sequence[str], what: str) -> Config:
    """Return the checked settings of a training run, as `anaphora train` would compose them.

    Raises:
        UserError: an override or a setting is invalid; the message begins with `what`, the source of the overrides.
    """
    register_configs({"train": Config})
    try:
        return resolve(composed(folder, "train", overrides, in_study=True), Config)
    except (HydraException, OmegaConfBaseException, UserError) as error:
        raise UserError(f"{what}: {error_message(error)}") from None


def is_sweep_job() -> bool:
    """Return whether the running command is one job of a sweep."""
    return HydraConfig.initialized() and HydraConfig.get().mode is RunMode.MULTIRUN


def typed_overrides() -> list[str]:
    """Return the overrides of the running command or sweep job; none if the command does not use Hydra."""
    return list(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []


def job_overrides() -> list[str]:
    """Return the overrides of the running sweep job that may change its results."""
    return [override for override in typed_overrides() if not override.startswith(_WITHOUT_EFFECT)]


def job_name(overrides: list[str]) -> str:
    """Return the name of a sweep job's run, derived from its overrides, so that a requeued job finds its run.

    The name consists of a hash of all overrides and, before it, as many overrides as fit into 60 characters. Overrides
    at the beginning and the end are preferred, since Optuna puts the varied settings first, and users type them last.
    The key of an override is shortened to its last part.
    """
    shown: dict[int, str] = {}
    for end in range(len(overrides)):
        place = end // 2 if end % 2 else len(overrides) - 1 - end // 2
        key, _, value = overrides[place].partition("=")
        short = re.sub(r"[^\w.=+-]+", "_", f"{re.split(r'[./]', key)[-1]}={value}")
        if len(",".join([short, *shown.values()])) <= _LONGEST_NAME:
            shown[place] = short
    digest = hashlib.sha256(json.dumps(overrides).encode()).hexdigest()[:8]
    return "-".join([*([",".join(shown[place] for place in sorted(shown))] if shown else []), digest])


@contextmanager
def sweep_failures(lines: list[str]) -> Iterator[None]:
    """Append one line to `lines` for each sweep job in the `with` block that fails.

    The jobs record failures in a temporary subfolder of the working directory or, if that is not writable, of the
    system's temporary directory.
    """
    # The machines of a cluster share the working directory but not /tmp.
    place = Path.cwd() if os.access(Path.cwd(), os.W_OK) else Path(tempfile.gettempdir())
    before = os.environ.get(_FAILURES_FOLDER)
    with new_draft(place, None) as folder:
        os.environ[_FAILURES_FOLDER] = str(folder)
        os.environ[_SWEEP] = json.dumps(settings_and_options(sys.argv[1:])[0])
        try:
            yield
        finally:
            records = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
            records.sort(key=lambda record: int(record["job"]))
            lines += [f"{record['overrides']}: {record['reason']}" for record in records]
            os.environ.pop(_FAILURES_FOLDER)
            os.environ.pop(_SWEEP)
            if before is not None:
                os.environ[_FAILURES_FOLDER] = before


def note_failure(reason: str) -> None:
    """Record why the running sweep job failed, for `sweep_failures` in the process that started the sweep."""
    job = HydraConfig.get().job
    record = {"job": job.num, "overrides": ",".join(HydraConfig.get().overrides.task), "reason": reason}
    write_json(Path(os.environ[_FAILURES_FOLDER]) / f"{job.num}.json", record)
