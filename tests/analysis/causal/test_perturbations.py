from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from encoders import POSITIONS, shape

from anaphora.analysis.causal.perturbations import (
    PERTURBATIONS,
    ids_with_replaced_names,
    masked_ids,
    perturbations,
    without_positions,
)
from anaphora.analysis.maps.capture import capture
from anaphora.analysis.results.scores import Head
from anaphora.base.batch import EncoderInput
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.data.store import load as load_corpus
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.model.pronoun_model import PronounModel
from anaphora.runs.directory import load
from anaphora.settings.model.position import Position
from anaphora.settings.model.prediction import Word
from anaphora.settings.vocabulary import CLS, MASK


def pair_item(cue: str, antecedent: int, pronoun: str = "she", kind: str = "role") -> Example:
    text = f"Anna thanked Emma because {pronoun} {cue} ."
    at = text.index(f" {pronoun} ") + 1
    return Example(
        text=text,
        language="en",
        pronoun=(at, at + len(pronoun)),
        candidates=(((0, 4),), ((13, 17),)),
        antecedents=(antecedent,),
        group="block",
        minimal_pair="pair",
        factors={"cue": cue if pronoun == "she" else pronoun, "kind": kind, "type": "causality", "template": "one"},
    )


def captured(examples: Sequence[Example]) -> EncodedSplit:
    return EncodedSplit(examples, word_vocabulary([one.text for one in examples], [], 1))


def left(data: EncodedSplit, ids: list[list[int]]) -> list[str]:
    """Return the words that remain."""
    return [
        " ".join(
            data.examples[item].text[start:end]
            for (start, end), one in zip(tokens.spans, ids[item], strict=True)
            if one not in (MASK, CLS)
        )
        for item, tokens in enumerate(data.tokens)
    ]


def test_only_the_cue_is_hidden() -> None:
    data = captured([pair_item("helped", 1), pair_item("smiled", 0)])
    assert left(data, masked_ids(data, "cue_masked")) == ["Anna thanked Emma because she ."] * 2


def test_where_the_pronoun_is_the_cue_it_is_hidden() -> None:
    data = captured([pair_item("slept", 0, "he", "set"), pair_item("slept", 1, "she", "set")])
    assert left(data, masked_ids(data, "cue_masked"))[0] == "Anna thanked Emma because slept ."


def test_without_context_pronoun_and_candidates_stay() -> None:
    data = captured([pair_item("helped", 1), pair_item("smiled", 0)])
    assert left(data, masked_ids(data, "context_removed")) == ["Anna Emma she"] * 2
    assert [len(ids) for ids in masked_ids(data, "context_removed")] == data.ids.lengths.tolist()


def test_names_are_replaced_by_others_alike_throughout_a_block() -> None:
    def item(first: str, second: str, group: str) -> Example:
        text = f"{first} thanked {second} because she slept , said {first} ."
        at, last = text.index(" she ") + 1, text.rindex(first)
        again = len(first) + len(" thanked ")
        return Example(
            text=text,
            language="en",
            pronoun=(at, at + 3),
            candidates=(((0, len(first)), (last, last + len(first))), ((again, again + len(second)),)),
            antecedents=(0,),
            group=group,
        )

    data = captured(
        [
            item("Anna", "Emma", "a"),
            item("Emma", "Anna", "a"),
            item("Ruth", "Jane", "b"),
            item("Lucy", "Jane", "b"),
            item("Mary", "Kate", "c"),
        ]
    )
    ids = ids_with_replaced_names(data)
    names = [(one[1], one[3], one[9]) for one in ids]
    before = [(tokens.ids[1], tokens.ids[3]) for tokens in data.tokens]
    for (first, second, again), own in zip(names, before, strict=True):
        assert first == again
        assert len({first, second, *own}) == 4
    assert names[0][:2] == names[1][1::-1]
    assert names[2][1] == names[3][1]
    kept = [position for position in range(11) if position not in (1, 3, 9)]
    assert [[one[position] for position in kept] for one in ids] == [
        [tokens.ids[position] for position in kept] for tokens in data.tokens
    ]


def test_a_name_that_nothing_can_replace_stays() -> None:
    data = captured([pair_item("helped", 1), pair_item("smiled", 0)])
    assert ids_with_replaced_names(data) == [list(tokens.ids) for tokens in data.tokens]


@pytest.mark.parametrize("encoding", POSITIONS, ids=lambda one: one.kind)
def test_a_model_without_positions_does_not_see_the_order(encoding: Position) -> None:
    torch.manual_seed(0)
    model = PronounModel(shape(position=encoding), Word(), 50).eval()
    blind = without_positions(model)
    ids, order = torch.arange(5, 13)[None], torch.tensor([3, 0, 2, 1, 7, 6, 5, 4])
    tokens = EncoderInput(ids, torch.arange(8)[None], torch.zeros(1, 8, dtype=torch.long))
    reordered = replace(tokens, ids=ids[:, order])
    with torch.inference_mode():
        before = model.encoder(tokens)
        straight, mixed = blind.encoder(tokens), blind.encoder(reordered)
        assert torch.allclose(straight[:, order], mixed, atol=1e-5)
        assert torch.equal(before, model.encoder(tokens))
        if encoding.kind != "none":
            shuffled = model.encoder(reordered)
            assert not torch.allclose(before[:, order], shuffled, atol=1e-3)


def test_a_run_is_measured_under_each_of_them(finished: Path) -> None:
    run = load(finished)
    data = EncodedSplit(load_corpus(run.config.data).examples("dev"), run.tokenizer)
    captured_split = capture(run.model, data, run.config.batching)
    accuracies = perturbations(run, captured_split.records, Head(0, 1))
    assert set(accuracies) == set(PERTURBATIONS)
    for languages in accuracies.values():
        assert set(languages) == {"en", "zh"}
        for kinds in languages.values():
            cell = kinds["all"]
            assert cell.items > 0
            assert 0 <= (cell.task_accuracy or 0) <= 1
            assert 0 <= (cell.candidate_accuracy or 0) <= 1
            assert 0 < (cell.chance or 0) < 1
