"""Subset the fonts in src/anaphora/report/fonts from the full fonts: python docs/make_fonts.py.

The full fonts come with the optional dependencies `fonts` (mpl-font 1.1.0, which has Noto Sans CJK SC 1.004). The
output depends only on the full fonts and the version of fontTools.
"""

from __future__ import annotations

from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

from anaphora.report.figures.fonts import OWN_FONT_FILES, whole_font_files

_PACKAGE = Path(__file__).parents[1] / "src" / "anaphora"
_RANGES = (
    (0x0020, 0x1100),  # alphabets and their marks
    (0x1E00, 0x2E80),  # further Latin and Greek letters, punctuation, arrows, mathematical and geometric signs
    (0x3000, 0x3100),  # Chinese punctuation, kana
    (0xFF00, 0xFFF0),  # full-width forms
)
_FEATURES = (
    *("calt", "ccmp", "clig", "curs", "kern", "liga", "mark", "mkmk", "rlig"),  # what drawn text uses
    *("hwid", "pwid"),  # the narrow signs of `write_subset`
)
_VERTICAL_TABLES = ["BASE", "VORG", "vhea", "vmtx"]
_DESCRIPTION = "Subset of Noto Sans CJK SC 1.004: the characters of GB 2312, letters of alphabets and signs."


def characters() -> set[int]:
    """Return the code points of GB 2312, alphabets, symbols and the package's Chinese texts."""
    standard = {code for first in range(0xA1, 0xF8) for code in _row_of_standard(first)}
    texts = [path.read_text(encoding="utf-8") for pattern in ("*.toml", "*.po") for path in _PACKAGE.rglob(pattern)]
    own = set(map(ord, "".join(texts)))
    return standard | own | {code for start, end in _RANGES for code in range(start, end)}


def _row_of_standard(first: int) -> set[int]:
    """Return the code points of the row of GB 2312 with this first byte."""
    return {ord(one) for second in range(0xA1, 0xFF) for one in bytes([first, second]).decode("gb2312", "ignore")}


def write_own_font(source: Path, target: Path) -> None:
    """Write the subset of a full font that the package ships; outlines, hints and advances are unchanged."""
    font = TTFont(source, recalcTimestamp=False)
    options = Options(layout_features=[*_FEATURES], name_IDs=["*"], notdef_outline=True)
    options.drop_tables += _VERTICAL_TABLES
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=characters())
    subsetter.subset(font)
    font["name"].setName(_DESCRIPTION, 10, 3, 1, 0x409)
    font.save(target)


if __name__ == "__main__":
    for weight, whole in whole_font_files().items():
        write_own_font(whole, OWN_FONT_FILES[weight])
