"""Server on localhost of the live page, which shows models' attention and predictions for a typed sentence.

Requests to a model are answered one at a time. Only this machine has access: the server listens on the loopback
address, refuses any other Host header (against DNS rebinding), and requires a token, which is part of the page's URL.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from werkzeug.exceptions import HTTPException
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from anaphora.api.live.questions import MOST_CHARACTERS, LiveQuestion, first_sentence, parse, reply
from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES
from anaphora.base.translation import N_, _, pgettext, spoken_in
from anaphora.data.own_sentence import example_from_query
from anaphora.report.figures.fonts import font_files
from anaphora.report.page import offline
from anaphora.report.page.explorer import explorer_phrases, explorer_words
from anaphora.report.wording import kind_names

if TYPE_CHECKING:
    from anaphora.api.models import AnyModel

HOST = "127.0.0.1"
MOST_BYTES = 100_000
_TEMPLATES = Path(__file__).with_name("templates")
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "font-src data: 'self'; connect-src 'self'; frame-src 'self'; frame-ancestors 'self'; "
    "base-uri 'none'; form-action 'none'"
)


@dataclass
class LiveApplication:
    """WSGI application that serves the live page and answers its requests."""

    models: Mapping[str, AnyModel]  # models by their names on the page
    language: str = "en"  # initial language of the page
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))  # token required with every request
    hosts: tuple[str, ...] = ()  # allowed values of the Host header; empty allows any, until the port is known
    _asking: Lock = field(default_factory=Lock)  # interventions change the model, so one request at a time

    def __call__(self, environ: dict[str, Any], start: Any) -> Any:
        request = Request(environ)
        request.max_content_length = MOST_BYTES
        language = request.args.get("language", self.language)
        with spoken_in(language):  # for interface texts and errors
            try:
                response = self._respond(request, language)
            except UserError as error:
                response = _refusal(error.translated(), 400)
            except HTTPException as error:
                response = _refusal(str(error), error.code or 400)
            except Exception:  # a bug: the terminal shows the traceback
                traceback.print_exc()
                response = _refusal(_("something went wrong; the terminal shows where"), 500)
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cache-Control"] = "no-store"
        return response(environ, start)

    def _respond(self, request: Request, language: str) -> Response:
        if self.hosts and request.environ.get("HTTP_HOST") not in self.hosts:
            return _refusal(_("this page is served only at {address}").format(address=self.hosts[0]), 403)
        sent = request.headers.get("X-Token") or request.args.get("token", "")
        if not secrets.compare_digest(sent.encode(), self.token.encode()):
            return _refusal(_("open the address that the terminal shows; it ends in a token"), 403)
        if language not in LANGUAGES:
            return _refusal(_("language must be one of {allowed}").format(allowed=", ".join(LANGUAGES)), 400)
        if request.method == "GET" and request.path == "/":
            return Response(self.page(language), mimetype="text/html")
        if request.method == "GET" and request.path == "/side_by_side":
            title = _phrases()["side_by_side"]
            template = offline.template_environment(_TEMPLATES).get_template("side_by_side.html.j2")
            return Response(template.render(token=self.token, language=language, title=title), mimetype="text/html")
        if request.method == "GET" and request.path == "/font":
            return Response(font_files()[400].read_bytes())  # requested only for Chinese characters
        if request.method == "POST" and request.path == "/attention":
            if request.mimetype != "application/json" or not request.headers.get("X-Token"):
                return _refusal(_("a request must be JSON and carry the token in a header"), 400)
            try:
                message = json.loads(request.get_data())
            except (ValueError, RecursionError):
                return _refusal(_("the request is not valid JSON"), 400)
            return _json(self.answer(message))
        return _refusal(_("there is no such page"), 404)

    def answer(self, message: Any) -> dict[str, Any]:
        """Return the reply to one request of the page, given as parsed JSON.

        Raises:
            UserError: the model is unknown; also the errors of `parse` and `reply`.
        """
        name = message.get("model") if isinstance(message, Mapping) else None
        if not isinstance(name, str) or name not in self.models:
            message = N_("model ({name!r}) is not on this page, which has {allowed}")
            raise UserError(message, name=name, allowed=", ".join(self.models))
        question = parse(message)
        offline.report_missing_on_page(question.text)
        with self._asking:
            return reply(self.models[name], question)

    def page(self, language: str) -> str:
        """Return the page as HTML, with the attention maps of the first of `models` for a sentence in `language`."""
        first = next(iter(self.models.values()))
        text, pronoun, candidates = first_sentence(first, language)
        with self._asking:
            opening = reply(first, LiveQuestion(text, example_from_query(text, pronoun, candidates)))
        words = _phrases()
        data = {
            "models": [
                {"name": name, "layers": list(model.attending_layers), "heads": model.heads}
                for name, model in self.models.items()
            ],
            "token": self.token,
            "first": {**opening, "sentence": None, "words": opening["sentence"]["words"]},
            "phrases": words,
        }
        chosen = opening["chosen"]
        return offline.template_environment(_TEMPLATES).get_template("live.html.j2").render(
            words=words,
            language=language,
            token=self.token,
            models=list(self.models),
            explorer_phrases=explorer_phrases(),
            kinds=kind_names(),
            text=text,
            most_characters=MOST_CHARACTERS,
            data=offline.script_json(data),
            explorer=offline.script_json(
                {
                    "sentences": [opening["sentence"]],
                    "head": {} if chosen is None else {"layer": chosen[0], "head": chosen[1]},
                    **explorer_words(),
                    **offline.weight_colours(),
                }
            ),
            style=offline.read_asset("report.css"),
            own_style=offline.read_asset("live.css", _TEMPLATES),
            script=offline.read_asset("explorer.js"),
            own_scripts=[offline.read_asset(name, _TEMPLATES) for name in ("elements.js", "names.js", "live.js")],
        )  # fmt: skip


def open_server(application: LiveApplication, port: int) -> tuple[BaseWSGIServer, str]:
    """Return a server of `application` on localhost, and the URL to open.

    From then on, `application` refuses requests whose Host header names another host or port.

    Raises:
        UserError: the port cannot be used.
    """
    try:
        # With a port that is in use, werkzeug would print lines of its own and exit.
        with socket.create_server((HOST, port)) as opened:
            server = make_server(
                HOST, port, application, threaded=True, request_handler=_QuietHandler, fd=opened.fileno()
            )
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UserError(f"port ({port}) cannot be used ({reason}); choose another, or 0 for any free port") from None
    application.hosts = (f"{HOST}:{server.port}", f"localhost:{server.port}")
    return server, f"http://{HOST}:{server.port}/?token={application.token}"


class _QuietHandler(WSGIRequestHandler):
    """Request handler without logging, because a log would contain the token."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
        """Do nothing."""


