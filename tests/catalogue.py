"""Chinese catalogue: `python tests/catalogue.py` updates zh.po with the messages in the code.

A new message gets an empty translation, to be written by hand; messages that are no longer in the code are removed.
"""

from __future__ import annotations

from pathlib import Path

from babel.messages import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.pofile import read_po, write_po

PACKAGE = Path(__file__).parent.parent / "src" / "anaphora"
SENTENCES = PACKAGE / "base" / "zh.po"


def extracted() -> Catalog:
    """Return the messages marked in the code, and those that `say` prints, without translations."""
    catalogue = Catalog()
    keywords = {**DEFAULT_KEYWORDS, "say": None}
    sentences = extract_from_dir(PACKAGE, [("**.py", "python"), ("**.j2", "jinja2")], keywords=keywords)
    for path, _line, message, _comments, context in sorted(sentences, key=lambda one: one[:2]):
        catalogue.add(message, locations=[(path, 0)], context=context)
    return catalogue


def translated() -> Catalog:
    """Return the messages of zh.po with their translations."""
    with SENTENCES.open("rb") as file:
        return read_po(file, locale="zh")


def update() -> None:
    """Rewrite zh.po with the messages in the code and the existing translations."""
    catalogue, template = translated(), extracted()
    template.creation_date = catalogue.creation_date  # a date of its own would change the files at every call
    catalogue.update(template, no_fuzzy_matching=True, update_creation_date=False)
    catalogue.obsolete.clear()
    with SENTENCES.open("wb") as file:
        write_po(file, catalogue, width=120, no_location=True)


if __name__ == "__main__":
    update()
