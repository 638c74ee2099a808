from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anaphora.analysis.scores import is_main
from anaphora.checkpoint import load
from anaphora.data.batch import Encoded
from anaphora.data.example import Example
from anaphora.data.store import load as load_corpus
from anaphora.errors import UserError
from anaphora.studies import measures
from anaphora.studies.measures import MEASURED, Answers, Asked, by_distance, measure, measure_settings

EVERY = Asked(("scores", "forms", "distance", "roles", "shuffled", "cut"), "test", None)


def test_a_run_is_measured_by_language_and_group_and_not_twice(own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure(load(own_run), EVERY)
    stored = json.loads((own_run / MEASURED).read_text(encoding="utf-8"))
    scored = json.loads((own_run / "metrics.json").read_text(encoding="utf-8"))
    assert stored["head"] == [scored["head"]["layer"], scored["head"]["head"]]
    for language in ("en", "zh"):
        groups = stored["groups"][language]
        assert groups["set"]["task_accuracy"] == scored["languages"][language]["set"]["task_accuracy"]
        assert groups["pronoun"]["candidate_accuracy"] == groups["all"]["candidate_accuracy"]
        assert {"query shuffled", "key shuffled", "value shuffled, set"} <= set(groups)
        assert {"no candidate seen", "nothing seen, set", "pronoun unseen, set"} <= set(groups)
        assert {"antecedent_heads", "predicate_heads", "neighbour_heads", "relations"} <= set(groups["all"])
    monkeypatch.setattr(measures, "study", lambda *_: pytest.fail("measured again"))
    measure(load(own_run), EVERY)
    with pytest.raises(pytest.fail.Exception):
        measure(load(own_run), Asked(("scores",), "dev", None))


def test_a_recurrent_run_is_measured_by_its_answers_alone(tmp_path: Path, tiny: Callable[..., Any]) -> None:
    from anaphora.training.run import train

    run = load(train(tiny(tmp_path, "model/attention=gru", "trainer.limit_steps=2")).directory)
    measure(run, Asked(("scores",), "test", None))
    stored = json.loads((run.directory / MEASURED).read_text(encoding="utf-8"))
    assert stored["head"] is None
    assert set(stored["groups"]["en"]["set"]) == {"task_accuracy", "chance", "items"}
    for name in ("roles", "cut"):
        with pytest.raises(UserError, match=rf"measures \('{name}'\) asks for attention maps"):
            measure(run, Asked((name,), "test", None))


def test_cut_edges_are_those_between_pronoun_and_candidates(own_run: Path) -> None:
    run = load(own_run)
    data = Encoded(load_corpus(run.config.data).examples("test")[:3], run.tokenizer)
    cuts = measures._cuts(data, 2, 4)
    for item, (example, tokens) in enumerate(zip(data.examples, data.tokens, strict=True)):
        pronoun = set(tokens.covering(example.pronoun))
        candidates = {token for spans in example.candidates for span in spans for token in tokens.covering(span)}
        everywhere = {(layer, head) for layer in range(2) for head in range(4)}
        expected = {
            "no candidate seen": {(query, key) for query in pronoun for key in candidates},
            "nothing seen": {(query, key) for query in pronoun for key in {*range(len(tokens.ids))} - pronoun},
            "pronoun unseen": {(query, key) for query in candidates for key in pronoun},
        }
        for name, edges in cuts.items():
            here = edges.item == item
            found = set(zip(*(part[here].tolist() for part in edges[1:]), strict=True))
            assert found == {(*head, *edge) for head in everywhere for edge in expected[name]}


def test_an_answer_that_is_read_off_a_row_is_lost_with_its_edges(tmp_path: Path, tiny: Callable[..., Any]) -> None:
    from anaphora.training.run import train

    run = load(train(tiny(tmp_path, "task/readout=pointer")).directory)
    answers = measures._answers(run, Asked(("cut",), "test", None))
    groups = measures.with_edges_cut(run, answers)["en"]
    # No candidate has any weight left, so that all tie and the first is named; it is right as often as any other.
    main = is_main(answers.examples)
    firsts = [
        0 in one.antecedents for one, its in zip(answers.examples, main, strict=True) if its and one.language == "en"
    ]
    assert groups["no candidate seen"]["task_accuracy"] == pytest.approx(np.mean(firsts), abs=1e-6)


def test_a_run_of_labelled_texts_is_measured_by_its_labels(tmp_path: Path, settings: Callable[..., Any]) -> None:
    from anaphora.analysis.classification import label_answers, labels_of
    from anaphora.training.run import train

    texts = [{"text": f"seen {'well' * (number % 3)} {number}", "label": "ab"[number % 3 > 0]} for number in range(60)]
    path = tmp_path / "texts.jsonl"
    path.write_text("\n".join(map(json.dumps, texts)))
    config = settings(
        "trainer=smoke", "experiment=sentiment", "data=labelled_text", f"data.path={path}", "model.width=16",
        "batching.tokens=96", "batching.row_tokens=32", f"output={tmp_path}", "name=run",
    )  # fmt: skip
    run = load(train(config).directory)
    measure(run, Asked(("labels",), "test", None))
    (found,) = json.loads((run.directory / MEASURED).read_text(encoding="utf-8"))["groups"]["en"].values()
    held_out = load_corpus(config.data).texts("test")
    names = labels_of(run)
    right = [names[number] == one.label for number, one in zip(label_answers(run, held_out), held_out, strict=True)]
    assert found["task_accuracy"] == pytest.approx(np.mean(right), abs=1e-6)
    assert found["chance"] == pytest.approx(sum(one.label == "b" for one in held_out) / len(held_out), abs=1e-6)
    with pytest.raises(UserError, match="this corpus holds texts"):
        measure(run, Asked(("scores",), "test", None))


def test_labels_are_measured_of_runs_that_tell_labels(own_run: Path) -> None:
    with pytest.raises(UserError, match=r"measures \('labels'\) asks for task.readout=label, not word"):
        measure(load(own_run), Asked(("labels",), "test", None))


def test_items_are_grouped_by_the_words_between_antecedent_and_pronoun() -> None:
    def item(distance: int) -> Example:
        factors = {"kind": "set", "stratum": "main", "distance": str(distance)}
        candidates = (((2, 3),), ((4, 5),))
        return Example(
            text="a b c", language="en", pronoun=(0, 1), candidates=candidates, antecedents=(0,), factors=factors
        )

    examples = [item(distance) for distance in (0, 3, 4, 33, 200)]
    found = by_distance(Answers(examples, np.array([1.0, 0.0, 1.0, 1.0, 0.0]), None))["en"]
    assert {group: (one["items"], one["task_accuracy"], one["chance"]) for group, one in found.items()} == {
        "distance 0": (2, 0.5, 0.5),
        "distance 4": (1, 1.0, 0.5),
        "distance 32": (1, 1.0, 0.5),
        "distance 64": (1, 0.0, 0.5),
    }


def test_what_needs_no_training_is_measured_without_a_run(tmp_path: Path, settings: Callable[..., Any]) -> None:
    measure_settings(settings(), tmp_path, Asked(("scaling",), "test", None))
    stored = json.loads((tmp_path / MEASURED).read_text(encoding="utf-8"))
    assert set(stored["groups"]) == {"any"}
    assert [path.name for path in tmp_path.iterdir()] == [MEASURED]
