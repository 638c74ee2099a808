"""What scripts/explain.py does: find what is asked, walk through it, and tell it in the form that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from anaphora.analysis.settings import Analysis
from anaphora.errors import UserError
from anaphora.explain.matrices import Calculation, example, read
from anaphora.explain.phrases import Phrases
from anaphora.explain.settings import EXAMPLES, Explanation
from anaphora.files import write_json
from anaphora.question import example_of, language_of

if TYPE_CHECKING:
    from anaphora.explain.walk import Walk

_RUN = "outputs/demo"


def explain(asked: Explanation) -> None:
    """Print a walk-through, or write it as a page or as JSON."""
    # Markup and colours in brackets are for our own words; a text may hold brackets too.
    console = Console(markup=False, highlight=False)
    if asked.example == "list":
        console.print(listed(asked.language or "en"))
        return
    found = walk_of(asked)
    form = asked.form or ("terminal" if asked.text is None else "short")
    if form in ("short", "terminal"):
        from anaphora.explain.terminal import show, show_short

        (show_short if form == "short" else show)(console, found, asked.digits)
        return
    ending = {"page": "html", "json": "json"}[form]
    path = Path(asked.output or f"outputs/explain/{found.name}_{found.language}.{ending}")
    if form == "json":
        write_json(path, found.plain())
    else:
        from anaphora.explain.page import write_page

        write_page(path, found, asked.digits)
    console.print(str(path), soft_wrap=True)


def walk_of(asked: Explanation) -> Walk:
    """The walk-through that a command asks for.

    Raises:
        UserError: a file, a run, a head or a word is not there, or does not fit.
    """
    if asked.text is not None:
        about = Analysis(text=asked.text, pronoun=asked.pronoun, candidates=asked.candidates) if asked.pronoun else None
        return _of_run(asked, asked.text, about, asked.row, Phrases(asked.language or language_of(asked.text)))
    words = Phrases(asked.language or "en")
    if asked.example is None:
        assert asked.matrices is not None
        return _calculated(asked, read(Path(asked.matrices), words.language), words)
    known = example(asked.example, words.language)
    if asked.run is None:
        return _calculated(asked, known, words)
    if not known.sentence:
        told = [name for name in EXAMPLES if example(name, words.language).sentence]
        raise UserError(f"run goes with an example that has a sentence: {', '.join(told)}; {asked.example} has none")
    sentence = known.sentence
    about = None
    if "pronoun" in sentence:
        about = Analysis(text=sentence["text"], pronoun=sentence["pronoun"], candidates=list(sentence["candidates"]))
    return _of_run(asked, sentence["text"], about, asked.row or sentence.get("word"), words)


def _calculated(asked: Explanation, known: Calculation, words: Phrases) -> Walk:
    from anaphora.explain.calculation import calculate

    return calculate(known, words, asked.head or 0, asked.row)


def _of_run(asked: Explanation, text: str, about: Analysis | None, row: str | None, words: Phrases) -> Walk:
    from anaphora.checkpoint import load
    from anaphora.explain.encoding import Sentence, walk
    from anaphora.workflow import stored_head

    run = load(asked.run or _RUN)
    layer, head = asked.layer, asked.head
    if layer is None or head is None:
        chosen = stored_head(run)
        layer, head = chosen.layer if layer is None else layer, chosen.head if head is None else head
    return walk(run, Sentence(text, None if about is None else example_of(about)), layer, head, row, words)


def listed(language: str) -> Table:
    """The built-in examples with what they show."""
    words = Phrases(language)
    table = Table(title=words("words", "examples"), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("example=", no_wrap=True)
    table.add_column("")
    for name in EXAMPLES:
        table.add_row(name, example(name, language).title)
    return table
