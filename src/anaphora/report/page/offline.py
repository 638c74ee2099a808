"""Common parts of all offline pages: escaping templates, JSON for scripts, and fonts.

A page asks for nothing: style, script, font, figures and data are inside, and its content security policy forbids the
rest. Text from data is escaped by the template; what a script reads is JSON with no character that could end its
element, and the scripts write text only as text.
"""

from __future__ import annotations

import base64
import io
import json
import re
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.base.files import write_text
from anaphora.base.language import WIDE_CHARACTER
from anaphora.base.locale.translation import _, spoken_language
from anaphora.report.page.explorer_phrases import explorer_phrases
from anaphora.report.wording import factor_value_names, head_role_names, language_names, map_names

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from matplotlib.colors import Colormap

TEMPLATE_FOLDER = Path(__file__).with_name("templates")
FONT_MARK = "/*the faces of the characters in use*/"
"""Where the style of a page takes in its fonts, once what is written on it is known."""
_BESIDE_NUMBER = re.compile(r"([^\s(\[]+(?: [^\s\d(\[]+)?)((?: [(\[][^()\[\]\n]*[)\]])+|\n.+)")
_BEFORE_UNIT = re.compile(r"(?<=[\d}\]]) (?=%|points?\b|times\b|个百分点|倍)")
_SCRIPT_OR_STYLE = re.compile(r"(<(?:script|style)\b.*?</(?:script|style)>)", re.DOTALL)
_QUOTES = "\u2018\u2019\u201c\u201d"


@lru_cache(maxsize=2)
def template_environment(folder: Path = TEMPLATE_FOLDER) -> Environment:
    """Return templates of a folder, which may use what all pages share; text is escaped and a missing name is an error.

    Their sentences are translated by `_` into the language that is `spoken_language`.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([folder, TEMPLATE_FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "_": _,
        "head_role_names": head_role_names,
        "own_name": {"en": "English", "zh": "中文"},
        "spoken_language": spoken_language,
        "number_parts": number_parts,
    }
    return environment


def number_parts(text: str) -> tuple[str, str]:
    """Return a table number with its unit, and the line below it: an interval in brackets, or another text."""
    match = _BESIDE_NUMBER.fullmatch(text)
    return (match[1], match[2].strip()) if match else (text, "")


@lru_cache(maxsize=4)
def read_asset(name: str, folder: Path = TEMPLATE_FOLDER) -> Markup:
    """Return a file of this package for insertion into the page, unchanged."""
    return trusted_markup((folder / name).read_text(encoding="utf-8"))


def trusted_markup(text: str) -> Markup:
    """Return text of this package as markup that a template does not escape."""
    from markupsafe import Markup

    return Markup(text)


def script_json(content: Any) -> Markup:
    """Return JSON for a script element: none of its characters can end the element or a line of script."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return trusted_markup(text)


def write_page(path: Path, template: str, folder: Path = TEMPLATE_FOLDER, **content: Any) -> None:
    """Fill a template of a folder, and write it as one file that needs nothing else, with its style and its fonts."""
    filled = template_environment(folder).get_template(template)
    html = filled.render(**content, style=read_asset("report.css"), font_mark=trusted_markup(FONT_MARK))
    write_text(path, with_fonts(html, html, (400, 700)))


def with_units(text: str) -> str:
    """Return a text in which no line ends between a number and its unit, "43 %"."""
    return _BEFORE_UNIT.sub("\u00a0", text)


def with_fonts(html: str, text: Iterable[str], weights: Sequence[int]) -> str:
    """Return a page, numbers kept with their units, with the faces of the characters of `text` in the given weights."""
    parts = _SCRIPT_OR_STYLE.split(html)  # every second one is a script or style, which stays as it is
    html = "".join(part if place % 2 else with_units(part) for place, part in enumerate(parts))
    return html.replace(FONT_MARK, _font_faces(text, weights), 1)


def weight_colours() -> dict[str, Any]:
    """Return the colours of weights, from none to most, and which of them need white type."""
    from anaphora.report.figures import style

    return _colour_steps(style.WEIGHTS)


def diverging_colours() -> dict[str, Any]:
    """Return the colours of numbers of either sign, white in the middle, and which of them need white type."""
    from anaphora.report.figures import style

    return _colour_steps(style.DIVERGING)


def _colour_steps(colours: Colormap) -> dict[str, Any]:
    from matplotlib.colors import to_hex

    from anaphora.report.figures import style

    steps = [colours(step / 63) for step in range(64)]
    return {
        "ramp": [to_hex(colour) for colour in steps],
        "light": [style.text_colour_on(colour) == style.PAPER for colour in steps],
    }


def _font_faces(text: Iterable[str], weights: Sequence[int]) -> str:
    """Return the font faces of the characters in use, as CSS."""
    from fontTools.ttLib import TTFont

    from anaphora.report.figures.fonts import FAMILY, font_files, write_subset

    # The other signs that Chinese typography gives a full square are left to the reader's own fonts, which do not;
    # Chinese quotes keep that square, and those of other languages are the narrow ones of this very face.
    narrow = "\u2212" if spoken_language() == "zh" else f"\u2212{_QUOTES}"
    characters = sorted(
        character
        for character in {*text, "\u00a0"}
        if " " <= character <= "~" or character in f"\u00a0{narrow}" or _is_letter(character)
    )
    name_left_to_reader(characters)
    rules = []
    for weight in weights:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            file = Path(folder) / "face.ttf"
            write_subset(font_files()[weight], file, characters, narrow)
            font = TTFont(io.BytesIO(file.read_bytes()), recalcTimestamp=False)
        font.flavor = "woff"
        buffer = io.BytesIO()
        font.save(buffer)
        data = base64.b64encode(buffer.getvalue()).decode("ascii")
        rules.append(
            f'@font-face{{font-family:"{FAMILY}";font-weight:{weight};'
            f'src:url(data:font/woff;base64,{data}) format("woff")}}'
        )
    return "\n".join(rules)


def name_left_to_reader(text: Iterable[str]) -> None:
    """Name the letters and Chinese characters for which no font here has a glyph: a page shows them in another font."""
    from anaphora.report.figures.fonts import missing_glyphs, name_missing

    letters = "".join(filter(_is_letter, set(text)))
    name_missing(missing_glyphs(letters), _("no glyph for {characters}: a page leaves them to the fonts of its reader"))


def _is_letter(character: str) -> bool:
    return character > "\x7f" and (character.isalpha() or WIDE_CHARACTER.match(character) is not None)


def explorer_words() -> dict[str, dict[str, str]]:
    """Return the words of the explorer: its phrases, and the names of maps, languages, cues and their types."""
    words = {
        "phrases": explorer_phrases(),
        "maps": map_names(),
        "languages": language_names(),
        "values": factor_value_names(),
    }
    return {name: {key: with_units(text) for key, text in texts.items()} for name, texts in words.items()}
