from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from matplotlib.text import Text

import anaphora
from anaphora.analysis.results.scores import Head
from anaphora.api import OpenRun, SentenceAttention
from anaphora.api.row import positions_of
from anaphora.base.errors import UserError
from anaphora.report.figures.sheet import NotebookFigure
from anaphora.runs.directory import RunFiles, save_weights
from anaphora.runs.shipped import SHIPPED
from anaphora.settings.model.prediction import Label

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
TEXT = "Anna met Tom before she went to the park."


@pytest.fixture
def scored(own_run: Path) -> OpenRun:
    """Return a run whose chosen head is head 0 of layer 1."""
    metrics = {"head": {"layer": 1, "head": 0, "chosen_on": "dev"}}
    (own_run / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
    return anaphora.load(own_run)


@pytest.fixture(scope="module")
def unscored(finished: Path) -> OpenRun:
    return anaphora.load(finished)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, anaphora; print([name for name in ('torch', 'numpy', 'pandas', 'hydra') if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="no attribute 'unload'"):
        anaphora.unload  # noqa: B018


def test_the_axes_name_what_the_weights_hold(unscored: OpenRun) -> None:
    attention = unscored.attention(TEXT)
    assert [len(labels) for labels in attention.axes.values()] == list(attention.weights.shape)
    assert list(attention.axes) == ["layer", "head", "from", "to"]
    assert attention.words == ("[CLS]", *TEXT[:-1].split(), ".")
    np.testing.assert_allclose(attention.weights.sum(axis=-1), 1, atol=1e-5)
    assert (unscored.layers, unscored.heads) == attention.weights.shape[:2] == (2, 2)


def test_numpy_reads_maps_and_rows_as_their_weights(scored: OpenRun) -> None:
    attention = scored.attention(TEXT)
    row = attention.row("she")
    for shown, weights in ((attention, attention.weights), (row, row.weights)):
        np.testing.assert_array_equal(np.asarray(shown), weights)
        assert np.shares_memory(np.asarray(shown), weights)
        assert not np.shares_memory(np.array(shown), weights)
        assert np.asarray(shown, dtype=np.float64).dtype == np.float64
        with pytest.raises(ValueError, match="copy"):
            np.asarray(shown, dtype=np.float64, copy=False)
    assert np.asarray([row, attention.row("Tom")]).shape == (2, len(row.words))


def test_words_merge_the_subwords_and_tokens_do_not(unscored: OpenRun) -> None:
    text = "Tom met Mariam."
    words, tokens = (unscored.attention(text, by=unit) for unit in ("word", "token"))
    assert words.words == ("[CLS]", "Tom", "met", "Mariam", ".")
    assert len(tokens.words) > len(words.words)
    subwords = [number for number, (start, end) in enumerate(tokens.spans) if start >= 8 and end <= 14 and start < end]
    np.testing.assert_allclose(words.map(1, 0)[1, 3], tokens.map(1, 0)[1, subwords].sum(), atol=1e-6)


def test_a_row_is_found_by_word_position_or_characters(scored: OpenRun) -> None:
    attention = scored.attention("Tom met Anna and Tom met Mary.")
    np.testing.assert_array_equal(attention.row("anna").weights, attention.weights[1, 0, 3])
    np.testing.assert_array_equal(attention.row("Tom").weights, attention.weights[1, 0, 1])
    np.testing.assert_array_equal(attention.row("17:20").weights, attention.weights[1, 0, 5])
    np.testing.assert_array_equal(attention.row("Tom:2").weights, attention.weights[1, 0, 5])
    with pytest.raises(UserError, match=r"word \('Tom:3'\): 'Tom' appears 2 times in the text"):
        attention.row("Tom:3")
    np.testing.assert_array_equal(attention.row(5, layer=0, head=1).weights, attention.weights[0, 1, 5])
    np.testing.assert_array_equal(attention.row("Tom", head=1).weights, attention.weights[1, 1, 1])
    chinese = scored.attention("王芳碰到李强以后,她去了商店。")
    assert chinese.row("她").word == "她"


@pytest.mark.parametrize(
    ("mention", "text", "words", "positions"),
    [
        ("in", "Berlin in", ("[CLS]", "Berl", "in", "in"), [3]),
        ("Berlin", "in Berlin", ("[CLS]", "in", "Berl", "in"), [2, 3]),
        ("the", "The cat saw the dog", ("[CLS]", "The", "cat", "saw", "the", "dog"), [4]),
        ("iPhone", "她有iPhone机", ("[CLS]", "她", "有", "iPhone", "机"), [3]),
        ("s", "Anna's", ("[CLS]", "Anna", "'", "s"), [3]),
        ("[CLS]", "in", ("[CLS]", "in"), [0]),
        (np.int64(1), "in", ("[CLS]", "in"), [1]),
    ],
)
def test_a_word_is_never_taken_for_the_subword_of_another(
    mention: str | int, text: str, words: tuple[str, ...], positions: list[int]
) -> None:
    spans, start = [(0, 0)], 0
    for word in words[1:]:
        start = text.index(word, start)
        spans.append((start, start + len(word)))
        start += len(word)
    assert positions_of(mention, text, words, spans) == positions
    with pytest.raises(UserError, match=r"word \('erl'\) is not in the text"):
        positions_of("erl", "Berlin", ("B", "erl", "in"), [(0, 1), (1, 4), (4, 6)])


@pytest.mark.parametrize("unit", ["word", "token"])
@pytest.mark.parametrize(
    ("text", "mention"),
    [("The old man met Mariam before he left.", "the old man"), ("王芳碰到李强以后,她去了商店。", "李强以后")],
)
def test_the_row_of_a_mention_is_the_mean_of_its_words_and_the_weight_on_it_their_sum(
    text: str, mention: str, unit: str, scored: OpenRun
) -> None:
    attention = scored.attention(text, by=unit)
    start = text.lower().index(mention)
    end = start + len(mention)
    covered = [position for position, (left, right) in enumerate(attention.spans) if start <= left < right <= end]
    assert len(covered) > 1
    for name in (mention, f"{start}:{end}"):
        row = attention.row(name)
        assert row.positions == tuple(covered) and row.word == text[start:end]
        np.testing.assert_allclose(row.weights, attention.map()[covered].mean(axis=0), rtol=1e-6)
        assert row.weights.sum() == pytest.approx(1, abs=1e-5)
        assert row.to(name) == pytest.approx(row.weights[covered].sum())
    other = attention.row(0)
    assert other.to(mention) == pytest.approx(attention.map()[0, covered].sum())
    assert other.to(covered[0]) == attention.map()[0, covered[0]]


def test_the_row_of_a_word_is_the_mean_of_its_subwords(scored: OpenRun) -> None:
    text = "Tom met Mariam."
    tokens = scored.attention(text, by="token").row("Mariam")
    assert len(tokens.positions) > 1 and tokens.word == "Mariam"
    words = scored.attention(text).row("Mariam")
    assert words.to("Mariam") == pytest.approx(tokens.to("Mariam"), abs=1e-6)
    assert words.to("met") == pytest.approx(tokens.to("met"), abs=1e-6)


def test_pictures_of_a_mention_frame_all_its_words(scored: OpenRun) -> None:
    attention = scored.attention("The old man met Mariam before he left.")
    frames = [patch for patch in attention.plot(row="The old man").findobj(Rectangle) if patch.get_width() == 10]
    assert [(frame.get_y(), frame.get_height()) for frame in frames] == [(1, 3)]
    texts = {text.get_text() for text in attention.row("The old man").plot().findobj(Text)}
    assert {"The", "old", "man"} <= texts


def test_pictures_mark_the_named_candidates_and_call_no_other_word_a_pronoun(scored: OpenRun) -> None:
    attention = scored.attention(TEXT, "she", ["Anna", "Tom"], antecedent="Anna")
    for figure in (attention.plot(), attention.plot(row="she"), attention.row("she").plot()):
        assert {"pronoun", "antecedent", "other candidate"} <= {text.get_text() for text in figure.findobj(Text)}
    for figure in (attention.plot(row="Tom"), attention.row("Tom").plot(), scored.attention(TEXT).row("Tom").plot()):
        texts = {text.get_text() for text in figure.findobj(Text)}
        assert "attending word" in texts and not {"pronoun", "antecedent"} & texts


def test_what_is_no_text_no_list_and_no_page_is_refused_in_one_line(unscored: OpenRun, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"candidates \('Anna'\) must be a list of words of the text"):
        unscored.attention(TEXT, "she", "Anna")
    with pytest.raises(UserError, match=r"text \(\['Anna left.'\]\) must be a string: one text at a time"):
        anaphora.attention(unscored, ["Anna left."])  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"path \(.*page\.pdf\) must end in one of .html, .htm"):
        unscored.attention(TEXT).page(tmp_path / "page.pdf")


def test_a_name_opens_what_lies_there_now(own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def weights(name: str | Path) -> Any:
        return anaphora.attention(name, TEXT).weights

    other = Path(shutil.copytree(own_run, tmp_path / "other" / "own"))
    save_weights(RunFiles(other).weights, anaphora.load(other).run.untrained_model(1), RunFiles(other).tokenizer)
    monkeypatch.chdir(tmp_path)
    trained = weights("own")
    monkeypatch.chdir(tmp_path / "other")
    assert not np.array_equal(weights("own"), trained)
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(weights("own"), trained)
    shutil.copy(RunFiles(other).weights, RunFiles(own_run).weights)
    np.testing.assert_array_equal(weights("own"), weights(other))
    assert anaphora.api.models.open_any("own") is anaphora.api.models.open_any("own")


def test_the_heaviest_words_come_first(scored: OpenRun) -> None:
    row = scored.attention(TEXT).row("she")
    top = row.top(3)
    assert len(top) == 3 and [weight for _, weight in top] == sorted(row.weights.tolist(), reverse=True)[:3]
    assert row.words[int(row.weights.argmax())] == top[0][0]
    assert row.head == Head(1, 0)


def test_an_error_names_what_is_not_there(scored: OpenRun, unscored: OpenRun) -> None:
    attention = scored.attention(TEXT)
    for query, message in (
        (lambda: attention.row("dinner"), r"word \('dinner'\) is not in the text"),
        (lambda: attention.row("4:5"), r"word \(4:5\) covers no word"),
        (lambda: attention.row("she").to("dinner"), r"word \('dinner'\) is not in the text"),
        (lambda: attention.row(99), r"word \(99\) must be a position from 0 to 10"),
        (lambda: attention.row("she", layer=2), r"layer \(2\) must be from 0 to 1"),
        (lambda: attention.map(head=5), r"head \(5\) must be from 0 to 1"),
        (lambda: unscored.attention(TEXT).row("she"), "no head has been chosen on a development split; give"),
        (lambda: scored.attention(TEXT, by="letter"), r"by \('letter'\) must be one of word, token"),
        (lambda: scored.attention("Anna left.", candidates=["Anna"]), "no English or Chinese third-person pronoun"),
        (lambda: scored.answer(TEXT, "she", []), "candidates are missing: name what the pronoun may refer to"),
        (lambda: scored.answer(TEXT), "candidates are missing"),
        (lambda: scored.answer("Anna left."), "candidates are missing"),
        (lambda: anaphora.load("/nowhere"), "there is no run here"),
        (lambda: anaphora.load(__file__), "there is no run here"),
    ):
        with pytest.raises(UserError, match=message):
            query()
    assert unscored.chosen_head is None
    assert unscored.attention(TEXT).row("she", layer=0, head=1).head == Head(0, 1)


def test_arguments_of_another_type_are_refused_by_their_name_and_a_tuple_is_a_list(
    scored: OpenRun, tmp_path: Path
) -> None:
    attention = scored.attention(TEXT, "she", ("Anna", "Tom"), antecedent="Anna")
    assert attention.example == scored.attention(TEXT, "she", ["Anna", "Tom"], antecedent="Anna").example
    run: Any = scored
    maps: Any = attention
    row: Any = attention.row("she")
    for query, message in (
        (lambda: run.attention(None), "text (None) must be a string"),
        (lambda: run.answer(["a"], "she", ["Anna"]), "text (['a']) must be a string"),
        (lambda: run.attribution(" ", "she", ["Anna"]), "text: it is empty"),
        (lambda: run.attention(TEXT, 5), "pronoun (5) must be a string: a word of the text, or a range of characters"),
        (lambda: run.attention(TEXT, "she", None), "candidates (None) must be a list of words of the text"),
        (lambda: run.answer(TEXT, "she", [(0, 4)]), "candidates ([(0, 4)]) must be a list of words of the text"),
        (lambda: run.explain(TEXT, language="fr"), "language ('fr') must be one of en, zh"),
        (lambda: maps.map(0.7), "layer (0.7) must be a whole number"),
        (lambda: run.explain(TEXT, head="1"), "head ('1') must be a whole number"),
        (lambda: maps.row(None), "word (None) must be a word of the text, its characters as '0:4', or its position"),
        (lambda: maps.rank("she", True), "word (True) must be a word of the text"),
        (lambda: maps.window("she", -1), "around (-1) must be at least 0"),
        (lambda: maps.page(5), "path (5) must be a path"),
        (lambda: maps.save(None), "path (None) must be a path"),
        (lambda: row.to(["Anna"]), "word (['Anna']) must be a word of the text"),
        (lambda: row.top(-1), "count (-1) must be at least 0"),
        (lambda: row.top("3"), "count ('3') must be a whole number"),
        (lambda: anaphora.load(None), "directory (None) must be a path"),  # type: ignore[arg-type]
    ):
        with pytest.raises(UserError, match=re.escape(message)):
            query()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("items", "10", "items ('10') must be a whole number"),
        ("items", 0, "items (0) must be at least 1"),
        ("causal_items", None, "causal_items (None) must be a whole number"),
        ("untrained", -1, "untrained (-1) must be at least 0"),
        ("untrained", True, "untrained (True) must be a whole number"),
    ],
)
def test_a_number_of_scores_is_checked_before_any_work(name: str, value: Any, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        anaphora.score("/nowhere", **{name: value})


def test_the_table_holds_every_weight_once(scored: OpenRun) -> None:
    attention = scored.attention("Tom met Anna.")
    frame = attention.frame()
    assert len(frame) == attention.weights.size
    one = frame[(frame.layer == 1) & (frame["head"] == 0) & (frame["from"] == "Tom") & (frame["to"] == "Anna")]
    assert one["weight"].tolist() == [attention.weights[1, 0, 1, 3]]


def test_what_a_notebook_shows_is_small_and_escaped(scored: OpenRun) -> None:
    attention = scored.attention("Tom <script> met & Anna.")
    for html in (attention._repr_html_(), attention.row("Tom")._repr_html_()):
        assert "<script>" not in html and "&lt;" in html and "&amp;" in html
    long = scored.attention("Tom met Anna. " * 30)._repr_html_()
    assert len(long) < 60_000 and "the first 24 of 121 words" in long
    assert "2 layers x 2 heads" in repr(attention) and repr(scored) == "<run own: 2 layers of 2 heads>"
    assert "attends to" in repr(attention.row("Tom"))


def test_what_is_printed_of_a_sentence_is_chinese_if_the_interface_is(
    scored: OpenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANAPHORA_LANGUAGE", "zh")
    attention = scored.attention(TEXT)
    assert repr(attention.row("she")).startswith("<“she”关注：")
    assert "2 层 × 2 头" in repr(attention) and repr(scored) == "<模型 own：2 层，每层 2 个头>"


def test_pictures_are_figures_of_the_words(scored: OpenRun) -> None:
    attention = scored.attention(TEXT)
    for figure in (attention.plot(row="she"), attention.row("she").plot()):
        texts = {text.get_text() for text in figure.findobj(Text)}
        assert {"Anna", "she"} <= texts


@pytest.mark.parametrize("text", [TEXT, "小红见到美玲以后，她走了。"])
def test_a_notebook_shows_a_picture_with_all_of_its_characters(
    text: str, scored: OpenRun, recwarn: pytest.WarningsRecorder
) -> None:
    figure = scored.attention(text).plot()
    assert isinstance(figure, NotebookFigure)
    data, size = figure._repr_png_()
    assert data.startswith(b"\x89PNG") and int.from_bytes(data[16:20], "big") == pytest.approx(2 * size["width"], abs=2)
    assert not [one for one in recwarn if "Glyph" in str(one.message)]


def test_the_answer_and_the_walk_are_the_models_own(scored: OpenRun) -> None:
    answer = scored.answer(TEXT, "she", ["Anna", "Tom"])
    walk = scored.explain(TEXT, "she", ["Anna", "Tom"])
    assert f"The model answers: {answer}." in walk.about
    attention = scored.attention(TEXT, "she", ["Anna", "Tom"], by="token")
    np.testing.assert_allclose(walk.step("weights").result.values, attention.map(), atol=1e-5)


def test_a_run_that_labels_texts_names_its_prediction_head_when_it_is_asked_for_an_answer(unscored: OpenRun) -> None:
    config = unscored.run.config
    task = SimpleNamespace(prediction=Label(labels=["good", "bad"]), masked_lm=0.0)
    labelling: Any = SimpleNamespace(task=task, data=config.data, batching=config.batching, model=config.model)
    run = OpenRun(replace(unscored.run, config=labelling))
    with pytest.raises(UserError, match=r"this run answers no pronoun question \(task.prediction=label\)"):
        run.answer(TEXT, "she", ["Anna", "Tom"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_runs_with_the_run_inside_the_package_and_is_stored_without_output(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANAPHORA_LANGUAGE", "")  # the Chinese notebook sets it; afterwards it is as before
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    codes = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(codes) > 5 and not any(cell["outputs"] or cell["execution_count"] for cell in codes)
    names: dict[str, Any] = {}
    for cell in codes:
        exec("".join(cell["source"]), names)
    assert names["run"].run.name == SHIPPED
    assert isinstance(names["attention"], SentenceAttention)
    assert names["row"].top(1)[0][0] in names["names"], "the row names whole words"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_installs_the_package_in_colab_and_nowhere_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code")
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: commands.append(command[-2:]))
    exec("".join(first["source"]), {})
    assert commands == []
    monkeypatch.setitem(sys.modules, "google.colab", sys)
    exec("".join(first["source"]), {})
    assert commands == [["--quiet", "git+https://github.com/OWNER/anaphora"]]


def test_both_notebooks_do_the_same() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first_look_en", "first_look_zh"]
    kinds = [[cell["cell_type"] for cell in json.loads(path.read_text("utf-8"))["cells"]] for path in NOTEBOOKS]
    assert kinds[0] == kinds[1]


def test_the_python_lines_of_the_docs_run(scored: OpenRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "explain.md").read_text("utf-8"), re.DOTALL)
    monkeypatch.setattr("anaphora.api.load", lambda _: scored)
    monkeypatch.chdir(tmp_path)
    exec(block, {})
    assert (tmp_path / "she.png").stat().st_size > 500
