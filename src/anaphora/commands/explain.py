"""Explain attention step by step, for matrices or for a sentence, in the terminal, as an HTML page or as JSON.

Example: anaphora explain example=by_hand
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.base.checks import PAGE_ENDINGS, at_least, file_ending, one_of
from anaphora.base.errors import UserError
from anaphora.base.files import check_new, write_json
from anaphora.base.language import LANGUAGES, language_of
from anaphora.base.translation import _, environment_language, spoken_in
from anaphora.commands.parts.settings import Overwriting, check_sentence
from anaphora.explain import EXAMPLES

if TYPE_CHECKING:
    from rich.table import Table

    from anaphora.data.example import Example
    from anaphora.explain.walk import Walkthrough

_DEFAULT_OUTPUT = "outputs/explain"


@dataclass(kw_only=True)
class Explanation(Overwriting):
    """Settings of `anaphora explain`: a built-in example, your own matrices, or a sentence for a trained run."""

    example: str | None = None  # a built-in example; `list` lists them
    matrices: str | None = None  # in place of `example`, a YAML file with your own matrices
    text: str | None = None  # in place of `example`, a sentence for a trained run
    # Run directory, by default `outputs/demo` for a text; with `example`, the run processes the example's sentence.
    run: str | None = None
    # A word of the text ("it:2" for the second "it"), or its characters as "start:end"; by default its last
    # third-person pronoun.
    pronoun: str | None = None
    candidates: list[str] = field(default_factory=list)  # words of the text, or "start:end", for the run's answer
    layer: int | None = None  # layer of the run; by default that of the head chosen on the development split
    head: int | None = None  # head of this layer; by default the chosen one, or the first of your own matrices
    row: str | None = None  # token whose computation is shown step by step: a word, or an index from 0
    interface_language: str | None = None  # `en` or `zh`; by default that of ANAPHORA_LANGUAGE, else the text's
    form: str | None = None  # `short`, `terminal`, `page` or `json`; by default `short` for a text, else `terminal`
    digits: int = 4  # digits after the decimal point; JSON has all digits
    output: str | None = None  # file for a page or JSON; by default in `outputs/explain`

    def __post_init__(self) -> None:
        sources = [name for name in ("example", "matrices", "text") if getattr(self, name) is not None]
        if len(sources) != 1:
            raise ValueError(
                f"give one of example=, matrices= and text=, not {' and '.join(sources) or 'none'}; "
                "example=list lists the examples"
            )
        if self.example is not None:
            one_of("example", self.example, ("list", *EXAMPLES))
        if self.form is not None:
            one_of("form", self.form, ("short", "terminal", "page", "json"))
        if self.interface_language is not None:
            one_of("interface_language", self.interface_language, LANGUAGES)
        if not 0 <= self.digits <= 15:
            raise ValueError(f"digits ({self.digits}) must be from 0 to 15")
        at_least("layer", self.layer, 0)
        at_least("head", self.head, 0)
        if self.example == "list":
            self._check_only_listed()
        if self.shown_as == "json" and self.digits != Explanation.digits:
            raise ValueError(f"digits ({self.digits}) has no effect on JSON, which has all digits; leave it out")
        if self.matrices is not None and self.run is not None:
            raise ValueError("run works with a text or an example, not with matrices")
        if self.layer is not None and self.text is None and self.run is None:
            raise ValueError("layer needs a run: give run= or text=")
        check_sentence(self.text, self.pronoun, self.candidates)
        if self.output is not None and self.shown_as in ("short", "terminal"):
            raise ValueError(
                f"output ({self.output}) is the file of a page or of JSON; form={self.shown_as} prints to the "
                "terminal, so set form=page or form=json"
            )
        if self.output is not None:
            file_ending("output", self.output, *(PAGE_ENDINGS if self.shown_as == "page" else (".json",)))
        if self.text is not None and self.run is None:
            self.run = "outputs/demo"

    def _check_only_listed(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name not in ("example", "interface_language") and value and value != one.default:
                raise ValueError(f"{one.name} ({value}) has no effect on example=list; leave it out")

    @property
    def shown_as(self) -> str:
        """Return the setting `form`; by default `short` if `text` is set, otherwise `terminal`."""
        return self.form or ("terminal" if self.text is None else "short")


def explain(settings: Explanation) -> None:
    """Print a walk-through, or write it as an HTML page or as JSON, by default in the folder `outputs/explain`.

    With `example=list`, the built-in examples are listed instead.

    Raises:
        UserError: the output cannot be written; also the errors of `build_walkthrough`.
    """
    from rich.console import Console

    # No markup: a user's text may contain brackets.
    console = Console(markup=False, highlight=False)
    if settings.example == "list":
        console.print(example_table(settings.interface_language or environment_language()))
        return
    form = settings.shown_as
    if form in ("page", "json"):
        check_new(Path(settings.output or f"{_DEFAULT_OUTPUT}/{form}"), settings.overwrite)
    walk = build_walkthrough(settings)
    if form in ("short", "terminal"):
        from anaphora.explain.output import print_forms, print_summary, print_walkthrough

        with spoken_in(walk.language):
            if form == "short":
                print_summary(console, walk, settings.digits)
                print_forms(console)
            else:
                print_walkthrough(console, walk, settings.digits)
        return
    ending = {"page": "html", "json": "json"}[form]
    path = Path(settings.output or f"{_DEFAULT_OUTPUT}/{_name(settings, walk)}_{walk.language}.{ending}")
    check_new(path, overwrite=settings.overwrite or settings.output is None)  # the default name has all settings
    if form == "json":
        write_json(path, walk.plain())
    else:
        from anaphora.explain.output import write_walkthrough_page

        write_walkthrough_page(path, walk, settings.digits)
    console.print(str(path), soft_wrap=True)


def _name(settings: Explanation, walk: Walkthrough) -> str:
    """Return the default file name of a walk-through, without suffix.

    For a run or matrices, or if a setting differs from its default, the name contains a hash of the settings.
    """
    from anaphora.data.own_sentence import name_of_sentence

    digits = [] if settings.digits == Explanation.digits else [settings.digits]
    if settings.run is None:
        whose = [] if settings.matrices is None else [settings.matrices]
        chosen = [settings.head, settings.row, *digits, *whose]
        return walk.name if chosen == [None, None] else name_of_sentence(walk.name, *chosen)
    asked = (settings.run, settings.pronoun, settings.candidates, settings.layer, settings.head, settings.row)
    return f"sentence_{name_of_sentence(settings.text or settings.example or '', *asked, *digits)}"


def build_walkthrough(settings: Explanation) -> Walkthrough:
    """Build the walk-through requested by the settings.

    Raises:
        UserError: the run cannot be loaded, the example has no sentence for a run, or no head is set and none was
            chosen. Also the errors of `load_calculation`, `walk_through_calculation`, `example_from_query` and
            `walk_through_run`.
    """
    from anaphora.data.own_sentence import example_from_query, optional_example
    from anaphora.explain.calculation import walk_through_calculation
    from anaphora.explain.matrices import load_calculation, load_example

    otherwise = language_of(settings.text) if settings.text is not None else "en"
    language = settings.interface_language or environment_language(otherwise)
    with spoken_in(language):
        if settings.text is not None:
            query = optional_example(settings.text, settings.pronoun, settings.candidates)
            return _walk_through_sentence(settings, settings.text, query, settings.row)
        if settings.example is None:
            assert settings.matrices is not None
            calculation = load_calculation(Path(settings.matrices), language)
        else:
            calculation = load_example(settings.example, language)
        if settings.run is None:
            return walk_through_calculation(calculation, settings.head or 0, settings.row)
        if not (sentence := calculation.sentence):
            with_sentence = [name for name in EXAMPLES if load_example(name, language).sentence]
            raise UserError(
                f"run needs an example that has a sentence: {', '.join(with_sentence)}; {settings.example} has none"
            )
        query = None
        if "pronoun" in sentence:
            query = example_from_query(sentence["text"], sentence["pronoun"], list(sentence["candidates"]))
        return _walk_through_sentence(settings, sentence["text"], query, settings.row or sentence.get("word"))


def _walk_through_sentence(settings: Explanation, text: str, query: Example | None, row: str | None) -> Walkthrough:
    from anaphora.analysis.evidence.storage import stored_head
    from anaphora.explain.encoding import SentenceQuery, walk_through_run
    from anaphora.runs.directory import load

    assert settings.run is not None
    run = load(settings.run)
    layer, head = settings.layer, settings.head
    if layer is None or head is None:
        chosen = stored_head(run, language_of(text))
        layer, head = chosen.layer if layer is None else layer, chosen.head if head is None else head
    is_detected = settings.text is not None and settings.pronoun is None
    return walk_through_run(run, SentenceQuery(text, query, is_detected), layer, head, row)


def example_table(language: str) -> Table:
    """Return a table of the built-in examples and their titles."""
    from rich import box
    from rich.table import Table

    from anaphora.explain.matrices import load_example

    with spoken_in(language):
        title = _("Examples")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("example=", no_wrap=True)
    table.add_column("")
    for name in EXAMPLES:
        table.add_row(name, load_example(name, language).title)
    return table
