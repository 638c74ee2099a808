"""Show attention weights and predicted antecedents, on a local web page or, for one sentence, in the terminal.

Example: anaphora look text="Anna thanked Emma because she had helped." pronoun=she
"""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from anaphora.base.checks import at_least, one_of
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES
from anaphora.base.translation import environment_language
from anaphora.commands.parts.settings import check_sentence

if TYPE_CHECKING:
    from anaphora.api.runs import OpenRun


@dataclass(kw_only=True)
class LivePage:
    """Settings of `anaphora look`."""

    any_model: ClassVar[bool] = True  # a transformers model has no config.yaml
    run: str = "shipped"  # a run, a folder with a model, hf://owner/name, or `shipped`, which comes with the package
    runs: list[str] = field(default_factory=list)  # several models instead of `run`
    text: str | None = None  # a sentence; the pronoun's row and the answer are then printed, and no page is served
    # A word of the text ("it:2" for the second "it"), or its characters; by default its last third-person pronoun.
    pronoun: str | None = None
    candidates: list[str] = field(default_factory=list)  # possible antecedents: words of the text, or "start:end"
    port: int = 8765  # port of the page on localhost; 0 for any free port
    interface_language: str = field(default_factory=environment_language)  # `en` or `zh`; the page has a switch
    trainer: Device = field(default_factory=Device)  # device to compute on

    def __post_init__(self) -> None:
        at_least("port", self.port, 0)
        if self.port > 65535:
            raise ValueError(f"port ({self.port}) must be at most 65535")
        one_of("interface_language", self.interface_language, LANGUAGES)
        check_sentence(self.text, self.pronoun, self.candidates)
        if self.text is not None and self.port != LivePage.port:
            raise ValueError(f"port ({self.port}) is that of the page, and with text=... none is served: leave it out")
        if self.text is not None and self.runs:
            raise ValueError(f"text ({self.text!r}) is for one run; give run=... in place of runs")


def look(settings: LivePage) -> None:
    """Show attention weights and predicted antecedents, on a page served on localhost or, for `text`, in the terminal.

    If `text` is set, `print_sentence` prints the result for this text, and no page is served. Otherwise the page is
    served until Ctrl+C, and opens in the browser if there is a display. If there is no display, `print_sentence` first
    prints the result for an example sentence, provided that the first model is a run in which a head was chosen for the
    language of the sentence.

    Raises:
        UserError: a model does not exist, no head has been chosen for `text`, the port cannot be used, or
            `print_sentence` fails.
    """
    from anaphora.api.live.questions import first_sentence
    from anaphora.api.live.server import LiveApplication, open_server
    from anaphora.api.runs import OpenRun
    from anaphora.base.console import console, say
    from anaphora.commands.parts.shared import open_models
    from anaphora.runs.directory import load

    if settings.text is not None:
        run = OpenRun(load(settings.run, settings.trainer))
        if run.head_for(settings.text) is None:
            raise UserError(
                f"{settings.run}: no head has been chosen yet; choose one with anaphora score run={settings.run}, or "
                "name one with layer=... head=... in anaphora explain"
            )
        print_sentence(run, settings.text, settings.pronoun, settings.candidates)
        return
    language = settings.interface_language
    models = open_models(settings.runs or [settings.run], settings.trainer)
    first = next(iter(models.values()))
    sentence = first_sentence(first, language)
    if not has_display() and isinstance(first, OpenRun) and first.head_for(sentence.text):
        print_sentence(first, *sentence)
    server, address = open_server(LiveApplication(models, language), settings.port)
    console.print(address, soft_wrap=True, highlight=False)
    say("On this machine alone; Ctrl+C stops it.")
    if has_display():
        webbrowser.open(address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        say("stopped")
    finally:
        server.server_close()


def has_display() -> bool:
    """Return whether a browser can open a window; on Linux, this needs DISPLAY or WAYLAND_DISPLAY."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def print_sentence(run: OpenRun, text: str, pronoun: str | None, candidates: Sequence[str]) -> None:
    """Print a sentence, the run's answer and the pronoun's largest weights, in the language of the interface."""
    from rich.console import Console

    from anaphora.base.translation import interface_language, spoken_in
    from anaphora.explain.output import print_summary

    language = interface_language()
    walk = run.explain(text, pronoun, candidates, language=language)
    with spoken_in(language):
        print_summary(Console(markup=False, highlight=False), walk)
