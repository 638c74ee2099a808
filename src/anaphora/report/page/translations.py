"""The names of pages and figures in several languages, and the pages of an earlier command that new ones replace."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from anaphora.base.checks import FIGURE_FORMATS


def page_suffixes(interface_language: str) -> dict[str, str]:
    """Return the endings of a page's file names by language; a single page has none."""
    return {"en": "", "zh": ".zh"} if interface_language == "both" else {interface_language: ""}


def page_names(stem: str, suffixes: Mapping[str, str]) -> dict[str, str]:
    """Return the name of a page by language."""
    return {language: f"{stem}{suffix}.html" for language, suffix in suffixes.items()}


def other_pages(names: Mapping[str, str], language: str) -> dict[str, str]:
    """Return where a page in a language links to: the pages in the others."""
    return {other: name for other, name in names.items() if other != language}


def remove_translation(folder: Path, stem: str, drawn: Collection[Path] = ()) -> None:
    """Remove the Chinese page of an earlier command in both languages, which the new page replaces.

    A page that does not link to the English one is none of these, and stays.

    Args:
        folder: of the page.
        stem: of its name.
        drawn: the figures of the new page, without the ends of their names.
    """
    page = folder / f"{stem}.zh.html"
    if page.is_file() and f'<a href="{stem}.html" lang="en" hreflang="en">'.encode() in page.read_bytes():
        # Reports on both splits draw the same figures; a Chinese page that stays keeps its own.
        stale = drawn if list(folder.glob("*.zh.html")) == [page] else ()
        for figure in stale:
            for name in FIGURE_FORMATS:
                figure.with_name(f"{figure.name}.zh.{name}").unlink(missing_ok=True)
        page.unlink()  # last, for by it a command that was broken off knows that there is something to remove
