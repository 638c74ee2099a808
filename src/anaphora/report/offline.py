"""What every page of ours is made with: templates that escape, JSON for a script, and the fonts of what is written.

A page asks for nothing: style, script, font, figures and data are inside, and its content security policy forbids the
rest. Text from data is escaped by the template; what a script reads is JSON with no character that could end its
element, and the scripts write text only as text.
"""

from __future__ import annotations

import base64
import io
import json
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup
    from matplotlib.colors import Colormap

TEMPLATES = Path(__file__).with_name("templates")
_FONT_MARK = "/*the faces of the characters in use*/"


@lru_cache(maxsize=2)
def environment(folder: Path = TEMPLATES) -> Environment:
    """Templates of a folder, which may use what all pages share; text is escaped and a missing name is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@lru_cache(maxsize=4)
def own_file(name: str, folder: Path = TEMPLATES) -> Markup:
    """A file of our own, which goes into the page as it is."""
    return safe((folder / name).read_text(encoding="utf-8"))


def safe(text: str) -> Markup:
    """Text of our own that a template does not escape."""
    from markupsafe import Markup

    return Markup(text)


def script_json(content: Any) -> Markup:
    """JSON that stands inside a script element: no character of it can end the element or a line of script."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return safe(text)


def font_mark() -> Markup:
    """Where a page's style takes in its fonts, once what is written on it is known."""
    return safe(_FONT_MARK)


def with_fonts(html: str, text: Iterable[str], weights: Sequence[int]) -> str:
    """A page with the faces of the characters of `text` in it, in the given weights."""
    return html.replace(_FONT_MARK, _faces(text, weights), 1)


def ramp() -> dict[str, Any]:
    """The colours of weights, from none to most, and on which of them type is white."""
    from anaphora.report import style

    return _steps(style.WEIGHTS)


def two_sided_ramp() -> dict[str, Any]:
    """The colours of numbers of either sign, white in the middle, and on which of them type is white."""
    from anaphora.report import style

    return _steps(style.AGAINST_CHANCE)


def _steps(colours: Colormap) -> dict[str, Any]:
    from matplotlib.colors import to_hex

    from anaphora.report import style

    steps = [colours(step / 63) for step in range(64)]
    return {
        "ramp": [to_hex(colour) for colour in steps],
        "light": [style.ink_on(colour) == style.PAPER for colour in steps],
    }


def _faces(text: Iterable[str], weights: Sequence[int]) -> str:
    """The font faces of the characters in use, as CSS; empty where the fonts are not installed."""
    from fontTools.ttLib import TTFont

    from anaphora.report.fonts import FAMILY, _write_copy, faces, is_chinese

    # Signs that Chinese typography gives a full square are left to the reader's own fonts, which do not.
    characters = sorted(
        character
        for character in set(text)
        if " " <= character <= "~" or (character > "\x7f" and (character.isalpha() or is_chinese(character)))
    )
    rules = []
    for weight in weights:
        if weight not in faces():
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            file = Path(folder) / "face.ttf"
            _write_copy(faces()[weight], file, characters)
            font = TTFont(io.BytesIO(file.read_bytes()))
        font.flavor = "woff"
        buffer = io.BytesIO()
        font.save(buffer)
        data = base64.b64encode(buffer.getvalue()).decode("ascii")
        rules.append(
            f'@font-face{{font-family:"{FAMILY}";font-weight:{weight};'
            f'src:url(data:font/woff;base64,{data}) format("woff")}}'
        )
    return "\n".join(rules)
