"""Settings of the atlas, in the user's words. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from omegaconf import MISSING

from anaphora.base.checks import at_least, one_of
from anaphora.base.device import Device
from anaphora.base.language import LANGUAGES
from anaphora.base.locale.translation import environment_language
from anaphora.settings.data import Data
from anaphora.settings.typed import construct


@dataclass(kw_only=True)
class Atlas:
    """Models side by side: how well the heads of each attend to antecedents, on the same items."""

    any_model: ClassVar[bool] = True  # a model of transformers has no config.yaml

    runs: list[str] = field(default_factory=list)  # runs, folders with models of transformers, or hf://owner/name
    data: Data = field(default=MISSING)
    corpora: list[str] = field(default_factory=list)  # further public corpora, as in [dpr:file,winobias:folder]
    split: str = "test"
    items: int | None = None  # about how many items of each split to use, as whole quads or passages; by default all
    causal_items: int = 100  # about how many main items to use for the causal tests of models that answer; 0 for none
    untrained: int = 3  # number of untrained models to measure as a control, for each model
    interface_language: str = field(default_factory=environment_language)  # language of the page, `en` or `zh`
    output: str = "outputs/atlas"  # folder for atlas.html and for the measurements, which the next atlas re-uses
    trainer: Device = field(default_factory=Device)  # where it computes

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("runs ([]) must name at least one model")
        one_of("split", self.split, ("train", "test"))
        one_of("interface_language", self.interface_language, LANGUAGES)
        if self.items is not None:
            at_least("items", self.items, 1)
        for name in ("causal_items", "untrained"):
            at_least(name, getattr(self, name), 0)
        self.sources()

    def sources(self) -> dict[str, Data]:
        """The settings of each corpus by name: of the data, then of the public corpora."""
        own = {} if self.data == MISSING else {self.data.kind: self.data}
        public = {}
        for named in self.corpora:
            name, _, path = named.partition(":")
            if not path:
                raise ValueError(f"corpora ({named!r}) must be a corpus and its path, such as dpr:train.c.txt")
            public[name] = construct(Data, {"kind": name, "path": path}, f"corpora ({named})")
        return own | public
