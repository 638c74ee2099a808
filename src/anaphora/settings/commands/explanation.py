"""Settings of the walk-through, in the user's words. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field

from anaphora.base.checks import PAGE_ENDINGS, at_least, file_ending, one_of
from anaphora.base.language import LANGUAGES
from anaphora.settings.commands.sentence import check_sentence

EXAMPLES = (
    "matrix_form",
    "one_query",
    "no_projections",
    "equal_projections",
    "by_hand",
    "two_sequences",
    "starving_kitten",
    "skipped_soup",
    "apple_to_eat",
    "apple_to_charge",
)
"""The built-in calculations, in the order in which they are best read; each is a file of `examples`."""


@dataclass(kw_only=True)
class Explanation:
    """A calculation to walk through: an example, matrices of one's own, or a sentence of a trained run."""

    example: str | None = None  # a built-in example; `list` lists them
    matrices: str | None = None  # instead, a YAML file with matrices of your own
    text: str | None = None  # instead, a sentence that a trained run reads
    run: str | None = None  # a run directory (`outputs/demo` for a text); with an example, the run reads its sentence
    pronoun: str | None = None  # a word of the text ("it:2" for the second "it"), or its characters as "start:end"
    candidates: list[str] = field(default_factory=list)  # words of the text, or "start:end"; the run then answers
    layer: int | None = None  # layer of the run; by default that of the head chosen on the development split
    head: int | None = None  # head of this layer; by default the chosen one, or the first of your own matrices
    row: str | None = None  # the token to follow through all steps: a word, or its number from 0
    interface_language: str | None = None  # `en` or `zh`; by default what ANAPHORA_LANGUAGE names, else the text's
    form: str | None = None  # `short`, `terminal`, `page` or `json`; by default `short` for a text, else `terminal`
    digits: int = 4  # digits after the decimal point; JSON has all of them
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
        for name in ("layer", "head"):
            if getattr(self, name) is not None:
                at_least(name, getattr(self, name), 0)
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

    @property
    def shown_as(self) -> str:
        """The form in which it is shown."""
        return self.form or ("terminal" if self.text is None else "short")
