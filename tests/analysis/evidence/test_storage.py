from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from pyarrow import parquet

from anaphora.analysis.evidence import controls
from anaphora.analysis.evidence.evidence import Evidence, Provenance, Verdict
from anaphora.analysis.evidence.headline import Headline, measure_headline
from anaphora.analysis.evidence.storage import (
    answer_temperatures,
    chosen_head,
    find_head,
    metrics_path,
    read_evidence,
    read_heads,
    stored_head,
    write_evidence,
)
from anaphora.analysis.results.scores import Head
from anaphora.analysis.scores.cells import by_language
from anaphora.analysis.scores.heads import MEASURES, head_accuracy
from anaphora.analysis.scores.summary import SCORE_COLUMNS
from anaphora.base.errors import UserError
from anaphora.base.files import write_json
from anaphora.commands.evaluate import accuracy_rows
from anaphora.data.example import Example
from anaphora.runs.directory import load, training_record
from anaphora.runs.items import evaluation_splits
from anaphora.settings.data import NoData
from anaphora.settings.run import read_config, same_settings
from anaphora.training.run import train


@pytest.fixture(scope="module")
def headline(finished: Path) -> Headline:
    run = load(finished)
    material = evaluation_splits(run, "test")
    given = measure_headline(
        run, material.training, material.development, material.measured, "test", 0, chosen=Head(1, 0)
    )
    return replace(given, head_is_named=False)


def test_a_head_that_somebody_named_is_not_taken_for_one_that_development_chose(
    headline: Headline, tmp_path: Path
) -> None:
    given = replace(headline, head_is_named=True)
    assert given.evidence().head.chosen_on == "named"
    write_evidence(given, tmp_path)
    assert find_head(tmp_path) is None
    write_evidence(headline, tmp_path)
    assert find_head(tmp_path) == headline.head


def test_levels_are_those_of_the_latest_scores(headline: Headline, tmp_path: Path) -> None:
    write_evidence(headline, tmp_path, replace(with_verdict(headline), levels={}))
    write_evidence(headline, tmp_path)
    assert stored(tmp_path).levels == headline.evidence().levels
    assert stored(tmp_path).verdict


def stored(folder: Path) -> Evidence:
    """Return the stored evidence as it was written, without the name of the heads table."""
    evidence = read_evidence(folder, "test")
    assert evidence is not None
    return replace(evidence, heads_table=None)


def with_verdict(headline: Headline) -> Evidence:
    """Return the scores with the parts of the evidence that scoring alone does not measure."""
    digests = headline.measured_on
    about = Provenance(items=8, untrained=0, weights=digests.weights, data=digests.data, code=digests.code)
    return replace(
        headline.evidence(), verdict={"en": {"all": Verdict(verdict="supported", rows=())}}, provenance=about
    )


def test_evidence_stays_with_the_head_and_items_that_it_is_about(headline: Headline, tmp_path: Path) -> None:
    write_evidence(headline, tmp_path, with_verdict(headline))
    write_evidence(headline, tmp_path)
    assert stored(tmp_path) == with_verdict(headline)
    write_evidence(replace(headline, head=Head(0, 1)), tmp_path)
    assert (stored(tmp_path).head.layer, stored(tmp_path).verdict) == (0, None)
    write_evidence(headline, tmp_path, with_verdict(headline))
    write_evidence(replace(headline, data="as many other items"), tmp_path)
    assert (stored(tmp_path).verdict, stored(tmp_path).provenance) == (None, None)


@pytest.mark.parametrize("digest", ["weights", "data", "code"])
def test_evidence_of_other_weights_items_or_code_does_not_stay_beside_new_scores(
    digest: str, headline: Headline, tmp_path: Path
) -> None:
    evidence = with_verdict(headline)
    assert evidence.provenance is not None
    others: Any = {digest: "another"}
    write_evidence(headline, tmp_path, replace(evidence, provenance=replace(evidence.provenance, **others)))
    write_evidence(headline, tmp_path)
    assert stored(tmp_path) == headline.evidence()


