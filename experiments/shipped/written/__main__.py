"""Write the items of the last stage: python -m experiments.shipped.written items=all.jsonl."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from random import Random

from anaphora.base.files import write_text
from anaphora.base.language import LANGUAGES
from anaphora.cli import run_program
from experiments.shipped.difference import TEST_SETS
from experiments.shipped.settings import Row, WrittenItems
from experiments.shipped.written.pairs import written_pairs


def work(settings: WrittenItems) -> None:
    """Write the drawn generated items, their dev split, and the copies of the pairs; the write is atomic.

    Raises:
        UserError: a line of the pairs does not follow the notation; the message names the file and the line.
    """
    generated = drawn(Path(settings.items).read_text(encoding="utf-8").splitlines(), settings.drawn, settings.seed)
    by_hand = former_tests(Path(settings.sentences)) if settings.former_tests else pairs()
    rows = chain(generated, copies(by_hand, settings.copies))
    write_text(Path(settings.output), "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def drawn(lines: Iterable[str], most: int, seed: int) -> Iterator[Row]:
    """Yield training rows in randomly drawn whole groups until `most` is reached, and then all rows of other splits."""
    groups: defaultdict[str, list[Row]] = defaultdict(list)
    others = []
    for row in map(json.loads, lines):
        if row["split"] == "train":
            groups[row["group"]].append(row)
        else:
            others.append(row)
    count = 0
    for group in Random(seed).sample(sorted(groups), len(groups)):
        if count >= most:
            break
        count += len(groups[group])
        yield from groups[group]
    yield from others


def pairs() -> Iterator[Row]:
    """Yield both sentences of each pair in both languages."""
    return (row for language in LANGUAGES for pair in written_pairs(language) for row in pair)


def former_tests(folder: Path) -> Iterator[Row]:
    """Yield the sentences of the first six test sets."""
    names = (name.format(language=language) for language in LANGUAGES for name in TEST_SETS[:6])
    for name in names:
        for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["split"] == "test":
                yield row


def copies(rows: Iterable[Row], count: int) -> Iterator[Row]:
    """Yield each row `count` times as a training row, each copy in a group of its own."""
    for row in rows:
        for copy in range(count):
            yield {**row, **{name: f"{row[name]}/{copy}" for name in ("group", "minimal_pair")}, "split": "train"}


if __name__ == "__main__":
    run_program(WrittenItems, work)
