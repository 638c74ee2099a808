from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import anaphora
from anaphora.base.translation import in_language, spoken_in
from anaphora.explain import EXAMPLES
from anaphora.explain.calculation import walk_through_calculation
from anaphora.explain.matrices import load_example
from anaphora.explain.output import calculated_number, decimals_needed, print_walkthrough

Script = Callable[..., tuple[int, str, str]]
POINTS = "The weights show what this head attends to, not that the answer comes from there."
FOLDER = Path(__file__).parents[2] / "src" / "anaphora" / "explain" / "examples"


def test_the_list_names_every_example_file_and_nothing_else(script: Script) -> None:
    status, out, _ = script("explain", "example=list")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines() if line.split() and line.split()[0] in EXAMPLES] == list(
        EXAMPLES
    )
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(EXAMPLES)
    assert "完整的手算" in script("explain", "example=list", "interface_language=zh")[1]


def test_a_calculation_is_printed_step_by_step(script: Script) -> None:
    status, out, _ = script("explain", "example=by_hand")
    assert status == 0
    for number in ("289.9138", "504.8742", "410", "2e-187".replace("-", "−"), "18   20"):
        assert number in out
    assert "282.84" in out and "Right: 9 × 21 + 13 × 17 = 410." in out


def test_one_row_is_followed_in_every_step(script: Script) -> None:
    assert "Current row: its" in script("explain", "example=starving_kitten", "row=its")[1]
    assert "Current row: garden" in script("explain", "example=starving_kitten", "row=3")[1]