def test_each_split_has_its_own_file(headline: Headline, tmp_path: Path) -> None:
    assert read_evidence(tmp_path, "test") is None
    write_evidence(replace(headline, split="dev"), tmp_path)
    assert read_evidence(tmp_path, "test") is None
    dev = read_evidence(tmp_path, "dev")
    assert dev is not None
    assert dev.split == "dev"
    assert find_head(tmp_path, "dev") == headline.head and find_head(tmp_path) is None
    assert chosen_head(replace(headline.run, directory=tmp_path)) == headline.head
    assert [metrics_path(tmp_path, split).name for split in ("test", "dev")] == ["metrics.json", "metrics_dev.json"]
    assert (tmp_path / "tables" / "heads_dev.csv").stat().st_size


def test_the_heads_on_development_are_read_only_beside_the_scores_that_they_were_written_with(
    headline: Headline, tmp_path: Path
) -> None:
    write_evidence(headline, tmp_path)
    evidence = read_evidence(tmp_path, "test")
    assert evidence is not None
    heads = read_heads(tmp_path, evidence)
    assert heads is not None
    for language, grid in by_language(headline.development, evidence.languages, head_accuracy).items():
        np.testing.assert_array_equal(heads[language], grid)
    fewer = headline.development.select(np.arange(2))
    write_evidence(replace(headline, split="dev", development=fewer), tmp_path)
    assert read_heads(tmp_path, evidence) is None
    dev = read_evidence(tmp_path, "dev")
    assert dev is not None and read_heads(tmp_path, dev) is not None
    older = replace(evidence, heads_table=None)  # of a version that kept no digest
    assert read_heads(tmp_path, older) is not None
    for content in ("", "language,layer,head\nen,0,0\n", "language,layer,head,macro_candidate_accuracy\nen,0,0,x\n"):
        (tmp_path / "tables" / "heads_dev.csv").write_text(content)
        assert read_heads(tmp_path, older) is None
    (tmp_path / "tables" / "heads_dev.csv").unlink()
    assert read_heads(tmp_path, older) is None


def test_scores_are_written_after_their_tables(
    headline: Headline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("anaphora.analysis.evidence.storage.write_parquet", killed)
    with pytest.raises(KeyboardInterrupt):
        write_evidence(headline, tmp_path)
    assert read_evidence(tmp_path, "test") is None


def test_the_scores_of_single_items_are_a_data_set_with_documented_columns(headline: Headline, tmp_path: Path) -> None:
    write_evidence(headline, tmp_path)
    path = tmp_path / "tables" / "scores_test.parquet"
    loaded = datasets.load_dataset("parquet", data_files=str(path), cache_dir=str(tmp_path / "cache"))["train"]
    frame, scores = loaded.to_pandas(), headline.measured
    items, layers, heads = scores.candidate_accuracy.shape
    assert len(frame) == items * layers * heads
    for name in MEASURES:
        values = frame[name].to_numpy().reshape(items, layers, heads)
        np.testing.assert_array_equal(values, getattr(scores, name))
    one = frame[(frame["item"] == scores.kept[3]) & (frame["layer"] == 1) & (frame["head"] == 0)].iloc[0]
    assert one["antecedent_mass"] == scores.antecedent_mass[3, 1, 0]
    assert (one["language"], one["task_correct"]) == (scores.examples[3].language, headline.task_correct[3])
    schema = parquet.read_schema(path)
    assert {field.name: field.metadata[b"description"].decode() for field in schema} == SCORE_COLUMNS


def test_a_write_that_fails_leaves_the_old_scores(headline: Headline, tmp_path: Path) -> None:
    write_evidence(headline, tmp_path)
    before = metrics_path(tmp_path, "test").read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        write_evidence(headline, tmp_path, replace(headline.evidence(), train_seconds=float("nan")))
    assert metrics_path(tmp_path, "test").read_bytes() == before
    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]
    assert json.loads(before)["head"] == {"layer": 1, "head": 0, "chosen_on": "dev"}


