"""Fonts for figures in English and Chinese; no Chinese font has to be installed.

The glyphs come from Noto Sans CJK SC (SIL Open Font License 1.1). The package contains the subset that
`docs/make_fonts.py` selects; the optional extra `fonts` installs the full font (mpl-font), which then takes precedence.
DejaVu Sans, which comes with matplotlib, has some of the remaining characters. mpl-font is not imported, because
its import changes matplotlib's global settings. Font files are opened when the first figure is drawn.
"""

from __future__ import annotations

import importlib.util
import io
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import matplotlib

from anaphora.base.console import say
from anaphora.base.errors import pip_install
from anaphora.base.files import new_draft
from anaphora.base.language import WIDE_CHARACTER, language_of
from anaphora.base.translation import _

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAMILY = "Anaphora Sans"
"""Family name under which Noto Sans CJK SC is registered, so that no installed copy of it is used instead."""
FALLBACK = "DejaVu Sans"
# matplotlib caches the font file of each family, so every copy needs a new family name.
_copy_numbers = count(1)
_UNIX_EPOCH = 2_082_844_800  # seconds from 1904, the epoch of font files, to 1970
_FONT_FILES = {400: "NotoSansCJKsc-Regular.otf", 700: "NotoSansCJKsc-Bold.otf"}
OWN_FONT_FILES = {weight: Path(__file__).parents[1] / "fonts" / name for weight, name in _FONT_FILES.items()}
"""Font files in the package, by weight."""
_IN_WHOLE_FONT = re.compile("[\u1100-\u11ff\u2e80-\ud7ff\uf900-\uffef\U00020000-\U0003ffff]")
"""Chinese, Japanese and Korean characters, of which the package has only a subset."""
_undrawn: set[str] = set()
_reported: set[tuple[str, str]] = set()  # (sentence, character) printed by `report_once` in this process
# The font's glyphs for these are full-width (one em), which tears English words apart ("don ’ t").
_PLAIN_PUNCTUATION = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2026": "..."})


def whole_font_files() -> dict[int, Path]:
    """Return the files of the full Noto font by font weight (400, 700); empty if mpl-font is not installed."""
    package = importlib.util.find_spec("mpl_font")
    if package is None or not package.submodule_search_locations:
        return {}
    folder = Path(package.submodule_search_locations[0]) / "fonts" / "noto"
    files = {weight: folder / name for weight, name in _FONT_FILES.items()}
    return files if all(file.is_file() for file in files.values()) else {}


@lru_cache(maxsize=1)
def font_files() -> dict[int, Path]:
    """Return the Noto font file of each weight (400 regular, 700 bold): the full font if installed, else the subset."""
    return whole_font_files() or OWN_FONT_FILES


@lru_cache(maxsize=1)
def font_families() -> tuple[str, ...]:
    """Return the names of the font families in order of preference; the first call registers them with matplotlib."""
    _register(FAMILY, font_files())
    return (FAMILY, FALLBACK)


def is_chinese(text: str) -> bool:
    """Return whether `text` contains a Chinese ideograph or full-width punctuation."""
    return WIDE_CHARACTER.search(text) is not None


def missing_glyphs(text: str) -> set[str]:
    """Return the characters of `text`, except spaces and line breaks, without a glyph in any registered font."""
    fonts = _character_maps()
    return {
        character
        for character in set(text) - {" ", "\n"}
        if not any(font.get_char_index(ord(character)) for font in fonts)
    }


def drawable_text(text: str) -> str:
    """Return a text in which characters without a glyph are replaced by their code points, such as "U+05D0".

    Unless the text is Chinese, typographic quotes and ellipses become ASCII, since the font has only full-width (one
    em) glyphs for them. `report_undrawn` reports the characters without a glyph.
    """
    if language_of(text) != "zh":
        text = text.translate(_PLAIN_PUNCTUATION)
    missing = missing_glyphs(text)
    _undrawn.update(missing)
    return text.translate({ord(character): _code_point(character) for character in missing})


def report_undrawn() -> None:
    """Print which characters `drawable_text` has replaced; print nothing if all of them were printed before."""
    report_once(_undrawn, _("no glyph for {characters}: figures show code points in their place"))
    _undrawn.clear()


def report_once(characters: Iterable[str], sentence: str) -> None:
    """Print `sentence` with new characters in place of {characters}; do nothing if all were reported with it before."""
    new = sorted(character for character in set(characters) if (sentence, character) not in _reported)
    if not new:
        return
    _reported.update((sentence, character) for character in new)
    shown = " ".join(character if character.isprintable() else _code_point(character) for character in new)
    whole_helps = not whole_font_files() and _IN_WHOLE_FONT.search(shown)
    advice = (
        _("; for the whole font: {command}").format(command=pip_install("'anaphora[fonts]'")) if whole_helps else ""
    )
    say(sentence.format(characters=shown) + advice)


def _code_point(character: str) -> str:
    return f"U+{ord(character):04X}"


@lru_cache(maxsize=4096)
def font_file_of(character: str, bold: bool = False) -> Path:
    """Return the font file for a character: Noto if it has the glyph, otherwise DejaVu Sans."""
    noto = _character_maps()[0]
    if character.isspace() or noto.get_char_index(ord(character)):
        return font_files()[700 if bold else 400]
    return _fallback_file(bold)


