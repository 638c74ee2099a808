"""The command line: one table of commands, and what stands around each: compose, check, run, report a mistake."""

from __future__ import annotations

import ast
import contextlib
import errno
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from anaphora.base.checks import one_of
from anaphora.base.errors import UserError, one_line
from anaphora.base.language import LANGUAGES
from anaphora.base.locale.translation import VARIABLE, _, environment_language
from anaphora.runs.presence import refuse_missing
from anaphora.runs.processes import started_processes
from anaphora.runs.requeue import until_requeued
from anaphora.runs.warm_start import with_start_model
from anaphora.settings.arguments import listed_settings, settings_from
from anaphora.settings.commands.analysis import (
    AntecedentSelection,
    CorpusDescription,
    CrossValidation,
    Drawing,
    Evaluation,
    Export,
    Extraction,
    LabelTable,
    NameDecisions,
    Report,
    RunComparison,
    Scoring,
    TrainedControls,
    Transfer,
)
from anaphora.settings.commands.atlas import Atlas
from anaphora.settings.commands.attention import AttentionQuery
from anaphora.settings.commands.explanation import Explanation
from anaphora.settings.commands.live import LivePage
from anaphora.settings.commands.study import StudyPlan
from anaphora.settings.compose import (
    composed_once,
    error_message,
    is_sweep_job,
    note_failure,
    register_configs,
    sweep_failures,
    with_place_of_resumed_data,
    with_quoted_texts,
)
from anaphora.settings.run import Config
from anaphora.settings.typed import resolve


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes:
        config: the file of `configs` that is composed, without ".yaml".
        schema: the settings that it becomes; a wrong one stops the command before torch is imported.
        work: "module:function" below `anaphora.commands`; the module is imported once the settings are right and the
            runs, files and device that they name are there.
    """

    config: str
    schema: type[Any]
    work: str

    def settings(self, composed: DictConfig) -> Any:
        """The checked settings; those of a training run take over the encoder of what they start from."""
        checked = resolve(composed, self.schema)
        return with_start_model(checked) if isinstance(checked, Config) else checked

    def run(self, composed: DictConfig) -> Any:
        """Check and work; what a training returns is what the sampler of a sweep minimises."""
        settings = self.settings(composed)
        refuse_missing(settings)
        module, function = self.work.split(":")
        return getattr(import_module(f"anaphora.commands.{module}"), function)(settings)


COMMANDS: dict[str, Command] = {
    "antecedents": Command("antecedents", AntecedentSelection, "antecedents:measure_antecedents"),
    "atlas": Command("atlas", Atlas, "atlas:draw_atlas"),
    "attention": Command("attention", AttentionQuery, "attention:show_attention"),
    "compare": Command("compare", RunComparison, "compare:compare"),
    "corpus": Command("corpus", CorpusDescription, "corpus:describe"),
    "cross_validate": Command("cross_validate", CrossValidation, "cross_validate:cross_validate"),
    "demo": Command("demo", Config, "demo:demonstrate"),
    "evaluate": Command("evaluate", Evaluation, "evaluate:evaluate"),
    "evidence": Command("evidence", TrainedControls, "evidence:train_controls"),
    "explain": Command("explain", Explanation, "explain:explain"),
    "export": Command("export", Export, "export:export"),
    "extract_attention": Command("extract_attention", Extraction, "extract_attention:extract"),
    "gap": Command("gap", NameDecisions, "gap:evaluate_name_decisions"),
    "labels": Command("labels", LabelTable, "labels:compare_labels"),
    "plot_attention": Command("plot_attention", Drawing, "plot_attention:plot"),
    "report": Command("report", Report, "report:report"),
    "score_attention": Command("score_attention", Scoring, "score_attention:score_heads"),
    "serve": Command("serve", LivePage, "serve:serve_page"),
    "study": Command("study", StudyPlan, "study:study"),
    "train": Command("train", Config, "train:train"),
    "transfer": Command("transfer", Transfer, "transfer:transfer"),
}
"""Every command, by the name that a user types."""


_OF_HYDRA = {
    "Config group override": "a group takes the name of one of its choices, not null; leave it out instead",
    "Exceeds the limit": "a setting has a whole number with more digits than can be read",
}
"""What plain errors that Hydra lets through mean, by a part of their text."""
_GROUPS = (
    "a group takes the name of one of its choices, and its settings need it beside them (data=jsonl data.path=...)"
)
_OUT_OF_MEMORY = "not enough memory; lower batching.tokens, model.width or the length of the texts"
_OF_THE_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENAMETOOLONG, errno.ELOOP}
"""It is full, may not be written, or has no such path: no fault of the program."""


def main() -> None:
    """Run the command that the first command-line argument names, as in `anaphora train seed=3`.

    A script of your own can register parts and then call this function: `python mine.py train seed=3` then runs a
    command that knows these parts.
    """
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name in ("--help", "-h"):
        print(overview())
        return
    if name == "--version":
        from importlib.metadata import version

        print(f"anaphora {version('anaphora')}")
        return
    if name not in COMMANDS:
        problem = f"there is no command {name!r}" if name else "a command is missing"
        sys.exit(report_error(UserError(f"{problem}; allowed: {', '.join(COMMANDS)}")))
    del sys.argv[1]
    run_command(name)


def overview() -> str:
    """What `anaphora --help` prints: every command with what it does, which is read and not imported."""
    lines = ["usage: anaphora COMMAND [setting=value ...]", "", "commands:"]
    for name, command in COMMANDS.items():
        path = Path(__file__).parent / "commands" / f"{command.work.partition(':')[0]}.py"
        does = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        lines.append(f"  {name:<19}{does.splitlines()[0]}")
    return "\n".join([*lines, "", "The settings of one command: anaphora COMMAND --help"])


def run_command(name: str) -> None:
    """Compose the settings of a command from the arguments, check them and run it.

    A user's mistake ends the process with one line and exit status 2.
    """
    from hydra import main as hydra_main

    command = COMMANDS[name]
    with user_errors_exit():
        one_of(VARIABLE, environment_language(), LANGUAGES)
        check_processes(name)
        check_model_name(command.schema, sys.argv[1:])
    if name == "train":
        sys.argv[1:] = with_place_of_resumed_data(sys.argv[1:])
    sys.argv[1:] = with_quoted_texts(sys.argv[1:], command.schema)
    register_configs({each.config: each.schema for each in COMMANDS.values()})
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises composition errors instead of printing them at length

    def work(composed: DictConfig) -> Any:
        if is_sweep_job():
            return run_job(command, composed)
        with user_errors_exit():  # here too, for Hydra prints a preface to what leaves a job as an exception
            return command.run(composed)

    work.__module__ = f"anaphora.commands.{name}"  # from it Hydra takes the name of the job
    failures: list[str] = []
    try:
        with user_errors_exit(), sweep_failures(failures), composed_once(sys.argv[1:]):
            hydra_main(version_base="1.3", config_path=str(configs_folder()), config_name=command.config)(work)()
    finally:  # also where the launcher itself ends with an error, as when a job was killed
        if failures:
            headline = f"{len(failures)} of the sweep's jobs failed:"
            print(headline, *failures, sep="\n  ", file=sys.stderr)
    if failures:
        sys.exit(1)


def run_program(schema: type[Any], work: Callable[[Any], object]) -> None:
    """Read the settings of a program outside the package from its arguments, check them and do its work.

    A user's mistake ends the process with one line and exit status 2.

    Args:
        schema: the program's settings; `--help` lists them.
        work: what to do with them. It imports what is heavy itself, so that a mistake is reported at once.
    """
    if {"--help", "-h"} & set(sys.argv[1:]):
        print(listed_settings(schema))
        return
    with user_errors_exit():
        settings = settings_from(sys.argv[1:], schema)
        refuse_missing(settings)
        work(settings)


def check_processes(name: str) -> None:
    """Refuse to run a command in several processes that each of them would do whole.

    Raises:
        UserError: torchrun or srun started several, and the command trains no run, or a sweep of them.
    """
    processes = started_processes()
    if name != "train":
        processes.check_single(name)
    elif {"-m", "--multirun"} & set(sys.argv):
        processes.check_single("a sweep (-m)")
    if processes.count > 1:
        # Read when torch is loaded, which has not happened yet: DistributedDataParallel warns of what is intended here.
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")


def check_model_name(schema: type[Any], arguments: Sequence[str]) -> None:
    """Refuse to name a model by `model=`, which elsewhere describes the parts of an encoder.

    Raises:
        UserError: a command that reads models of any kind gets one under that name.
    """
    for argument in arguments:
        if argument.startswith("model=") and getattr(schema, "any_model", False):
            name = argument.removeprefix("model=")
            given = f"run={name}" if hasattr(schema, "run") else f"'runs=[{name}]'"
            raise UserError(f"{argument}: this command takes a model as {given}; model= names the parts of an encoder")


def run_job(command: Command, composed: DictConfig) -> Any:
    """One job of a sweep: where it fails, that is written down, and the others go on.

    Returns:
        What the command returns; infinity where it failed, the worst value for a sampler that minimises. Optuna ends
        a sweep at NaN.
    """
    from hydra.errors import HydraException

    try:
        with until_requeued():
            return command.run(composed)
    except (UserError, HydraException, OmegaConfBaseException) as error:
        note_failure(error_message(error))
    except Exception as error:  # such as memory that ran out
        traceback.print_exc()
        note_failure(one_line(error))
    return math.inf


@contextlib.contextmanager
def user_errors_exit() -> Iterator[None]:
    """A block that ends the process with one line: a user's mistake with exit status 2, an interrupt with 130."""
    from hydra.errors import HydraException

    try:
        yield
    except (UserError, HydraException, OmegaConfBaseException) as error:
        sys.exit(report_error(error))
    except (ValueError, TypeError, AssertionError) as error:
        reason = next((meaning for part, meaning in _OF_HYDRA.items() if part in str(error)), None)
        if reason is None and _raised_in(error).startswith(("hydra.", "omegaconf.")):
            reason = f"one of these cannot be composed: {' '.join(sys.argv[1:])}; {_GROUPS}"
        if reason is None:
            raise
        sys.exit(report_error(UserError(reason)))
    except OSError as error:  # where Hydra writes its record of a sweep; what commands write tells its own
        if error.errno not in _OF_THE_DISK:
            raise
        sys.exit(report_error(UserError(f"{error.filename or 'a file'}: {error.strerror}")))
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        sys.exit(report_error(UserError(_OUT_OF_MEMORY)))
    except KeyboardInterrupt:
        print(_("stopped; what is written is whole"), file=sys.stderr)
        sys.exit(130)


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, by what torch says: on a GPU it has a class for it, on a CPU a message."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"MemoryError", "OutOfMemoryError"}) or "can't allocate memory" in str(error)


def _raised_in(error: BaseException) -> str:
    """The module that raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))


def configs_folder() -> Path:
    """Where the configuration lies: in an installed wheel beside this file, else in the repository."""
    installed = Path(__file__).parent / "configs"
    return installed if installed.exists() else Path(__file__).parents[2] / "configs"


def report_error(error: BaseException) -> int:
    """Print one line for the user.

    Returns:
        The exit status: 2 for a user's mistake, 1 for runs that failed.
    """
    print(f"error: {error_message(error)}", file=sys.stderr)
    return error.exit_status if isinstance(error, UserError) else UserError.exit_status
