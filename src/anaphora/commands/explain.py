"""Walk through a calculation or a sentence of a run, in the terminal, as a page or as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from anaphora.base.errors import UserError
from anaphora.base.files import check_writable, write_json
from anaphora.base.language import language_of
from anaphora.base.locale.translation import _, environment_language, spoken_in
from anaphora.data.example import Example
from anaphora.data.own_sentence import example_from_query, name_of_sentence
from anaphora.explain.matrices import Calculation, load_calculation, load_example
from anaphora.settings.commands.explanation import EXAMPLES, Explanation

if TYPE_CHECKING:
    from anaphora.explain.walk import Walkthrough

_DEFAULT_OUTPUT = "outputs/explain"


def explain(settings: Explanation) -> None:
    """Print a walk-through, or write it as a page or as JSON."""
    # Markup and colours in brackets are for our own words; a text may hold brackets too.
    console = Console(markup=False, highlight=False)
    if settings.example == "list":
        console.print(example_table(settings.interface_language or environment_language()))
        return
    form = settings.shown_as
    if form in ("page", "json"):
        check_writable(Path(settings.output or f"{_DEFAULT_OUTPUT}/{form}"))
    walk = build_walkthrough(settings)
    if form in ("short", "terminal"):
        from anaphora.explain.terminal import print_summary, print_walkthrough

        with spoken_in(walk.language):
            (print_summary if form == "short" else print_walkthrough)(console, walk, settings.digits)
        return
    ending = {"page": "html", "json": "json"}[form]
    path = Path(settings.output or f"{_DEFAULT_OUTPUT}/{_name(settings, walk)}_{walk.language}.{ending}")
    if form == "json":
        write_json(path, walk.plain())
    else:
        from anaphora.explain.page import write_walkthrough_page

        write_walkthrough_page(path, walk, settings.digits)
    console.print(str(path), soft_wrap=True)


def _name(settings: Explanation, walk: Walkthrough) -> str:
    """What the file of a walk-through is called where nobody names it; one of a sentence tells it from all others."""
    if settings.run is None:
        return walk.name
    asked = (settings.run, settings.pronoun, settings.candidates, settings.layer, settings.head, settings.row)
    return f"sentence_{name_of_sentence(settings.text or settings.example or '', *asked)}"


def build_walkthrough(settings: Explanation) -> Walkthrough:
    """The walk-through that the settings name.

    Raises:
        UserError: a file, a run, a head or a word is not there, or does not fit.
    """
    otherwise = language_of(settings.text) if settings.text is not None else "en"
    language = settings.interface_language or environment_language(otherwise)
    with spoken_in(language):
        return _walk_through(settings, language)


def _walk_through(settings: Explanation, language: str) -> Walkthrough:
    if settings.text is not None:
        query = example_from_query(settings.text, settings.pronoun, settings.candidates) if settings.pronoun else None
        return _walk_through_sentence(settings, settings.text, query, settings.row)
    if settings.example is None:
        assert settings.matrices is not None
        return _walk_through_matrices(settings, load_calculation(Path(settings.matrices), language))
    calculation = load_example(settings.example, language)
    if settings.run is None:
        return _walk_through_matrices(settings, calculation)
    if not calculation.sentence:
        with_sentence = [name for name in EXAMPLES if load_example(name, language).sentence]
        raise UserError(
            f"run needs an example that has a sentence: {', '.join(with_sentence)}; {settings.example} has none"
        )
    sentence = calculation.sentence
    query = None
    if "pronoun" in sentence:
        query = example_from_query(sentence["text"], sentence["pronoun"], list(sentence["candidates"]))
    return _walk_through_sentence(settings, sentence["text"], query, settings.row or sentence.get("word"))


def _walk_through_matrices(settings: Explanation, calculation: Calculation) -> Walkthrough:
    from anaphora.explain.calculation import walk_through_calculation

    return walk_through_calculation(calculation, settings.head or 0, settings.row)


def _walk_through_sentence(settings: Explanation, text: str, query: Example | None, row: str | None) -> Walkthrough:
    from anaphora.analysis.evidence.storage import stored_head
    from anaphora.explain.encoding import SentenceQuery, walk_through_run
    from anaphora.runs.directory import load

    assert settings.run is not None
    run = load(settings.run)
    layer, head = settings.layer, settings.head
    if layer is None or head is None:
        chosen = stored_head(run)
        layer, head = chosen.layer if layer is None else layer, chosen.head if head is None else head
    return walk_through_run(run, SentenceQuery(text, query), layer, head, row)


def example_table(language: str) -> Table:
    """The built-in examples with what they show."""
    with spoken_in(language):
        title = _("Examples")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("example=", no_wrap=True)
    table.add_column("")
    for name in EXAMPLES:
        table.add_row(name, load_example(name, language).title)
    return table
