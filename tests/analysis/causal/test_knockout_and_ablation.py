from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from copier import COPIER, CUE, OTHERS, PAIRS, PRONOUN, Copier, Maps, example, silent, tokens_of
from scipy import stats

from anaphora.analysis.causal import knockout_and_ablation
from anaphora.analysis.causal.causal_tests import causal_tests, run_subject
from anaphora.analysis.causal.causal_tests import testable_items as items_to_test  # pytest would collect the name
from anaphora.analysis.causal.edges import MATCHED_EDGES, SentenceEdges
from anaphora.analysis.causal.knockout_and_ablation import (
    CausalTests,
    DoseResponse,
    KnockedOut,
    dose_response_cell,
    knockout_cell,
)
from anaphora.analysis.causal.subjects import PackedSubject
from anaphora.analysis.maps.capture import capture
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import Head
from anaphora.analysis.results.typed_json import to_json
from anaphora.analysis.scores.heads import choose_head, ranked_heads, score_records
from anaphora.base.errors import UserError
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.runs.directory import Run, randomly_initialised
from anaphora.settings.model import prediction as prediction_settings


def cell_of(*counting: Head, votes: Sequence[float] = (), examples: Sequence[Example] = PAIRS) -> dict[str, Any]:
    subject = Copier(examples, counting, votes or [1.0] * len(counting))
    result = to_json(causal_tests(subject, COPIER, [COPIER, *OTHERS], None, silent))
    json.dumps(result, allow_nan=False)
    cell: dict[str, Any] = result["languages"]["en"]["all"]
    return cell


@pytest.fixture(scope="module")
def single() -> dict[str, Any]:
    return cell_of(COPIER)


@pytest.mark.parametrize("scope", ["head", "layer", "window", "all_layers"])
def test_cutting_the_edge_that_is_copied_destroys_every_answer_and_cutting_others_none(
    single: dict[str, Any], scope: str
) -> None:
    edges = single["knockout"][scope]
    assert single["task_accuracy"] == 1
    assert edges["gold"]["drop"] == edges["value_zeroing"]["drop"] == 1
    assert edges["distractor"]["drop"] == 0
    assert {kind: edges[kind]["drop"] for kind in MATCHED_EDGES} == {
        "matched_query": 0,
        "matched_heads": 0 if scope in ("head", "layer") else None,  # two layers: the window holds every head
        "matched_distance": 0,
    }
    assert edges["gold_minus_matched"] == {"value": 1, "interval": [1, 1]}


def test_the_weight_that_a_cut_removes_is_reported(single: dict[str, Any]) -> None:
    edges = single["knockout"]["head"]
    subject = Copier(PAIRS, [COPIER], [1.0])
    gold = np.mean(
        [
            maps[1, 0, PRONOUN, 2 if one.antecedents[0] == 0 else 5]
            for one, (_, maps) in zip(PAIRS, reversed(list(subject.maps())), strict=True)
        ]
    )
    assert edges["gold"]["mass_removed"] == edges["value_zeroing"]["mass_removed"] == pytest.approx(gold, abs=1e-5)
    assert 0.02 < edges["distractor"]["mass_removed"] < 0.1
    assert edges["matched_query"]["mass_removed"] == pytest.approx(0.91)  # a word's edge to the one before it
    assert edges["matched_heads"]["mass_removed"] == pytest.approx(0.01, abs=1e-3)  # all that the cue leaves there
    assert edges["matched_distance"]["mass_removed"] == pytest.approx(0.01)
    layer = single["knockout"]["layer"]["gold"]["mass_removed"]
    assert layer == pytest.approx((gold + 0.01) / 2, abs=1e-5)  # the mean over two heads


