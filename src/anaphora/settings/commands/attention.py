"""Settings of `attention`, in the user's words. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from omegaconf import MISSING

from anaphora.base.checks import file_ending, one_of
from anaphora.base.language import LANGUAGES
from anaphora.base.locale.translation import environment_language
from anaphora.settings.commands.sentence import check_sentence


@dataclass(kw_only=True)
class AttentionQuery:
    """The attention of any model in one text."""

    any_model: ClassVar[bool] = True  # a model of transformers has no config.yaml
    run: str = "outputs/demo"  # a run directory, a folder with a model of transformers, or hf://owner/name
    text: str = MISSING  # the text, in English or Chinese
    pronoun: str | None = None  # a word of the text ("it:2" for the second "it"), or its characters as "start:end"
    candidates: list[str] = field(default_factory=list)  # what the pronoun may refer to: words, or "start:end"
    antecedent: str | None = None  # the right one of the candidates, if it is known
    by: str = "word"  # word, or token to keep the subwords of a word apart
    special: bool = True  # keep special tokens such as [CLS]; without them the rest of each row is scaled up
    interface_language: str = field(default_factory=environment_language)  # language of the page, `en` or `zh`
    # File to write: .html for a page of all layers and heads, .parquet for a table; by default a page whose name begins
    # with the text.
    output: str | None = None

    def __post_init__(self) -> None:
        one_of("by", self.by, ("word", "token"))
        one_of("interface_language", self.interface_language, LANGUAGES)
        if self.output is not None:
            file_ending("output", self.output, ".html", ".parquet")
        check_sentence(self.text, self.pronoun, self.candidates, self.antecedent)
