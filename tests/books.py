"""Small invented corpora in the formats of LitBank and GAP."""

from __future__ import annotations

from pathlib import Path


def books(folder: Path) -> Path:
    """Write ten invented books in the format of LitBank."""
    folder.mkdir()
    names = [("Anna", "she"), ("Tom", "he"), ("Mary", "she"), ("Peter", "he")]
    for number in range(10):
        rows: list[str] = []
        links: list[str] = []
        sentences: list[str] = []
        for line in range(4):
            name, pronoun = names[(number + line) % 4]
            sentences.append(f"{name} went to the park before {pronoun} left shop {number} .")
            for place, word, form in ((0, name, "PROP"), (6, pronoun, "PRON")):
                identity = f"T{len(rows)}"
                rows.append(f"MENTION\t{identity}\t{line}\t{place}\t{line}\t{place}\t{word}\tPER\t{form}")
                links.append(f"COREF\t{identity}\t{name}")
        (folder / f"{number}_book_brat.txt").write_text("\n".join(sentences) + "\n")
        (folder / f"{number}_book_brat.ann").write_text("\n".join([*rows, *links]) + "\n")
    return folder


def gap(folder: Path) -> Path:
    """Write twenty development and ten validation rows in GAP's format; every fifth pronoun refers to neither name."""
    folder.mkdir()
    columns = ("ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref", "URL")
    for part, numbers in (("development", range(20)), ("validation", range(20, 30))):
        lines = ["\t".join(columns)]
        for number in numbers:
            one, two, pronoun = ("Anna", "Mary", "she") if number % 2 else ("Tom", "Peter", "he")
            text = f"{one} met {two} before {pronoun} went to park {number} ."
            right = {0: (1, 0), 1: (0, 1), 2: (1, 0), 3: (0, 1), 4: (0, 0)}[number % 5]
            first, second = ("TRUE" if each else "FALSE" for each in right)
            places = (text.index(f" {pronoun} ") + 1, 0, text.index(two))
            cells = (f"{part}-{number}", text, pronoun, places[0], one, places[1], first, two, places[2], second, "x")
            lines.append("\t".join(map(str, cells)))
        (folder / f"gap-{part}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
