from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator

import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure

from anaphora.report.figures import fonts
from anaphora.report.figures.style import figure_style

HIEROGLYPH = "\U00013000"


@pytest.fixture
def no_chinese_font(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without the font package."""
    caches = (fonts.font_files, fonts.font_families, fonts._character_maps)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mpl_font" else find_spec(name))
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


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


def test_chinese_and_english_have_glyphs_and_hieroglyphs_have_none() -> None:
    assert fonts.missing_glyphs("王先生告诉她：“他自己的《书》很好！” – don't 0.97 éüñ ㄅ 𠮷") == set()
    assert fonts.missing_glyphs(f"a {HIEROGLYPH} b\n") == {HIEROGLYPH}


def test_a_missing_glyph_is_drawn_as_its_code_point() -> None:
    assert fonts.drawable_text(f"王{HIEROGLYPH}") == "王U+13000"


def test_quotes_are_narrow_in_english_and_wide_in_chinese() -> None:
    assert fonts.drawable_text("don’t “go”…") == 'don\'t "go"...'
    assert fonts.drawable_text("“他”") == "“他”"
    assert fonts.drawable_text("what the pronoun “他” attends to") == 'what the pronoun "他" attends to'


@pytest.mark.usefixtures("no_chinese_font")
def test_without_the_font_package_chinese_becomes_code_points() -> None:
    assert fonts.font_families() == (fonts.FALLBACK,)
    assert fonts.drawable_text("he 他") == "he U+4ED6"


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
