from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.typed_json import to_json
from anaphora.analysis.scores.heads import score_records
from anaphora.analysis.scores.measures.roles import cue_tokens, head_roles
from anaphora.data.example import Example

Spans = tuple[tuple[int, int], ...]


def spans_of(text: str) -> Spans:
    spans, at = [], 0
    for word in text.split():
        spans.append((at, at + len(word)))
        at += len(word) + 1
    return tuple(spans)


def item(text: str, rows: list[int | None], gold: int = 0, minimal_pair: str = "", **known: str) -> AttentionRecord:
    """Return a sentence after a special token; each head attends to one of its tokens, or uniformly (None).

    The candidates are the words "ann" and "bea", and the pronoun is "she" or "her".
    """
    spans = spans_of(text)
    words = text.split()
    weights = np.full((1, len(rows), len(spans) + 1), 1 / (len(spans) + 1), dtype=np.float32)
    for head, token in enumerate(rows):
        if token is not None:
            weights[0, head] = 0.2 / len(spans)
            weights[0, head, token] = 0.8
    pronoun = next(position for position, word in enumerate(words) if word in ("she", "her"))
    example = Example(
        text=text,
        language="en",
        pronoun=spans[pronoun],
        candidates=tuple((span,) for span, word in zip(spans, words, strict=True) if word in ("ann", "bea")),
        antecedents=(gold,),
        minimal_pair=minimal_pair,
        factors=known,
    )
    return AttentionRecord(example, ((0, 0), *spans), (-1, *range(len(spans))), weights)


TEXTS = ("ann met bea since she was slow", "so ann met bea since she was quick")


def records() -> list[AttentionRecord]:
    """Return records of five heads: on the preceding token, the special token, the cue, the antecedent, and uniform."""
    return [
        item(TEXTS[0], [4, 0, 7, 1, None], 0),
        item(TEXTS[1], [5, 0, 8, 4, None], 1),
        item("ann met bea since she was quick", [4, 0, 7, 3, None], 1, minimal_pair="t"),
        item("ann met bea since she was very slow", [4, 0, 8, 1, None], 0, minimal_pair="t"),
    ]


def roles(baseline: float = 0.5, **rest: Any) -> list[dict[str, Any]]:
    items = records()
    baselines = {"first": np.full(4, baseline), "absent": np.full(4, np.nan)}
    entries: list[dict[str, Any]] = to_json(head_roles(score_records(items), items, baselines, **rest))
    return entries


def test_every_head_is_described_by_what_it_does() -> None:
    heads = roles()
    assert [(entry["layer"], entry["head"]) for entry in heads] == [(0, head) for head in range(5)]
    assert [entry["roles"] for entry in heads] == [["positional"], ["special"], ["cue"], ["antecedent"], []]


def test_the_numbers_behind_the_roles() -> None:
    before, special, cue, antecedent, alike = roles()
    assert before["positional"] == {"offset": -1, "share": 1.0}
    assert special["special"] == pytest.approx(0.8, abs=1e-6)
    assert special["positional"] == {"offset": -5, "share": 0.75}  # one sentence begins a word earlier
    assert (cue["cue"], before["cue"]) == (1.0, 0.0)
    assert antecedent["antecedent"] == {"accuracy_over_best_baseline": 0.5}
    assert alike["positional"] == {"offset": None, "share": 0.0}
    assert alike["special"] == pytest.approx(1 / 8, abs=0.02)


def test_the_antecedent_must_be_found_clearly_more_often_than_by_the_best_baseline() -> None:
    assert roles(0.95)[3]["roles"] == []
    assert roles(0.85)[3]["roles"] == ["antecedent"]
    items = records()
    assert head_roles(score_records(items), items, {})[3].antecedent.accuracy_over_best_baseline is None


def cues_of(items: Sequence[AttentionRecord]) -> list[NDArray[np.bool_]]:
    return cue_tokens([one.example for one in items], [one.spans for one in items])


def test_the_cue_is_what_a_minimal_pair_does_not_have_beside_pronoun_and_candidates() -> None:
    first, second = records()[2:]
    assert [np.flatnonzero(tokens).tolist() for tokens in cues_of([first, second])] == [[7], [7, 8]]
    renamed = item("zoe met bea since she was quick", [1], minimal_pair="t")
    assert not cues_of([first, renamed])[0].any()


def test_a_sentence_alone_or_with_the_pronoun_as_its_cue_has_no_cue_word() -> None:
    assert not cues_of(records()[:1])[0].any()
    pair = [
        item("ann likes her and bea fell", [1], minimal_pair="t", cue="her"),
        item("ann likes him as she and bea fell", [1], minimal_pair="t", cue="she"),
    ]
    assert not any(tokens.any() for tokens in cues_of(pair))
    items = records()[:2]
    assert to_json(head_roles(score_records(items), items, {}))[2]["cue"] is None


def test_a_pronoun_of_several_tokens_is_one_place() -> None:
    text = "ann saw bea and she left"
    spans: Spans = ((0, 3), (4, 7), (8, 11), (12, 15), (16, 17), (17, 19), (20, 24))
    example = item(text, [1]).example
    for token, offset in ((4, 0), (5, 0), (6, 1), (3, -1)):
        weights = np.full((1, 1, 7), 0.05, dtype=np.float32)
        weights[0, 0, token] = 0.7
        record = AttentionRecord(example, spans, (0, 1, 2, 3, 4, 4, 5), weights)
        positional = head_roles(score_records([record]), [record], {})[0].positional
        assert (positional.offset, positional.share) == (offset, 1.0)


def test_only_main_items_count() -> None:
    items = [*records(), *(item(TEXTS[0], [2, 2, 2, 2, 2], stratum="cataphora") for _ in range(9))]
    assert to_json(head_roles(score_records(items), items, {"first": np.full(13, 0.5)})) == roles()


def test_records_that_were_not_scored_are_skipped() -> None:
    alone = Example(text="ann left her", language="en", pronoun=(9, 12), candidates=(((0, 3),),), antecedents=(0,))
    weights = np.full((1, 5, 3), 1 / 3, dtype=np.float32)
    dropped = AttentionRecord(alone, spans_of("ann left her"), (0, 1, 2), weights)
    items = [dropped, *records()]
    assert to_json(head_roles(score_records(items), items, {"first": np.full(4, 0.5)})) == roles()