def recorded(scope: str, kind: str) -> list[set[tuple[int, ...]]]:
    """Return the edges knocked out in each item: (layer, head, query, key)."""
    subject = Copier(PAIRS[:2], [COPIER], [1.0])
    tests = CausalTests(subject, COPIER, [COPIER, *OTHERS], silent)
    heads = {"head": [COPIER], "all_layers": tests.all_heads}[scope]
    others = [head for head in tests.all_heads if head not in heads]
    edges, *_ = tests._edges([sentence.edges(kind, heads, others) for sentence in tests.sentences])
    return [{tuple(map(int, edge[1:])) for edge in zip(*edges, strict=True) if edge[0] == item} for item in (0, 1)]


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("gold", {(1, 0, 7, 2)}, {(1, 0, 7, 5)}),
        ("distractor", {(1, 0, 7, 5)}, {(1, 0, 7, 2)}),
        ("matched_query", {(1, 0, 2, 1)}, {(1, 0, 2, 1)}),
        ("cue", {(1, 0, 7, 8)}, {(1, 0, 7, 8)}),
        ("matched_heads", {(0, 0, 7, 1)}, {(0, 0, 7, 1)}),  # and not the cue, on which that head's weight is
        ("matched_distance", {(1, 0, 7, 1)}, {(1, 0, 7, 9)}),
    ],
)
def test_each_kind_of_edge_is_what_it_says(
    kind: str, first: set[tuple[int, ...]], second: set[tuple[int, ...]]
) -> None:
    assert recorded("head", kind) == [first, second]


def test_all_layers_means_every_layer_and_head() -> None:
    assert recorded("all_layers", "gold")[0] == {(layer, head, 7, 2) for layer in (0, 1) for head in (0, 1)}


def test_switching_off_the_one_head_that_copies_halves_the_answers_and_no_other_does(single: dict[str, Any]) -> None:
    drops = {(each["layer"], each["head"], each["mode"]): each["drop"] for each in single["head_ablation"]["single"]}
    assert {key[:2] for key, drop in drops.items() if drop} == {(1, 0)}
    assert drops[1, 0, "zero"] == drops[1, 0, "mean"] == drops[1, 0, "resample"] == drops[1, 0, "uniform"] == 0.5
    assert len(drops) == 4 * 2 + 2
    first, *rest = single["head_ablation"]["cumulative"]
    assert (first["k"], first["heads"], first["drop"]) == (1, [[1, 0]], 0.5)
    assert first["random"] == {"median": 0, "lowest": 0, "highest": 0}
    assert [step["drop"] for step in rest] == [0.5, 0.5, 0.5]
    assert rest[-1]["random"] is None  # nothing else is left to draw


def test_a_backup_head_hides_a_single_ablation_and_a_cumulative_one_shows_both() -> None:
    cell = cell_of(COPIER, Head(1, 1))
    assert not any(each["drop"] for each in cell["head_ablation"]["single"])
    assert [step["drop"] for step in cell["head_ablation"]["cumulative"]] == [0, 0.5, 0.5, 0.5]
    assert cell["knockout"]["head"]["gold"]["drop"] == 0
    assert cell["knockout"]["layer"]["gold"]["drop"] == 1


def test_of_many_heads_the_best_are_tested_alone_and_sets_double(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knockout_and_ablation, "EVERY_HEAD_UP_TO", 3)
    monkeypatch.setattr(knockout_and_ablation, "BEST_OF_MANY", 2)
    cell = cell_of(COPIER)
    assert {Head(step["layer"], step["head"]) for step in cell["head_ablation"]["single"]} == {COPIER, OTHERS[0]}
    assert [step["k"] for step in cell["head_ablation"]["cumulative"]] == [1, 2, 4]
    assert [step["k"] for step in cell["pattern_patching"]["cumulative"]] == [1, 2, 4]
    assert cell["pattern_patching"]["all_layers"]["flipped"] == 1.0


def test_the_row_of_the_minimal_pair_turns_every_answer_where_one_head_carries_it(single: dict[str, Any]) -> None:
    patch = single["pattern_patching"]
    assert (patch["pairs"], patch["skipped"]) == (20, 0)
    assert patch["head"] == patch["layer"] == patch["all_layers"] == {"flipped": 1, "interval": [1, 1]}
    assert [step["flipped"] for step in patch["cumulative"]] == [1, 1, 1, 1]


