"""What every script does around its work: compose, check, run, and tell a user's mistake in one line."""

from __future__ import annotations

import functools
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from anaphora.config import Config, one_line, register_configs, resolve
from anaphora.errors import UserError


def fail(error: BaseException) -> int:
    """Print one line for the user and give the exit status of a user's mistake."""
    print(f"error: {said_in_one_line(error)}", file=sys.stderr)
    return 2


def said_in_one_line(error: BaseException) -> str:
    """A user's mistake, whoever found it, with what is allowed where that is known."""
    from hydra.errors import OverrideParseException

    told = one_line(error)
    if isinstance(error, OverrideParseException):
        told += " (a value with blanks, punctuation or Chinese needs quotes inside quotes: \"text='...'\")"
    elif error.__cause__ is not None:
        told += f" ({one_line(error.__cause__)})"
    allowed = _allowed(error)
    if allowed:
        told += f"; allowed: {', '.join(allowed)}"
    return told


def _allowed(error: BaseException) -> list[str]:
    """What could stand in the wrong setting's or the wrong option's place, where the error knows."""
    _, listed, options = str(error).partition("Available options")
    if listed:
        return [line.strip() for line in options.splitlines()[1:] if line.strip() and ":" not in line]
    cause = error.__cause__ or error.__context__
    parent = getattr(cause, "parent_node", None)
    if isinstance(parent, DictConfig) and "not in" in str(cause):
        return [str(name) for name in parent]
    return []


def guarded(work: Callable[[DictConfig], None]) -> Callable[[DictConfig], None]:
    """A script's work, with a user's mistake told in one line and exit status 2."""

    @functools.wraps(work)
    def run(composed: DictConfig) -> None:
        try:
            work(composed)
        except (UserError, OmegaConfBaseException) as error:
            sys.exit(fail(error))

    return run


def config_folder() -> Path:
    """Where the configuration of the script that is running lies."""
    from hydra.core.hydra_config import HydraConfig

    sources = HydraConfig.get().runtime.config_sources
    return Path(next(source.path for source in sources if source.provider == "main"))


def composed_run(folder: Path, overrides: Sequence[str], what: str) -> Config:
    """The checked settings of a training run, as `scripts/train.py` would compose them.

    Args:
        folder: of the configuration.
        overrides: as on the command line.
        what: what they belong to, for the message.

    Raises:
        UserError: an override is wrong; the message names `what`.
    """
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException

    register_configs()
    running = GlobalHydra.instance()
    outer, running.hydra = running.hydra, None  # that of the script; Hydra knows one at a time
    try:
        with initialize_config_dir(str(folder.absolute()), version_base="1.3"):
            return resolve(compose("train", overrides=list(overrides)), Config)
    except (HydraException, OmegaConfBaseException, UserError) as error:
        raise UserError(f"{what}: {said_in_one_line(error)}") from None
    finally:
        running.hydra = outer


def launch(main: Callable[[], None]) -> None:
    """Compose and run a script: `main` is what `hydra.main` made."""
    from hydra.core.config_store import ConfigStore
    from hydra.errors import HydraException

    register_configs()
    if "--help" in sys.argv[1:]:
        # Hydra copies its sources a hundred times over to list the groups, and with them every schema: 1.2 of 1.7
        # seconds. Help only reads.
        ConfigStore.__deepcopy__ = lambda store, _: store  # type: ignore[attr-defined]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises composition errors instead of printing them at length
    try:
        main()
    except (HydraException, OmegaConfBaseException) as error:
        sys.exit(fail(error))
    except ValueError as error:
        if "Config group override" not in str(error):
            raise
        sys.exit(fail(UserError("a group takes the name of one of its choices, not null; leave it out instead")))
    except KeyboardInterrupt:
        print("stopped; what is written is whole", file=sys.stderr)
        sys.exit(130)


def main() -> None:
    """Run one of the scripts from anywhere: `python mine.py train seed=3` is `python scripts/train.py seed=3`.

    With it a script of one's own, which registers parts first, has the whole command line; `python -m anaphora` has it
    without any. The first argument names the script.
    """
    here = Path(__file__).parent
    shipped = here if (here / "scripts").exists() else here.parents[1]  # an installed wheel, or the repository
    scripts = {path.stem: path for path in sorted((shipped / "scripts").glob("*.py"))}
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in scripts:
        told = f"there is no command {name!r}" if name else "a command is missing"
        sys.exit(fail(UserError(f"{told}; allowed: {', '.join(scripts)}")))
    sys.argv = [str(scripts[name]), f"--config-path={shipped / 'configs'}", *sys.argv[2:]]
    # Not as "__main__": that is the user's own script, in which the annotations of its settings are looked up.
    launch(runpy.run_path(str(scripts[name]), run_name=f"anaphora.scripts.{name}")["main"])