def _refusal(message: str, status: int) -> Response:
    return _json({"error": message}, status)


def _json(content: Any, status: int = 200) -> Response:
    return Response(json.dumps(content, ensure_ascii=False), status=status, mimetype="application/json")


def _phrases() -> dict[str, str]:
    """Return the texts of the page's interface, keyed by name; the page's script fills in placeholders in braces."""
    return {
        "title": _("Type a sentence and see its attention"),
        "lead": _("Maps of every layer and head, at once. Nothing leaves this machine."),
        "model": _("Model"),
        "text": _("Sentence"),
        "show": _("Show"),
        "mark": _("Click a word to mark it: once as a candidate, twice as the pronoun, three times as neither."),
        "side_by_side": _("side by side"),
        "working": _("asking the model …"),
        "took": pgettext("live page", "{seconds} s"),
        "answers": _("The model’s answer"),
        "none": _("none of them"),
        "candidate": _("candidate"),
        "pronoun": _("pronoun"),
        "before": _("as it is"),
        "percent": _("{value} %"),
        "after": _("with the edits"),
        "edit": _("Change the model"),
        "edit_hint": _("Click a cell of the whole map to choose an edge."),
        "cut": _("cut {from} → {to} in layer {layer} head {head}"),
        "cut_layer": _("in every head of the layer"),
        "cut_all": _("in every layer and head"),
        "off": _("switch off layer {layer} head {head}"),
        "undo": _("undo all"),
        "remove": _("undo"),
        "more_edits": _("and {count} more"),
        "decoder": _("A decoder: a word sees only what comes before it."),
        "lost": _("The server does not answer. Is it still running?"),
    }
