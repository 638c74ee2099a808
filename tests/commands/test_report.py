from __future__ import annotations

import csv
import json
import re
import runpy
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anaphora.analysis.evidence import measurement
from anaphora.analysis.evidence.headline import no_progress
from anaphora.analysis.evidence.measurement import RunEvidence, gather_evidence
from anaphora.analysis.evidence.storage import metrics_path
from anaphora.analysis.maps.record import AttentionRecord, from_arrays
from anaphora.base.errors import UserError
from anaphora.base.translation import spoken_language
from anaphora.commands import report
from anaphora.commands.parts import pages as pages_of_report
from anaphora.commands.parts.pages import report_on_records
from anaphora.commands.parts.shared import headline_of, print_weak_choice
from anaphora.commands.report import Report
from anaphora.commands.score import Scoring
from anaphora.data.tokens.words import UnreadMentions
from anaphora.report.page.elements import ReportRun
from anaphora.report.page.sections import FIGURES
from anaphora.runs.directory import WRITTEN, RunFiles, load

Done = Callable[..., str]
Script = Callable[..., tuple[int, str, str]]
PARTS = (
    *("protocol", "significance", "effects", "factors", "further_scores", "head_roles", "maps", "causal"),
    *("provenance", "controls", "verdict"),
)
SMALL = ("items=8", "untrained=1", "sentences=4")


@pytest.fixture
def done(script: Script) -> Done:
    """Return a function that runs a script without errors and returns its output."""

    def ran(name: str, *arguments: str) -> str:
        status, out, err = script(name, *arguments)
        assert status == 0, err
        return out

    return ran


