from __future__ import annotations

import base64
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path

import numpy as np
import pytest
from fontTools.pens.recordingPen import RecordingPen
from fontTools.ttLib import TTFont
from matplotlib import font_manager
from matplotlib.figure import Figure

from anaphora.base.translation import spoken_in
from anaphora.data.own_sentence import example_from_query
from anaphora.report.figures import fonts, maps
from anaphora.report.figures.style import figure_style
from anaphora.report.page.offline import FONT_MARK, with_fonts
from anaphora.training.tensorboard import pictures as probe_pictures

ROOT = Path(__file__).parents[2]
HIEROGLYPH = "\U00013000"
RARE, FURTHER = "喆", "𠮷"
"""Characters in names that are not in GB 2312."""


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reset the set of characters, as in a new process."""
    monkeypatch.setattr(fonts, "_reported", set())
    monkeypatch.setattr(fonts, "_undrawn", set())


@pytest.fixture
def other_packages(tmp_path: Path) -> Path:
    """Return a folder of packages with an mpl-font whose font has one more rare character than the package's font."""
    folder = tmp_path / "mpl_font" / "fonts" / "noto"
    folder.mkdir(parents=True)
    (tmp_path / "mpl_font" / "__init__.py").write_text("raise RuntimeError('imported')")
    for file in fonts.OWN_FONT_FILES.values():
        font = TTFont(file, recalcTimestamp=False)
        for table in font["cmap"].tables:
            table.cmap[ord(RARE)] = table.cmap[ord("他")]
        font.save(folder / file.name)
    return tmp_path


def test_importing_the_figures_opens_no_font_and_leaves_pyplot_alone() -> None:
    code = (
        "import sys, anaphora.report.figures.maps, anaphora.report.figures.files\n"
        "from anaphora.report.figures import fonts\n"
        "assert fonts.font_families.cache_info().currsize == fonts._character_maps.cache_info().currsize == 0\n"
        "assert not {'matplotlib.pyplot', 'mpl_font', 'torch'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": "src"})


def test_both_weights_of_the_chinese_font_are_found() -> None:
    for weight, file in fonts.font_files().items():
        face = font_manager.FontProperties(family=list(fonts.font_families()), weight=weight)
        assert font_manager.findfont(face) == str(file)
    assert set(fonts.font_files()) == {400, 700}


@pytest.mark.parametrize("weight", [400, 700])
def test_the_package_has_a_font_for_gb_2312_latin_and_signs(weight: int) -> None:
    standard = {
        bytes([row, cell]).decode("gb2312", "ignore") for row in range(0xA1, 0xF8) for cell in range(0xA1, 0xFF)
    }
    signs = "“”‘’—–…·←↑→↓−×÷≤≥≠≈±∞√∑∈αβγχ²≡△▽●○■□★☆①½"
    latin = "".join(map(chr, [*range(0x20, 0x7F), *range(0xA0, 0x100)]))
    known = TTFont(fonts.OWN_FONT_FILES[weight]).getBestCmap()
    assert len(standard) == 7446
    assert {one for one in {*"".join(standard), *signs, *latin} if ord(one) not in known} == set()


def test_the_packages_own_texts_need_no_other_font() -> None:
    files = [file for file in (ROOT / "src").rglob("*") if file.suffix in (".toml", ".po", ".j2", ".js")]
    texts = "".join(file.read_text(encoding="utf-8") for file in files)
    known = TTFont(fonts.OWN_FONT_FILES[400]).getBestCmap()
    assert fonts.missing_glyphs(texts) <= {"\t"}
    assert [one for one in set(texts) if fonts.is_chinese(one) and ord(one) not in known] == []


def test_the_fonts_are_small_and_have_their_licence_beside_them() -> None:
    folder = fonts.OWN_FONT_FILES[400].parent
    assert sum(file.stat().st_size for file in folder.iterdir()) < 6_000_000
    licence, log = ((folder / name).read_text(encoding="utf-8") for name in ("OFL.txt", "FONTLOG.txt"))
    for file in fonts.OWN_FONT_FILES.values():
        names = TTFont(file)["name"]
        notice = names.getDebugName(0).replace("©", "(c)")
        assert licence.startswith(notice)
        assert "Reserved Font Name" not in notice  # else the part could not keep the name of the whole
        assert names.getDebugName(6) == file.stem and file.name in log
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence and "docs/make_fonts.py" in log


def test_the_packages_font_draws_as_the_whole_one() -> None:
    installed = PathFinder.find_spec("mpl_font")
    if installed is None or installed.origin is None:
        pytest.skip("the whole font is not installed")
    for file in fonts.OWN_FONT_FILES.values():
        own, whole = TTFont(file), TTFont(Path(installed.origin).parent / "fonts" / "noto" / file.name)
        names, whole_names = own.getBestCmap(), whole.getBestCmap()
        assert all(own["hmtx"][name] == whole["hmtx"][whole_names[code]] for code, name in names.items())
        glyphs, whole_glyphs = own.getGlyphSet(), whole.getGlyphSet()
        for code in list(names)[::100]:
            pens = RecordingPen(), RecordingPen()
            glyphs[names[code]].draw(pens[0])
            whole_glyphs[whole_names[code]].draw(pens[1])
            assert pens[0].value == pens[1].value


def test_chinese_and_english_have_glyphs_and_hieroglyphs_have_none() -> None:
    assert fonts.missing_glyphs("王先生告诉她：“他自己的《书》很好！” – don't 0.97 éüñ ㄅ") == set()
    assert fonts.missing_glyphs(f"a {HIEROGLYPH} b\n") == {HIEROGLYPH}


