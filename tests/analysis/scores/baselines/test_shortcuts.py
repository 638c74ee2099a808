from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anaphora.analysis.maps.answers import Floats
from anaphora.analysis.scores.baselines import order_models, shortcuts
from anaphora.analysis.scores.baselines.order_models import is_of_two
from anaphora.data.controlled import corpus
from anaphora.data.example import Example
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.settings.data import ControlledCorpus

Lists = dict[str, list[Example]]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANAPHORA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def splits() -> Lists:
    return corpus.generate(ControlledCorpus(train_items=80, test_items=40, types=["composition"]))


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Replace the fitting of shortcuts by a stub, and return a list of the numbers of test items of its calls."""
    sizes: list[int] = []

    def quick(train: Any, test: Any) -> dict[str, Floats]:
        sizes.append(len(test))
        return {"some": np.resize([np.nan, 1 / 3, 1.0], len(test)), "first": np.zeros(len(test))}

    monkeypatch.setattr(shortcuts, "fit_shortcuts", quick)
    return sizes


def same(one: dict[str, Floats], other: dict[str, Floats]) -> bool:
    return list(one) == list(other) and all(
        (one[name].dtype, one[name].tobytes()) == (other[name].dtype, other[name].tobytes()) for name in one
    )


def test_what_is_read_back_is_what_was_learned_to_the_last_bit(splits: Lists, monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = splits["train"], splits["test"]
    tokenizer = word_vocabulary([example.text for example in train])
    by_language: list[Any] = [
        tuple([one for one in items if one.language == language and is_of_two(one)] for items in (train, test))
        for language in ("en", "zh")
    ]
    plain = shortcuts.fit_shortcuts(train, test)
    in_order = order_models.fit_order_models(by_language, tokenizer)
    for is_known in (False, True):
        if is_known:
            monkeypatch.setattr(shortcuts, "fit_shortcuts", None)
            monkeypatch.setattr(order_models, "fit_order_models", None)
        assert same(shortcuts.shortcut_correctness(train, test), plain)
        read = shortcuts.order_shortcuts(by_language, tokenizer)
        assert all(same(one, other) for one, other in zip(read, in_order, strict=True))
        # A language is there for itself, without the other.
        assert same(shortcuts.order_shortcuts(by_language[1:], tokenizer)[0], in_order[1])


def test_missing_and_uneven_numbers_come_back(splits: Lists, learned: list[int]) -> None:
    first, again = (shortcuts.shortcut_correctness(splits["train"], splits["test"]) for _ in range(2))
    assert same(first, again) and learned == [len(splits["test"])]


@pytest.mark.parametrize(
    "change",
    [
        lambda example: replace(example, text=example.text[:-1] + "!"),
        lambda example: replace(example, antecedents=(1 - example.antecedents[0],)),
        lambda example: replace(example, factors={**example.factors, "cue": "other"}),
        lambda example: replace(example, group="other"),
    ],
)
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_changed_item_is_another_question(
    splits: Lists, learned: list[int], split: str, change: Callable[[Example], Example]
) -> None:
    shortcuts.shortcut_correctness(splits["train"], splits["test"])
    changed = {**splits, split: [*splits[split][:-1], change(splits[split][-1])]}
    shortcuts.shortcut_correctness(changed["train"], changed["test"])
    assert len(learned) == 2


def test_order_division_code_settings_and_libraries_are_part_of_the_question(
    splits: Lists, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, test = splits["train"], splits["test"]
    about = ("anaphora.analysis.scores.baselines.shortcuts", "")
    keys = [
        shortcuts._key(*about, (train, test)),
        shortcuts._key(*about, (train[::-1], test)),
        shortcuts._key(*about, ([*train, test[0]], test[1:])),
        shortcuts._key(about[0], "a tokenizer", (train, test)),
        shortcuts._key("anaphora.analysis.scores.baselines.order_models", "", (train, test)),
    ]
    monkeypatch.setattr(shortcuts, "version", lambda name: "0")
    keys.append(shortcuts._key(*about, (train, test)))
    monkeypatch.setattr(shortcuts, "code_digest", lambda name: "other code")
    keys.append(shortcuts._key(*about, (train, test)))
    assert len(set(keys)) == len(keys)


def _changed(change: Callable[[dict[str, Any]], object]) -> Callable[[str], str]:
    """Return a function that changes the content of the file and updates its digest."""

    def changed(text: str) -> str:
        content = json.loads(text)
        change(content)
        if isinstance(content["shortcuts"], dict):
            content["digest"] = shortcuts._digest(content["shortcuts"])
        return json.dumps(content)

    return changed


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("0.3333333333333333", "0.4333333333333333", 1),
        lambda text: "[" * 100_000,
        lambda text: "[]",
        lambda text: "\0",
        _changed(lambda content: content.update(key="0" * 64)),
        _changed(lambda content: content.pop("key")),
        _changed(lambda content: content.update(shortcuts=[])),
        _changed(lambda content: content["shortcuts"].update(some=1.0)),
        _changed(lambda content: content["shortcuts"]["some"].pop()),
        _changed(lambda content: content["shortcuts"]["some"].append(1.0)),
        _changed(lambda content: content["shortcuts"]["some"].__setitem__(0, "1.0")),
        _changed(lambda content: content["shortcuts"]["some"].__setitem__(0, True)),
        _changed(lambda content: content["shortcuts"]["some"].__setitem__(0, [1.0])),
        _changed(lambda content: content["shortcuts"]["some"].__setitem__(0, 1.5)),
        _changed(lambda content: content["shortcuts"]["some"].__setitem__(0, float("nan"))),
    ],
)
def test_a_damaged_or_foreign_file_is_learned_anew_and_replaced(
    splits: Lists, learned: list[int], cache: Path, damage: Callable[[str], str]
) -> None:
    first = shortcuts.shortcut_correctness(splits["train"], splits["test"])
    (path,) = cache.iterdir()
    whole = path.read_text()
    path.write_text(damage(whole))
    assert path.read_text() != whole
    assert same(shortcuts.shortcut_correctness(splits["train"], splits["test"]), first)
    assert len(learned) == 2 and path.read_text() == whole


def test_a_cache_that_cannot_be_written_costs_a_line_and_no_number(
    splits: Lists, learned: list[int], cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache.write_text("no folder")
    results = shortcuts.shortcut_correctness(splits["train"], splits["test"])
    assert set(results) == {"some", "first"}
    assert "the shortcuts will be learned again next time" in capsys.readouterr().out


def test_two_that_learn_at_once_leave_one_whole_file(
    splits: Lists, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)

    def together(train: Any, test: Any) -> dict[str, Floats]:
        both.wait(timeout=60)
        return {"first": np.ones(len(test))}

    monkeypatch.setattr(shortcuts, "fit_shortcuts", together)
    results: list[dict[str, Floats]] = []
    threads = [
        threading.Thread(target=lambda: results.append(shortcuts.shortcut_correctness(splits["train"], splits["test"])))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    monkeypatch.setattr(shortcuts, "fit_shortcuts", None)
    assert len(results) == 2 and len(list(cache.iterdir())) == 1
    assert all(same(shortcuts.shortcut_correctness(splits["train"], splits["test"]), one) for one in results)


def test_the_key_is_quick(splits: Lists) -> None:
    items = splits["train"] * (5_000 // len(splits["train"]))
    start = time.process_time()
    shortcuts._key("anaphora.analysis.scores.baselines.shortcuts", "", (items, []))
    assert (time.process_time() - start) / len(items) < 100e-6  # 5 s for 50,000 items on a busy machine
