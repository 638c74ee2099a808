"""Serve the live page until it is stopped."""

from __future__ import annotations

from anaphora.api.live.server import LiveApplication, serve
from anaphora.base.console import console
from anaphora.base.locale.translation import N_
from anaphora.commands.shared import open_models
from anaphora.report.terminal import print_phrase
from anaphora.settings.commands.live import LivePage


def serve_page(settings: LivePage) -> None:
    """Open the models and serve the page on this machine's own address."""
    application = LiveApplication(open_models(settings.runs, settings.trainer), settings.interface_language)
    server, address = serve(application, settings.port)
    console.print(address, soft_wrap=True, highlight=False)
    print_phrase(N_("On this machine alone; Ctrl+C stops it."))
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print_phrase(N_("stopped"))
    finally:
        server.server_close()
