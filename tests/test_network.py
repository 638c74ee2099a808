"""Tests that nothing connects to the network unless a Hub name is given; this includes the libraries in use."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pytest
from tiny import TEXTS, tiny_folder

import anaphora
from anaphora.base import hub
from anaphora.base.errors import UserError
from anaphora.training.run import train


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of all attempted connections and host look-ups, which fail without the libraries' knowledge."""
    tried: list[str] = []

    def forbidden(*arguments: Any, **_: Any) -> Any:
        tried.append(repr(arguments[-1]))
        raise OSError("no network in this test")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, forbidden)
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, forbidden)
    # What conftest.py says by HF_HUB_OFFLINE, taken back: else it would be the libraries that keep quiet.
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    hub._answers.cache_clear()
    return tried


def test_training_and_measuring_connect_nowhere(
    connections: list[str], tiny: Callable[..., Any], tmp_path: Path, script: Callable[..., Any]
) -> None:
    directory = train(tiny(tmp_path, "optimizer.steps=2", "trainer.loggers=[tensorboard,csv]"))
    for name in ("score", "extract"):
        assert script(name, f"run={directory}").status == 0
    assert script("explain", f"run={directory}", "text=Anna met Tom before she went.", "pronoun=she").status == 0
    assert connections == []


def test_a_folder_of_transformers_is_read_without_a_connection(
    connections: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    maps = anaphora.attention(tiny_folder(tmp_path_factory, "bert"), TEXTS[0], "she", ["Anna", "Emma"])
    assert maps.words and connections == []


def test_a_name_on_the_hub_is_what_connects(connections: list[str]) -> None:
    with pytest.raises(UserError, match="the hub cannot be reached"):
        anaphora.attention("hf://owner/model", "Anna went.")
    assert connections != [] and "HF_HUB_OFFLINE" not in os.environ
