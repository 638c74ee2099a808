from __future__ import annotations

import base64
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from chromium import in_browser
from fontTools.ttLib import TTFont

from anaphora.base.translation import spoken_in
from anaphora.explain.calculation import walk_through_calculation
from anaphora.explain.matrices import load_example
from anaphora.explain.output import write_walkthrough_page
from anaphora.explain.walk import Erratum, Matrix, Step, Walkthrough

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\u2028'\"&"


def written(folder: Path, walk: Walkthrough, digits: int = 4) -> str:
    write_walkthrough_page(folder / "walk.html", walk, digits)
    return (folder / "walk.html").read_text(encoding="utf-8")


def walk(name: str, language: str) -> Walkthrough:
    with spoken_in(language):
        return walk_through_calculation(load_example(name, language))


def by_hand(language: str = "en") -> Walkthrough:
    return walk("by_hand", language)


def hostile() -> Walkthrough:
    part = Matrix(HOSTILE, np.ones((1, 2)), (HOSTILE,), (HOSTILE, "b"), ("tokens", "tokens"))
    step = Step("inputs", HOSTILE, HOSTILE, (part,), (Erratum(HOSTILE, HOSTILE),))
    return Walkthrough("x", HOSTILE, HOSTILE, "en", (HOSTILE,), 0, (step,), (HOSTILE,))


def stored(html: str) -> dict[str, object]:
    match = re.search(r'<script type="application/json" id="walk">(.*?)</script>', html, re.DOTALL)
    assert match is not None
    return dict(json.loads(match[1]))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_outside_the_page_is_asked_for(language: str, tmp_path: Path) -> None:
    html = written(tmp_path, by_hand(language))
    assert (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; font-src data:"
        in html
    )
    assert not re.search(r"https?:|//cdn|@import| src=", html)
    script = html[html.rindex("<script>") :]
    assert not re.search("innerHTML|outerHTML|insertAdjacentHTML|document.write|eval|Function", script)
    assert f'<html lang="{language}">' in html
    assert len(html) < 250_000


def test_text_is_text_wherever_it_stands(tmp_path: Path) -> None:
    html = written(tmp_path, hostile())
    assert html.count("<script") == 2 and "<img" not in html and "\u2028" not in html.split('id="walk">')[1]
    steps = stored(html)["steps"]
    assert isinstance(steps, list) and steps[0]["title"] == HOSTILE


def test_the_page_holds_every_step_in_the_numbers_of_the_walk(tmp_path: Path) -> None:
    walk = by_hand()
    steps = stored(written(tmp_path, walk))["steps"]
    assert isinstance(steps, list)
    assert [step["name"] for step in steps] == [step.name for step in walk.steps]
    values = next(step for step in steps if step["name"] == "scale")["parts"][-1]["values"]
    np.testing.assert_allclose(values, walk.step("scale").result.values, rtol=1e-6)
    exact = next(step for step in stored(written(tmp_path, walk, 12))["steps"] if step["name"] == "scale")  # type: ignore[attr-defined]
    np.testing.assert_allclose(exact["parts"][-1]["values"], walk.step("scale").result.values, rtol=1e-14)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_letter_and_digit_has_a_glyph_inside_the_page(language: str, tmp_path: Path) -> None:
    html = written(tmp_path, walk("starving_kitten", language))
    faces = re.findall(r"font-weight:(\d+);src:url\(data:font/woff;base64,([^)]*)\)", html)
    assert [weight for weight, _ in faces] == ["400", "700"]
    chinese = {ord(character) for character in html if "\u4e00" <= character <= "\u9fff"}
    assert (len(chinese) > 100) == (language == "zh")
    used = chinese | set(b"ABCXYZabcxyz0123456789")
    for _, data in faces:
        assert used <= set(TTFont(io.BytesIO(base64.b64decode(data))).getBestCmap())


def rendered(path: Path, view: str = "") -> str:
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=2000", f"file://{path}{view}"],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    return done.stdout