@contextmanager
def embeddable_fonts(figure: Figure) -> Iterator[None]:
    """Replace the fonts of a figure's texts by small TrueType subsets inside the `with` block.

    matplotlib writes the CFF outlines of Noto into a PDF as if they were TrueType, which strict readers reject. The
    subsets are true Type 42 fonts of a few kB.
    """
    from matplotlib import font_manager
    from matplotlib.text import Text

    figure.draw_without_rendering()  # tick labels exist only once they have been drawn
    texts: list[Any] = [text for text in figure.findobj(Text) if FAMILY in text.get_fontfamily()]
    characters = "".join(sorted({character for text in texts for character in text.get_text()}))
    copy = f"{FAMILY} {next(_copy_numbers)}"
    with new_draft(Path(tempfile.gettempdir()), None) as folder:
        files = {weight: folder / f"{weight}.ttf" for weight in font_files()}
        for weight, file in files.items():
            write_subset(font_files()[weight], file, characters)
        entries = _register(copy, files)
        before = [text.get_fontfamily() for text in texts]
        try:
            for text, family in zip(texts, before, strict=True):
                text.set_fontfamily([copy if name == FAMILY else name for name in family])
            yield
        finally:
            for text, family in zip(texts, before, strict=True):
                text.set_fontfamily(family)
            for entry in entries:
                font_manager.fontManager.ttflist.remove(entry)


def _register(family: str, files: dict[int, Path]) -> list[Any]:
    from matplotlib import font_manager

    entries = [font_manager.FontEntry(fname=str(file), name=family, weight=weight) for weight, file in files.items()]
    font_manager.fontManager.ttflist.extend(entries)
    return entries


@lru_cache(maxsize=1)
def _character_maps() -> tuple[Any, ...]:
    from matplotlib.ft2font import FT2Font

    return FT2Font(str(font_files()[400])), FT2Font(str(_fallback_file()))


def _fallback_file(bold: bool = False) -> Path:
    return Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"DejaVuSans{'-Bold' if bold else ''}.ttf"


@lru_cache(maxsize=len(_FONT_FILES))
def _open_font(file: Path) -> Any:
    from fontTools.ttLib import TTFont

    # Subsets keep the font's own time stamp, so that equal pages are equal files.
    return TTFont(io.BytesIO(file.read_bytes()), lazy=True, recalcTimestamp=False)


@lru_cache(maxsize=len(_FONT_FILES))
def _narrow_glyphs(file: Path) -> dict[str, str]:
    """Map each full-width glyph of a font to its half-width glyph, or else to its proportional glyph."""
    table = _open_font(file)["GSUB"].table
    replaced: dict[str, str] = {}
    for tag in ("pwid", "hwid"):
        for record in table.FeatureList.FeatureRecord:
            for number in record.Feature.LookupListIndex if record.FeatureTag == tag else ():
                for part in table.LookupList.Lookup[number].SubTable:
                    replaced |= getattr(getattr(part, "ExtSubTable", part), "mapping", {})
    return replaced


@cache
def _quadratic_outline(file: Path, name: str) -> Any:
    """Return the outline of one of a font's glyphs, converted from cubic to quadratic curves."""
    from fontTools.pens.cu2quPen import Cu2QuPen
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    pen = TTGlyphPen(None)
    # An error of half a thousandth of the type size is far below the resolution of print.
    _open_font(file).getGlyphSet()[name].draw(Cu2QuPen(pen, max_err=0.5, reverse_direction=True))
    return pen.glyph()


def write_subset(
    source: Path,
    target: Path | BinaryIO,
    characters: Iterable[str],
    narrow: Iterable[str] = (),
    flavour: str | None = None,
) -> None:
    """Write a TrueType font with the glyphs of `characters`; cubic outlines are converted to quadratic ones.

    For characters in `narrow`, half-width or proportional glyphs replace the full-width glyphs. Characters without a
    glyph in `source` are left out. If `flavour` is "woff", the font is compressed.
    """
    from fontTools.fontBuilder import FontBuilder

    font = _open_font(source)
    names, advances = font.getBestCmap(), font["hmtx"]
    codes = {ord(character): names[ord(character)] for character in characters if ord(character) in names}
    narrower = _narrow_glyphs(source)
    codes |= {code: narrower.get(codes[code], codes[code]) for code in map(ord, narrow) if code in codes}
    order = [".notdef", *dict.fromkeys(codes.values())]
    builder = FontBuilder(font["head"].unitsPerEm, isTTF=True)
    builder.setupGlyphOrder(order)
    builder.setupCharacterMap(codes)
    builder.setupGlyf({name: _quadratic_outline(source, name) for name in order})
    builder.setupHorizontalMetrics({name: advances[name] for name in order})
    builder.setupHorizontalHeader(ascent=font["hhea"].ascent, descent=font["hhea"].descent)
    label = source.stem
    builder.setupNameTable(
        {
            "familyName": FAMILY,
            "styleName": label.rpartition("-")[2],
            "psName": label,
            "copyright": font["name"].getDebugName(0) or "",
            "licenseDescription": font["name"].getDebugName(13) or "",
            "licenseInfoURL": font["name"].getDebugName(14) or "",
        }
    )
    builder.setupOS2(sTypoAscender=font["OS/2"].sTypoAscender, sTypoDescender=font["OS/2"].sTypoDescender)
    builder.setupPost()
    # A fixed time stamp, so that the same figure gives the same bytes; the default, 1904, is logged as suspicious.
    builder.setupHead(unitsPerEm=font["head"].unitsPerEm, created=_UNIX_EPOCH, modified=_UNIX_EPOCH)
    builder.font.flavor = flavour
    builder.save(target)
