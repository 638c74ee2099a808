"""Command-line interface, which parses and checks the settings of a command, runs it and reports errors.

Each command is a module of `anaphora.commands` with a function of the module's name and a settings class.
"""

from __future__ import annotations

import contextlib
import signal

_INTERRUPT_RAISES = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _INTERRUPT_RAISES:  # during the imports below, which take 0.3 s, an interrupt ends the process without a traceback
    with contextlib.suppress(ValueError):  # raised outside the main thread
        signal.signal(signal.SIGINT, signal.SIG_DFL)

import ast
import atexit
import errno
import gc
import inspect
import io
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from anaphora.base.checks import one_of
from anaphora.base.errors import UserError, one_line
from anaphora.base.language import LANGUAGES
from anaphora.base.translation import VARIABLE, _, environment_language
from anaphora.runs.machine import keep_few_kernels, wait_briefly
from anaphora.runs.presence import refuse_missing, say_which_run
from anaphora.runs.processes import Terminated, started_processes, termination_raises, until_requeued
from anaphora.runs.warm_start import with_start_model
from anaphora.settings import help as help_texts
from anaphora.settings.arguments import CONFIGS, default_groups, settings_and_options, settings_from
from anaphora.settings.run import Config
from anaphora.settings.typed import error_message, resolve

if _INTERRUPT_RAISES:
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True)
class Command:
    """Command of `anaphora`: a module of `anaphora.commands` whose function of the same name takes the settings.

    The module defers heavy imports until the call, so that an invalid setting is reported at once.
    """

    name: str

    @property
    def path(self) -> Path:
        return _FOLDER / f"{self.name}.py"

    @property
    def description(self) -> str:
        """Return the description in the module's docstring, without importing the module."""
        return self._docstring[0]

    @property
    def example(self) -> str:
        return self._docstring[2]

    @property
    def _docstring(self) -> tuple[str, str, str]:
        docstring = ast.get_docstring(ast.parse(self.path.read_text(encoding="utf-8"))) or ""
        return docstring.partition("\n\nExample: ")

    @property
    def module(self) -> ModuleType:
        return import_module(f"anaphora.commands.{self.name}")

    @property
    def work(self) -> Callable[[Any], Any]:
        function: Callable[[Any], Any] = getattr(self.module, self.name)
        return function

    @property
    def schema(self) -> type[Any]:
        """Return the settings class, from the annotation of the function's parameter."""
        settings: type[Any] = getattr(self.module, next(iter(inspect.get_annotations(self.work).values())))
        return settings

    @property
    def is_composed(self) -> bool:
        """Return whether Hydra composes the settings, as for training runs and studies."""
        return (CONFIGS / f"{self.name}.yaml").exists()

    def settings(self, composed: DictConfig) -> Any:
        """Return the checked settings; if training starts from another model, the encoder settings are that model's."""
        checked = resolve(composed, self.schema)
        return with_start_model(checked) if isinstance(checked, Config) else checked

    def run(self, settings: Any) -> Any:
        """Check that the files named in the settings exist, print which run is opened, and run the command."""
        refuse_missing(settings)
        say_which_run(settings)
        return self.work(settings)


_FOLDER = Path(__file__).parent / "commands"
COMMANDS = {path.stem: Command(path.stem) for path in sorted(_FOLDER.glob("*.py")) if path.stem != "__init__"}

_OF_HYDRA = {
    "Config group override": "a group takes the name of one of its choices, not null; leave it out instead",
    "Exceeds the limit": "a setting has a whole number with more digits than can be read",
}
"""Explanations of built-in exceptions that Hydra raises, keyed by a substring of the exception's message."""
_GROUPS = (
    "a group takes the name of one of its choices, and its settings need it beside them (data=jsonl data.path=...)"
)
_OUT_OF_MEMORY = "not enough memory; lower batching.tokens, model.width or the length of the texts"
_OF_THE_SYSTEM = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EIO,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EMFILE,
    errno.ENFILE,
}
"""Errors of the operating system that are not bugs, such as a full or read-only disk, or too many open files."""


def main() -> None:
    """Run the command named by the first command-line argument, as in `anaphora train seed=3`.

    A script can register custom components and then call this function; `python mine.py train seed=3` runs the command
    with these components.
    """
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name in ("--help", "-h"):
        with user_errors_exit():
            print(overview())
        return
    if name == "--version":
        from importlib.metadata import version

        print(f"anaphora {version('anaphora')}")
        return
    if name not in COMMANDS:
        problem = f"there is no command {name!r}" if name else "a command is missing"
        if meant := help_texts.nearest(name, COMMANDS):
            problem += f"; did you mean {meant}?"
        sys.exit(report_error(UserError(f"{problem} (allowed: {', '.join(COMMANDS)})")))
    del sys.argv[1]
    run_command(name)


