from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from invented import check_rules_on

from anaphora.analysis.causal.causal_tests import causal_tests, one_head_tests_of_run, run_subject
from anaphora.analysis.causal.causal_tests import testable_items as items_to_test  # pytest would collect the name
from anaphora.analysis.evidence.measurement import sampled_main_items
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.scores.heads import is_main, ranked_heads, score_records
from anaphora.analysis.scores.measures.levels import COMPOSITION_LEVELS, level_cells
from anaphora.base.errors import UserError
from anaphora.base.files import write_json
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.data.store import load as load_corpus
from anaphora.runs.directory import Run, load
from anaphora.runs.items import corpus_of
from anaphora.studies import measures
from anaphora.studies.grid import Job
from anaphora.studies.intervention_measures import (
    SAMPLED_ITEMS,
    accuracy_by_route,
    accuracy_with_attention_knockout,
    in_layers,
    one_head_measures,
    token_edges,
)
from anaphora.studies.measures import SplitEvaluation, measure_run, measure_settings, scores_by_distance
from anaphora.studies.records import FAILURE_FILE, MEASURED_FILE, Query, is_measured, read_record

EVERY = Query(["scores", "forms", "roles", "permuted", "knockout"], "test", None)


def evaluated(run: Run) -> SplitEvaluation:
    return measures._evaluate_split(run, EVERY, measures._evaluated_examples(run, EVERY))


