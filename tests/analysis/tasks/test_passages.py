from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anaphora.analysis.maps.capture import whole_maps
from anaphora.analysis.tasks.antecedent_selection import Passages
from anaphora.base.errors import UserError
from anaphora.data.example import Example
from anaphora.runs.directory import Run, load

TEXTS = (
    "Anna met Tom before she went to the park.",
    "Mary met Peter and he met Mary before she left.",
    "Tom saw Anna.",
)


def mentions() -> list[Example]:
    """Return every name or pronoun except the first of each text, with the texts in alternation."""
    spans = []
    for text in TEXTS:
        for word in ("Tom", "Anna", "Peter", "he", "she"):
            start = f" {text} ".replace(".", " ").find(f" {word} ")
            if start > 0:
                first = ((0, text.index(" ")),)
                spans.append(
                    Example(
                        text=text,
                        language="en",
                        pronoun=(start, start + len(word)),
                        candidates=(first,),
                        antecedents=(0,),
                    )
                )
    return spans[::2] + spans[1::2]


@pytest.fixture(scope="module")
def run(finished: Path) -> Run:
    return load(finished)


def test_each_text_is_read_once_and_each_mention_gets_its_own_row(run: Run) -> None:
    examples = mentions()
    passages = Passages(examples, run.tokenizer)
    numbers: list[int] = []
    records = dict(passages.records(run.model.encoder, run.config.batching, numbers.append))
    assert sorted(records) == list(range(len(examples)))
    assert len(examples) > sum(numbers) == len(passages) == len(TEXTS)
    for number, record in records.items():
        tokens, maps = whole_maps(run.model, run.tokenizer, examples[number])
        own = tokens.covering(examples[number].pronoun)
        assert record.example is examples[number]
        np.testing.assert_allclose(record.weights, maps[:, :, own].mean(axis=2), atol=1e-5)


def test_how_texts_share_a_pass_changes_nothing(run: Run) -> None:
    passages = Passages(mentions(), run.tokenizer)
    packed = dict(passages.records(run.model.encoder, replace(run.config.batching, kind="packed")))
    alone = dict(passages.records(run.model.encoder, replace(run.config.batching, kind="buckets", window=1)))
    for number, record in packed.items():
        np.testing.assert_allclose(record.weights, alone[number].weights, atol=1e-5)


def test_a_mention_without_a_token_is_named(run: Run) -> None:
    whole = Example(text="Anna  ran", language="en", pronoun=(6, 9), candidates=(((0, 4),),), antecedents=(0,))
    blank = replace(whole, pronoun=(4, 5))
    with pytest.raises(UserError, match=r"^item 0: no token covers the pronoun \(4, 5\)"):
        Passages([blank], run.tokenizer)
    with pytest.raises(UserError, match=r"^item 1: no token covers the mention \(4, 5\)"):  # of a text already read
        Passages([whole, blank], run.tokenizer)