@pytest.fixture(scope="module")
def reported(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with a report, for reading only; `own_report` is a copy for writing."""
    run = Path(shutil.copytree(finished, tmp_path_factory.mktemp("reported") / "run"))
    report.report(Report(run=str(run), items=8, untrained=1, sentences=4, formats=["png"]))
    return run


@pytest.fixture
def own_report(reported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(reported, tmp_path / "own"))


def metrics(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "metrics.json").read_text(encoding="utf-8")))


def explorer(page: Path) -> dict[str, Any]:
    script = re.search(
        r'<script type="application/json"[^>]*>(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL
    )
    assert script is not None
    return dict(json.loads(script[1]))


class AskedError(Exception):
    """Error that replaces an operation, to test whether it is called."""


def refuse(*_: object, **__: object) -> None:
    raise AskedError


def test_a_report_is_a_page_numbers_figures_and_tables(reported: Path) -> None:
    content = metrics(reported)
    assert {"version", "seed", "split", "head", "languages", "strata", "dropped", "untrained_models", *PARTS} <= set(
        content
    )
    assert {name: content["provenance"][name] for name in ("items", "untrained")} == {"items": 8, "untrained": 1}
    assert set(content["causal"]["languages"]) == set(content["verdict"]) == {"en", "zh"}
    assert content["verdict"]["en"]["set"]["verdict"] == "not yet controlled"
    assert set(content["maps"]) == {"raw", "norm", "rollout", "flow", "value_zeroing", "integrated_gradients"}
    figures = {path.stem for path in (reported / "figures").iterdir()}
    assert {"scoreboard", "heads_en", "heads_zh", "knockout", "ablation", "maps", "dose_response", "factors"} <= figures
    assert {path.suffix for path in (reported / "figures").iterdir()} == {".png"}
    for table in ("significance", "effects", "knockout", "pattern_patching", "maps", "head_roles", "verdict", "heads"):
        with (reported / "tables" / f"{table}_test.csv").open(encoding="utf-8", newline="") as file:
            assert list(csv.DictReader(file)), table
    page = (reported / "report.html").read_text(encoding="utf-8")
    assert "http://" not in page and "https://" not in page
    assert [one["language"] for one in explorer(reported / "report.html")["sentences"]] == ["en", "en", "zh", "zh"]
    assert not [path for path in reported.rglob(".*") if path.is_file()]  # no draft and no lock is left


def test_a_second_report_asks_the_model_no_causal_test_again(
    own_report: Path, done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = metrics(own_report)
    controls: dict[str, Any] = dict.fromkeys(before["controls"])
    cell = {"task_accuracy": 0.5, "candidate_accuracy": 0.5, "interval": None, "chance": 0.5}
    controls["uniform"] = {
        "run": "uniform", "seed": 0, "languages": {"en": {"set": cell}}, "as_expected": True, "expected": "a",
        "observed": "b", "measured_on": {name: before["provenance"][name] for name in ("weights", "data", "code")},
    }  # fmt: skip
    (own_report / "controls").mkdir()
    (own_report / "controls" / "controls.json").write_text(json.dumps(controls), encoding="utf-8")
    monkeypatch.setattr(measurement, "measure_evidence", refuse)
    monkeypatch.setattr(pages_of_report, "write_pages", lambda evidence, settings: [own_report / "report.html"])
    assert "not yet controlled" in done("report", f"run={own_report}", *SMALL)
    after = metrics(own_report)
    assert after["controls"] == controls  # what is cheap and may have changed is read anew
    written_again = {"controls": None, "verdict": None, "verdict_at_head": None}
    assert {**after, **written_again} == {**before, **written_again}
    trained = [row for row in after["verdict"]["en"]["set"]["rows"] if row["rule"] == "trained controls"]
    assert trained[0]["value"] == 1


def test_controls_that_were_measured_on_other_items_or_on_unknown_ones_count_as_not_trained(
    own_report: Path, done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = {name: metrics(own_report)["provenance"][name] for name in ("weights", "data", "code")}
    control = {
        "run": "uniform", "seed": 0, "languages": {}, "as_expected": True, "expected": "a", "observed": "b",
    }  # fmt: skip
    stored = {
        "uniform": {**control, "measured_on": about},
        "no_positions": control,  # of an earlier version, which did not say on what it was measured
        "shuffled_labels": {**control, "measured_on": {**about, "data": "other items"}},
        "nearest": {**control, "measured_on": {**about, "weights": "other weights"}},
    }
    path = own_report / "controls" / "controls.json"
    path.parent.mkdir()
    path.write_text(json.dumps(stored), encoding="utf-8")
    monkeypatch.setattr(measurement, "measure_evidence", refuse)
    monkeypatch.setattr(pages_of_report, "write_pages", lambda evidence, settings: [])
    assert (
        f"{path}: measured on other weights or items, or by other code; anaphora controls run={own_report} "
        "split=test 'controls=[shuffled_labels,no_positions,nearest]' measures again"
    ) in done("report", f"run={own_report}", *SMALL)
    after = metrics(own_report)
    assert after["controls"] == {
        "uniform": stored["uniform"], "frozen_query_key": None, "shuffled_labels": None, "no_positions": None,
    }  # fmt: skip
    trained = [row for row in after["verdict"]["en"]["set"]["rows"] if row["rule"] == "trained controls"]
    assert trained[0]["value"] == 1


@pytest.mark.parametrize("other", ["items=6", "untrained=0", "protocol.alpha=0.01", "split=dev"])
def test_another_question_is_measured_anew(
    other: str, own_report: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement, "measure_evidence", refuse)
    with pytest.raises(AskedError):
        script("report", f"run={own_report}", *SMALL, other, "overwrite=true")


def test_scoring_afterwards_keeps_the_evidence_about_the_same_head_and_items(own_report: Path, done: Done) -> None:
    before = metrics(own_report)
    done("score", f"run={own_report}", "untrained=1")
    assert metrics(own_report) == before
    other = 1 - before["head"]["head"]
    named = (f"layer={before['head']['layer']}", f"head={other}")
    done("score", f"run={own_report}", "untrained=1", *named, "overwrite=true")
    assert not set(PARTS) & set(metrics(own_report))


@pytest.mark.parametrize("other", [("untrained=1", "items=6"), ("untrained=0",)])
def test_fewer_items_or_untrained_models_do_not_keep_the_evidence(
    other: tuple[str, ...], own_report: Path, done: Done
) -> None:
    done("score", f"run={own_report}", *other, "overwrite=true")
    assert not set(PARTS) & set(metrics(own_report))


def test_scores_of_other_data_are_not_taken_for_evidence_on_the_runs_own(
    own_report: Path, table: Path, tmp_path: Path, done: Done, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.jsonl"
    lines = table.read_text(encoding="utf-8").splitlines()
    other.write_text("\n".join(line.replace("shop", "bank") if '"test"' in line else line for line in lines))
    before = metrics(own_report)
    scoring = ("score", f"run={own_report}", "untrained=1", "data=jsonl", f"data.path={other}")
    status, _, err = script(*scoring)
    assert (status, metrics(own_report)) == (2, before)
    assert f"output: it is missing; files on {other} need a folder of their own" in err
    elsewhere = Path(shutil.copytree(own_report, tmp_path / "elsewhere"))  # with evidence on the run's own data
    settings = RunFiles(elsewhere).config.rename(tmp_path / "config.yaml")  # else it is refused as another run's
    done(*scoring, f"output={elsewhere}", "overwrite=true")
    settings.rename(RunFiles(elsewhere).config)
    scored = metrics(elsewhere)
    items = [{name: whole["items"] for name, whole in one["languages"].items()} for one in (before, scored)]
    assert (scored["head"], items[1]) == (before["head"], items[0])  # by head and numbers alone, they are the same
    assert not set(PARTS) & set(scored)
    monkeypatch.setattr(measurement, "measure_evidence", refuse)
    with pytest.raises(AskedError):
        done("report", f"run={elsewhere}", *SMALL, "overwrite=true")


@pytest.mark.usefixtures("undrawn")
def test_several_runs_share_a_page_that_compares_their_rows(
    reported: Path, tmp_path: Path, done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [Path(shutil.copytree(reported, tmp_path / name)) for name in ("one", "two")]
    monkeypatch.setattr(measurement, "measure_evidence", refuse)
    out = done("report", f"runs=[{runs[0]},{runs[1]}]", f"output={tmp_path / 'both'}", "formats=[]", *SMALL)
    page = (tmp_path / "both" / "report.html").read_text(encoding="utf-8")
    assert "2 runs side by side" in page and "one – two" in page
    assert "rows of one and two, Chinese: 0.000 bits apart" in out
    with (tmp_path / "both" / "tables" / "divergence_test.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["run"], row["other"], row["language"], row["items"]) for row in rows] == [
        ("one", "two", "en", "6"),
        ("one", "two", "zh", "6"),
    ]
    assert {float(row["divergence"]) for row in rows} == {0}
    assert {path.name for path in (tmp_path / "both").iterdir()} == {"report.html", "tables", WRITTEN}
    assert (runs[0] / "report.html").read_bytes() == (reported / "report.html").read_bytes()


def test_runs_of_other_items_are_reported_without_a_comparison_of_rows(
    reported: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Report(run=str(reported), items=8, untrained=1, sentences=1, formats=[])
    monkeypatch.setattr(measurement, "write_evidence", lambda *_: None)
    evidence = gather_evidence(load(reported), settings, lambda stage: None)
    fewer = measurement.RunEvidence(evidence.headline, evidence.evidence, evidence.folder)
    monkeypatch.setattr(
        "anaphora.commands.parts.pages.divergences",
        lambda runs: (_ for _ in ()).throw(UserError("they have 1, 2 items")),
    )
    assert pages_of_report._divergences([evidence, fewer]) == []
    assert "the runs’ rows are not compared: they have 1, 2 items" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run=nowhere",), "run (nowhere): there is no such folder"),
        (("runs=[{run}/unfinished]",), "model.safetensors is missing: training has not finished"),
        (("runs=[{run},{run}/minimal_pair/own]",), "two are called own; rename one of the run directories"),
        (("runs=[{run},{run}]",), "must name each entry once"),
        (("run={run}", "items=0"), "items (0) must be at least 1"),
        (("run={run}", "causal_items=7"), "causal_items (7) has no effect on the page of a run; leave it out"),
        (("run={run}", "data=controlled", "sentences=5"), "sentences (5) has no effect on an atlas; leave it out"),
        (("runs=[{run}]", "output=x.csv", "items=9"), "items (9) has no effect on a table; leave it out"),
        (("run={run}", "protocol.alpha=2"), "protocol.alpha (2.0) must be above 0 and below 1"),
    ],
)
def test_a_users_mistake_is_one_line_before_anything_is_measured(
    arguments: tuple[str, ...], message: str, own_run: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement, "gather_evidence", refuse)
    shutil.copytree(own_run, own_run / "minimal_pair" / "own")
    shutil.copytree(own_run / "minimal_pair" / "own", own_run / "unfinished")
    (own_run / "unfinished" / "model.safetensors").unlink()
    status, _, err = script("report", *(word.format(run=own_run) for word in arguments))
    assert status == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.usefixtures("undrawn")
def test_a_run_trained_on_masked_tokens_gives_no_answers_but_fills_masks_in_the_causal_tests(
    tmp_path: Path, tiny: Callable[..., Any], done: Done
) -> None:
    from anaphora.training.run import train

    arguments = ("task/prediction=none", "task.masked_lm=0.3", "trainer.limit_steps=2")
    run = train(tiny(tmp_path, *arguments))
    done("report", f"run={run}", "items=6", "untrained=0", "sentences=2", "formats=[]")
    content = metrics(run)
    assert content["causal"]["items"] > 0
    assert set(content["maps"]) == {"raw", "norm", "rollout", "flow", "value_zeroing"}
    assert content["languages"]["en"]["task_accuracy"] is None
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "the model gives no answer" in page
    assert "the answer is wrong" not in page and "both the head and the answer" not in page
    assert [(one["answer"], one["right"]) for one in explorer(run / "report.html")["sentences"]] == [(None, None)] * 2


@pytest.mark.usefixtures("undrawn")
def test_a_run_that_can_be_asked_nothing_has_a_report_without_causal_tests(
    own_report: Path, done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing_to_ask(*_: object, **__: object) -> None:
        raise UserError("nothing to ask")

    monkeypatch.setattr(measurement, "run_subject", nothing_to_ask)
    assert "no causal tests: nothing to ask" in done("report", f"run={own_report}", *SMALL, "items=7", "overwrite=true")
    assert "causal" not in metrics(own_report)


def test_a_report_that_fails_half_way_leaves_the_old_page_and_numbers(
    own_report: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in own_report.rglob("*") if path.is_file()}
    monkeypatch.setattr("anaphora.report.page.offline.with_fonts", refuse)  # the last thing before the page is written
    with pytest.raises(AskedError):
        script("report", f"run={own_report}", *SMALL)
    assert {path: path.read_bytes() for path in own_report.rglob("*") if path.is_file()} == before
    monkeypatch.setattr(measurement, "verdict", refuse)
    with pytest.raises(AskedError):
        script("report", f"run={own_report}", *SMALL)
    assert {path: path.read_bytes() for path in own_report.rglob("*") if path.is_file()} == before


NAMES = {"en": (("Anna", "Tom"), ("she", "he")), "zh": (("王芳", "李强"), ("她", "他"))}


def foreign(language: str, number: int, right: int, weights: Callable[[int, int, int], Any]) -> AttentionRecord:
    """Return a sentence of another model; `weights` makes (L, H, T, T) from token count, pronoun and antecedent."""
    (one, two), pronouns = NAMES[language]
    words = ["[CLS]", one, "met" if language == "en" else "碰到", two, "and", pronouns[right], f"{number}", "."]
    blank = " " if language == "en" else ""
    text = blank.join(words[1:])
    spans, at = [(0, 0)], 0
    for word in words[1:]:
        spans.append((at, at + len(word)))
        at += len(word) + len(blank)
    return from_arrays(
        text,
        spans,
        weights(len(words), 5, (1, 3)[right]),
        spans[5],
        [spans[1], spans[3]],
        [right],
        language=language,
        group=f"pair {number}",
        factors={"kind": "set", "type": "gender", "template": f"t{number % 2}"},
    )


def pointing(tokens: int, pronoun: int, antecedent: int) -> Any:
    """Return maps in which head 1 of layer 0 picks the antecedent, and the others are uniform: (2, 2, T, T)."""
    maps = np.full((2, 2, tokens, tokens), 1 / tokens, dtype=np.float32)
    maps[0, 1, pronoun] = 0.1 / (tokens - 1)
    maps[0, 1, pronoun, antecedent] = 0.9
    return maps


def test_maps_of_any_library_go_all_the_way_to_a_page(tmp_path: Path) -> None:
    items = [(language, number, right) for language in NAMES for number in range(8) for right in (0, 1)]
    records = [foreign(*item, pointing) for item in items]
    development, measured = records[::4] + records[1::4], records[2::4] + records[3::4]
    answers = [one.example.antecedents[0] for one in measured]
    answers[0] = 1 - answers[0]
    whole = {0: pointing(8, 5, 1), 5: pointing(8, 5, 1)}
    evidence = report_on_records(
        tmp_path / "page",
        "theirs",
        development,
        measured,
        answers=answers,
        maps=whole,
        training=[one.example for one in development],
    )
    content = evidence.to_json()
    assert content == metrics(tmp_path / "page")
    assert content["head"] == {"layer": 0, "head": 1, "chosen_on": "dev"}
    assert content["languages"]["en"]["candidate_accuracy"] == 1
    assert content["languages"]["en"]["task_accuracy"] == pytest.approx(7 / 8)
    # Of the 2^4 ways to exchange the antecedents of four groups, one is as good; there are two tests.
    assert content["significance"]["zh"]["set"]["p_holm"] == pytest.approx(2 / 2**4, abs=0.02)
    assert evidence.causal is None
    page = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert "theirs" in page and "王芳" in page
    exhibits = explorer(tmp_path / "page" / "report.html")["sentences"]
    assert [one["text"] for one in exhibits] == [measured[0].example.text, measured[5].example.text]
    assert (tmp_path / "page" / "tables" / "verdict_test.csv").stat().st_size


def test_a_report_on_records_of_another_split_leaves_that_on_test_alone(tmp_path: Path) -> None:
    records = [
        foreign(language, number, right, pointing) for language in NAMES for number in (0, 1) for right in (0, 1)
    ]
    for split in ("test", "dev"):
        report_on_records(tmp_path, "theirs", records[:4], records[4:], split=split)
        assert json.loads((tmp_path / metrics_path(Path(), split)).read_text())["split"] == split
    assert metrics(tmp_path)["split"] == "test"
    assert {path.name for path in tmp_path.glob("*.html")} == {"report.html", "report_dev.html"}


def test_the_page_on_maps_of_other_libraries_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "maps.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "theirs.py").write_text("\n".join(blocks), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path("theirs.py")
    assert "not yet controlled" in capsys.readouterr().out
    assert "Anna visited Emma because she was lonely ." in (tmp_path / "sentence.html").read_text(encoding="utf-8")
    page = (tmp_path / "outputs" / "theirs" / "report.html").read_text(encoding="utf-8")
    assert "their model" in page and "No sentences were given." in page


def test_maps_that_do_not_fit_the_records_are_reported(tmp_path: Path) -> None:
    records = [foreign("en", number, right, pointing) for number in range(4) for right in (0, 1)]
    with pytest.raises(UserError, match=r"maps\[0\]: the shape is \(2, 2, 7, 7\); expected \(2, 2, 8, 8\)"):
        report_on_records(tmp_path, "theirs", records[:4], records[4:], maps={0: pointing(7, 5, 1)})
    with pytest.raises(UserError, match="maps: 9 is no measured record; expected 0 to 3"):
        report_on_records(tmp_path, "theirs", records[:4], records[4:], maps={9: pointing(8, 5, 1)})
    assert not list(tmp_path.iterdir())


def test_the_page_is_drawn_in_the_language_of_the_interface(own_report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = []

    def drawn(path: Path, runs: list[ReportRun], title: str, *_: object) -> dict[str, object]:
        pages.append((path.name, spoken_language(), title, len(runs)))
        return {}

    monkeypatch.setattr(pages_of_report, "write_report", drawn)
    asked = Report(run=str(own_report), items=8, untrained=1, sentences=4, interface_language="zh")
    report.report(asked)
    assert pages == [("report.html", "zh", f"代词与先行词：{own_report.name}", 1)]


def test_a_head_that_was_chosen_on_too_few_items_to_tell_heads_apart_is_announced(
    own_report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    headline = headline_of(load(own_report), Scoring(run=str(own_report), items=8), 0, no_progress)
    development = headline.development
    heads = len(development.attending_layers) * development.shape[1]
    capsys.readouterr()
    print_weak_choice(replace(headline, development=development.select(np.arange(2))))
    chance = float(np.prod(development.chance[:2]))
    assert (
        f"chosen on 2 items of the development split: by chance alone, about {heads * chance:.1f} of {heads} heads"
        in (capsys.readouterr().out)
    )
    print_weak_choice(replace(headline, development=development.select(np.arange(2).repeat(10))))
    print_weak_choice(replace(headline, development=development.select(np.arange(2)), head_is_named=True))
    assert not capsys.readouterr().out


@pytest.mark.usefixtures("undrawn")
def test_words_outside_the_vocabulary_are_printed_and_on_the_page(
    own_report: Path, done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "anaphora.analysis.evidence.headline.unread_mentions", lambda *_: UnreadMentions(3, 8, ("张伟",))
    )
    printed = done("report", f"run={own_report}", *SMALL)
    assert "of 8 items, 3 have a pronoun or candidate that is not in the vocabulary: 张伟" in printed
    assert "of 8 items, 3 have a pronoun or candidate with 张伟" in (own_report / "report.html").read_text("utf-8")


@pytest.mark.usefixtures("undrawn")
def test_pages_in_both_languages_are_of_one_measurement_and_link_to_each_other(
    own_report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measurements: list[RunEvidence] = []
    figures: list[Path] = []

    def gathered(*arguments: Any) -> RunEvidence:
        measurements.append(gather_evidence(*arguments))
        return measurements[-1]

    monkeypatch.setattr(measurement, "gather_evidence", gathered)
    monkeypatch.setattr(pages_of_report, "save_figure", lambda figure, stem, formats: figures.append(stem))
    asked = Report(run=str(own_report), items=8, untrained=1, sentences=4, interface_language="both")
    pages = report.report(asked)
    assert pages == [own_report / "report.html", own_report / "report.zh.html"]
    assert len(measurements) == 1
    english, chinese = (page.read_text(encoding="utf-8") for page in pages)
    assert '<html lang="en">' in english and '<html lang="zh">' in chinese
    assert '<a href="report.zh.html" lang="zh" hreflang="zh">中文</a>' in english
    assert '<a href="report.html" lang="en" hreflang="en">English</a>' in chinese
    sentences = [sorted(explorer(page)["sentences"], key=lambda sentence: sentence["id"]) for page in pages]
    assert sentences[0] == sentences[1]
    of_english = [stem.name for stem in figures if not stem.name.endswith(".zh")]
    assert "scoreboard" in of_english
    assert [stem.name for stem in figures] == of_english + [f"{name}.zh" for name in of_english]


@pytest.mark.usefixtures("undrawn")
def test_tables_and_figures_of_an_earlier_report_that_the_new_one_lacks_are_removed(
    own_report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: set[str] = set()
    monkeypatch.setattr(pages_of_report, "save_figure", lambda figure, stem, formats: drawn.add(stem.name))
    settings = Report(run=str(own_report), items=8, untrained=1, sentences=4, formats=["png"])
    run = load(own_report)
    known = gather_evidence(run, settings, lambda stage: None)
    figures = {path.stem for path in (own_report / "figures").iterdir()}
    assert {"knockout", "factors"} <= figures <= set(FIGURES)
    for name in ("figures/mine.png", "figures/row_en_right.png", "tables/mine_test.csv", "tables/divergence_test.csv"):
        (own_report / name).touch()
    less = replace(known, evidence=replace(known.evidence, causal=None, factors=None))
    (own_report / "figures" / "report_dev_knockout.png").touch()  # of a report on another split
    pages_of_report.write_pages([less], settings)
    assert not {"knockout", "factors"} & drawn
    kept = {*drawn & figures, "report_dev_knockout", "mine", "row_en_right"}
    assert {path.stem for path in (own_report / "figures").iterdir()} == kept
    tables = {path.name for path in (own_report / "tables").iterdir()}
    assert {"mine_test.csv", "significance_test.csv", "heads_dev.csv", "scores_test.parquet"} <= tables
    assert not {"factors_test.csv", "knockout_test.csv", "heads_alone_test.csv", "divergence_test.csv"} & tables


@pytest.mark.usefixtures("undrawn")
def test_a_report_in_one_language_leaves_no_outdated_page_in_the_other(own_report: Path) -> None:
    settings = Report(
        run=str(own_report), items=8, untrained=1, sentences=4, interface_language="both", formats=["svg"]
    )
    _, chinese = report.report(settings)
    figures = own_report / "figures"
    mine = figures / "mine.zh.svg"
    mine.touch()
    assert (figures / "scoreboard.zh.svg").exists()
    report.report(replace(settings, interface_language="en"))
    assert not chinese.exists() and list(figures.glob("*.zh.*")) == [mine]
    assert "report.zh.html" not in (own_report / "report.html").read_text(encoding="utf-8")
    chinese.write_text("<html><title>My notes on report.html</title></html>", encoding="utf-8")
    report.report(replace(settings, interface_language="zh"))
    assert chinese.exists()
    report.report(settings)
    dev = figures / "report_dev_scoreboard.zh.svg"  # of a report on another split
    dev.touch()
    report.report(replace(settings, interface_language="en"))
    assert not chinese.exists() and dev.exists() and not (figures / "scoreboard.zh.svg").exists()


def test_a_report_on_records_does_not_replace_what_a_run_has(tmp_path: Path) -> None:
    records = [foreign("en", number, right, pointing) for number in range(4) for right in (0, 1)]
    (tmp_path / "config.yaml").write_text("of a run")
    with pytest.raises(UserError, match="holds the files of a run; the report on theirs needs a folder of its own"):
        report_on_records(tmp_path, "theirs", records[:4], records[4:])
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]