def test_a_run_is_measured_by_language_and_group_and_not_twice(own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure_run(load(own_run), EVERY)
    stored = json.loads((own_run / MEASURED_FILE).read_text(encoding="utf-8"))
    scored = json.loads((own_run / "metrics.json").read_text(encoding="utf-8"))
    assert stored["head"] == [scored["head"]["layer"], scored["head"]["head"]]
    for language in ("en", "zh"):
        groups = stored["groups"][language]
        assert groups["set"]["task_accuracy"] == scored["languages"][language]["set"]["task_accuracy"]
        assert groups["pronoun"]["candidate_accuracy"] == groups["all"]["candidate_accuracy"]
        assert {"query permuted", "key permuted", "value permuted, set"} <= set(groups)
        assert {"candidates knocked out", "all knocked out, set", "pronoun knocked out, set"} <= set(groups)
        assert {"antecedent_heads", "predicate_heads", "neighbour_heads", "relations"} <= set(groups["all"])
    check_rules_on(stored["groups"])
    monkeypatch.setattr(measures, "measure_headline", lambda *_: pytest.fail("measured again"))
    measure_run(load(own_run), EVERY)
    with pytest.raises(pytest.fail.Exception):
        measure_run(load(own_run), Query(["scores"], "dev", None))


def test_a_run_is_measured_anew_where_its_test_items_have_changed(
    own_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a study would combine seeds measured on different files."""
    query = Query(["scores"], "test", None)

    def items() -> object:
        measure_run(load(own_run), query)
        return json.loads((own_run / MEASURED_FILE).read_text(encoding="utf-8"))["groups"]["en"]["all"]["items"]

    whole = items()
    corpus = corpus_of(load(own_run))
    fewer = {name: split.slice(0, len(split) - 4) for name, split in corpus.splits.items() if name == "test"}
    changed = replace(corpus, splits={**corpus.splits, **fewer})
    monkeypatch.setattr(measures, "corpus_of", lambda run: changed)
    assert items() != whole


def test_a_recurrent_run_is_measured_by_its_answers_alone(tmp_path: Path, tiny: Callable[..., Any]) -> None:
    from anaphora.training.run import train

    run = load(train(tiny(tmp_path, "model/attention=gru", "trainer.limit_steps=2")))
    measure_run(run, Query(["scores"], "test", None))
    stored = json.loads((run.directory / MEASURED_FILE).read_text(encoding="utf-8"))
    assert stored["head"] is None
    assert set(stored["groups"]["en"]["set"]) == {"task_accuracy", "chance", "items"}
    for name in ("roles", "levels", "one_head", "knockout"):
        with pytest.raises(UserError, match=rf"measures \('{name}'\) needs attention maps"):
            measure_run(run, Query([name], "test", None))


def test_one_head_is_measured_as_the_report_measures_it(own_run: Path) -> None:
    run = load(own_run)
    measured = evaluated(run)
    assert measured.headline is not None
    groups = one_head_measures(measured.headline)
    items = sampled_main_items(measured.examples, SAMPLED_ITEMS)
    head, development = measured.headline.head, measured.headline.development
    subject = run_subject(run, items_to_test(items))
    tested = causal_tests(subject, head, ranked_heads(development), None, lambda _: None).languages
    for language, kinds in groups.items():
        for kind, values in kinds.items():
            head_level = vars(tested[language][kind].head_level)
            assert {name: head_level[name] for name in values if name != "pronoun_specificity"} == {
                name: value for name, value in values.items() if name != "pronoun_specificity"
            }
            assert values["pronoun_specificity"] is not None
    assert {language: set(kinds) for language, kinds in groups.items()} == {
        language: set(kinds) for language, kinds in tested.items()
    }


def test_each_level_of_compositions_has_its_own_tests_of_one_head(
    tmp_path: Path, settings: Callable[..., Any], tiny_settings: tuple[str, ...]
) -> None:
    from anaphora.training.run import train

    small = ("data=compositions", "data.types=[gender,composition]", "data.train_items=600", "data.test_items=400")
    run = load(train(settings(f"output={tmp_path}", "name=run", *small, *tiny_settings)))
    headline = evaluated(run).headline
    assert headline is not None
    groups = one_head_measures(headline)
    check_rules_on(groups)
    check_rules_on(measures.scores_by_level(headline))
    assert {level for kinds in groups.values() for level in kinds} == {"set", "role", "all", "L0", "L1", "L2"}
    cells = [cell for cell in level_cells(headline.measured.examples) if cell[1] in COMPOSITION_LEVELS]
    for language, level, items in cells:
        of_level = [headline.measured.examples[number] for number in np.flatnonzero(items)]
        alone = vars(one_head_tests_of_run(run, of_level, headline.head, level_cells)[language][level])
        measured = groups[language][level]
        assert {name: alone[name] for name in measured if name != "pronoun_specificity"} == {
            name: value for name, value in measured.items() if name != "pronoun_specificity"
        }
        assert measured["pronoun_specificity"] is not None


def test_heads_are_counted_in_languages_with_main_items_only() -> None:
    words = ((0, 1), (2, 3), (4, 5))
    pronoun: dict[str, Any] = {"text": "a b c", "pronoun": (0, 1), "candidates": (((2, 3),), ((4, 5),))}
    main = Example(**pronoun, language="en", antecedents=(0,))
    other = Example(**pronoun, language="zh", antecedents=(0,), factors={"stratum": "novel"})
    weights = np.array([[[0.1, 0.8, 0.1]]], dtype=np.float32)
    records = [AttentionRecord(example, words, (0, 1, 2), weights) for example in (main, other)]
    headline: Any = SimpleNamespace(measured=score_records(records), capture=SimpleNamespace(records=records))
    groups = measures.count_relation_heads(headline)
    assert {language: groups[language]["all"]["antecedent_heads"] for language in groups} == {"en": 1}


def test_cut_edges_are_those_between_pronoun_and_candidates(own_run: Path) -> None:
    run = load(own_run)
    data = EncodedSplit(load_corpus(run.config.data).examples("test")[:3], run.tokenizer)
    cuts = {name: in_layers(edges, range(2), 4) for name, edges in token_edges(data).items()}
    for item, (example, tokens) in enumerate(zip(data.examples, data.tokens, strict=True)):
        pronoun = set(tokens.covering(example.pronoun))
        candidates = {token for spans in example.candidates for span in spans for token in tokens.covering(span)}
        everywhere = {(layer, head) for layer in range(2) for head in range(4)}
        expected = {
            "pronoun to candidates": {(query, key) for query in pronoun for key in candidates},
            "pronoun to all others": {(query, key) for query in pronoun for key in {*range(len(tokens.ids))} - pronoun},
            "candidates to pronoun": {(query, key) for query in candidates for key in pronoun},
            "others to candidates": {
                (query, key) for query in {*range(len(tokens.ids))} - pronoun - candidates for key in candidates
            },
        }
        for name, edges in cuts.items():
            here = edges.item == item
            pairs = set(zip(*(part[here].tolist() for part in edges[1:]), strict=True))
            assert pairs == {(*head, *edge) for head in everywhere for edge in expected[name]}


def test_an_answer_that_is_read_off_the_last_layers_row_comes_by_that_layer_alone(
    tmp_path: Path, tiny: Callable[..., Any]
) -> None:
    from anaphora.training.run import train

    run = load(train(tiny(tmp_path, "task/prediction=pointer")))
    evaluation = evaluated(run)
    assert evaluation.headline is not None
    groups = accuracy_by_route(evaluation.headline)
    check_rules_on(groups, with_routes=True)
    last = run.config.model.layers - 1
    for types in groups.values():
        for cell in types.values():
            assert cell["without_relay_accuracy"] is not None
            # No candidate has any weight: all are equal, and one is right by chance.
            assert cell[f"without_layer_{last}_accuracy"] == pytest.approx(cell["chance"])
    whole = evaluation.headline.measured.examples
    expected = {(one.language, one.factors["type"]) for one, main in zip(whole, is_main(whole), strict=True) if main}
    assert {(language, name) for language, types in groups.items() for name in types} == expected


def test_an_answer_that_is_read_off_a_row_is_lost_with_its_edges(tmp_path: Path, tiny: Callable[..., Any]) -> None:
    from anaphora.training.run import train

    run = load(train(tiny(tmp_path, "task/prediction=pointer")))
    answers = evaluated(run)
    assert answers.headline is not None
    groups = accuracy_with_attention_knockout(answers.headline)["en"]
    # No candidate has any weight left: all are equal, and one is right by chance.
    cut = groups["candidates knocked out"]
    assert cut["task_accuracy"] == pytest.approx(cut["chance"], abs=1e-6)


def test_a_run_of_labelled_texts_is_measured_by_its_labels(tmp_path: Path, settings: Callable[..., Any]) -> None:
    from anaphora.analysis.tasks.labels import label_names, predict_labels
    from anaphora.training.run import train

    texts = [{"text": f"seen {'well' * (number % 3)} {number}", "label": "ab"[number % 3 > 0]} for number in range(60)]
    path = tmp_path / "texts.jsonl"
    path.write_text("\n".join(map(json.dumps, texts)))
    config = settings(
        "trainer=smoke", "experiment=sentiment", "data=labelled_text", f"data.path={path}", "model.width=16",
        "batching.tokens=96", "batching.row_tokens=32", f"output={tmp_path}", "name=run",
    )  # fmt: skip
    run = load(train(config))
    measure_run(run, Query(["labels"], "test", None))
    groups = json.loads((run.directory / MEASURED_FILE).read_text(encoding="utf-8"))["groups"]
    check_rules_on(groups)
    (measured,) = groups["en"].values()
    held_out = load_corpus(config.data).texts("test")
    names = label_names(run)
    right = [names[number] == one.label for number, one in zip(predict_labels(run, held_out), held_out, strict=True)]
    assert measured["task_accuracy"] == pytest.approx(np.mean(right), abs=1e-6)
    assert measured["chance"] == pytest.approx(sum(one.label == "b" for one in held_out) / len(held_out), abs=1e-6)
    with pytest.raises(UserError, match="it holds texts without pronoun questions"):
        measure_run(run, Query(["scores"], "test", None))


def test_labels_are_measured_of_runs_that_tell_labels(own_run: Path) -> None:
    with pytest.raises(UserError, match=r"measures \('labels'\) needs task.prediction=label, not word"):
        measure_run(load(own_run), Query(["labels"], "test", None))


def test_items_are_grouped_by_the_words_between_antecedent_and_pronoun() -> None:
    def item(distance: int) -> Example:
        factors = {"kind": "set", "stratum": "main", "distance": str(distance)}
        candidates = (((2, 3),), ((4, 5),))
        return Example(
            text="a b c", language="en", pronoun=(0, 1), candidates=candidates, antecedents=(0,), factors=factors
        )

    examples = [item(distance) for distance in (0, 3, 4, 33, 200)]
    measured = scores_by_distance(SplitEvaluation(examples, np.array([1.0, 0.0, 1.0, 1.0, 0.0]), None))
    check_rules_on(measured)
    groups = measured["en"]
    assert {group: (one["items"], one["task_accuracy"], one["chance"]) for group, one in groups.items()} == {
        "distance 0": (2, 0.5, 0.5),
        "distance 4": (1, 1.0, 0.5),
        "distance 32": (1, 1.0, 0.5),
        "distance 64": (1, 0.0, 0.5),
    }


def test_items_without_a_distance_are_not_silently_left_out() -> None:
    example = Example(text="a b c", language="en", pronoun=(0, 1), candidates=(((2, 3),), ((4, 5),)), antecedents=(0,))
    with pytest.raises(UserError, match=r"measures \('distance'\) needs items with the factor distance"):
        scores_by_distance(SplitEvaluation([example], np.ones(1), None))


def test_what_needs_no_training_is_measured_without_a_run(tmp_path: Path, settings: Callable[..., Any]) -> None:
    measure_settings(settings(), tmp_path, Query(["scaling", "symmetry"], "test", None))
    stored = json.loads((tmp_path / MEASURED_FILE).read_text(encoding="utf-8"))
    check_rules_on(stored["groups"])
    assert set(stored["groups"]) == {"any"}
    assert [path.name for path in tmp_path.iterdir()] == [MEASURED_FILE]


def test_what_was_measured_of_other_settings_is_no_record_of_these(
    tmp_path: Path, settings: Callable[..., Any]
) -> None:
    query = Query(["scaling"], "test", None)
    measure_settings(settings("trainer.progress=false"), tmp_path, query)  # as in a process of its own
    assert read_record(Job("base", 0, settings(), tmp_path), query).status == "finished"
    other = Job("base", 0, settings("model.attention.scaled=false"), tmp_path)
    assert read_record(other, query).status == "not begun"


WHOLE = {
    "query": {"measures": ["scores"], "split": "test", "items": None},
    "head": [0, 1],
    "train_seconds": 1.5,
    "groups": {"en": {"all": {"task_accuracy": 0.5, "antecedent_mass": None}}},
}


@pytest.mark.parametrize("damage", ["", "{", "{}", "[]", "head", "groups", "query", "train_seconds"])
def test_damaged_measures_are_refused_by_who_reads_them_and_measured_again(
    damage: str, tmp_path: Path, tiny: Callable[..., Any]
) -> None:
    job = Job("base", 0, tiny(tmp_path), tmp_path / "run")
    path = job.directory / MEASURED_FILE
    query = Query(["scores"], "test", None)
    write_json(path, WHOLE)
    assert read_record(job, query).head == (0, 1)
    assert is_measured(job.directory, query.key)
    path.write_text(json.dumps({**WHOLE, damage: [3]}) if damage in WHOLE else damage)
    with pytest.raises(UserError, match=r"measured.json.*: .*; delete it, and the study measures the run again"):
        read_record(job, query)
    assert not is_measured(job.directory, query.key)


def test_a_run_that_was_measured_and_then_failed_has_failed(tmp_path: Path, tiny: Callable[..., Any]) -> None:
    job = Job("base", 0, tiny(tmp_path), tmp_path / "run")
    write_json(job.directory / MEASURED_FILE, WHOLE)
    write_json(job.directory / FAILURE_FILE, {"error": "it broke"})
    record = read_record(job, Query(["scores"], "test", None))
    assert (record.status, record.error) == ("failed", "it broke")


def test_measures_of_other_code_do_not_survive_a_process_that_is_stopped_while_it_measures_anew(
    tmp_path: Path, tiny: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt

    config = tiny(tmp_path)
    query = Query(["scaling"], "test", None)
    measures.measure_settings(config, tmp_path, query)
    job = Job("base", 0, config, tmp_path)
    assert read_record(job, query).status == "finished"
    monkeypatch.setattr(measures, "analysis_code_digest", lambda _: "of other code")
    monkeypatch.setattr(measures, "_OF_SETTINGS", dict.fromkeys(measures._OF_SETTINGS, stopped))
    with pytest.raises(KeyboardInterrupt):
        measures.measure_settings(config, tmp_path, query)
    assert read_record(job, query).status != "finished"


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"error": 3}'])
def test_a_damaged_failure_is_refused(content: str, tmp_path: Path, tiny: Callable[..., Any]) -> None:
    job = Job("base", 0, tiny(tmp_path), tmp_path / "run")
    job.directory.mkdir()
    (job.directory / FAILURE_FILE).write_text(content)
    with pytest.raises(UserError, match=r"failure.json.*: .*; delete it"):
        read_record(job, Query(["scores"], "test", None))
