"""Tests of minimal pairs in training: they share a batch, and a loss separates their answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from anaphora.base.errors import UserError
from anaphora.data.batches.batching import MinimalPairs, TrainingBatches
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.data.store import Corpus
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.runs.directory import RunFiles, load
from anaphora.settings.run import Config
from anaphora.settings.training import Batching
from anaphora.training.items import TrainingDataModule, minimal_pairs_of, prepare_examples
from anaphora.training.losses import minimal_pair_contrast_loss
from anaphora.training.run import train

CUES = ("tall", "small")


def pair_item(number: int, cue: int, names: tuple[str, str] = ("suitcase", "trophy")) -> Example:
    text = f"The {names[0]} holds no {names[1]}{' at all' * (number % 4)} since it is {CUES[cue]}"
    spans = tuple(((text.index(name), text.index(name) + len(name)),) for name in names)
    start = text.index(" it ") + 1
    return Example(
        text=text,
        language="en",
        pronoun=(start, start + 2),
        candidates=spans,
        antecedents=(cue,),
        minimal_pair=f"pair {number}" if number else "",
    )


EXAMPLES = [pair_item(number, cue) for cue in (0, 1) for number in range(20)]
DATA = EncodedSplit(EXAMPLES, word_vocabulary([one.text for one in EXAMPLES], min_count=1))


@pytest.mark.parametrize("kind", ["packed", "buckets"])
def test_minimal_pairs_stand_in_one_batch_and_every_item_comes_once(kind: str) -> None:
    # Two of the longest rows fill a batch, so that without care most minimal pairs would be parted.
    chosen = Batching(kind=kind, tokens=80, row_tokens=40, window=8)

    def parted(minimal_pairs: MinimalPairs | None) -> int:
        batches = TrainingBatches(DATA, chosen, 0, 0, 0.0, minimal_pairs)
        numbers: list[int] = []
        alone = 0
        for batch in batches.between(0, 1000):
            items = batch.items.tolist()
            numbers += items
            alone += sum(item and (item + 20) % 40 not in items for item in items if item % 20)
            if len(numbers) == len(DATA):
                break
        assert sorted(numbers) == list(range(len(DATA)))
        return alone

    assert parted(MinimalPairs(DATA)) == 0
    assert parted(None) > 10


def test_a_batch_knows_its_pairs() -> None:
    minimal_pairs = MinimalPairs(DATA)
    assert len(minimal_pairs.pairs) == 19  # the items without a name of a minimal pair are none
    batches = TrainingBatches(DATA, Batching(tokens=120, row_tokens=40), 0, 0, 0.0, minimal_pairs)
    for batch in batches.between(0, 5):
        items = batch.items
        assert len(batch.minimal_pairs) == sum(1 for item in items.tolist() if item % 20) // 2
        assert all(abs(int(items[one] - items[other])) == 20 for one, other in batch.minimal_pairs.tolist())


def test_the_pairs_among_some_items_come_in_the_order_of_all_pairs() -> None:
    minimal_pairs = MinimalPairs(DATA)
    draw = np.random.default_rng(0)
    for count in (0, 1, 7, 25, 40):
        items = draw.permutation(len(DATA))[:count]
        number_of = {int(item): number for number, item in enumerate(items)}
        expected = [
            [number_of[first], number_of[second]]
            for first, second in minimal_pairs.pairs.tolist()
            if first in number_of and second in number_of
        ]
        among = minimal_pairs.pairs_among(items)
        assert among.shape == (len(expected), 2) and among.tolist() == expected


def test_minimal_pairs_of_the_same_answer_or_with_other_candidates_are_no_pair() -> None:
    others = [pair_item(1, 0), pair_item(1, 0), pair_item(1, 1, ("trophy", "suitcase"))]
    assert not len(MinimalPairs(EncodedSplit(others, word_vocabulary([one.text for one in others], min_count=1))).pairs)


def test_pairs_are_those_of_different_answers() -> None:
    three = [pair_item(1, 0), pair_item(1, 1), pair_item(1, 0)]
    pairs = MinimalPairs(EncodedSplit(three, word_vocabulary([one.text for one in three], min_count=1)))
    assert pairs.pairs.tolist() == [[0, 1], [1, 2]]
    assert pairs.pairs_among(np.array([2, 1])).tolist() == [[1, 0]]


def test_the_loss_is_the_chance_of_one_answer_and_its_gradient_pushes_the_minimal_pairs_apart() -> None:
    scores = torch.tensor([[2.0, 0.0, -torch.inf], [1.0, 0.0, -torch.inf]], requires_grad=True)
    minimal_pairs = torch.tensor([[0, 1]])
    loss = minimal_pair_contrast_loss(scores, minimal_pairs)
    first, second = torch.sigmoid(torch.tensor(2.0)).item(), torch.sigmoid(torch.tensor(1.0)).item()
    assert loss.item() == pytest.approx(first * second + (1 - first) * (1 - second), abs=1e-6)
    loss.backward()  # type: ignore[no-untyped-call]
    assert scores.grad is not None
    # Both like the first candidate best: a step down the gradient takes it from both.
    assert (scores.grad[:, 0] > 0).all() and (scores.grad[:, 1] < 0).all()
    apart = torch.tensor([[9.0, -9.0, -torch.inf], [-9.0, 9.0, -torch.inf]])
    assert minimal_pair_contrast_loss(apart, minimal_pairs).item() == pytest.approx(0, abs=1e-6)


@pytest.fixture
def pairs_table(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    rows = []
    for number in range(1, 25):
        for cue in (0, 1):
            one = pair_item(number, cue)
            rows.append(
                {
                    "text": one.text,
                    "language": "en",
                    "pronoun": one.pronoun,
                    "candidates": [spans[0] for spans in one.candidates],
                    "antecedents": one.antecedents,
                    "group": one.minimal_pair,
                    "minimal_pair": one.minimal_pair,
                    "split": ("train", "train", "dev", "test")[number % 4],
                }
            )
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.mark.parametrize("prediction", ["pair", "word"])
def test_a_weight_changes_what_is_learned(
    prediction: str, tiny: Callable[..., Config], pairs_table: Path, tmp_path: Path
) -> None:
    weights = {}
    for weight in (0.0, 1.0):
        chosen = (f"data.path={pairs_table}", f"task/prediction={prediction}", f"task.minimal_pair_contrast={weight}")
        run = train(tiny(tmp_path / str(weight), *chosen, "trainer.limit_steps=2"))
        weights[weight] = load(run).model.encoder.tokens.weight
    assert not torch.equal(weights[0.0], weights[1.0])


def test_the_training_examples_are_decoded_once_before_the_first_step(
    tiny: Callable[..., Config], pairs_table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = ("task/prediction=pair", "task.minimal_pair_contrast=1", "batching.shortest_first=[0.5]")
    config = tiny(tmp_path, f"data.path={pairs_table}", *chosen)
    decoded: list[Example] = []
    stored = Corpus.examples

    def noted(corpus: Corpus, split: str, numbers: Sequence[int] | None = None) -> list[Example]:
        examples = stored(corpus, split, numbers)
        decoded.extend(examples if split == "train" else [])
        return examples

    monkeypatch.setattr(Corpus, "examples", noted)
    data = prepare_examples(config, None)
    minimal_pairs = minimal_pairs_of(data.training, config)
    next(TrainingDataModule(config, data.training, data.validation, minimal_pairs).batches.between(0, 1))
    assert len(minimal_pairs.pairs) == 12 and len(decoded) == 24


def test_data_without_minimal_pairs_are_refused_before_anything_is_written(
    tiny: Callable[..., Config], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"task.minimal_pair_contrast \(0.5\) needs minimal pairs.*data=jsonl has none"):
        train(tiny(tmp_path, "task.minimal_pair_contrast=0.5"))
    assert not RunFiles(tmp_path / "run").config.exists()


def test_a_prediction_head_that_answers_nothing_has_no_minimal_pairs_to_compare(
    settings: Callable[..., Config],
) -> None:
    with pytest.raises(UserError, match=r"task.minimal_pair_contrast \(0.5\).*task.prediction=none gives none"):
        settings("task=masked_lm", "task.minimal_pair_contrast=0.5")


def test_none_of_them_is_an_answer_that_two_items_can_share() -> None:
    # Three answers alike for both: each is shared with a chance of 1/9.
    assert minimal_pair_contrast_loss(torch.zeros(2, 3), torch.tensor([[0, 1]])).item() == pytest.approx(1 / 3)
    none = torch.tensor([[-9.0, -9.0, 9.0]]).repeat(2, 1)
    assert minimal_pair_contrast_loss(none, torch.tensor([[0, 1]])).item() == pytest.approx(1, abs=1e-6)