def test_answers_turn_when_enough_heads_are_patched() -> None:
    patch = cell_of(Head(0, 1), COPIER, votes=[3.0, 1.0])["pattern_patching"]
    assert patch["head"]["flipped"] == 0
    assert [step["flipped"] for step in patch["cumulative"]] == [0, 0, 0, 1]
    assert patch["all_layers"]["flipped"] == 1


def test_a_loss_is_over_the_items_that_have_such_an_edge() -> None:
    """An item without a minimal pair has no cue other than its pronoun, and so no edge to a cue."""
    alone = [replace(one, minimal_pair="", group="") for one in PAIRS[:6]]
    edges = cell_of(COPIER, OTHERS[0], votes=[1.0, 0.0], examples=[*PAIRS[6:], *alone])["knockout"]["all_layers"]
    assert {kind: edges[kind]["items"] for kind in ("gold", "cue", "matched_query")} == {
        "gold": 20, "cue": 14, "matched_query": 20,
    }  # fmt: skip
    of_pairs = cell_of(COPIER, OTHERS[0], votes=[1.0, 0.0], examples=PAIRS[6:])["knockout"]["all_layers"]
    assert edges["cue"]["mass_removed"] == pytest.approx(of_pairs["cue"]["mass_removed"]) != 0
    none = cell_of(COPIER, examples=alone)["knockout"]["head"]["cue"]
    assert none == {"items": 0, "drop": None, "interval": None, "mass_removed": None}


