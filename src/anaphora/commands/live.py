"""Serve the live page until it is stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anaphora.api.live.server import LiveApplication, serve
from anaphora.api.models import open_any
from anaphora.api.runs import OpenRun
from anaphora.base.console import console
from anaphora.base.device import Device
from anaphora.hf.reader import TransformersModel
from anaphora.runs.presence import run_directories
from anaphora.settings.commands.live import LivePage


def serve_page(settings: LivePage) -> None:
    """Open the models and serve the page on this machine's own address."""
    application = LiveApplication(open_models(settings.runs, settings.trainer), settings.language)
    server, address = serve(application, settings.port)
    console.print(f"{address}\nOn this machine alone; Ctrl+C stops it.", soft_wrap=True, highlight=False)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        console.print("stopped")
    finally:
        server.server_close()


def open_models(names: Sequence[str], device: Device) -> dict[str, OpenRun | TransformersModel]:
    """Each model under the name that the page shows: its directory's, or all that was written where two share one.

    Raises:
        UserError: there is no such model, or one is named twice.
    """
    names = run_directories(names)
    short = [Path(name.rstrip("/")).name for name in names]
    return {
        name if short.count(own) > 1 else own: open_any(name, device=device)
        for name, own in zip(names, short, strict=True)
    }
