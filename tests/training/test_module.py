from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from anaphora.base.batch import Batch
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.data.store import load as load_corpus
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.runs.directory import load, randomly_initialised, training_record
from anaphora.settings.data import OwnExamples
from anaphora.settings.model.attention import PROJECTIONS
from anaphora.settings.run import Config
from anaphora.training.items import label_nearest, nearest_compatible, replace_labels, shuffle_labels
from anaphora.training.module import TrainingModule, seed_generator, shares_right, step_seed
from anaphora.training.run import freeze, train


def test_every_step_of_every_seed_has_a_generator_of_its_own() -> None:
    seeds = {step_seed(seed, step) for seed in range(50) for step in range(200)}
    assert len(seeds) == 50 * 200
    assert all(0 <= seed < 2**63 for seed in seeds)
    torch.manual_seed(max(seeds))


def test_validations_count_a_tie_in_part() -> None:
    scores = torch.tensor([[2.0, 2.0, 1.0], [0.0, 1.0, 2.0], [1.0, 1.0, 1.0], [torch.nan] * 3])
    right = torch.tensor([[False, True, False], [False, False, True], [True, True, False], [True, False, False]])
    torch.testing.assert_close(shares_right(scores, right), torch.tensor([1 / 2, 1, 2 / 3, 0]))


def test_the_generator_of_a_step_draws_what_torch_draws_from_the_seed() -> None:
    seed = step_seed(3, 7)
    torch.manual_seed(seed)
    expected = torch.rand(5)
    seed_generator(seed, torch.device("cpu"))
    assert torch.equal(torch.rand(5), expected)


EVERY_ATTENTION = ("multi_head", "single_head", "shared_query_key", "uniform", "parameter_free")


@pytest.mark.parametrize("kind", EVERY_ATTENTION)
def test_the_settings_know_which_projections_a_layer_has(kind: str, settings: Callable[..., Config]) -> None:
    config = settings(f"model/attention={kind}", "model.width=8")
    block = randomly_initialised(config, 10, 0).encoder.blocks[0]
    there = {name for name, _ in block.get_submodule("attention").named_children()}
    assert there == set(config.model.attention.projections)


@pytest.mark.parametrize("kind", EVERY_ATTENTION[:3])
def test_frozen_projections_stay_at_their_start_in_every_layer_and_all_else_learns(
    kind: str, tiny: Callable[..., Config], tmp_path: Path
) -> None:
    attention = (f"model/attention={kind}",)
    frozen = [name for name in ("query", "key") if kind != "shared_query_key" or name == "query"]
    config = tiny(tmp_path, *attention, f"optimizer.frozen=[{','.join(frozen)}]", "trainer.limit_steps=2")
    run = load(train(config))
    start = randomly_initialised(config, run.tokenizer.size, config.seed).state_dict()
    same = {name for name, value in run.model.state_dict().items() if torch.equal(value, start[name])}
    expected = {
        f"encoder.blocks.{layer}.attention.{name}.{part}"
        for layer in (0, 1)
        for name in frozen
        for part in ("weight", "bias")
    }
    # The gradient of a key's bias is 0: it adds the same to all scores of a row.
    assert same - expected <= {f"encoder.blocks.{layer}.attention.key.bias" for layer in (0, 1)}
    assert expected <= same


def test_each_projection_can_be_frozen_alone(settings: Callable[..., Config]) -> None:
    config = settings("model.width=8")
    for name in PROJECTIONS:
        model = randomly_initialised(config, 10, 0)
        freeze(model, [name], None)
        left = {path for path, weight in model.named_parameters() if not weight.requires_grad}
        assert left == {
            f"encoder.blocks.{layer}.attention.{name}.{part}" for layer in range(3) for part in ("weight", "bias")
        }


@pytest.fixture(scope="module")
def encoded(table: Path) -> EncodedSplit:
    examples = load_corpus(OwnExamples(path=str(table))).examples("train")
    return EncodedSplit(examples, word_vocabulary([one.text for one in examples], (), 1))


def test_shuffled_labels_are_drawn_among_the_candidates_of_each_item(encoded: EncodedSplit) -> None:
    true, counts = encoded.gold.copy(), []
    for seed in range(40):
        encoded.gold = true.copy()
        shuffle_labels(encoded, (seed, 0))
        assert (encoded.gold.sum(axis=1) == true.sum(axis=1)).all()
        assert not (encoded.gold & ~encoded.present).any()
        counts.append((encoded.gold == true).all(axis=1).mean())
    encoded.gold = true
    assert np.mean(counts) == pytest.approx(0.5, abs=0.05)