def element(html: str, name: str) -> str:
    match = re.search(rf'<(\w+)[^>]* id="{name}"[^>]*>(.*?)</\1>', html, re.DOTALL)
    assert match is not None
    return re.sub("<[^>]*>", "", match[2])


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_an_address_opens_a_step_and_a_cell_is_spelled_out(tmp_path: Path) -> None:
    write_walkthrough_page(tmp_path / "walk.html", by_hand(), 4)
    html = rendered(tmp_path / "walk.html", "#step=5&row=1")
    assert element(html, "count") == "5 / 11"
    assert element(html, "said").startswith("S[B, C] = 9 × 21 + 13 × 17 = 410")
    assert html.count("<canvas") == 3
    assert "9 × 21 + 13 × 17 = 410." in html and "A slip in the published calculation" in html


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_arrow_keys_and_buttons_go_forward_and_back(tmp_path: Path) -> None:
    write_walkthrough_page(tmp_path / "walk.html", by_hand(), 4)
    presses = "".join(
        f"dispatchEvent(new KeyboardEvent('keydown',{{key:'{key}'}}));"
        for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowDown", "ArrowUp")
    )
    html = (tmp_path / "walk.html").read_text(encoding="utf-8")
    pressed = f"<script>{presses}document.getElementById('next').click();</script></body>"
    (tmp_path / "walk.html").write_text(html.replace("</body>", pressed), encoding="utf-8")
    html = rendered(tmp_path / "walk.html")
    assert element(html, "count") == "4 / 11"
    assert re.search(r'aria-checked="true"[^>]*>B<', html)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_the_focus_goes_with_the_current_row(tmp_path: Path) -> None:
    body = """
      const row = () => document.querySelector('#rows [aria-checked="true"]'), before = row().textContent;
      row().focus();
      row().dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
      return [before !== row().textContent, document.activeElement === row(), row().lang];
    """
    assert in_browser(written(tmp_path, by_hand()), body, {"early": True}, tmp_path) == [True, True, "en"]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_keys_move_in_a_focused_matrix_and_say_each_number(tmp_path: Path) -> None:
    write_walkthrough_page(tmp_path / "walk.html", by_hand(), 4)
    presses = "".join(
        f"result().dispatchEvent(new KeyboardEvent('keydown',{{key:'{key}',bubbles:true}}));"
        for key in ("ArrowDown", "End", "ArrowLeft", "Enter")
    )
    html = (tmp_path / "walk.html").read_text(encoding="utf-8")
    result = "const result=()=>[...document.querySelectorAll('#stage canvas')].at(-1);result().focus();"
    moved = f"<script>{result}{presses}</script></body>"
    (tmp_path / "walk.html").write_text(html.replace("</body>", moved), encoding="utf-8")
    html = rendered(tmp_path / "walk.html", "#step=5&row=0")
    assert element(html, "count") == "5 / 11"
    assert element(html, "said").startswith("S[B, B] = 9 × 13 + 13 × 9 = 234")
    assert re.search(r'aria-checked="true"[^>]*>B<', html)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_each_matrix_states_the_range_of_its_colours(tmp_path: Path) -> None:
    write_walkthrough_page(tmp_path / "walk.html", by_hand(), 4)
    html = rendered(tmp_path / "walk.html", "#step=5")
    assert re.findall(r'class="range">([^<]*)<', html) == ["0 … 21", "0 … 21", "0 … 714"]
    assert "below zero" not in element(html, "key")
    shifted = rendered(tmp_path / "walk.html", "#step=7")
    assert "below zero" in element(shifted, "key")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_heads_whose_largest_weights_are_tied_name_no_single_word(tmp_path: Path) -> None:
    rows = {"one": [0.1, 0.6, 0.3], "two": [0.4, 0.2, 0.4], "all": [1 / 3, 1 / 3, 1 / 3]}
    axes = ("tokens", "tokens")
    parts = [Matrix(name, np.array([row]), ("x",), ("a", "b", "c"), axes, True, True) for name, row in rows.items()]
    compared = Walkthrough("x", "x", "x", "en", ("x",), 0, (Step("heads", "x", "x", tuple(parts)),))
    write_walkthrough_page(tmp_path / "walk.html", compared, 4)
    assert element(rendered(tmp_path / "walk.html"), "most") == (
        "Largest of the current row: one b 0.6, two a / c 0.4, all a / b / … 0.3333"
    )


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
@pytest.mark.parametrize(("words", "order"), [(("قال", "محمد", "."), -1), (("Tom", "محمد", "."), 1)])
def test_rows_are_chosen_in_the_direction_of_their_script(words: tuple[str, ...], order: int, tmp_path: Path) -> None:
    weights = Matrix("A", np.eye(4), ("[CLS]", *words), ("a", "b", "c", "d"), ("tokens", "features"))
    walk = Walkthrough("x", "x", "x", "en", ("[CLS]", *words), 0, (Step("weights", "x", "x", (weights,)),))
    body = 'return [...at("rows").querySelectorAll("button")].map((one) => one.getBoundingClientRect().left);'
    places = in_browser(written(tmp_path, walk), body, {"early": True}, tmp_path)
    assert places == sorted(places, reverse=order < 0) and len(set(places)) == 4


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_matrices_that_fit_in_one_line_stand_in_one_line(tmp_path: Path) -> None:
    body = """for (let step = 0; step < 4; step++) at("next").click();
    return [...document.querySelectorAll("#stage figure")].map((one) => one.getBoundingClientRect().top);"""
    tops = in_browser(written(tmp_path, by_hand()), body, {"early": True}, tmp_path, "--window-size=900,700")
    assert len(tops) == 3 and len(set(tops)) == 1


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_hostile_text_is_shown_and_not_run(tmp_path: Path) -> None:
    write_walkthrough_page(tmp_path / "walk.html", hostile(), 4)
    html = rendered(tmp_path / "walk.html")
    assert "<title>owned" not in html and "<img" not in html
    assert element(html, "count") == "1 / 1"