def test_a_file_that_is_no_evidence_is_a_plain_message(tmp_path: Path) -> None:
    write_json(metrics_path(tmp_path, "test"), {"version": 2, "split": "test"})
    with pytest.raises(UserError, match=r"metrics.json: head: the key is missing; delete the file"):
        read_evidence(tmp_path, "test")
    write_json(metrics_path(tmp_path, "test"), {"version": 3})
    with pytest.raises(UserError, match="version: 3 is not 2"):
        read_evidence(tmp_path, "test")


def test_runs_are_alike_wherever_and_on_whatever_they_run(headline: Headline) -> None:
    config = headline.run.config
    moved = replace(config, name="other", output="elsewhere", trainer=replace(config.trainer, device="cuda"))
    assert same_settings(config, moved)
    assert not same_settings(config, replace(config, seed=1))
    assert not same_settings(config, replace(config, trainer=replace(config.trainer, limit_steps=1)))
    assert not same_settings(config, replace(config, trainer=replace(config.trainer, compile=True)))
    assert not same_settings(config, replace(config, trainer=replace(config.trainer, precision="bf16-mixed")))
    assert not same_settings(config, replace(config, optimizer=replace(config.optimizer, steps=9)))


@pytest.mark.parametrize(("device", "default", "other"), [("auto", "32", "bf16-mixed"), ("cuda", "bf16-mixed", "32")])
def test_a_run_whose_file_names_no_precision_has_the_default_of_its_device(
    device: str, default: str, other: str, own_run: Path
) -> None:
    path = own_run / "config.yaml"
    config = read_config(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("  precision: '32'\n", "").replace(f"device: {config.trainer.device}", f"device: {device}")
    )
    assert "precision" not in path.read_text(encoding="utf-8")
    older = read_config(path)
    assert same_settings(older, replace(config, trainer=replace(config.trainer, precision=default)))
    assert not same_settings(older, replace(config, trainer=replace(config.trainer, precision=other)))


def test_accuracy_is_reported_by_cell_with_its_worst_template() -> None:
    def item(template: str, cue: str) -> Example:
        factors = {"kind": "set", "type": cue, "stratum": "main", "template": template}
        return Example(
            text="a b", language="en", pronoun=(0, 1), candidates=(((2, 3),),), antecedents=(0,), factors=factors
        )

    examples = [item("t1", "x"), item("t2", "x"), item("t2", "x"), item("t1", "y")]
    rows = accuracy_rows(examples, np.array([1.0, 1.0, 0.0, 0.0]))
    assert [(row["type"], row["items"], row["accuracy"], row["worst_template"]) for row in rows] == [
        ("x", 3, pytest.approx(2 / 3), "t2 0.50"),
        ("y", 1, 0, "t1 0.00"),
    ]
    mixed = accuracy_rows([*examples[:2], item("", "x")], np.array([1.0, 1.0, 0.0]))  # the last has no template
    assert [row["worst_template"] for row in mixed] == ["t1 1.00"]
    silent = accuracy_rows(examples, np.full(4, np.nan))  # of a model that gives no answers
    assert [(row["accuracy"], row["worst_template"]) for row in silent] == [(None, ""), (None, "")]


def test_a_split_without_items_is_reported(headline: Headline, monkeypatch: pytest.MonkeyPatch) -> None:
    run = headline.run

    class Empty:
        def examples(self, split: str, numbers: Sequence[int] | None = None) -> list[Example]:
            return []

        def groups(self, split: str) -> list[str]:
            return []

        def training_digest(self) -> str:
            return str(training_record(run.directory)["training_examples"])

    monkeypatch.setattr("anaphora.runs.items.load_corpus", lambda source: Empty())
    with pytest.raises(UserError, match=r"split \(test\) holds no items"):
        evaluation_splits(run, "test")


