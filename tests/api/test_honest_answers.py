"""Tests that every answer is shown with its reservations: unknown words, another choice of the head, calibration."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import anaphora
from anaphora.analysis.results.scores import Head
from anaphora.api.live.questions import parse, reply
from anaphora.api.runs import OpenRun
from anaphora.base.errors import UserError
from anaphora.base.files import write_json
from anaphora.base.translation import spoken_in
from anaphora.data.own_sentence import example_from_query
from anaphora.explain.output import print_summary
from anaphora.explain.walk import Walkthrough
from anaphora.report.page.answer_notes import head_note

TEXT = "Anna met Emma before she went to the park."
CHINESE = "王芳碰到李强以后,她去了商店。"
UNKNOWN = TEXT.replace("park", "ЖЖЖ")
UNREADABLE = TEXT.replace("Emma", "ЖЖЖ")


def explained(run: OpenRun, text: str, *names: str, head: int = 0) -> Walkthrough:
    return run.explain(text, candidates=names, layer=1, head=head, language="en")


def replied(run: OpenRun, text: str, *names: str) -> dict[str, Any]:
    return reply(run, parse({"text": text, "candidates": list(names)}))


def answer_of(walk: Walkthrough) -> dict[str, float]:
    result = walk.step("answer").result
    return dict(zip(result.columns, result.values[0].tolist(), strict=True))


def example_text(text: str) -> str:
    return text[slice(*example_from_query(text).pronoun)]


def test_unknown_words_are_named_beside_the_answer_and_an_unreadable_sentence_gets_none(own_run: Path) -> None:
    run = anaphora.load(own_run)
    walk, live = explained(run, UNKNOWN, "Anna", "Emma"), replied(run, UNKNOWN, "Anna", "Emma")
    for notes in (walk.notes, live["notes"]):
        assert any("Do not trust" in note and "“ЖЖЖ”" in note for note in notes)
    assert len(live["answers"]) == 2 and walk.step("answer")
    known, unknown = run.answers([(text, "she", ["Anna", "Emma"]) for text in (TEXT, UNKNOWN)])
    assert known.warning is None and "Do not trust" in str(unknown.warning) and "Ж" in str(unknown.warning)
    walk, live = explained(run, UNREADABLE, "Anna", "ЖЖЖ"), replied(run, UNREADABLE, "Anna", "ЖЖЖ")
    for notes in (walk.notes, live["notes"]):
        assert any("no answer is shown" in note and "“ЖЖЖ”" in note for note in notes)
    assert live["answers"] is None and "answers:" not in walk.about
    with pytest.raises(UserError):
        walk.step("answer")
    for notes in (explained(run, TEXT, "Anna", "Emma").notes, replied(run, TEXT, "Anna", "Emma")["notes"]):
        assert not any("trust" in note for note in notes)


def test_an_unknown_character_that_cannot_be_seen_is_named_by_its_code_point() -> None:
    (answer,) = anaphora.load().answers(
        [("Anna thanked Em\u00adma because she was kind.", "she", ["Anna", "Em\u00adma"])]
    )
    assert "“U+00AD”" in (answer.warning or "")


def test_an_answer_about_a_text_in_another_language_is_not_to_be_trusted() -> None:
    run = anaphora.load()
    text = "Anna dankte Emma, weil sie ihr geholfen hatte."
    walk = run.explain(text, "sie", ["Anna", "Emma"], language="en")
    live = reply(run, parse({"text": text, "pronoun": "sie", "candidates": ["Anna", "Emma"]}))
    (answer,) = run.answers([(text, "sie", ["Anna", "Emma"])])
    for notes in (walk.notes, live["notes"], [answer.warning or ""]):
        assert any("neither English nor Chinese" in note and "“weil”" in note for note in notes)


@pytest.mark.parametrize("names", [(), ("Anna",)])
def test_too_few_candidates_get_a_line_and_no_answer(own_run: Path, names: tuple[str, ...]) -> None:
    run = anaphora.load(own_run)
    walk, live = explained(run, TEXT, *names), replied(run, TEXT, *names)
    assert any("at least two" in note for note in walk.notes) and any("at least two" in note for note in live["notes"])
    assert live["answers"] is None and all(step.name != "answer" for step in walk.steps)


def test_a_line_says_whether_the_chosen_head_points_where_the_answer_is(
    own_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = anaphora.load(own_run)
    maps = run.attention(TEXT, candidates=["Anna", "Emma"])
    for head in (0, 1):
        with monkeypatch.context() as patched:
            patched.setattr("anaphora.analysis.evidence.storage.chosen_head", lambda *_, head=head: Head(1, head))
            patched.setattr("anaphora.explain.encoding.chosen_head", lambda *_, head=head: Head(1, head))
            opened = anaphora.load(own_run)
            live, walk = replied(opened, TEXT, "Anna", "Emma"), explained(opened, TEXT, "Anna", "Emma", head=head)
            other = explained(opened, TEXT, "Anna", "Emma", head=1 - head)
        row = maps.row("she", 1, head)
        weights = {name: row.to(name) for name in ("Anna", "Emma")}
        strongest = max(weights, key=weights.__getitem__)
        is_same = strongest == run.answer(TEXT, "she", ["Anna", "Emma"])
        words = "at none of them" if weights[strongest] < 0.1 else "there too" if is_same else "elsewhere"
        (line,) = [note for note in live["notes"] if f"Layer 1 head {head}" in note]
        assert line in walk.notes and words in line and f"{weights[strongest]:.2f}" in line and strongest in line
        assert not any("points" in note for note in other.notes)
    assert not any("points" in note for note in replied(run, TEXT, "Anna", "Emma")["notes"])  # no head was chosen


@pytest.mark.parametrize("shares", [(1.0, 0.0, 0.0), (0.2, 0.2, 0.6), (0.2, 0.1, 0.1, 0.6)])
def test_the_line_names_all_candidates_of_a_tie_and_claims_no_agreement(shares: tuple[float, ...]) -> None:
    names = ["Anna", "Emma", "Mary"]
    tied = head_note(2, 1, names, (0.3, 0.1, 0.3), shares, "")
    assert tied == "Layer 2 head 1 points at no single one of them: “Anna”, “Mary” get 0.30 each."
    assert "“Anna” gets 0.30" in head_note(2, 1, names, (0.304, 0.1, 0.29), (1.0, 0.0, 0.0), "")
    assert head_note(2, 1, names, (0.3, 0.1, 0.297), shares, "") == tied
    assert "“Anna”, “Emma”, “Mary” get 0.05 each" in head_note(2, 1, names, (0.05, 0.05, 0.05), shares, "")
    with spoken_in("zh"):
        assert head_note(2, 1, names, (0.3, 0.1, 0.3), shares, "") == (
            "第 2 层第 1 头没有单独指向其中一个：“Anna”、“Mary”的权重都是 0.30。"
        )


@pytest.mark.parametrize(
    ("shares", "answer"),
    [
        ((0.4, 0.2, 0.4), "“Anna”, “Mary”"),
        ((0.4, 0.2 - 1e-9, 0.4 - 1e-9), "“Anna”, “Mary”"),
        ((0.1, 0.4, 0.1, 0.4), "“Emma”, none of them"),
    ],
)
def test_the_line_calls_no_answer_of_a_tie_the_answer(shares: tuple[float, ...], answer: str) -> None:
    note = head_note(2, 1, ["Anna", "Emma", "Mary"], (0.7, 0.1, 0.1), shares, "")
    assert note == f"Layer 2 head 1 points at “Anna” (0.70); the answer is a tie between {answer}."


def test_an_explanation_calls_no_answer_of_a_tie_the_answer(own_run: Path) -> None:
    run = anaphora.load(own_run)
    walk = explained(run, "Anna met Anna before she went to the park.", "Anna:1", "Anna:2")  # the same tokens twice
    assert walk.step("answer").result.values[0].tolist() == pytest.approx([0.5, 0.5])
    assert {"Anna:1", "Anna:2"} < {name for name, _ in walk.units}
    assert "The model’s answer is a tie between Anna:1, Anna:2." in walk.about and "answers:" not in walk.about


def test_the_line_counts_the_row_of_the_pronoun_and_not_that_of_its_contraction() -> None:
    run = anaphora.load()
    text = "Anna thanked Emma because she'd've helped."
    head = run.head_for(text)
    assert head is not None
    (line,) = [note for note in replied(run, text, "Anna", "Emma")["notes"] if "Layer" in note]
    assert line in run.explain(text, candidates=["Anna", "Emma"], layer=head.layer, head=head.head, language="en").notes
    whole = run.attention(text, candidates=["Anna", "Emma"]).row("she'd've", head.layer, head.head)
    assert f"{max(whole.to('Anna'), whole.to('Emma')):.2f}" not in line  # or nothing is tested here


def test_the_line_says_if_labels_trained_the_chosen_head(own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = own_run / "config.yaml"
    supervised = re.sub(
        r"(supervision:\s+weight:) 0\.0", r"\1 0.1", config.read_text(encoding="utf-8")
    )  # layer 1 head 0
    config.write_text(supervised, encoding="utf-8")
    for head in (0, 1):
        with monkeypatch.context() as patched:
            patched.setattr("anaphora.analysis.evidence.storage.chosen_head", lambda *_, head=head: Head(1, head))
            patched.setattr("anaphora.explain.encoding.chosen_head", lambda *_, head=head: Head(1, head))
            run = anaphora.load(own_run)
            listed = replied(run, TEXT, "Anna", "Emma")["notes"], explained(run, TEXT, "Anna", "Emma", head=head).notes
        for notes in listed:
            (line,) = [note for note in notes if f"Layer 1 head {head}" in note]
            assert ("The labels trained this head" in line) == (head == 0)


def test_a_run_that_answers_from_a_head_says_so_beside_the_row_that_it_reads_and_no_other() -> None:
    run = anaphora.load()
    text, names = "Anna was rescued by Emma because she was weak.", ["Anna", "Emma"]
    head = run.head_for(text)
    assert head is not None and run.run.config.answers_from(head.layer, head.head)
    walk, row = run.explain(text, candidates=names), run.attention(text).row("she")
    step = walk.step("answer")
    scores = step.matrix("score").values[0]
    np.testing.assert_allclose(np.exp(scores), [row.to(name) for name in names], rtol=1e-3)
    assert "the natural logarithm of the pronoun’s weight on it in layer 5 head 0" in step.text
    other = run.explain(text, candidates=names, head=1 - head.head)
    for explanation, sentence in (
        (walk, "is read from these weights"),
        (other, "not that the answer comes from there"),
    ):
        printed = io.StringIO()
        print_summary(Console(file=printed, width=200), explanation)
        assert sentence in printed.getvalue().splitlines()[-1]
    assert any("answer is read from these weights" in note for note in replied(run, text, *names)["notes"])


def test_a_head_that_is_chosen_later_for_a_language_is_noticed(own_run: Path) -> None:
    for layer in (0, 1):
        write_json(own_run / "en" / "metrics.json", {"head": {"layer": layer, "head": 1}})
        assert anaphora.attention(own_run, TEXT).chosen == Head(layer, 1)


@pytest.mark.parametrize(("text", "names"), [(TEXT, ("Anna", "Emma")), (CHINESE, ("王芳", "李强"))])
def test_shares_are_calibrated_with_the_temperature_of_their_language(
    own_run: Path, text: str, names: tuple[str, ...]
) -> None:
    before = answer_of(explained(anaphora.load(own_run), text, *names))
    temperatures = {"en": 0.25, "zh": 4.0}
    (own_run / "calibration.json").write_text(json.dumps({"temperatures": temperatures}), encoding="utf-8")
    run = anaphora.load(own_run)
    powers = np.array(list(before.values())) ** (1 / temperatures[example_from_query(text).language])
    expected = dict(zip(before, powers / powers.sum(), strict=True))
    assert answer_of(explained(run, text, *names)) == pytest.approx(expected)
    shown = {one["candidate"]: one["share"] for one in replied(run, text, *names)["answers"]}
    assert shown == pytest.approx(expected, abs=1e-5)
    (answered,) = run.answers([(text, example_text(text), names)])
    assert {one.words: one.probability for one in answered.candidates} == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("content", ['{"temperatures": {"en": 0}}', '{"temperatures": {"en": "1"}}', "{}", "["])
def test_a_damaged_calibration_is_one_line(own_run: Path, content: str) -> None:
    (own_run / "calibration.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"calibration\.json.*calibrate=dev"):
        replied(anaphora.load(own_run), TEXT, "Anna", "Emma")


def test_the_error_on_the_items_of_the_calibration_is_told_to_be_theirs(own_run: Path, script: Any) -> None:
    assert "fitted on data" not in script("evaluate", f"run={own_run}", "calibrate=dev").out
    assert "the temperatures were fitted on data=" in script("evaluate", f"run={own_run}", "split=dev").out
    assert "fitted on data" not in script("evaluate", f"run={own_run}").out
    path = own_run / "calibration.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    stored["data_settings"]["seed"] += 1  # other data of the same kind
    path.write_text(json.dumps(stored), encoding="utf-8")
    assert "fitted on data" not in script("evaluate", f"run={own_run}", "split=dev").out


def test_evaluate_calibrates_on_one_split_and_measures_another(own_run: Path, script: Any) -> None:
    status, out, err = script("evaluate", f"run={own_run}", "calibrate=dev")
    assert status == 0, err
    assert "expected calibration error" in out
    stored = json.loads((own_run / "calibration.json").read_text(encoding="utf-8"))
    assert stored["fitted_on"] == "dev" and stored["measured_on"] == "test"
    for row in stored["measured"]:
        assert row["temperature"] == stored["temperatures"][row["language"]]
        assert f"{row['before']:.3f}" in out and f"{row['after']:.3f}" in out
    content = {**stored, "temperatures": {**stored["temperatures"], "fr": 3.0}}
    (own_run / "calibration.json").write_text(json.dumps(content), encoding="utf-8")
    assert script("evaluate", f"run={own_run}", "calibrate=dev").status == 0
    kept = json.loads((own_run / "calibration.json").read_text(encoding="utf-8"))
    assert kept["temperatures"] == {**stored["temperatures"], "fr": 3.0}
    again = script("evaluate", f"run={own_run}")
    assert again.out.split("expected calibration error")[0] == out.split("expected calibration error")[0]
    status, _, err = script("evaluate", f"run={own_run}", "calibrate=test")
    assert status == 2 and "must be another split" in err
