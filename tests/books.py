"""Invented books with coreference, small enough to write down."""

from __future__ import annotations

from pathlib import Path


def books(folder: Path) -> Path:
    """Ten invented books in the format of LitBank."""
    folder.mkdir()
    names = [("Anna", "she"), ("Tom", "he"), ("Mary", "she"), ("Peter", "he")]
    for number in range(10):
        rows: list[str] = []
        links: list[str] = []
        sentences: list[str] = []
        for line in range(4):
            name, pronoun = names[(number + line) % 4]
            sentences.append(f"{name} went to the park before {pronoun} went to the shop .")
            for place, word, form in ((0, name, "PROP"), (6, pronoun, "PRON")):
                identity = f"T{len(rows)}"
                rows.append(f"MENTION\t{identity}\t{line}\t{place}\t{line}\t{place}\t{word}\tPER\t{form}")
                links.append(f"COREF\t{identity}\t{name}")
        (folder / f"{number}_book_brat.txt").write_text("\n".join(sentences) + "\n")
        (folder / f"{number}_book_brat.ann").write_text("\n".join([*rows, *links]) + "\n")
    return folder