def test_a_run_without_attention_is_evaluated_and_has_no_maps_to_show(
    tiny: Callable[..., Any], tmp_path: Path, script: Callable[..., Any]
) -> None:
    run = train(tiny(tmp_path, "model/attention=gru"))
    status, _, err = script("evaluate", f"run={run}")
    assert status == 0, err
    answers = json.loads((run / "evaluation" / "test_answers.json").read_text(encoding="utf-8"))
    assert len(answers) == 12
    assert all(one["correct"] == (one["answer"] in one["antecedents"]) for one in answers)
    assert not (run / "evaluation" / "test_templates.csv").exists()
    for name, more in (("score", ()), ("explain", ("layer=0", "head=0", "text=Anna"))):
        status, _, err = script(name, f"run={run}", *more)
        assert status != 0
        assert "attention" in err
        assert "Traceback" not in err


DAMAGED = ["", "{", "{}", "[]", "null", "3", '{"version": 2}', '{"head": {"layer": 0}}', '{"version": 2, "head": NaN}']


@pytest.mark.parametrize("content", DAMAGED)
def test_damaged_scores_are_refused_by_who_reads_them_and_no_matter_to_who_writes_them(
    content: str, headline: Headline, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = metrics_path(tmp_path, "test")
    path.write_text(content)
    run = replace(headline.run, directory=tmp_path)
    for reader in (lambda: find_head(tmp_path), lambda: read_evidence(tmp_path, "test"), lambda: stored_head(run)):
        with pytest.raises(
            UserError, match=r"metrics.json.*: .*; delete the file, or write it again with .*run="
        ) as error:
            reader()
        assert "\n" not in str(error.value)
    write_evidence(headline, tmp_path)
    assert "it is measured again" in capsys.readouterr().out
    assert find_head(tmp_path) == headline.head


def test_a_stored_head_that_the_run_has_not_is_refused(headline: Headline, tmp_path: Path) -> None:
    write_evidence(headline, tmp_path)
    path = metrics_path(tmp_path, "test")
    path.write_text(path.read_text().replace('"layer": 1,', '"layer": 99,', 1))
    with pytest.raises(UserError, match=r"metrics.json: .*99.*; delete the file"):
        stored_head(replace(headline.run, directory=tmp_path))


def test_the_way_out_names_the_run_as_it_is_opened_and_data_where_it_has_none(
    headline: Headline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    published = replace(headline.run, directory=Path("outputs/owner--name"), origin=tmp_path / "cache")
    weights = tmp_path / "weights"
    weights.mkdir()
    config = replace(headline.run.config, start=str(weights), data=NoData())
    pretrained = replace(headline.run, directory=Path("outputs/weights"), config=config)
    for run, argument in ((published, "hf://owner/name"), (pretrained, f"{weights} data=...")):
        with pytest.raises(UserError, match="no head has been chosen yet") as missing:
            stored_head(run)
        write_evidence(replace(headline, run=run), run.directory)
        path = metrics_path(run.directory, "test")
        path.write_text(path.read_text().replace('"layer": 1,', '"layer": 99,', 1))
        with pytest.raises(UserError, match="99") as absent:
            stored_head(run)
        path.write_text("{}")
        with pytest.raises(UserError, match="delete the file") as damaged:
            chosen_head(run)
        for error, end in ((missing, ""), (absent, " overwrite=true"), (damaged, " overwrite=true")):
            assert str(error.value).endswith(f" with anaphora score run={argument}{end}")
    (published.directory / "calibration.json").write_text("{}")
    with pytest.raises(UserError, match="run=hf://owner/name calibrate=dev"):
        answer_temperatures(published)
    path = controls.controls_path(published.directory, "test")
    write_json(path, [])
    with pytest.raises(UserError, match="anaphora controls run=hf://owner/name writes it again"):
        controls.read(published.directory, "test", published.argument)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"uniform": 3}', '{"uniform": {}}', '{"uniform": ""}'])
def test_damaged_controls_are_refused_by_the_report_and_written_anew_by_who_trains_them(
    content: str, tmp_path: Path
) -> None:
    path = controls.controls_path(tmp_path, "test")
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(UserError, match=r"controls.json.*: .*; delete the file"):
        controls.read(tmp_path, "test")
    assert set(controls.read_to_replace(tmp_path, "test").values()) == {None}