def test_absent_candidates_are_never_drawn_and_none_of_them_stays(encoded: EncodedSplit) -> None:
    data = copy(encoded)
    data.present = np.array([[True, True, False, False], [True, True, True, True], [True, True, False, False]])
    data.gold = np.array([[True, False, False, False], [True, True, False, False], [False] * 4])
    answers = set()
    for seed in range(60):
        other = copy(data)
        shuffle_labels(other, (seed, 1))
        answers.add(tuple(map(tuple, other.gold.tolist())))
        assert not other.gold[0, 2:].any()
        assert not other.gold[2].any()
    assert {rows[0][:2] for rows in answers} == {(True, False), (False, True)}
    assert len({rows[1] for rows in answers}) == 6


def test_shuffled_labels_are_a_function_of_seed_and_split(encoded: EncodedSplit) -> None:
    def labels_of(*seed: int) -> Any:
        data = copy(encoded)
        shuffle_labels(data, seed)
        return data.gold.tolist()

    assert labels_of(0, 0) == labels_of(0, 0)
    assert labels_of(0, 0) != labels_of(1, 0)
    assert labels_of(0, 0) != labels_of(0, 1)


def about(text: str, pronoun: str, *candidates: str, antecedent: int = 0, **factors: str) -> Example:
    spans = tuple(((text.index(name), text.index(name) + len(name)),) for name in candidates)
    begin = text.index(f"{pronoun} ")
    return Example(
        text=text, language="en", pronoun=(begin, begin + len(pronoun)), candidates=spans,
        antecedents=(antecedent,), factors=factors,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("example", "nearest"),
    [
        (about("Anna met Mary , and she left , not Eve", "she", "Anna", "Mary", "Eve", type="causality"), 1),
        (about("Anna met Tom , and she left", "she", "Anna", "Tom", type="gender"), 0),
        (about("since she left , Anna met Mary", "she", "Anna", "Mary", antecedent=1, type="binding"), 0),
        (about("Anna met Mary , and she left", "she", "Anna", "Mary"), 1),
    ],
)
def test_the_nearest_compatible_candidate_stands_before_the_pronoun_and_agrees(example: Example, nearest: int) -> None:
    assert nearest_compatible(example) == nearest
    data = EncodedSplit([example], word_vocabulary([example.text], (), 1))
    replace_labels(data, "gold", (0, 0))
    assert data.gold[0].nonzero()[0].tolist() == list(example.antecedents)
    replace_labels(data, "nearest", (0, 0))
    assert data.gold[0].nonzero()[0].tolist() == [nearest]


def test_an_item_without_an_antecedent_gets_no_nearest_one() -> None:
    example = replace(about("Anna saw that it rained", "it", "Anna"), antecedents=())
    data = EncodedSplit([example], word_vocabulary([example.text], (), 1))
    label_nearest(data)
    assert not data.gold.any()


@pytest.mark.parametrize("control", ["masked_tokens", "pairwise", "nearest"])
def test_a_further_control_trains(control: str, settings: Callable[..., Config], tmp_path: Path) -> None:
    small = ("trainer=smoke", "data.train_items=400", "data.test_items=200", f"output={tmp_path}", "name=run")
    run = load(train(settings(f"experiment=control_{control}", *small)))
    start = randomly_initialised(run.config, run.tokenizer.size, run.config.seed).state_dict()
    same = {name for name, value in run.model.state_dict().items() if torch.equal(value, start[name])}
    assert not [name for name in same if "weight" in name]


def test_training_and_validation_both_see_shuffled_labels(tiny: Callable[..., Config], tmp_path: Path) -> None:
    # With a learning rate of nothing the validations of both runs differ by their labels alone.
    still = ("optimizer.learning_rate=1e-30", "trainer.limit_steps=2")
    records = {}
    losses = {}
    for shuffled in ("gold", "shuffled"):
        with pytest.MonkeyPatch.context() as patched:
            batches: list[Batch] = []
            step = TrainingModule.training_step

            def noted(
                module: TrainingModule,
                batch: Batch,
                batch_idx: int,
                seen_batches: list[Batch] = batches,
                inner: Any = step,
            ) -> Any:
                seen_batches.append(batch)
                return inner(module, batch, batch_idx)

            patched.setattr(TrainingModule, "training_step", noted)
            config = tiny(tmp_path / shuffled, *still, f"task.labels={shuffled}")
            records[shuffled] = training_record(train(config))["validations"]
            losses[shuffled] = [batch.gold.tolist() for batch in batches]
    assert losses["shuffled"] != losses["gold"]
    assert records["shuffled"][0]["validation/loss"] != records["gold"][0]["validation/loss"]
