"""Functions shared by all offline HTML pages: templates, JSON for scripts, fonts, and file names by language.

A page loads nothing: style, script, fonts, figures and data are embedded, and its content security policy forbids
anything else. Templates escape text from data, and scripts insert it only as text.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.base.checks import FIGURE_FORMATS
from anaphora.base.files import write_text
from anaphora.base.language import WIDE_CHARACTER, WIDE_RANGES
from anaphora.base.translation import _, pgettext, spoken_language
from anaphora.report.wording import head_role_names

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from matplotlib.colors import Colormap

TEMPLATE_FOLDER = Path(__file__).with_name("templates")
FONT_MARK = "/*the faces of the characters in use*/"
"""Placeholder for the embedded fonts in a page's style, replaced when all characters of the page are known."""
_BESIDE_NUMBER = re.compile(r"([^\s(\[]+(?: [^\s\d(\[]+)?)((?: [(\[][^()\[\]\n]*[)\]])+|\n.+)")
_BEFORE_UNIT = re.compile(r"(?<=[\d}\]]) (?=%|points?\b|times\b|个百分点|倍)")
_P_VALUE = re.compile(r"\bp (&lt;|[<=]) (?=\d)")
_SCRIPT_OR_STYLE = re.compile(r"(<(?:script|style)\b.*?</(?:script|style)>)", re.DOTALL)
_CHINESE_STRETCH = re.compile(f"([{WIDE_RANGES}]+)")
_ENGLISH_STRETCH = re.compile(
    r"((?<=\u201c)[^\u201c\u201d]*[A-Za-z]{2}[^\u201c\u201d]*(?=\u201d)|(?:[A-Za-z’'-]+,? )+[A-Za-z’'-]+[.?!]?)"
)
"""English text on a Chinese page: text in quotes, or several consecutive words."""
_DOUBLE_QUOTES = "\u201c\u201d"
_QUOTES = f"\u2018\u2019{_DOUBLE_QUOTES}"


@lru_cache(maxsize=2)
def template_environment(folder: Path = TEMPLATE_FOLDER) -> Environment:
    """Return a cached Jinja environment for the templates in a folder and those shared by all pages.

    Text is escaped and undefined names are errors. `_` and `pgettext` translate into the current language.
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
        "with_languages": with_languages,
        "number_parts": number_parts,
        "pgettext": pgettext,
    }
    return environment


def number_parts(text: str) -> tuple[str, str]:
    """Split the text of a table cell after the number and its unit; the rest is an interval, other text or ""."""
    match = _BESIDE_NUMBER.fullmatch(text)
    return (match[1], match[2].strip()) if match else (text, "")


@lru_cache(maxsize=4)
def read_asset(name: str, folder: Path = TEMPLATE_FOLDER) -> Markup:
    """Read a file of this package as markup that templates do not escape; the four most recent files are cached."""
    return trusted_markup((folder / name).read_text(encoding="utf-8"))


def trusted_markup(text: str) -> Markup:
    """Mark text of this package as markup that templates do not escape."""
    from markupsafe import Markup

    return Markup(text)


def script_json(content: Any) -> Markup:
    """Return JSON for a script element of an HTML page.

    Characters that could end the element or a line of JavaScript are escaped.

    Raises:
        ValueError: a number is not finite.
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return trusted_markup(text)


def write_page(path: Path, template: str, folder: Path = TEMPLATE_FOLDER, **content: Any) -> None:
    """Render a template with the variables `content`, and write it as one self-contained file with style and fonts."""
    filled = template_environment(folder).get_template(template)
    html = filled.render(**content, style=read_asset("report.css"), font_mark=trusted_markup(FONT_MARK))
    write_text(path, with_fonts(html, html))


def with_units(text: str) -> str:
    """Replace the space between a number and its unit, and those in "p < 0.05", by no-break spaces."""
    return _P_VALUE.sub("p\u00a0\\1\u00a0", _BEFORE_UNIT.sub("\u00a0", text))


def with_languages(text: str) -> Markup:
    """Escape a sentence, and add `lang` to words that are not in the page's language, for fonts and screen readers.

    On an English page, these are Chinese characters; on a Chinese page, English text in quotes or of several words.
    """
    from markupsafe import escape

    is_chinese = spoken_language() == "zh"
    parts = (_ENGLISH_STRETCH if is_chinese else _CHINESE_STRETCH).split(text)  # odd parts match
    marked = trusted_markup('<span lang="en">{}</span>' if is_chinese else '<span lang="zh">{}</span>')
    return trusted_markup("").join(
        marked.format(part) if place % 2 and not (is_chinese and WIDE_CHARACTER.search(part)) else escape(part)
        for place, part in enumerate(parts)
    )


