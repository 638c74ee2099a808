"""Write the minimal pairs for model selection as JSON lines: python -m experiments.shipped.pairs output=FOLDER.

In `sentences/pairs.en.tsv` and `sentences/pairs.zh.tsv`, a line has the cue type and, after a tab, both sentences of
a pair in one: the candidates stand in [ ], the pronoun in < >, and words that differ as {first|second} or
<first|second>. In the first sentence, the first candidate is the antecedent; in the second, the second candidate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from anaphora.base.errors import UserError
from anaphora.base.files import check_new, write_text
from anaphora.base.language import LANGUAGES
from anaphora.cli import run_program
from experiments.shipped.settings import PairFiles, Row

FOLDER = Path(__file__).parent / "sentences"
TYPES = ("gender", "number", "animacy", "selection", "role", "long")
"""Cue types, as in the evaluation sentences."""
_EITHER = re.compile(r"\{([^{}|]*)\|([^{}|]*)\}")
_PRONOUN = re.compile(r"<([^<>|]+)(?:\|([^<>|]+))?>")
_MARKED = re.compile(r"\[([^\[\]]+)\]|<([^<>]+)>")


def work(settings: PairFiles) -> None:
    """Write a file for each language; each write is atomic.

    Raises:
        UserError: a file exists and `overwrite` is not set, or a line does not follow the notation; the message names
            the file and the line.
    """
    for language in LANGUAGES:
        check_new(Path(settings.output) / f"pairs.{language}.jsonl", settings.overwrite)
    for language in LANGUAGES:
        rows = [{**row, "split": settings.split} for pair in written_pairs(language) for row in pair]
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        write_text(Path(settings.output) / f"pairs.{language}.jsonl", lines)


def written_pairs(language: str) -> Iterator[tuple[Row, Row]]:
    """Yield both rows of each pair of a language, in the order of the file.

    Raises:
        UserError: a line does not follow the notation; the message names the file and the line.
    """
    path = FOLDER / f"pairs.{language}.tsv"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        kind, _, text = line.partition("\t")
        name = f"{language}-pairs-{number}"
        pair = tuple(
            {
                **_sentence(text, antecedent, f"{path.name}, line {number}"),
                "language": language,
                "group": name,
                "minimal_pair": name,
                "factors": {"type": kind},
            }
            for antecedent in (0, 1)
        )
        if kind not in TYPES:
            raise UserError(f"{path.name}, line {number}: type {kind!r} must be one of {', '.join(TYPES)}")
        yield pair[0], pair[1]


def _sentence(text: str, antecedent: int, place: str) -> Row:
    """Return the text, spans and antecedent of one sentence of a pair."""
    chosen = _EITHER.sub(lambda found: found[antecedent + 1], text)
    chosen = _PRONOUN.sub(lambda found: f"<{found[2] if antecedent and found[2] else found[1]}>", chosen)
    plain, after = "", 0
    candidates: list[list[int]] = []
    pronouns: list[list[int]] = []
    for mark in _MARKED.finditer(chosen):
        plain += chosen[after : mark.start()]
        word, spans = (mark[1], candidates) if mark[1] else (mark[2], pronouns)
        spans.append([len(plain), len(plain) + len(word)])
        plain += word
        after = mark.end()
    plain += chosen[after:]
    if len(candidates) != 2 or len(pronouns) != 1 or re.search(r"[][{}<>|]", plain):
        raise UserError(f"{place}: {text!r} must hold two candidates in [ ] and one pronoun in < >")
    return {"text": plain, "pronoun": pronouns[0], "candidates": candidates, "antecedents": [antecedent]}


if __name__ == "__main__":
    run_program(PairFiles, work)
