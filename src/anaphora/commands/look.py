"""Serve the live page until it is stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from anaphora.base.checks import at_least, one_of
from anaphora.base.device import Device
from anaphora.base.language import LANGUAGES
from anaphora.base.locale.translation import N_, environment_language


@dataclass(kw_only=True)
class LivePage:
    """Models to ask in the browser."""

    any_model: ClassVar[bool] = True  # a model of transformers has no config.yaml
    runs: list[str] = field(default_factory=lambda: ["outputs/demo"])  # runs, folders with models, or hf://owner/name
    port: int = 8765  # port of this machine's own address; 0 for any free one
    interface_language: str = field(default_factory=environment_language)  # language of the page (it has a switch)
    trainer: Device = field(default_factory=Device)  # where the runs compute

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("runs ([]) must name at least one model")
        at_least("port", self.port, 0)
        if self.port > 65535:
            raise ValueError(f"port ({self.port}) must be at most 65535")
        one_of("interface_language", self.interface_language, LANGUAGES)


def look(settings: LivePage) -> None:
    """Open the models and serve the page on this machine's own address."""
    from anaphora.api.live.server import LiveApplication, open_server
    from anaphora.base.console import console
    from anaphora.commands.parts.shared import open_models
    from anaphora.report.terminal import print_phrase

    application = LiveApplication(open_models(settings.runs, settings.trainer), settings.interface_language)
    server, address = open_server(application, settings.port)
    console.print(address, soft_wrap=True, highlight=False)
    print_phrase(N_("On this machine alone; Ctrl+C stops it."))
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print_phrase(N_("stopped"))
    finally:
        server.server_close()
