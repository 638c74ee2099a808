from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from encoders import POSITIONS, shape

from anaphora.analysis.capture import look
from anaphora.analysis.perturbations import (
    PERTURBATIONS,
    hidden_words,
    perturbations,
    replaced_names,
    without_positions,
)
from anaphora.analysis.scores import Head
from anaphora.checkpoint import load
from anaphora.data.batch import Encoded
from anaphora.data.example import Example
from anaphora.data.store import load as load_corpus
from anaphora.data.vocabulary import of_words
from anaphora.model.resolver import Resolver
from anaphora.model.settings import Position, Word
from anaphora.specials import CLS, MASK


def twin(cue: str, antecedent: int, pronoun: str = "she", kind: str = "role") -> Example:
    text = f"Anna thanked Emma because {pronoun} {cue} ."
    at = text.index(f" {pronoun} ") + 1
    return Example(
        text=text,
        language="en",
        pronoun=(at, at + len(pronoun)),
        candidates=(((0, 4),), ((13, 17),)),
        antecedents=(antecedent,),
        group="block",
        twin="pair",
        factors={"cue": cue if pronoun == "she" else pronoun, "kind": kind, "type": "causality", "template": "one"},
    )


def captured(examples: Sequence[Example]) -> Encoded:
    return Encoded(examples, of_words([one.text for one in examples], [], 1))


def left(data: Encoded, ids: list[list[int]]) -> list[str]:
    """The words that are still there."""
    return [
        " ".join(
            data.examples[item].text[start:end]
            for (start, end), one in zip(tokens.spans, ids[item], strict=True)
            if one not in (MASK, CLS)
        )
        for item, tokens in enumerate(data.tokens)
    ]


def test_only_the_cue_is_hidden() -> None:
    data = captured([twin("helped", 1), twin("smiled", 0)])
    assert left(data, hidden_words(data, "cue_masked")) == ["Anna thanked Emma because she ."] * 2


def test_where_the_pronoun_is_the_cue_it_is_hidden() -> None:
    data = captured([twin("slept", 0, "he", "set"), twin("slept", 1, "she", "set")])
    assert left(data, hidden_words(data, "cue_masked"))[0] == "Anna thanked Emma because slept ."


def test_without_context_pronoun_and_candidates_stay() -> None:
    data = captured([twin("helped", 1), twin("smiled", 0)])
    assert left(data, hidden_words(data, "context_removed")) == ["Anna Emma she"] * 2
    assert [len(ids) for ids in hidden_words(data, "context_removed")] == data.ids.lengths.tolist()


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
    ids = replaced_names(data)
    names = [(one[1], one[3], one[9]) for one in ids]
    before = [(tokens.ids[1], tokens.ids[3]) for tokens in data.tokens]
    for (first, second, again), own in zip(names, before, strict=True):
        assert first == again
        assert len({first, second, *own}) == 4
    assert names[0][:2] == names[1][1::-1]
    assert names[2][1] == names[3][1]
    kept = [place for place in range(11) if place not in (1, 3, 9)]
    assert [[one[place] for place in kept] for one in ids] == [
        [tokens.ids[place] for place in kept] for tokens in data.tokens
    ]


def test_a_name_that_nothing_can_replace_stays() -> None:
    data = captured([twin("helped", 1), twin("smiled", 0)])
    assert replaced_names(data) == [list(tokens.ids) for tokens in data.tokens]


@pytest.mark.parametrize("encoding", POSITIONS, ids=lambda one: one.kind)
def test_a_model_without_positions_does_not_see_the_order(encoding: Position) -> None:
    torch.manual_seed(0)
    resolver = Resolver(shape(position=encoding), Word(), 50).eval()
    blind = without_positions(resolver)
    ids, order = torch.arange(5, 13)[None], torch.tensor([3, 0, 2, 1, 7, 6, 5, 4])
    places, segments = torch.arange(8)[None], torch.zeros(1, 8, dtype=torch.long)
    with torch.inference_mode():
        before = resolver.encoder(ids, places, segments)
        straight, mixed = blind.encoder(ids, places, segments), blind.encoder(ids[:, order], places, segments)
        assert torch.allclose(straight[:, order], mixed, atol=1e-5)
        assert torch.equal(before, resolver.encoder(ids, places, segments))
        if encoding.kind != "none":
            shuffled = resolver.encoder(ids[:, order], places, segments)
            assert not torch.allclose(before[:, order], shuffled, atol=1e-3)


def test_a_run_is_measured_under_each_of_them(finished: Path) -> None:
    run = load(finished)
    data = Encoded(load_corpus(run.config.data).examples("dev"), run.tokenizer)
    seen = look(run.resolver, data, run.config.batching, run.config.task.readout)
    found = perturbations(run, seen.records, Head(0, 1))
    assert set(found) == set(PERTURBATIONS)
    for languages in found.values():
        assert set(languages) == {"en", "zh"}
        for kinds in languages.values():
            cell = kinds["all"]
            assert cell["items"] > 0
            assert 0 <= cell["task_accuracy"] <= 1
            assert 0 <= cell["candidate_accuracy"] <= 1
            assert 0 < cell["chance"] < 1