def test_pages_with_other_settings_have_other_names(
    tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for chosen in ((), (), ("row=1",), ("digits=2",)):  # the same command twice
        status, _, err = script("explain", "example=by_hand", "form=page", *chosen)
        assert status == 0, err
    names = {path.name for path in (tmp_path / "outputs" / "explain").iterdir()}
    assert "by_hand_en.html" in names and len(names) == 3


def test_json_holds_every_digit(tmp_path: Path, script: Script) -> None:
    path = tmp_path / "one.json"
    status, out, _ = script("explain", "example=one_query", "form=json", f"output={path}")
    assert status == 0 and str(path) in out
    plain = json.loads(path.read_text(encoding="utf-8"))
    stored = next(step for step in plain["steps"] if step["name"] == "output")["parts"][-1]["values"]
    known = walk_through_calculation(load_example("one_query", "en"))
    np.testing.assert_array_equal(stored, known.step("output").result.values)


def test_a_sentence_of_a_run_is_explained_in_its_own_language(tmp_path: Path, finished: Path, script: Script) -> None:
    arguments = (f"run={finished}", "layer=1", "head=0", "form=page")
    for number, text in enumerate(("text=Anna met Tom before she left.", "text='\"王芳碰到李强以后她走了。\"'")):
        path = tmp_path / f"{number}.html"
        status, _, err = script("explain", text, *arguments, f"output={path}")
        assert status == 0, err
        assert f'<html lang="{("en", "zh")[number]}">' in path.read_text(encoding="utf-8")
    arguments = (f"run={finished}", "layer=1", "head=0", "form=terminal")
    status, out, _ = script(
        *("explain", "text=Anna met Tom before she left.", "pronoun=she", "candidates=[Anna,Tom]"),
        *("interface_language=zh", *arguments),
    )
    assert status == 0 and "模型的回答" in out and "当前行：she" in out


def test_the_variable_names_the_language_of_an_explanation_unless_the_setting_does(
    finished: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANAPHORA_LANGUAGE", "zh")
    arguments = ("text=Anna met Tom before she left.", "pronoun=she", f"run={finished}", "layer=1", "head=0")
    for setting, language in (((), "zh"), (("interface_language=en",), "en")):
        status, out, err = script("explain", *arguments, *setting)
        assert status == 0 and in_language("What “{word}” attends to", language).format(word="she") in out, err


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_sentence_is_answered_in_short_with_the_heaviest_weights_of_the_pronoun(
    language: str, finished: Path, script: Script
) -> None:
    text = "Anna met Tom before she left."
    arguments = (f"run={finished}", "layer=1", "head=0", f"interface_language={language}", f"text={text}")
    status, out, err = script("explain", *arguments, "pronoun=she", "candidates=[Anna,Tom]")
    assert status == 0, err
    assert len(out.splitlines()) < 25
    walk = anaphora.load(finished).explain(text, "she", ["Anna", "Tom"], layer=1, head=0, language=language)
    answer, weights = (walk.step("answer").result, walk.step("weights").result)
    shares = {label: float(weights.values[walk.row, list(columns)].sum()) for label, columns in walk.units}
    for title, weighed in (
        (in_language("The model’s answer", language), dict(zip(answer.columns, answer.values[0], strict=True))),
        (in_language("What “{word}” attends to", language).format(word="she"), shares),
    ):
        best = max(weighed, key=weighed.__getitem__)
        line = out.split(f"{title}\n")[1].splitlines()[0]
        assert line.split()[:2] == [best, f"{weighed[best]:.4f}"]
    assert in_language(POINTS, language) in out


def test_a_sentence_without_candidates_shows_the_weights_of_its_last_pronoun_alone(
    finished: Path, script: Script
) -> None:
    text = "text=Tom lost his map when she left."
    status, out, _ = script("explain", text, f"run={finished}", "layer=0", "head=0")
    assert status == 0 and "What “she” attends to" in out and "pronoun=his chooses another" in out
    assert "The model’s answer" not in out and POINTS not in out


def test_a_candidate_with_a_line_break_stays_on_one_line(finished: Path, script: Script) -> None:
    question = ("text=Anna\nBell met Tom because she left .", "pronoun=she", "candidates=[Anna\nBell,Tom]")
    _, out, _ = script("explain", *question, f"run={finished}", "layer=0", "head=0")
    assert "Anna Bell  0." in out


def test_a_sentence_without_a_pronoun_needs_a_pronoun_or_a_row(finished: Path, script: Script) -> None:
    question = ("explain", "text=Anna met Tom.", f"run={finished}", "layer=0", "head=0")
    status, _, err = script(*question)
    assert status == 2 and "no English or Chinese third-person pronoun" in err and len(err.splitlines()) == 1
    for named in ("pronoun=Tom", "row=Tom"):
        status, out, _ = script(*question, named)
        assert status == 0 and "What “Tom” attends to" in out


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", ["starving_kitten", "skipped_soup", "apple_to_eat", "apple_to_charge"])
def test_the_sentence_of_an_example_may_be_walked_through_in_a_run(
    name: str, language: str, finished: Path, tmp_path: Path, script: Script
) -> None:
    arguments = (f"example={name}", f"run={finished}", "layer=0", "head=0", f"interface_language={language}")
    path = tmp_path / "walk.json"
    status, _, err = script("explain", *arguments, "form=json", f"output={path}")
    assert status == 0, err
    text = load_example(name, language).sentence["text"]
    title = in_language("Layer {layer}, head {head}: {text}", language).format(layer=0, head=0, text=text)
    assert json.loads(path.read_text(encoding="utf-8"))["title"] == title
    if name == "apple_to_eat":  # printing all of the steps takes longest
        status, out, err = script("explain", *arguments)
        assert status == 0, err
        assert "".join(title.split()) in "".join(out.split())


def test_ones_own_matrices_are_explained(tmp_path: Path, script: Script) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("title: Mine\nX: [[1, 0], [0, 2]]\nW_V: [[3], [4]]\ntokens: ['[b]', c]\n", encoding="utf-8")
    status, out, err = script("explain", f"matrices={path}")
    assert status == 0, err
    assert "Mine" in out and "[b]" in out and "There is no W_Q here" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one of example=, matrices= and text=, not none"),
        (("example=by_hand", "text=she"), "not example and text"),
        (("example=dinner",), "example ('dinner') must be one of list, matrix_form"),
        (("example=by_hand", "form=book"), "form ('book') must be one of short, terminal, page, json"),
        (("example=by_hand", "interface_language=de"), "interface_language ('de') must be one of en, zh"),
        (("example=by_hand", "digits=99"), "digits (99) must be from 0 to 15"),
        (("example=by_hand", "layer=1"), "layer needs a run"),
        (("example=by_hand", "head=1"), "head (1) must be below heads (1)"),
        (("example=by_hand", "row=D"), "row ('D') must be one of A, B, C"),
        (("example=by_hand", "run={run}"), "by_hand has none"),
        (("example=by_hand", "pronoun=she"), "pronoun ('she') needs text=..."),
        (("example=by_hand", "candidates=[a]"), "candidates (['a']) needs text=..."),
        (
            ("example=by_hand", "output=x.html"),
            "output (x.html) is the file of a page or of JSON; form=terminal prints",
        ),
        (("text=she", "output=x.html"), "output (x.html) is the file of a page or of JSON; form=short prints to the"),
        (("text=she", "form=terminal", "output=x.json"), "form=terminal prints to the terminal, so set form=page"),
        (("matrices=/nowhere.yaml",), "/nowhere.yaml: there is no such file"),
        (("matrices=a.yaml", "run=b"), "run works with a text or an example"),
        (("text=she", "run=/nowhere"), "/nowhere/config.yaml: there is no run here"),
    ],
)
def test_a_wrong_question_is_one_line_and_exit_status_2(
    arguments: tuple[str, ...], message: str, tmp_path: Path, script: Script
) -> None:
    (tmp_path / "config.yaml").touch()
    status, out, err = script("explain", *(word.format(run=tmp_path) for word in arguments))
    assert status == 2 and out in ("", f"run: {tmp_path}\n")
    assert err.startswith("error: ") and err.count("\n") == 1 and message in err


def test_a_run_without_a_chosen_head_says_how_to_choose_one(finished: Path, script: Script) -> None:
    status, _, err = script("explain", "text=she left", f"run={finished}")
    assert status == 2 and "name one with layer=... head=..." in err


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [(0.0, 4, "0"), (1.0, 0, "1"), (-0.25, 2, "−0.25"), (2e-15, 4, "2e−15"), (1e12, 2, "1e12"), (0.00005, 4, "0.0001")],
)
def test_a_number_is_never_a_plain_zero_unless_it_is_one(value: float, places: int, text: str) -> None:
    assert calculated_number(value, places) == text


def test_a_matrix_has_as_many_digits_everywhere_as_its_longest_number_needs() -> None:
    assert decimals_needed(np.array([[1.0, 20.0]]), 4) == 0
    assert decimals_needed(np.array([[0.5, 0.25, 1.0, 1e-20]]), 4) == 2
    assert decimals_needed(np.array([[1 / 3, 1.0]]), 4) == 4


@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_width_of_terminal_shows_every_step(width: int) -> None:
    console = Console(width=width, file=io.StringIO())
    with spoken_in("zh"):
        walk = walk_through_calculation(load_example("starving_kitten", "zh"))
        print_walkthrough(console, walk, 4)
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert all(step.title[:6] in printed for step in walk.steps)
    assert max(len(line) for line in printed.splitlines()) <= width