def with_fonts(html: str, text: Iterable[str]) -> str:
    """Replace `FONT_MARK` in an HTML page by fonts for the glyphs of `text`; put no-break spaces before units.

    Letters without a glyph are reported on the console.
    """
    parts = _SCRIPT_OR_STYLE.split(html)  # odd parts are scripts and styles, which stay unchanged
    html = "".join(part if index % 2 else with_units(part) for index, part in enumerate(parts))
    return html.replace(FONT_MARK, _font_faces(text), 1)


def weight_colours() -> dict[str, Any]:
    """Return 64 colours of attention weights from 0 to 1 ("ramp"), and the text colour for each of them ("inks")."""
    from anaphora.report.figures import style

    return _colour_steps(style.WEIGHTS)


def diverging_colours() -> dict[str, Any]:
    """Return 64 colours of signed values, with white for 0 ("ramp"), and the text colour for each of them ("inks")."""
    from anaphora.report.figures import style

    return _colour_steps(style.DIVERGING)


def _colour_steps(colours: Colormap) -> dict[str, Any]:
    from matplotlib.colors import to_hex

    from anaphora.report.figures import style

    steps = [colours(step / 63) for step in range(64)]
    return {"ramp": [to_hex(colour) for colour in steps], "inks": [style.text_colour_on(colour) for colour in steps]}


def _font_faces(text: Iterable[str]) -> str:
    from anaphora.report.figures.fonts import FAMILY, font_files, write_subset

    # Dashes, ellipses and apostrophes are left to the browser's fonts, where they are narrow. On a Chinese page, double
    # quotes are full-width; on other pages, all quotes have the narrow glyphs of this font.
    narrow, wide = ("\u2212", _DOUBLE_QUOTES) if spoken_language() == "zh" else (f"\u2212{_QUOTES}", "")
    characters = sorted(
        character
        for character in {*text, "\u00a0"}
        if " " <= character <= "~" or character in f"\u00a0{narrow}{wide}" or _is_letter(character)
    )
    report_missing_on_page(characters)
    rules = []
    for weight, file in font_files().items():
        buffer = io.BytesIO()
        write_subset(file, buffer, characters, narrow, "woff")
        data = base64.b64encode(buffer.getvalue()).decode("ascii")
        rules.append(
            f'@font-face{{font-family:"{FAMILY}";font-weight:{weight};'
            f'src:url(data:font/woff;base64,{data}) format("woff")}}'
        )
    return "\n".join(rules)


def report_missing_on_page(text: Iterable[str]) -> None:
    """Print which letters and Chinese characters have no glyph; a browser shows these in another font, if it can."""
    from anaphora.report.figures.fonts import missing_glyphs, report_once

    letters = "".join(filter(_is_letter, set(text)))
    report_once(missing_glyphs(letters), _("no glyph for {characters}: a page shows them in the reader’s own fonts"))


def _is_letter(character: str) -> bool:
    return character > "\x7f" and (character.isalpha() or WIDE_CHARACTER.match(character) is not None)


def page_suffixes(interface_language: str) -> dict[str, str]:
    """Return the file name suffix of each language's page: ".zh" for Chinese in a bilingual report, otherwise ""."""
    return {"en": "", "zh": ".zh"} if interface_language == "both" else {interface_language: ""}


def page_names(stem: str, suffixes: Mapping[str, str]) -> dict[str, str]:
    """Return the file name of a page in each language; `suffixes` are those of `page_suffixes`."""
    return {language: f"{stem}{suffix}.html" for language, suffix in suffixes.items()}


def other_pages(names: Mapping[str, str], language: str) -> dict[str, str]:
    """Return the file names of a page in all languages but one, keyed by language, for links between them."""
    return {other: name for other, name in names.items() if other != language}


def remove_translation(folder: Path, stem: str, drawn: Collection[Path] = ()) -> None:
    """Remove the Chinese page and the Chinese figures of an earlier bilingual report that a new page replaces.

    A Chinese page without a link to the English page is not from a bilingual report and stays, with its figures. `stem`
    is the page's name without extension. `drawn` are the figures of the new page, without the suffixes for language and
    format.
    """
    page = folder / f"{stem}.zh.html"
    if page.is_file() and f'<a href="{stem}.html" lang="en" hreflang="en">'.encode() in page.read_bytes():
        for figure in drawn:
            for name in FIGURE_FORMATS:
                figure.with_name(f"{figure.name}.zh.{name}").unlink(missing_ok=True)
        page.unlink()  # last, so that after an interruption the next command removes the rest
