from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from copier import with_rows, without_edges
from numpy.typing import NDArray

from anaphora.analysis.causal.subjects import Edges, Scores
from anaphora.analysis.evidence.evidence import Evidence
from anaphora.analysis.evidence.other_models import evidence_from_records
from anaphora.analysis.evidence.plan import CONTROLS
from anaphora.analysis.maps.answers import Answers
from anaphora.analysis.maps.record import AttentionRecord, from_arrays
from anaphora.analysis.results.scores import Head
from anaphora.base.errors import UserError
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import TokenizedText

Maps = NDArray[np.float32]
CUES = ("lonely", "friendly")
ORDERS = (("Anna", "Emma"), ("Emma", "Anna"))
DEVELOPMENT, TEST = ("visited", "called", "invited"), ("joined", "met", "hosted", "saw", "taught", "fed")


def sentences(verbs: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield quads of two cues and two orders; the lonely person is the one who visits."""
    for verb in verbs:
        for order, (first, second) in enumerate(ORDERS):
            for right, cue in enumerate(CUES):
                text = f"{first} {verb} {second} because she was {cue}."
                yield {
                    "text": text,
                    "spans": [(0, 0), *(word.span() for word in re.finditer(r"\w+|[.]", text))],
                    "pronoun": (text.index("she"), text.index("she") + 3),
                    "candidates": [(0, 4), (text.index(second), text.index(second) + 4)],
                    "antecedents": [right],
                    "language": "en",
                    "group": verb,
                    "minimal_pair": f"{verb} {order}",
                    "factors": {"kind": "role", "type": "verb", "template": verb, "cue": cue, "order": str(order)},
                }


def records(verbs: Sequence[str], maps: Callable[[dict[str, Any]], Any]) -> list[AttentionRecord]:
    return [from_arrays(weights=maps(one), **one) for one in sentences(verbs)]


PRONOUN, FIRST, SECOND = 5, 1, 3
POINTS = Head(1, 0)


def by_hand(one: dict[str, Any]) -> Maps:
    """Return maps in which head 0 of layer 1 picks the antecedent, and other heads attend to [CLS]: (2, 2, 9, 9)."""
    maps = np.full((2, 2, 9, 9), 0.02, dtype=np.float32)
    maps[..., 0] = 0.84
    maps[1, 0, PRONOUN] = 0.02
    maps[1, 0, PRONOUN, (FIRST, SECOND)[one["antecedents"][0]]] = 0.84
    return maps


class Pointer:
    """Model that answers with the choice of this head."""

    def __init__(self, records: Sequence[AttentionRecord], maps: Sequence[Maps]) -> None:
        self.examples: list[Example] = [record.example for record in records]
        # Nobody reads the numbers but to see in which word minimal pairs differ.
        self.tokens = [
            TokenizedText(tuple(hash(one.example.text[a:b]) for a, b in one.spans), one.spans, one.words)
            for one in records
        ]
        self._maps = list(maps)

    @property
    def shape(self) -> tuple[int, int]:
        return 2, 2

    def maps(self) -> Iterator[tuple[int, Maps]]:
        yield from enumerate(self._maps)

    def scores(self) -> Scores:
        return self._answer(self._maps)

    def ablated(self, heads: Sequence[Head], mode: str) -> Scores:
        return self._answer([each * (POINTS not in heads) for each in self._maps])

    def knocked_out(self, edges: Edges) -> Scores:
        return self._answer(without_edges(self._maps, edges))

    value_zeroed = knocked_out

    def patched(self, heads: Sequence[Head], rows: Mapping[int, Maps]) -> Scores:
        return self._answer(with_rows(self._maps, heads, rows, PRONOUN))

    def _answer(self, maps: Sequence[Maps]) -> Scores:
        scores = np.full((len(maps), 3), -np.inf)
        scores[:, :2] = [each[1, 0, PRONOUN, [FIRST, SECOND]] for each in maps]
        return scores


def test_a_model_by_hand_gets_every_part_of_the_evidence() -> None:
    measured = records(TEST, by_hand)
    subject = Pointer(measured, [by_hand(one) for one in sentences(TEST)])
    answers = [one.example.antecedents[0] for one in measured]
    training = [one.example for one in records(("greeted", "hired"), by_hand)]
    measured_evidence, evidence = evidence_from_records(
        "by hand", records(DEVELOPMENT, by_hand), measured, answers=answers, subject=subject, training=training
    )
    metrics = evidence.to_json()
    assert json.loads(json.dumps(metrics, allow_nan=False)) == metrics
    assert Evidence.from_json(metrics) == evidence
    assert metrics["head"] == {"layer": 1, "head": 0, "chosen_on": "dev"}
    cell = metrics["languages"]["en"]["role"]
    assert (cell["task_accuracy"], cell["candidate_accuracy"], cell["quad_accuracy"]) == (1, 1, 1)
    assert cell["baselines"]["nearest"] == cell["baselines"]["first"] == 0.5
    assert {"bag_of_words", "best_offset"} <= set(cell["baselines"])
    assert metrics["significance"]["en"]["role"]["p"] == pytest.approx(
        1 / 64, abs=0.01
    )  # six blocks, two readings each
    assert metrics["effects"]["en"]["role"]["meaning"]["value"] == pytest.approx(0.82)
    assert metrics["effects"]["en"]["role"]["position"]["value"] == pytest.approx(0)
    assert metrics["further_scores"]["en"]["role"]["agreement"]["kappa"] == 1
    assert [one["roles"] for one in metrics["head_roles"]] == [["positional", "special"]] * 2 + [
        ["antecedent"],
        ["positional", "special"],
    ]
    causal = metrics["causal"]["languages"]["en"]["role"]
    assert causal["knockout"]["layer"]["gold_minus_matched"]["value"] == 1
    assert causal["pattern_patching"] | {"cumulative": []} == {
        "pairs": 24,
        "skipped": 0,
        **{name: {"flipped": 1, "interval": [1, 1]} for name in ("head", "layer", "all_layers")},
        "cumulative": [],
        "aligned": {"pairs": 24, **{name: {"flipped": 1, "interval": [1, 1]} for name in ("head", "layer")}},
    }
    assert metrics["controls"] == dict.fromkeys(CONTROLS)
    rows = {row["rule"]: row["passed"] for row in metrics["verdict"]["en"]["role"]["rows"]}
    assert metrics["verdict"]["en"]["role"]["verdict"] == "not yet controlled"
    assert rows["attention knockout"] is rows["attention-pattern patching"] is rows["lift"] is True
    assert rows["significance"] is True and rows["trained controls"] is None
    assert measured_evidence.measured.shape == (2, 2) and measured_evidence.task_correct.tolist() == [1] * 24


def test_a_tie_of_answers_keeps_its_share() -> None:
    development, measured = records(DEVELOPMENT, by_hand), records(TEST, by_hand)
    tied = Answers.from_scores([one.example for one in measured], np.zeros((len(measured), 3)) - [0, 0, 1])
    _, evidence = evidence_from_records("by hand", development, measured, answers=tied)
    assert evidence.to_json()["languages"]["en"]["role"]["task_accuracy"] == 0.5


def test_maps_alone_leave_out_what_needs_the_model() -> None:
    development, measured = records(DEVELOPMENT, by_hand), records(TEST, by_hand)
    _, evidence = evidence_from_records("by hand", development, measured)
    assert evidence.causal is None
    metrics = evidence.to_json()
    cell = metrics["languages"]["en"]["role"]
    assert cell["task_accuracy"] is None and cell["candidate_accuracy"] == 1
    assert "bag_of_words" not in cell["baselines"] and cell["baselines"]["random_init"] is None
    assert metrics["further_scores"]["en"]["role"]["agreement"] == {"kappa": None, "interval": None}
    # The hash says which model, so that two of them do not seem to be one.
    hashes = [evidence_from_records(name, development, measured)[1].protocol for name in ("a", "b", "a")]
    assert hashes[0] == hashes[2] != hashes[1]


def test_maps_of_torchs_multihead_attention_are_scored() -> None:
    torch.manual_seed(0)
    layers = [torch.nn.MultiheadAttention(8, 2, batch_first=True).eval() for _ in range(3)]
    embedding = torch.nn.Embedding(100, 8)

    def theirs(one: dict[str, Any]) -> Maps:
        pieces = [one["text"][start:end] for start, end in one["spans"]]
        hidden = embedding(torch.tensor([[sum(map(ord, piece)) % 100 for piece in pieces]]))
        maps = []
        with torch.no_grad():
            for layer in layers:
                hidden, weights = layer(hidden, hidden, hidden, need_weights=True, average_attn_weights=False)
                maps.append(weights[0].numpy())
        return np.stack(maps)

    measured = records(TEST, theirs)
    measured_evidence, evidence = evidence_from_records("torch", records(DEVELOPMENT, theirs), measured)
    assert measured_evidence.measured.shape == (3, 2) and evidence.scores["en"]["role"].items == 24
    head = evidence.head
    row = theirs(next(sentences(TEST)))[head.layer, head.head, PRONOUN]
    np.testing.assert_allclose(measured_evidence.capture.records[0].weights[head.layer, head.head], row, rtol=1e-5)
    mass = measured_evidence.measured.antecedent_mass[0, head.layer, head.head]
    assert mass == pytest.approx(row[FIRST])


def test_what_does_not_fit_is_reported_with_what_was_expected() -> None:
    development, measured = records(DEVELOPMENT, by_hand), records(TEST, by_hand)
    maps = [by_hand(one) for one in sentences(TEST)]

    def fails(message: str, *arguments: Any, **more: Any) -> None:
        with pytest.raises(UserError, match=message):
            evidence_from_records("theirs", *arguments, **more)

    fails(r"answers: there are 2; expected 24", development, measured, answers=[0, 1])
    fails(r'answers\[1\]: 2 is not a candidate; expected 0 to 1, or -1 for "none of them"', development, measured,
          answers=[0, 2, *[0] * 22])  # fmt: skip
    fails(r"measured\[0\]: 'Anna visited Emma because she was lonely.' is also a development sentence", development,
          development)  # fmt: skip
    other = records(DEVELOPMENT, lambda one: by_hand(one)[:1])
    fails(r"development has \(1, 2\) layers and heads, measured has \(2, 2\)", other, measured)
    fails(r"there are none; expected at least one to score", [], measured)
    fails(r"subject: it has \(2, 2\) layers and heads; expected \(1, 2\)", other,
          records(TEST, lambda one: by_hand(one)[:1]), subject=Pointer(measured, maps))  # fmt: skip
    fails(r"subject: it has no items", development, measured, subject=Pointer([], []))
    both = [from_arrays(**{**one, "antecedents": [0, 1]}, weights=by_hand(one)) for one in sentences(TEST)]
    fails(r"subject: item 0 has 2 antecedents among 2 candidates", development, measured, subject=Pointer(both, maps))
    fails(r"test split: no item of stratum main can be scored \(24 with every candidate is an antecedent\)",
          development, both)  # fmt: skip
    one = next(sentences(TEST))
    for weights, message in (
        (np.full((2, 2, 8, 8), 1 / 8), r"weights: the shape is \(2, 2, 8, 8\); expected \(layers, heads, 9, 9\)"),
        (np.full((2, 9), 1 / 9), r"weights: the shape is \(2, 9\); expected \(layers, heads, 9\)"),
        (np.full((2, 2, 9, 9), 0.2), r"the row of layer 0 head 0 sums to 1.8; expected 1"),
    ):
        with pytest.raises(UserError, match=message):
            from_arrays(weights=weights, **one)
