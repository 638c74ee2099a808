"""Settings shared by the commands that analyse a run on the items of a split or on one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from unicodedata import normalize

from anaphora.base.checks import at_least, one_of
from anaphora.base.device import Device
from anaphora.base.language import LANGUAGES, split_names
from anaphora.settings.data import SPLITS, Data


@dataclass(kw_only=True)
class Overwriting:
    """Setting of a command that writes results or a file."""

    overwrite: bool = False  # replace results with other settings, or the file that `output` names


@dataclass(kw_only=True)
class RunItems(Overwriting):
    """Settings of a command that analyses a run on the items of a split."""

    run: str = "outputs/demo"  # a run directory, a folder of pretrained weights, or hf://owner/name
    data: Data | None = None  # data other than the run's own, for instance data=jsonl data.path=items.jsonl
    split: str = "test"  # `train`, `dev` or `test`
    items: int | None = None  # approximate number of items of the split to use; by default all
    output: str | None = None  # folder for the files; by default in the run directory
    trainer: Device = field(default_factory=Device)  # device to compute on

    def __post_init__(self) -> None:
        one_of("split", self.split, SPLITS)
        at_least("items", self.items, 1)

    @property
    def results_name(self) -> str:
        """Return the first part of the names of result files: the split and, if it is set, `items`."""
        return self.split if self.items is None else f"{self.split}_items_{self.items}"


@dataclass(kw_only=True)
class RunHead(RunItems):
    """Settings of a command that analyses one head of a run on the items of a split."""

    layer: int | None = None  # layer of the head; by default that of the head chosen on the development split
    head: int | None = None  # head in this layer; give both or neither

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.layer is None) != (self.head is None):
            raise ValueError("layer and head go together: give both, or neither for the head chosen on development")

    @property
    def results_name(self) -> str:
        """Return the name as in `RunItems`, followed by the head if the settings name one."""
        name = super().results_name
        return name if self.layer is None else f"{name}_layer_{self.layer}_head_{self.head}"


@dataclass(kw_only=True)
class SentenceOrItems(RunItems):
    """Settings of a command that analyses a run on the items of a split or on one sentence."""

    text: str | None = None  # your own sentence, in place of data
    pronoun: str | None = None  # a word of the text ("it:2" for the second "it"), or its characters as "start:end"
    candidates: list[str] = field(default_factory=list)  # possible antecedents: words of the text, or "start:end"
    antecedent: str | None = None  # the correct candidate, if it is known
    language: str | None = None  # language of the text; by default inferred from its characters

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sentence(self.text, self.pronoun, self.candidates, self.antecedent, self.language)
        if self.text is None:
            return
        if self.data is not None:
            raise ValueError(f"data={self.data.kind} and text=... are both given: give one of them")
        if self.split != "test" or self.items is not None:
            given = f"items ({self.items})" if self.items is not None else f"split ({self.split!r})"
            raise ValueError(f"{given} chooses items of data, but text is one sentence: give one of the two")


def check_sentence(
    text: str | None,
    pronoun: str | None,
    candidates: Sequence[str],
    antecedent: str | None = None,
    language: str | None = None,
) -> None:
    """Check that the settings of a sentence are consistent.

    Raises:
        ValueError: a setting is given without `text`, `antecedent` is not one of `candidates`, or `language` is not
            supported; the message names the setting.
    """
    for name, value in (("pronoun", pronoun), ("candidates", candidates or None), ("language", language)):
        if value is not None and text is None:
            raise ValueError(f"{name} ({value!r}) needs text=...")
    named = [normalize("NFC", name) for name in split_names(candidates)]
    if antecedent is not None and normalize("NFC", antecedent) not in named:
        raise ValueError(f"antecedent ({antecedent!r}) must be one of candidates ({candidates})")
    if language is not None:
        one_of("language", language, LANGUAGES)