def overview() -> str:
    """Return the text of `anaphora --help`, which lists the commands."""
    lines = ["usage: anaphora COMMAND [setting=value ...]", "", "commands:"]
    lines += [f"  {name:<19}{command.description.splitlines()[0]}" for name, command in COMMANDS.items()]
    return "\n".join([*lines, "", "The settings of one command: anaphora COMMAND --help"])


def run_command(name: str) -> None:
    """Parse a command's settings from the command-line arguments, check them and run the command.

    A user error ends the process with a one-line message and exit status 2.
    """
    prepare_process()
    command = COMMANDS[name]
    if command.is_composed or name == "controls":  # these train; the other commands read the same batches repeatedly
        keep_few_kernels()
    with user_errors_exit():
        one_of(VARIABLE, environment_language(), LANGUAGES)
        check_processes(name)
        if {"--help", "-h"} & set(sys.argv[1:]):
            print(help_of(command, [word for word in settings_and_options(sys.argv[1:])[0] if "=" not in word]))
            return
        if command.is_composed:
            help_texts.check_arguments(sys.argv[1:], command.schema, groups=default_groups(name))
        else:
            help_texts.check_model_name(command.schema, sys.argv[1:])
    if command.is_composed:
        _run_composed(command)
    else:
        _run_plain(command.schema, command.work)


def prepare_process() -> None:
    """Configure garbage collection, the busy-waiting of idle threads, and the encoding of printed text."""
    # Importing torch creates a million objects that live until exit. Scanning them repeatedly, and at exit, takes a
    # third of the time of a short command.
    gc.set_threshold(50_000)
    atexit.register(_keep_objects)
    wait_briefly()
    # Characters that the encoding lacks, such as Chinese in ASCII, are printed as escapes.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _keep_objects() -> None:
    """Exclude all objects from the garbage collections at exit, unless Triton would report them as leaks."""
    if "triton" not in sys.modules:  # torch's CUDA builds contain it, and training imports it
        gc.freeze()


def help_of(command: Command, topics: Sequence[str] = ()) -> str:
    """Return a command's help text, or only the settings in `topics`, as in `--help optimizer` or `--help all`."""
    if topics:
        return "\n\n".join(help_texts.settings_below(command.schema, topic) for topic in topics)
    groups = default_groups(command.name) if command.is_composed else None
    return help_texts.help_page(command.name, command.description, command.example, command.schema, groups)


def _run_composed(command: Command) -> None:
    """Compose the settings with Hydra, and run the command once or for each job of a sweep."""
    from anaphora.settings.compose import checked_resume, composed, for_hydra, with_quoted_texts

    register_commands()
    with user_errors_exit():
        arguments = sys.argv[1:]
        if command.name == "train" and not {"-m", "--multirun"} & set(arguments):
            arguments = checked_resume(arguments)
        arguments = with_quoted_texts(arguments, command.schema)
        if not any(argument.lstrip("+~").startswith(("-", "hydra")) for argument in arguments):
            command.run(command.settings(composed(CONFIGS, command.name, arguments)))
            return
        sys.argv[1:] = for_hydra(arguments)
    _run_hydra(command)


def _run_hydra(command: Command) -> None:
    """Pass the command line to Hydra, which runs sweeps and handles its own options."""
    from hydra import main as hydra_main

    from anaphora.settings.compose import check_effects, is_sweep_job, sweep_failures, typed_overrides

    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises composition errors instead of printing them at length

    def work(composed: DictConfig) -> Any:
        if is_sweep_job():
            return run_job(command, composed)
        with user_errors_exit():  # here too, since Hydra adds a message to exceptions that a job raises
            check_effects(typed_overrides(), composed)
            return command.run(command.settings(composed))

    work.__module__ = f"anaphora.commands.{command.name}"  # Hydra derives the job's name from it
    failures: list[str] = []
    try:
        with user_errors_exit(), sweep_failures(failures):
            hydra_main(version_base="1.3", config_path=str(CONFIGS), config_name=command.name)(work)()
    finally:  # also if the launcher itself fails, for instance after a job was killed
        if failures:
            print(f"{len(failures)} of the sweep's jobs failed:", *failures, sep="\n  ", file=sys.stderr)
    if failures:
        sys.exit(1)


def register_commands() -> None:
    """Register with Hydra the settings of `train`, `demo` and `study`, which it composes."""
    from anaphora.settings.compose import register_configs

    register_configs({name: command.schema for name, command in COMMANDS.items() if command.is_composed})