def test_an_edge_is_compared_with_matched_ones_on_the_items_that_have_them() -> None:
    """A matched edge that exists in half of the items, and changes their answers, has the effect of the gold edge."""
    tests = CausalTests(Copier(PAIRS, [COPIER], [1.0]), COPIER, [COPIER, *OTHERS], silent)
    everything = np.ones(len(PAIRS), dtype=bool)
    half = np.arange(len(PAIRS)) < len(PAIRS) // 2
    mass = np.ones(len(PAIRS))
    matched = dict.fromkeys(MATCHED_EDGES, KnockedOut(tests.right, mass, everything))
    knocked = {
        "gold": KnockedOut(np.zeros(len(PAIRS)), mass, everything),
        **matched,
        "matched_distance": KnockedOut(tests.right * ~half, mass, half),
    }
    cell = knockout_cell(tests, {"head": knocked}, everything)["head"]
    distance = cell.edges["matched_distance"]
    assert (distance.items, distance.drop) == (len(PAIRS) // 2, 1)
    assert cell.gold_minus_matched.value == 0


def decoder_maps(maps: Maps) -> Maps:
    """Return the maps without weight on later tokens."""
    below = maps * np.tri(maps.shape[-1], dtype=np.float32)
    shares: Maps = below / below.sum(axis=-1, keepdims=True)
    return shares


def sentence_edges(one: Example, maps: Maps) -> SentenceEdges:
    tokens = tokens_of(one)
    return SentenceEdges.of(one, tokens, maps, np.arange(len(tokens.ids)) == CUE)


def test_a_decoder_has_no_edge_to_what_follows() -> None:
    maps = dict(Copier(PAIRS, [COPIER], [1.0]).maps())[0]
    both = sentence_edges(PAIRS[0], maps)
    before = sentence_edges(PAIRS[0], decoder_maps(maps))
    assert max(both.free) > PRONOUN > max(before.free)
    assert both.edges("cue", [COPIER], OTHERS) and not before.edges("cue", [COPIER], OTHERS)  # the cue follows
    assert before.edges("gold", [COPIER], OTHERS)
    after = replace(PAIRS[0], candidates=(((2, 3),), ((16, 17),)), antecedents=(1,))
    assert not sentence_edges(after, decoder_maps(maps)).edges("gold", [COPIER], OTHERS)


def test_there_is_no_matched_edge_where_fewer_tokens_are_free_than_the_antecedent_has() -> None:
    maps = dict(Copier(PAIRS, [COPIER], [1.0]).maps())[0]
    long = replace(PAIRS[0], candidates=(((0, 9),), ((10, 11),)), antecedents=(0,))  # five of nine words
    edges = sentence_edges(long, maps)
    assert len(edges.free) < len(edges.antecedents) == 5
    assert not edges.edges("matched_heads", [COPIER], OTHERS)
    assert not edges.edges("matched_distance", [COPIER], OTHERS)


def test_no_edges_are_matched_in_other_heads_where_these_are_fewer_than_the_scope_has() -> None:
    edges = sentence_edges(PAIRS[0], dict(Copier(PAIRS, [COPIER], [1.0]).maps())[0])
    heads = [COPIER, *OTHERS]
    assert len(heads) == 4
    assert [len(edges.edges("matched_heads", heads[:count], heads[count:])) for count in (1, 2, 3)] == [1, 2, 0]


def test_only_minimal_pairs_that_differ_in_one_word_are_patched() -> None:
    def pair_item(name: str, text: str, right: int) -> Example:
        return Example(
            text=text,
            language="en",
            pronoun=PAIRS[0].pronoun,
            candidates=PAIRS[0].candidates,
            antecedents=(right,),
            minimal_pair=name,
        )

    examples = [
        *PAIRS[:4],
        pair_item("longer", "a b c d e f g x h", 0),
        pair_item("longer", "a b c d e f g y h j", 1),
        pair_item("two words", "a b c d e f g x h", 0),
        pair_item("two words", "z b c d e f g y h", 1),
        pair_item("the same answer", "a b c d e f g x h", 0),
        pair_item("the same answer", "a b c d e f g y h", 0),
        pair_item("alone", "a b c d e f g x h", 0),
    ]
    cell = cell_of(COPIER, examples=examples)
    patch = cell["pattern_patching"]
    assert (patch["pairs"], patch["skipped"]) == (4, 6)
    # Aligned, those of other lengths and of two words take part; those of one answer never do.
    assert (patch["aligned"]["pairs"], patch["aligned"]["head"]["flipped"], patch["aligned"]["layer"]["flipped"]) == (
        8,
        1,
        1,
    )
    assert (cell["head_level"]["pairs"], cell["head_level"]["patch_flips"]) == (8, 1)


def test_a_wrong_minimal_pair_is_left_out() -> None:
    subject = Copier(PAIRS, [COPIER], [-1.0])  # picks the antecedent and answers with the other
    cell = to_json(causal_tests(subject, COPIER, [COPIER, *OTHERS], None, silent))["languages"]["en"]["all"]
    assert cell["task_accuracy"] == 0
    assert (cell["pattern_patching"]["pairs"], cell["pattern_patching"]["skipped"]) == (0, 20)
    assert (
        cell["pattern_patching"]["head"]
        == cell["pattern_patching"]["all_layers"]
        == {"flipped": None, "interval": None}
    )


def records(weight: Callable[[Example, Maps], Maps]) -> list[AttentionRecord]:
    subject = Copier(PAIRS, [COPIER], [1.0])
    return [
        AttentionRecord(PAIRS[item], subject.tokens[item].spans, subject.tokens[item].words, weight(PAIRS[item], maps))
        for item, maps in subject.maps()
    ]


def test_the_weight_of_an_edge_tells_what_its_cut_costs_and_a_map_turned_round_the_opposite() -> None:
    def turned(one: Example, maps: Maps) -> Maps:
        row = maps[1:, :1, PRONOUN].copy()
        row[..., [2, 5]] = row[..., [5, 2]]
        return row

    def even(one: Example, maps: Maps) -> Maps:
        return np.full((1, 1, 10), 0.1, dtype=np.float32)

    subject = Copier(PAIRS, [COPIER], [1.0])
    maps = {"turned": records(turned), "even": records(even), "none": records(even)[:1]}
    tested = to_json(causal_tests(subject, COPIER, [COPIER, *OTHERS], maps, silent))
    doses = tested["languages"]["en"]["all"]["dose_response"]
    assert list(doses) == ["raw", "turned", "even", "none"]
    # Cutting an antecedent costs its own weight; cutting a distractor helps. Within the latter more weight helps more.
    assert doses["raw"]["rho"] > 0.7 and doses["turned"]["rho"] < -0.7
    low, high = doses["raw"]["interval"]
    assert 0.5 < low < doses["raw"]["rho"] < high < 1.05
    assert doses["even"] == {"rho": None, "interval": None} == doses["none"]


def test_cells_are_those_of_each_language_and_kind() -> None:
    result = to_json(causal_tests(Copier(PAIRS[:6], [COPIER], [1.0]), COPIER, [COPIER, *OTHERS], None, silent))
    assert (result["items"], result["head"]) == (6, {"layer": 1, "head": 0})
    assert {name: cell["items"] for name, cell in result["languages"]["en"].items()} == {"all": 6, "set": 4, "role": 2}
    assert result["languages"]["en"]["role"]["knockout"]["head"]["gold"] == pytest.approx(
        {"items": 2, "drop": 1, "interval": None, "mass_removed": 0.7}, abs=0.1
    )


def test_a_layer_without_attention_has_no_heads_to_test() -> None:
    subject = Copier(PAIRS[:6], [COPIER], [1.0])
    result = to_json(causal_tests(subject, COPIER, [COPIER, Head(1, 1)], None, silent))
    cell = result["languages"]["en"]["all"]
    assert {one["layer"] for one in cell["head_ablation"]["single"]} == {1}
    assert [step["k"] for step in cell["head_ablation"]["cumulative"]] == [1, 2]


def test_heads_that_are_not_those_of_the_model_are_refused() -> None:
    with pytest.raises(UserError, match="not those of 2 layers of 2 heads"):
        causal_tests(Copier(PAIRS, [COPIER], [1.0]), COPIER, [COPIER], None, silent)


def names(count: int) -> list[Example]:
    """Return minimal pairs that differ only in the pronoun."""
    strings = []
    for number in range(count):
        first, second = (("Anna", "Tom"), ("Tom", "Anna"))[number % 2]
        for pronoun in ("she", "he"):
            place = ("shop", "park", "bank", "well")[number % 4]
            text = f"{first} met {second} before {pronoun} went to the {place}"
            spans = [(text.index(name), text.index(name) + len(name)) for name in (first, second)]
            begin = text.index(f" {pronoun} ") + 1
            strings.append(
                Example(
                    text=text,
                    language="en",
                    pronoun=(begin, begin + len(pronoun)),
                    candidates=((spans[0],), (spans[1],)),
                    antecedents=(int((pronoun == "she") != (first == "Anna")),),
                    minimal_pair=f"{number}",
                    group=f"{number}",
                    factors={"kind": "set", "template": f"t{number // 2 % 4}"},
                )
            )
    return strings


NAMES = names(16)


@pytest.fixture(scope="module")
def run(settings: Callable[..., Any]) -> Run:
    """Return a randomly initialised run with a pointer head."""
    config = settings("model.width=16", "model.layers=2", "model/initialisation=xavier", "task/prediction=pointer")
    config.task.prediction = prediction_settings.Pointer(layer=1, head=0)
    tokenizer = word_vocabulary([one.text for one in NAMES], min_count=1)
    return Run(Path("run"), config, tokenizer, randomly_initialised(config, tokenizer.size, 3))


def test_a_model_that_answers_by_one_row_hangs_on_that_row(run: Run) -> None:
    scores = score_records(capture(run.model, EncodedSplit(NAMES, run.tokenizer), run.config.batching).records)
    head = Head(1, 0)
    weights = {name: value.clone() for name, value in run.model.state_dict().items()}
    stages: list[str] = []
    subject = run_subject(run, items_to_test(NAMES))
    result = to_json(causal_tests(subject, head, ranked_heads(scores), None, stages.append))
    cell = result["languages"]["en"]["set"]
    accuracy = float(scores.candidate_accuracy[:, 1, 0].mean())
    assert result["items"] == 32 and 0.2 < accuracy < 0.8
    assert cell["task_accuracy"] == pytest.approx(accuracy)
    edges = cell["knockout"]["head"]
    assert edges["gold"]["drop"] == edges["value_zeroing"]["drop"] == pytest.approx(accuracy)
    assert edges["gold"]["mass_removed"] == pytest.approx(float(scores.antecedent_mass[:, 1, 0].mean()), abs=1e-5)
    assert edges["distractor"]["drop"] == pytest.approx(accuracy - 1)
    assert edges["matched_query"]["drop"] == edges["matched_distance"]["drop"] == 0
    if cell["pattern_patching"]["pairs"]:
        assert cell["pattern_patching"]["head"]["flipped"] == 1
    assert all(each["drop"] == 0 for each in cell["head_ablation"]["single"] if each["layer"] == 1)
    assert len(cell["head_ablation"]["cumulative"]) == scores.shape[0] * scores.shape[1]
    assert stages and all(stage.startswith("causal tests") for stage in stages)
    assert all(bool((value == weights[name]).all()) for name, value in run.model.state_dict().items())


def test_heads_are_ranked_as_one_is_chosen(run: Run) -> None:
    scores = score_records(capture(run.model, EncodedSplit(NAMES, run.tokenizer), run.config.batching).records)
    order = ranked_heads(scores)
    assert order[0] == choose_head(scores)
    assert sorted(order) == [Head(*place) for place in np.ndindex(*scores.shape)]
    means = [scores.candidate_accuracy[:, each.layer, each.head].mean() for each in order]
    assert means == sorted(means, reverse=True)


def test_a_run_that_answers_nothing_is_refused(run: Run) -> None:
    with pytest.raises(UserError, match="no item of stratum main has both an antecedent and a distractor"):
        run_subject(run, items_to_test([example(0, 0, stratum="cataphora")]))
    kept = run.config.task.prediction
    try:
        run.config.task.prediction = prediction_settings.NoPrediction()
        with pytest.raises(UserError, match=r"answers no pronoun question \(task.prediction=none\)"):
            run_subject(run, items_to_test(NAMES))
    finally:
        run.config.task.prediction = kept


def test_what_our_models_offer_is_what_the_tests_ask_for(run: Run) -> None:
    subject = PackedSubject(run.model, EncodedSplit(NAMES, run.tokenizer), run.config.batching)
    assert subject.shape == (2, 2)
    assert [len(each.ids) for each in subject.tokens] == [10] * 32


@pytest.mark.parametrize("digits", [8, 1])
def test_the_interval_of_rho_allows_for_ranks_that_other_items_would_change(digits: int) -> None:
    random, count = np.random.default_rng(0), 300
    score = random.normal(size=count)
    loss = score + random.normal(0, 0.15, count)
    score, loss = (np.round(values, digits) for values in (score, loss))
    tests = CausalTests(Copier(PAIRS, [COPIER], [1.0]), COPIER, [COPIER, *OTHERS], silent)
    tests.clusters = np.arange(count)
    cell = dose_response_cell(tests, DoseResponse(tests.clusters, score, loss), np.ones(count, dtype=np.bool_))
    without = [stats.spearmanr(np.delete(score, item), np.delete(loss, item)).statistic for item in range(count)]
    error = np.sqrt((count - 1) * np.var(without))  # of the jackknife
    assert cell.rho == pytest.approx(stats.spearmanr(score, loss).statistic, abs=1e-6)
    assert cell.interval is not None
    assert cell.interval.high - cell.interval.low == pytest.approx(2 * 1.96 * error, rel=0.07)
