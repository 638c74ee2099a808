from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import datasets
import huggingface_hub
import pytest

from anaphora.base import hub
from anaphora.base.errors import UserError

ASKING = """
import json, time
waits = []
time.sleep = waits.append  # seconds by a clock would depend on other programs
import datasets, huggingface_hub
from anaphora.base.errors import UserError
from anaphora.data import store
from anaphora.runs.warm_start import locate_model
from anaphora.settings.data import Gap, PlainText

def message_of(ask):
    waits.clear()
    try:
        ask()
    except UserError as error:
        return str(error), sum(waits)

cached = store.load(PlainText(path="hf://owner/pages", dev_share=0, test_share=0))
print(json.dumps({
    "data": message_of(lambda: store.load(Gap(path="hf://owner/gap"))),
    "start": message_of(lambda: locate_model("hf://owner/model", "start")),
    "cached": [one.text for one in cached.texts("train")],
}))
"""


def keep_in_cache(home: Path) -> None:
    """Create the data set owner/pages in the cache of `datasets`, as after a download."""
    (home / "train.jsonl").write_text('{"text": "It was read before."}\n', encoding="utf-8")
    loaded = datasets.load_dataset("json", data_files=str(home / "train.jsonl"), cache_dir=str(home / "made"))
    prepared = Path(loaded["train"].cache_files[0]["filename"]).parent
    there = home / "datasets" / "owner___pages" / "default" / "0.0.0" / prepared.name
    there.parent.mkdir(parents=True)
    prepared.rename(there)
    (there / "json-train.arrow").rename(there / "pages-train.arrow")
    about = json.loads((there / "dataset_info.json").read_text(encoding="utf-8"))
    about |= {"dataset_name": "pages", "config_name": "default"}
    (there / "dataset_info.json").write_text(json.dumps(about), encoding="utf-8")


def test_without_a_network_the_message_comes_soon_and_what_is_cached_is_read(tmp_path: Path) -> None:
    keep_in_cache(tmp_path)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, so that nobody else takes it, and not listening
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
        own = {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0", "NO_PROXY": "127.0.0.1"}
        own |= {"ANAPHORA_CACHE": str(tmp_path / "ours"), "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", ASKING], env={**os.environ, **own}, capture_output=True, text=True, timeout=300
        )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout.splitlines()[-1])
    for name, words in (("data", "not available from the hub"), ("start", "no such model could be fetched")):
        message, seconds = outcome[name]
        assert words in message
        assert seconds < 10, name
    assert outcome["cached"] == ["It was read before."]


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Enable requests to the endpoint that a test sets, with a timeout of half a second."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub, "TIMEOUT_SECONDS", 0.5)
    huggingface_hub.close_session()  # it may know another proxy
    yield monkeypatch
    huggingface_hub.close_session()


def asked_in_time() -> bool:
    started = time.perf_counter()
    answered = hub.is_reachable()
    assert time.perf_counter() - started < 5
    return answered


@pytest.mark.parametrize("offline", [False, True])
def test_whatever_answers_is_reachable_unless_the_library_is_set_to_be_offline(
    online: pytest.MonkeyPatch, offline: bool
) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            pass

    online.setattr(hub, "TIMEOUT_SECONDS", 5.0)
    online.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", offline)
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        online.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        Thread(target=server.serve_forever, daemon=True).start()
        assert hub.is_reachable() is not offline
        server.shutdown()


def test_a_host_that_takes_the_question_and_is_silent_is_not_waited_for(online: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        online.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert not asked_in_time()


def test_a_host_whose_name_is_looked_up_for_long_is_not_waited_for(online: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def slow(*arguments: Any, **named: Any) -> Any:
        time.sleep(8)
        return real("127.0.0.1", 9)

    online.setattr(socket, "getaddrinfo", slow)
    online.setattr(huggingface_hub.constants, "ENDPOINT", "http://slow.invalid")
    assert not asked_in_time()


def test_without_transformers_a_model_of_it_is_refused_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(
        UserError, match=r"^transformers is not installed: .* -m pip install 'anaphora\[transformers\]'$"
    ):
        hub.import_transformers()


@pytest.mark.parametrize("version", ["4.57.6", "5.1.0", "5.0.0rc1"])
def test_a_transformers_that_is_too_old_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(__version__=version))
    expected = (
        rf"^transformers {re.escape(version)} is too old; at least 5\.2 is needed: .* 'anaphora\[transformers\]'$"
    )
    with pytest.raises(UserError, match=expected):
        hub.import_transformers()


@pytest.mark.parametrize("version", ["5.2.0", "5.10.4", "6.0.0.dev0"])
def test_a_newer_transformers_is_taken(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(__version__=version)
    monkeypatch.setitem(sys.modules, "transformers", module)
    assert hub.import_transformers() is module


def test_transformers_beside_packages_of_other_versions_is_refused_in_one_line(tmp_path: Path) -> None:
    reason = "cannot import name 'is_offline_mode' from 'huggingface_hub'"
    (tmp_path / "transformers.py").write_text(f'raise ImportError("{reason}")', encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[2] / 'src'}"}
    command = [sys.executable, "-m", "anaphora", "attention", "run=hf://owner/model", "text=Anna left."]
    process = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert process.returncode == 2
    assert f"error: transformers cannot be imported ({reason}): " in process.stderr
    assert process.stderr.endswith("pip install 'anaphora[transformers]'\n") and "Traceback" not in process.stderr
