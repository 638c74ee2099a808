"""Definite Pronoun Resolution (Rahman and Ng 2012): four-line blocks -> Examples.

A block is the sentence, the pronoun, the two candidates with a comma between them, and the right one; blocks are
parted by empty lines. Blocks 2k and 2k + 1 are twins with opposite answers. No offsets are given: the authors' rule is
the pronoun's first occurrence as a word.
"""

from __future__ import annotations

from anaphora.data.corpora.division import ReadingReport, apart, divide, existing, lines, occurrences
from anaphora.data.example import Example, in_text_order
from anaphora.data.settings import Dpr
from anaphora.errors import UserError


def read(settings: Dpr) -> tuple[dict[str, list[Example]], ReadingReport]:
    """The examples by split and the report; twins share `group` and `twin`, so that they share a split.

    Raises:
        UserError: the file is not made of such blocks; file, line and value are named.
    """
    path = existing(settings.path)
    if path.is_dir():
        raise UserError(f"data.path ({settings.path}) is a folder; name the file of four-line blocks in it")
    examples, dropped = [], []
    blocks = _blocks(lines(path))
    for number, (line, block) in enumerate(blocks):
        where = f"{path}, line {line}"
        if len(block) != 4:
            raise UserError(f"{where}: a block of {len(block)} lines; sentence, pronoun, candidates, answer are needed")
        text, pronoun, listed, answer = block
        names = [name.strip() for name in listed.split(",")]
        if len(names) != 2 or not all(names):
            raise UserError(f"{path}, line {line + 2}: candidates {listed!r} must be two, with one comma between them")
        if answer not in names:
            raise UserError(f"{path}, line {line + 3}: answer {answer!r} must be one of {names}")
        found = occurrences(pronoun, text)
        if not found:
            raise UserError(f"{path}, line {line + 1}: pronoun {pronoun!r} is not a word of {text!r}")
        # A longer name may hold the shorter one, which then does not mean the other candidate there.
        spans = {name: occurrences(name, text) for name in names}
        longer, shorter = sorted(names, key=len, reverse=True)
        spans[longer] = apart(spans[longer], found[:1])
        spans[shorter] = apart(spans[shorter], [*found[:1], *spans[longer]])
        missing = [name for name in names if not spans[name]]
        if missing or names[0] == names[1]:
            dropped.append((where, "a candidate is not in the sentence" if missing else "both candidates are the same"))
            continue
        candidates, antecedents, _ = in_text_order(
            (tuple(spans[names[0]]), tuple(spans[names[1]])), (names.index(answer),)
        )
        twin = f"dpr/{number // 2}"
        examples.append(
            Example(
                text=text,
                language="en",
                pronoun=found[0],
                candidates=candidates,
                antecedents=antecedents,
                group=twin,
                twin=twin,
                factors={"corpus": "dpr", "form": pronoun.lower()},
            )
        )
    if not blocks:
        raise UserError(f"{path}: no block of four lines is in it")
    report = ReadingReport(rows=len(blocks), dropped=tuple(dropped))
    return divide(examples, settings.dev_share, settings.test_share, settings.seed), report


def _blocks(written: list[str]) -> list[tuple[int, list[str]]]:
    """Runs of non-empty lines, each with the number of its first line from 1."""
    blocks: list[tuple[int, list[str]]] = []
    inside = False
    for number, line in enumerate(written, start=1):
        content = line.strip()
        if content and not inside:
            blocks.append((number, []))
        if content:
            blocks[-1][1].append(content)
        inside = bool(content)
    return blocks
