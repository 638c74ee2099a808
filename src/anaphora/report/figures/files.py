"""Figure files, written atomically and reproducible byte for byte."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path

from matplotlib.figure import Figure

from anaphora.base.checks import FIGURE_FORMATS
from anaphora.base.errors import UserError
from anaphora.base.files import atomic_write
from anaphora.base.translation import spoken_in
from anaphora.report.figures.fonts import embeddable_fonts
from anaphora.report.figures.style import figure_style

_NO_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None, "Format": None, "Type": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}


def save_figure(figure: Figure, stem: Path, formats: Sequence[str] = FIGURE_FORMATS) -> list[Path]:
    """Write `figure` as one file per format, such as `stem`.png, and return the paths; a missing folder is created.

    All formats are rendered before the first file is written, so an error in rendering leaves old files unchanged. Text
    becomes outlines in SVG, and embedded Type 42 subsets of its fonts in PDF. The files contain no date and no program
    name, and SVG files no document type declaration, since it contains a URL.

    Raises:
        UserError: a format other than png, svg and pdf, or a file that cannot be written.
    """
    unknown = [name for name in formats if name not in FIGURE_FORMATS]
    if unknown:
        raise UserError(f"figure format {unknown[0]!r} is not known; choose among {', '.join(FIGURE_FORMATS)}")
    contents = {stem.with_name(f"{stem.name}.{name}"): _render(figure, name) for name in dict.fromkeys(formats)}
    with ExitStack() as drafts:
        for path, content in contents.items():
            drafts.enter_context(atomic_write(path)).write_bytes(content)
    return list(contents)


def save_in_languages(
    draw: Callable[[], Mapping[str, Figure]], folder: Path, formats: Sequence[str], suffixes: Mapping[str, str]
) -> list[Path]:
    """Draw and write the figures once in each language, and return the paths of all files.

    `draw` returns the figures in the current language, by name. `folder` is a prefix of the file names if it ends in
    "_". `suffixes` has the suffix of the file names for each language code.
    """
    paths = []
    before = folder if folder.name.endswith("_") else f"{folder}/"
    for language, suffix in suffixes.items():
        with spoken_in(language):
            for name, figure in draw().items():
                paths += save_figure(figure, Path(f"{before}{name}{suffix}"), formats)
    return paths


def _render(figure: Figure, name: str) -> bytes:
    buffer = io.BytesIO()
    with figure_style(), embeddable_fonts(figure) if name == "pdf" else nullcontext():
        figure.savefig(buffer, format=name, metadata=_NO_METADATA[name])
    if name == "svg":
        # The document type contains a URL, and an offline page must not contain one.
        return re.sub(rb"<!DOCTYPE[^>]*>\s*", b"", buffer.getvalue(), count=1)
    return buffer.getvalue()
