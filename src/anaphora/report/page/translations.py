"""File names of pages in several languages, and removal of translations that are out of date."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from anaphora.base.checks import FIGURE_FORMATS


def page_suffixes(interface_language: str) -> dict[str, str]:
    """Return the suffix of file names by language; empty for the only or the English page."""
    return {"en": "", "zh": ".zh"} if interface_language == "both" else {interface_language: ""}


def page_names(stem: str, suffixes: Mapping[str, str]) -> dict[str, str]:
    """Return the file name of the page in each language."""
    return {language: f"{stem}{suffix}.html" for language, suffix in suffixes.items()}


def other_pages(names: Mapping[str, str], language: str) -> dict[str, str]:
    """Return the links from the page in one language to the others, by language."""
    return {other: name for other, name in names.items() if other != language}


def remove_translation(folder: Path, stem: str, drawn: Collection[Path] = ()) -> None:
    """Remove the Chinese page of an earlier bilingual report, which the new page replaces.

    A Chinese page without a link to the English page is of another origin and is kept.

    Args:
        folder: folder of the page.
        stem: file name of the page without extension.
        drawn: paths of the new page's figures without language and extension.
    """
    page = folder / f"{stem}.zh.html"
    if page.is_file() and f'<a href="{stem}.html" lang="en" hreflang="en">'.encode() in page.read_bytes():
        # Reports on two splits share figure files, so another Chinese page keeps them.
        stale = drawn if list(folder.glob("*.zh.html")) == [page] else ()
        for figure in stale:
            for name in FIGURE_FORMATS:
                figure.with_name(f"{figure.name}.zh.{name}").unlink(missing_ok=True)
        page.unlink()  # last, so that after an interruption the next command removes the rest
