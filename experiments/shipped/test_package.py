"""Tests of the conversion of a run to the shipped folder, and that its scores can be reproduced."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import anaphora
from anaphora.analysis.evidence.storage import answer_temperatures
from anaphora.base.errors import UserError
from anaphora.base.tensors import read_arrays
from anaphora.runs import shipped
from anaphora.runs.directory import load
from anaphora.settings.arguments import settings_from
from experiments.shipped import package, scores
from experiments.shipped.settings import TEST_SET, Packaging, SentenceScores

FACTS = """
name = "A small encoder"
licence = "apache-2.0"
commands = ["anaphora train name=own"]
limits = ["It knows four names."]
texts = [{ name = "Sixty sentences", licence = "CC0" }]
"""


def is_in(line: str, language: str, is_test: bool) -> bool:
    row = json.loads(line)
    return bool(row["language"] == language and (row["split"] == "test") == is_test)


@pytest.fixture
def sentences(table: Path, tmp_path: Path) -> Path:
    """Write the table as the sets of each language: dev and empty second dev set, and the test split as TEST_SET."""
    lines = table.read_text(encoding="utf-8").splitlines()
    for language in ("en", "zh"):
        for name, is_test in ((language, False), (f"{TEST_SET}.{language}", True)):
            chosen = [line for line in lines if is_in(line, language, is_test)]
            (tmp_path / f"{name}.jsonl").write_text("\n".join(chosen) + "\n", encoding="utf-8")
        (tmp_path / f"dev.{language}.jsonl").write_text("", encoding="utf-8")
    return tmp_path


@pytest.fixture
def packaged(finished: Path, sentences: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Convert the finished run to a shipped folder, and use it in place of the package's."""
    (sentences / "facts.toml").write_text(FACTS, encoding="utf-8")
    folder = sentences / "package" / "shipped"
    arguments = {"facts": str(sentences / "facts.toml"), "sentences": str(sentences), "output": str(folder)}
    package.work(Packaging(run=str(finished), **arguments))
    monkeypatch.setattr(shipped, "FOLDER", folder)
    monkeypatch.chdir(sentences)
    return folder


def test_the_folder_holds_the_run_in_16_bits_with_its_card_and_names_no_folder_of_this_machine(
    packaged: Path, finished: Path, table: Path
) -> None:
    arrays, _ = read_arrays(packaged / "model.safetensors")
    assert {values.dtype for values in arrays.values()} == {np.dtype(np.float16)}
    own, released = load(finished), anaphora.load()
    for name, values in own.model.state_dict().items():
        half = values.numpy().astype(np.float16).astype(np.float32)
        np.testing.assert_array_equal(released.run.model.state_dict()[name].numpy(), half)
    for path in packaged.rglob("*"):
        assert path.is_dir() or str(table.parent).encode() not in path.read_bytes(), path
    assert released.run.config.data.path_or_kind() == table.name
    card = (packaged / "README.md").read_text(encoding="utf-8")
    for fact in ("Sixty sentences: CC0", "Seed: 0", "Steps: 8", "It knows four names.", "anaphora train name=own"):
        assert fact in card
    assert answer_temperatures(released.run).keys() == {"en", "zh"}
    for language in ("en", "zh"):
        assert sorted(path.name for path in (packaged / language).rglob("*.*")) == ["heads_dev.csv", "metrics.json"]


def test_scores_measured_again_are_those_of_the_release_and_a_difference_is_named(
    packaged: Path, finished: Path, sentences: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = SentenceScores(sentences=str(sentences))
    scores.work(settings)
    assert "as released" in capsys.readouterr().out
    measured = json.loads(Path("outputs/shipped/scores.json").read_text(encoding="utf-8"))
    assert measured["release"] == shipped.read_release().digest
    stored = packaged / "scores.json"
    changed = json.loads(stored.read_text(encoding="utf-8"))
    changed["sentences"][0]["answer"] = 12.5
    stored.write_text(json.dumps(changed), encoding="utf-8")
    shipped.write_release(packaged)
    with pytest.raises(SystemExit):
        scores.work(settings)
    assert "en all: answer is" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"scores\.json holds the results with run="):
        scores.work(SentenceScores(sentences=str(sentences), run=str(finished)))
    with pytest.raises(UserError, match=r"sentences \(nowhere\): there is no such file or folder"):
        scores.work(SentenceScores(sentences="nowhere"))
    makefile = (Path(scores.__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    (words,) = re.findall(r"-m experiments\.shipped\.scores(.*)", makefile)
    again = settings_from([*words.split(), f"sentences={sentences}", f"run={finished}"], SentenceScores)
    scores.work(again)  # in the folder of another run's scores


def test_a_release_is_never_overwritten_and_one_that_names_a_folder_of_this_machine_is_not_written(
    packaged: Path, finished: Path, sentences: Path
) -> None:
    facts = sentences / "facts.toml"
    again = {"run": str(finished), "facts": str(facts), "sentences": str(sentences)}
    with pytest.raises(UserError, match="exists already"):
        package.work(Packaging(output=str(packaged), **again))
    facts.write_text(FACTS.replace("name=own", f"data.path={finished.parent}"), encoding="utf-8")
    with pytest.raises(UserError, match=r"README\.md holds the path"):
        package.work(Packaging(output=str(sentences / "other"), **again))
    assert not (sentences / "other").exists()


def test_weights_that_are_too_large_for_the_package_are_named(
    finished: Path, sentences: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sentences / "facts.toml").write_text(FACTS, encoding="utf-8")
    monkeypatch.setattr(package, "MOST_BYTES", 100)
    settings = Packaging(run=str(finished), facts=str(sentences / "facts.toml"), output=str(sentences / "other"))
    with pytest.raises(UserError, match="at most 100 may ship"):
        package.work(settings)
