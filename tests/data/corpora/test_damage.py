"""Tests of every reader with damaged files: the same items, fewer items with a counted reason, or a one-line error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_corpora import TINY, Tiny

from anaphora.base.errors import LONGEST_MESSAGE, UserError
from anaphora.data.corpora.coreference import PLACEHOLDER
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.corpora.word_classes import REMOVED_WORD, WITHOUT_WORDS
from anaphora.data.example import Example
from anaphora.data.text import Text
from anaphora.settings import data
from anaphora.settings.variants import VARIANTS

Item = Example | Text
Damage = tuple[str, bytes]


def reading(tiny: Tiny, folder: Path) -> tuple[list[Item], ReadingReport]:
    """Return all items of a corpus, and the report on its rows."""
    settings = tiny.settings(folder)
    splits, report = settings.build()
    items: list[Item] = [item for split in splits.values() for item in split]
    if not isinstance(settings, data.Cluewsc):  # whose rows are claims about items
        is_plain = isinstance(settings, data.PlainText)  # whose rows are paragraphs
        counted = sum(item.text.count("\n") + 1 if is_plain else 1 for item in items)
        assert counted + len(report.dropped) == report.rows
    return items, report


def is_same(item: Item, other: Item, *, is_reduced: bool) -> bool:
    """Return whether two items agree; `is_reduced` allows a truncated text or fewer mentions."""
    is_cut = item.text.startswith(other.text) or other.text.startswith(item.text)
    if isinstance(item, Text) or isinstance(other, Text):
        labels = [getattr(one, "label", None) or "" for one in (item, other)]
        return is_cut and str(labels[1]).startswith(str(labels[0]))
    if not is_cut and not is_reduced:
        return False
    mine, its = (answers(one, by_words=not is_cut) for one in (item, other))
    return mine[0] == its[0] and (mine[1].items() <= its[1].items() if is_reduced else mine[1] == its[1])


def answers(item: Example, *, by_words: bool) -> tuple[object, dict[object, bool]]:
    """Return the pronoun and the correctness of each mention of an item, by words or by spans."""

    def name(span: tuple[int, int]) -> object:
        return item.text[slice(*span)] if by_words else span

    spans = [(span, number in item.antecedents) for number, spans in enumerate(item.candidates) for span in spans]
    return name(item.pronoun), {name(span): is_right for span, is_right in spans}


def check(tiny: Tiny, folder: Path, name: str, damage: Damage) -> str:
    """Check the result of reading a corpus with one damaged file, and return its kind."""
    tiny.write(folder)
    expected, report = reading(tiny, folder)
    kind, content = damage
    (folder / name).write_bytes(content)
    try:
        items, again = reading(tiny, folder)
    except UserError as error:
        message = str(error)
        assert "\n" not in message and 0 < len(message) <= LONGEST_MESSAGE, (kind, message)
        assert str(folder) in message, (kind, message)
        return "refused"
    is_reduced = len(again.dropped) > len(report.dropped) or again.rows < report.rows
    for item in items:
        assert any(is_same(item, other, is_reduced=is_reduced) for other in expected), (kind, item)
    return "reduced" if is_reduced else "read"


def harmless(content: str) -> Iterator[Damage]:
    """Yield variants of a file as other editors and systems write it."""
    yield "BOM", b"\xef\xbb\xbf" + content.encode()
    yield "CRLF", content.replace("\n", "\r\n").encode()
    yield "CR", content.replace("\n", "\r").encode()
    yield "no end of the last line", content.rstrip("\n").encode()
    yield "blank lines at the end", f"{content}\n\n".encode()


def broken(content: str, separator: str) -> Iterator[Damage]:
    """Yield damaged lines, columns, brackets, numbers and encodings."""
    yield "UTF-16", content.encode("utf-16")
    yield "Latin-1", content.replace("e", "é").encode("latin-1", "replace")
    yield "empty", b""
    yield "blank", b"\n\n"
    yield "binary", bytes(range(256)) * 4
    yield "gzipped, by its first bytes", b"\x1f\x8b\x08" + content.encode()
    yield "every line twice", "".join(line + line for line in content.splitlines(keepends=True)).encode()
    yield "the whole twice", (content + content).encode()
    written = content.encode()
    for part in range(1, 8):
        yield f"ends after {part} of 8", written[: len(written) * part // 8]
        yield (
            f"NUL after {part} of 8",
            written[: len(written) * part // 8] + b"\0" + written[len(written) * part // 8 :],
        )
    lines = content.split("\n")[:-1]
    for number, line in enumerate(lines):
        before, after = lines[:number], lines[number + 1 :]
        for kind, changed in (
            ("removed", []),
            ("twice", [line, line]),
            *((f"cut at {cut}", [line[:cut]]) for cut in {len(line) // 3, 2 * len(line) // 3, max(len(line) - 3, 0)}),
            *((f"without {mark}", [line.replace(mark, "", 1)]) for mark in '()[]{}"#' if mark in line),
            *(
                ("a number is " + new, [re.sub(r"\d+", new, line, count=1)])
                for new in ("x", "-1", "9" * 5000, "²", "NaN")
            ),
        ):
            yield f"line {number + 1} {kind}", "\n".join([*before, *changed, *after, ""]).encode()
        if number:
            yield (
                f"lines {number} and {number + 1} swapped",
                "\n".join([*before[:-1], line, before[-1], *after, ""]).encode(),
            )
    if separator:
        yield from broken_columns(lines, separator)


def broken_columns(lines: list[str], separator: str) -> Iterator[Damage]:
    table = [line.split(separator) for line in lines]
    width = max(map(len, table))

    def written(change: Callable[[list[str]], list[str]]) -> bytes:
        rows = [separator.join(change(list(row)) if len(row) == width else row) for row in table]
        return "\n".join([*rows, ""]).encode()

    for place in range(width):
        yield f"column {place} dropped", written(lambda row, at=place: row[:at] + row[at + 1 :])  # type: ignore[misc]
        for empty in ("", "_", "-", "*"):
            new = [empty] if empty or separator == "\t" else []
            yield (
                f"column {place} is {empty!r}",
                written(
                    lambda row, at=place, new=new: [*row[:at], *new, *row[at + 1 :]]  # type: ignore[misc]
                ),
            )


WRONG: tuple[Any, ...] = (
    *(None, True, 3, -1, 1.5, float("nan"), 10**30, "", " ", "x", [], {}, [None], [[1, 2]], [True]),
)
RIGHT: tuple[tuple[str, Any], ...] = (
    *(("label", label) for label in (True, 3, -1, 1.5, 10**30, "x")),
    ("antecedents", []),
    ("candidates", [[1, 2]]),
    ("text", "x"),
    ("title", "x"),
    ("group", "x"),
)
"""Values that are valid in their fields: they change the item, but are no damage."""


def wrong_types(content: str) -> Iterator[Damage]:
    """Yield the file with each field of each JSON object missing, or with values of every wrong type."""
    is_list = content.startswith("[")
    rows: list[dict[str, Any]] = json.loads(content) if is_list else [json.loads(line) for line in content.splitlines()]
    for number, row in enumerate(rows):
        for field in row:
            without = {name: value for name, value in row.items() if name != field}
            changed = [{**row, field: value} for value in WRONG if (field, value) not in RIGHT]
            for new in (without, *changed):
                table = [*rows[:number], new, *rows[number + 1 :]]
                text = json.dumps(table) if is_list else "".join(json.dumps(each) + "\n" for each in table)
                yield f"{field} of row {number + 1} is {new.get(field)!r}", text.encode()


def files() -> list[tuple[str, str]]:
    return [(corpus, name) for corpus, tiny in TINY.items() for name in tiny.files]


def test_every_corpus_has_a_tiny_copy() -> None:
    kinds = {type(tiny.settings(Path("."))) for tiny in TINY.values()}
    assert kinds == set(VARIANTS[data.Data].values()) - {data.ControlledCorpus, data.SilverStandard}


@pytest.mark.parametrize("corpus", TINY)
def test_a_tiny_copy_has_items(corpus: str, tmp_path: Path) -> None:
    TINY[corpus].write(tmp_path)
    assert reading(TINY[corpus], tmp_path)[0]


@pytest.mark.parametrize(("corpus", "name"), files())
def test_another_way_to_write_a_file_gives_the_same_items(corpus: str, name: str, tmp_path: Path) -> None:
    tiny = TINY[corpus]
    tiny.write(tmp_path)
    expected = reading(tiny, tmp_path)
    for kind, content in harmless(tiny.files[name]):
        (tmp_path / name).write_bytes(content)
        assert reading(tiny, tmp_path) == expected, kind


@pytest.mark.parametrize(
    ("corpus", "name"), [(corpus, name) for corpus, name in files() if corpus != "wikitext"]
)  # other headings make another text, and no reader can know which was meant
def test_a_damaged_file_gives_the_same_items_or_a_reason(corpus: str, name: str, tmp_path: Path) -> None:
    tiny = TINY[corpus]
    outcomes = [check(tiny, tmp_path, name, damage) for damage in broken(tiny.files[name], tiny.separator)]
    assert "refused" in outcomes


@pytest.mark.parametrize(
    ("corpus", "name"), [(corpus, name) for corpus, name in files() if name.endswith((".json", ".jsonl"))]
)
def test_a_json_value_of_a_wrong_type_gives_the_same_items_or_a_reason(corpus: str, name: str, tmp_path: Path) -> None:
    tiny = TINY[corpus]
    outcomes = [check(tiny, tmp_path, name, damage) for damage in wrong_types(tiny.files[name])]
    assert "refused" in outcomes


PLACED = {"cluewsc": "唱歌", "mandarinograd": "告诉", "xwino": "told", "corefud": "liked", "ontogum": "liked"}
PLACED |= {
    "conll2012": "liked",
    "clusters": "liked",
    "litbank_conll": "liked",
    "litbank": "liked",
    "winobias": "thanked",
    "winogender": "told",
}
PLACED |= {"gap": "free", "own_jsonl": "free", "own_csv": "free", "plain_text": "free", "plain_txt": "free"}
PLACED |= {"wikitext": "free", "ag_news": "team", "chnsenticorp": "干净"}
PLACED |= dict.fromkeys(("labelled_text", "labelled_jsonl", "sst2", "rotten_tomatoes"), "a good")
"""Words of one item of each tiny corpus; of the others "told"."""


@pytest.mark.parametrize("corpus", TINY)
def test_a_text_of_placeholders_is_dropped_and_counted(corpus: str, tmp_path: Path) -> None:
    tiny, word = TINY[corpus], PLACED.get(corpus, "told")
    tiny.write(tmp_path)
    items, report = reading(tiny, tmp_path)
    for name in tiny.files:
        path = tmp_path / name
        path.write_text(path.read_text(encoding="utf-8").replace(word, REMOVED_WORD), encoding="utf-8")
    try:
        fewer, again = reading(tiny, tmp_path)
    except UserError:  # nothing is left
        return
    assert not any(REMOVED_WORD in item.text for item in fewer)
    left_out = again.reasons.get(WITHOUT_WORDS, 0) + again.reasons.get(PLACEHOLDER, 0)
    assert left_out >= len(items) - len(fewer) > 0
    assert all(any(is_same(item, other, is_reduced=True) for other in items) for item in fewer)
    assert again.rows == report.rows