def test_a_missing_glyph_is_drawn_as_its_code_point() -> None:
    assert fonts.drawable_text(f"王{HIEROGLYPH}") == "王U+13000"


def test_quotes_are_narrow_in_english_and_wide_in_chinese() -> None:
    assert fonts.drawable_text("don’t “go”…") == 'don\'t "go"...'
    assert fonts.drawable_text("“他”") == "“他”"
    assert fonts.drawable_text("what the pronoun “他” attends to") == 'what the pronoun "他" attends to'


def test_double_quotes_of_a_chinese_page_are_full_width_glyphs_of_its_own_font() -> None:
    for language, advances in (("zh", {1.0}), ("en", {0.5})):
        with spoken_in(language):
            data = with_fonts(FONT_MARK, "“他”").split("base64,")[1].split(")")[0]
        font = TTFont(io.BytesIO(base64.b64decode(data)))
        glyphs = font.getBestCmap()
        widths = {round(2 * font["hmtx"][glyphs[ord(sign)]][0] / font["head"].unitsPerEm) / 2 for sign in "“”"}
        assert widths == advances


def test_single_digits_among_chinese_stand_upright_in_the_columns_of_a_heat_map() -> None:
    for words, turns in ((["寄", "2", ".", "kg"], [0, 0, 0, 90]), (["a", "kg"], [90, 90])):
        figure = maps.heat_map_figure(words, np.eye(len(words)), "")
        (axes,) = (each for each in figure.axes if [label.get_text() for label in each.get_yticklabels()] == words)
        assert [label.get_rotation() for label in axes.get_xticklabels()] == turns


def draw_figure() -> None:
    maps.heat_map_figure(["张", RARE, "和", FURTHER], np.eye(4), "")


def write_page() -> None:
    with_fonts(FONT_MARK, f"张{RARE}和{FURTHER}")


def draw_for_tensorboard() -> None:
    example = example_from_query(f"张{RARE}和{FURTHER}来了，他走了。", "他", [])
    picture = probe_pictures._ImageSheet(example, "", 5, 200, probe_pictures._phrases("zh"), "")
    picture.set_height(10)
    picture.finished()


@pytest.mark.parametrize("draw", [draw_figure, write_page, draw_for_tensorboard])
def test_what_the_font_lacks_is_named_once_in_one_line(
    draw: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    probe_pictures._font_runs.cache_clear()
    draw()
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    assert line.startswith(f"no glyph for {RARE} {FURTHER}: ")
    assert line.endswith(" -m pip install 'anaphora[fonts]'\n")
    draw()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "text", ["王先生告诉她：“他自己的《书》很好！”", "don’t “go”… 0.97 − 0.5", "Łódź, Müller, Ирина"]
)
def test_nothing_is_said_of_what_can_be_drawn(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    maps.heat_map_figure(text.split(), np.eye(len(text.split())), text)
    with_fonts(FONT_MARK, text)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("text", ["\x1b[31m", HIEROGLYPH])
def test_a_character_that_is_no_east_asian_one_is_named_without_advice(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fonts.drawable_text(text)
    fonts.report_undrawn()
    line = capsys.readouterr().out
    named = text[0] if text.isprintable() else f"U+{ord(text[0]):04X}"
    assert line == f"no glyph for {named}: figures show code points in their place\n"


def test_a_figure_names_what_it_cannot_draw_although_a_page_named_it(capsys: pytest.CaptureFixture[str]) -> None:
    with_fonts(FONT_MARK, "अ")
    fonts.drawable_text("अ")
    fonts.report_undrawn()
    page, figure = capsys.readouterr().out.splitlines()
    assert page.startswith("no glyph for अ: a page") and figure.startswith("no glyph for अ: figures")


@pytest.mark.parametrize("whole", [True, False])
def test_the_whole_font_is_used_if_all_of_it_is_installed(other_packages: Path, whole: bool) -> None:
    if not whole:
        next(other_packages.rglob("*Bold.otf")).unlink()
    code = (
        "from anaphora.report.figures import fonts\n"
        f"fonts.drawable_text('{RARE}')\n"
        "fonts.report_undrawn()\n"
        "print(*fonts.font_files().values(), sep='\\n')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True,
        env={"PYTHONPATH": f"{other_packages}:{ROOT / 'src'}"},
    )  # fmt: skip
    named = [line for line in done.stdout.splitlines() if RARE in line]
    assert (named == []) == whole
    assert (str(other_packages) in done.stdout) == whole


def test_embedding_removes_the_fonts_of_a_killed_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed = """
import os, signal, tempfile
from matplotlib.figure import Figure
from anaphora.report.figures import fonts
with fonts.embeddable_fonts(Figure()):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", killed], env=environment, check=False).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    with fonts.embeddable_fonts(Figure()):
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("error")
def test_embedding_leaves_the_texts_and_the_font_manager_as_they_were() -> None:
    with figure_style():
        figure = Figure()
        text = figure.text(0, 0, "他", fontweight="bold")
    before = text.get_fontfamily(), list(font_manager.fontManager.ttflist)

    def look_and_fail() -> None:
        small = font_manager.findfont(font_manager.FontProperties(family=text.get_fontfamily(), weight="bold"))
        assert small.endswith("700.ttf")
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"), fonts.embeddable_fonts(figure):
        look_and_fail()
    assert (text.get_fontfamily(), font_manager.fontManager.ttflist) == before
