from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head
from anaphora.analysis.results.typed_json import to_json
from anaphora.analysis.scores.heads import HeadScores, score_records
from anaphora.analysis.scores.measures.levels import composition_shortcuts, level_cells, level_scores
from anaphora.data.controlled import corpus
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.settings.data import ControlledCorpus

HEAD = Head(0, 0)


@pytest.fixture(scope="module")
def generated_splits() -> dict[str, list[Example]]:
    settings = ControlledCorpus(train_items=1_200, test_items=120, languages=["en"], types=["composition", "gender"])
    return corpus.generate(settings)


@pytest.fixture(scope="module")
def tokenizer(generated_splits: dict[str, list[Example]]) -> Tokenizer:
    return word_vocabulary([example.text for example in generated_splits["train"]])


def scores_of(examples: list[Example], tokenizer: Tokenizer, right: list[bool]) -> HeadScores:
    """Return scores of a head that gives three quarters of its weight to the antecedent if right, else elsewhere."""
    records = []
    for example, is_right in zip(examples, right, strict=True):
        tokens = tokenizer.encode(example.text)
        wrong = next(index for index in range(len(example.candidates)) if index not in example.antecedents)
        weights = np.full(len(tokens.ids), 0.0, dtype=np.float32)
        meant = example.antecedents[0] if is_right else wrong
        weights[tokens.covering(example.candidates[meant][0])[0]] = 0.75
        weights[0] = 0.25
        records.append(AttentionRecord(example, tokens.spans, tokens.words, weights[None, None]))
    return score_records(records)


def test_each_level_counts_its_own_items_and_whole_groups(
    generated_splits: dict[str, list[Example]], tokenizer: Tokenizer
) -> None:
    examples = generated_splits["test"]
    first_of_l0 = next(each for each in examples if each.factors["stratum"] == "main" and "level" in each.factors)
    right = [example.factors.get("level") != "L2" and example is not first_of_l0 for example in examples]
    scores = scores_of(examples, tokenizer, right)
    task = np.array(right, dtype=np.float64)
    shortcuts = {"one": np.full(len(examples), 0.25), "other": np.full(len(examples), 0.5)}
    untrained = np.full((2, len(examples)), np.nan)
    untrained[0] = 1
    nearest = {"nearest": np.ones(len(examples))}
    levels = to_json(level_scores(scores, HEAD, task, nearest, shortcuts, untrained))["en"]
    assert list(levels) == ["set", "L0", "L1", "L2", "unseen_names"]
    strata = [example.factors["stratum"] for example in examples if "level" in example.factors]
    assert [levels[name]["items"] for name in ("L0", "L1", "L2", "unseen_names")] == [
        strata.count(name) for name in ("main", "L1", "L2", "invented")
    ]
    groups = strata.count("main") / 8
    assert levels["L0"]["octad_accuracy"] == pytest.approx(1 - 1 / groups)
    assert levels["L0"]["candidate_accuracy"] == pytest.approx(1 - 1 / strata.count("main"), abs=1e-6)
    assert (levels["L1"]["octad_accuracy"], levels["L2"]["octad_accuracy"]) == (1, 0)
    assert (levels["L2"]["task_accuracy"], levels["L2"]["antecedent_mass"]) == (0, 0)
    assert levels["L1"]["antecedent_mass"] == 0.75
    assert levels["L1"]["best_shortcut"] == {"name": "other", "accuracy": 0.5}
    assert levels["set"]["best_shortcut"] == {"name": "nearest", "accuracy": 1}
    assert levels["L1"]["random_init"] == 1


def test_labels_of_ones_own_named_level_make_no_compositions(
    generated_splits: dict[str, list[Example]], tokenizer: Tokenizer
) -> None:
    labelled = [
        replace(each, factors={"level": level}) for each in generated_splits["test"] for level in ("easy", "L0")
    ]
    assert composition_shortcuts(labelled, labelled, tokenizer) == {}


def test_short_texts_have_levels_of_their_own() -> None:
    types = ["composition", "short_text"]
    examples = corpus.generate(ControlledCorpus(train_items=400, test_items=80, languages=["en"], types=types))["test"]
    cells = {
        name: {examples[item].factors["type"] for item in np.flatnonzero(items)}
        for _, name, items in level_cells(examples)
    }
    plain, in_text = {"composition"}, {"short_text"}
    assert cells == {
        "L0": plain,
        "L1": plain,
        "L2": plain,
        "unseen_names": plain,
        "short_text_L0": in_text,
        "short_text_L1": in_text,
        "short_text_L2": in_text,
    }


def test_a_corpus_without_compositions_has_no_levels(tokenizer: Tokenizer) -> None:
    examples = corpus.generate(ControlledCorpus(train_items=80, test_items=40, languages=["en"], types=["gender"]))[
        "test"
    ]
    scores = scores_of(examples, tokenizer, [True] * len(examples))
    ones = np.ones(len(examples))
    assert level_scores(scores, HEAD, ones, {}, {}, np.zeros((0, len(examples)))) == {}


def test_shortcuts_speak_of_compositions_alone(
    generated_splits: dict[str, list[Example]], tokenizer: Tokenizer
) -> None:
    examples = generated_splits["test"]
    results = composition_shortcuts(generated_splits["train"], examples, tokenizer)
    are_compositions = np.array(["level" in example.factors for example in examples])
    assert {"table_of_wordings", "triples_with_places", "boosted_trees", "rule_model"} < set(results)
    for right in results.values():
        assert np.isnan(right[~are_compositions]).all() and not np.isnan(right[are_compositions]).any()
    never = np.array([example.factors.get("level") == "L2" for example in examples])
    assert (results["table_of_wordings"][never] == 0.5).all()