def run_program(schema: type[Any], work: Callable[[Any], object]) -> None:
    """Parse a program's settings from the command-line arguments, check them and run the program, without Hydra.

    A user error ends the process with a one-line message and exit status 2. `--help` lists the fields of `schema`;
    `work` defers heavy imports, so that a user error is reported at once.
    """
    prepare_process()
    _run_plain(schema, work)


def _run_plain(schema: type[Any], work: Callable[[Any], object]) -> None:
    with user_errors_exit():
        if {"--help", "-h"} & set(sys.argv[1:]):
            print(schema.__doc__, "settings:", help_texts.listed_settings(schema), sep="\n\n")
            return
        help_texts.check_arguments(sys.argv[1:], schema)
        settings = settings_from(sys.argv[1:], schema)
        refuse_missing(settings)
        say_which_run(settings)
        work(settings)


def check_processes(name: str) -> None:
    """Raise UserError if several processes are used for a sweep, or for another command than `train`.

    With several processes, also silence the warnings of torch's C++ code.
    """
    processes = started_processes()
    if name != "train":
        processes.check_single(name)
    elif {"-m", "--multirun"} & set(sys.argv):
        processes.check_single("a sweep (-m)")
    if processes.count > 1:
        # torch reads this on its later import; DistributedDataParallel would warn of something that is intended here.
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")


def run_job(command: Command, composed: DictConfig) -> Any:
    """Run one job of a sweep; record a failure instead of raising it, so that the other jobs run.

    After a failure, the result is infinity, the worst value for a sampler that minimises; NaN would make Optuna end the
    sweep.
    """
    from hydra.errors import HydraException

    from anaphora.settings.compose import check_effects, note_failure, typed_overrides

    try:
        with until_requeued():
            check_effects(typed_overrides(), composed)
            return command.run(command.settings(composed))
    except (UserError, HydraException, OmegaConfBaseException) as error:
        note_failure(error_message(error))
    except Exception as error:  # such as lack of memory
        traceback.print_exc()
        note_failure(one_line(error))
    return math.inf


@contextlib.contextmanager
def user_errors_exit() -> Iterator[None]:
    """End the process with a one-line message after an error in the `with` block, but raise errors that point to a bug.

    The exit status is 2 for a user error, a full disk or lack of memory, 1 if runs failed, 130 for an interrupt, 143
    for SIGTERM, 129 for SIGHUP, and 141, without a message, for a closed pipe.
    """
    try:
        with termination_raises():
            yield
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:  # as with `| head`; the rest of the buffer would raise another error at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except _user_errors() as error:
        sys.exit(report_error(error))
    except (ValueError, TypeError, AssertionError) as error:
        reason = next((meaning for part, meaning in _OF_HYDRA.items() if part in str(error)), None)
        *_callers, (frame, _line) = traceback.walk_tb(error.__traceback__)
        if reason is None and str(frame.f_globals.get("__name__", "")).startswith(("hydra.", "omegaconf.")):
            reason = f"one of these cannot be composed: {' '.join(sys.argv[1:])}; {_GROUPS}"
        if reason is None:
            raise
        sys.exit(report_error(UserError(reason)))
    except OSError as error:  # as when Hydra writes its record of a sweep; commands convert their own errors
        if error.errno not in _OF_THE_SYSTEM:
            raise
        sys.exit(report_error(UserError(f"{error.filename or 'a file'}: {error.strerror}")))
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        sys.exit(report_error(UserError(_OUT_OF_MEMORY)))
    except KeyboardInterrupt as stop:
        print(_("stopped; all that was written is complete"), file=sys.stderr)
        sys.exit(128 + (stop.number if isinstance(stop, Terminated) else signal.SIGINT))


def _user_errors() -> tuple[type[Exception], ...]:
    """Return the exception classes of user errors.

    Hydra's exceptions are included only if Hydra has already been imported, because its import takes 0.05 s.
    """
    hydra_errors = sys.modules.get("hydra.errors")
    return (UserError, OmegaConfBaseException, *([hydra_errors.HydraException] if hydra_errors else []))


def _is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out; torch raises OutOfMemoryError on a GPU and a plain RuntimeError on a CPU."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"MemoryError", "OutOfMemoryError"}) or "can't allocate memory" in str(error)


def report_error(error: BaseException) -> int:
    """Print an error in one line, and return the exit status: 2 for a user error, 1 if runs failed."""
    print(f"error: {error_message(error)}", file=sys.stderr)
    return error.exit_status if isinstance(error, UserError) else UserError.exit_status
