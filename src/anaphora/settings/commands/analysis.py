"""Settings of the commands that measure, in the user's words. Imports nothing heavy."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from omegaconf import MISSING

from anaphora.base.checks import FIGURE_FORMATS, at_least, figure_formats, one_of
from anaphora.base.device import Device, RunsDevice
from anaphora.base.language import LANGUAGES
from anaphora.base.locale.translation import environment_language
from anaphora.settings.commands.sentence import check_sentence
from anaphora.settings.data import SPLITS, Data

CONTROLS = ("uniform", "frozen_query_key", "shuffled_labels", "no_positions")
"""The trained controls, without which nothing is supported."""
FURTHER_CONTROLS = ("masked_tokens", "pairwise", "nearest")
"""Trained controls that no verdict asks for: they are trained where they are named."""
ALL_CONTROLS = (*CONTROLS, *FURTHER_CONTROLS)


@dataclass(kw_only=True)
class Protocol:
    """What is fixed before anything is measured: the level of significance.

    The report shows a hash of this, of metric, map, direction and split, of the verdict's thresholds and of the run's
    settings.
    """

    alpha: float = 0.05  # largest corrected p-value that counts as significant

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"protocol.alpha ({self.alpha}) must be above 0 and below 1")


@dataclass(kw_only=True)
class RunItems:
    """A run, and the items of a split that it reads."""

    run: str = "outputs/demo"  # a run directory, a folder of pretrained weights, or hf://owner/name
    data: Data | None = None  # other data than the run's own, for instance data=jsonl data.path=items.jsonl
    split: str = "test"
    items: int | None = None  # about how many items of the split to use; by default all
    output: str | None = None  # folder for the files; by default in the run directory
    trainer: Device = field(default_factory=Device)  # where it computes

    def __post_init__(self) -> None:
        one_of("split", self.split, SPLITS)
        if self.items is not None:
            at_least("items", self.items, 1)


@dataclass(kw_only=True)
class Evaluation(RunItems):
    """The answers of a run, and one of its heads beside them."""

    layer: int | None = None  # layer of the head; by default that of the head chosen on the development split
    head: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.layer is None) != (self.head is None):
            raise ValueError("layer and head go together: give both, or neither for the head chosen on development")


@dataclass(kw_only=True)
class Scoring(Evaluation):
    """Scores of all heads of a run."""

    untrained: int = 20  # number of untrained models to measure as a control

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("untrained", self.untrained, 0)


@dataclass(kw_only=True)
class SentenceOrItems(RunItems):
    """A run, and the items of a split or the one sentence that it reads."""

    text: str | None = None  # a sentence of your own instead of data
    pronoun: str | None = None  # a word of the text ("it:2" for the second "it"), or its characters as "start:end"
    candidates: list[str] = field(default_factory=list)  # what the pronoun may refer to: words, or "start:end"
    antecedent: str | None = None  # the right one of the candidates, if it is known
    language: str | None = None  # language of the text; by default its characters decide

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


@dataclass(kw_only=True)
class Drawing(Evaluation, SentenceOrItems):
    """Pictures of one sentence, or of a run's scores."""

    formats: list[str] = field(default_factory=lambda: [*FIGURE_FORMATS])
    # Language of figures and progress: en, zh, or both (one file for each); the texts keep their own.
    interface_language: str = field(default_factory=environment_language)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.text is not None and self.pronoun is None:
            raise ValueError("text and pronoun go together: give both, or neither to use data")
        figure_formats(self.formats)
        if not self.formats:
            raise ValueError(f"formats ([]) must name at least one of {', '.join(FIGURE_FORMATS)}")
        one_of("interface_language", self.interface_language, (*LANGUAGES, "both"))


@dataclass(kw_only=True)
class Extraction(SentenceOrItems):
    """What to write of the attention of a run: the rows of pronouns, or of the words of plain text."""

    # For texts without pronoun questions: the words whose rows are written; by default all words.
    words: list[str] = field(default_factory=list)
    chunk_tokens: int | None = None  # tokens of such a text to read at once; by default the run's batching.row_tokens
    # "2/8" writes only the second of eight parts of the split, into a folder of its own; groups are kept whole.
    shard: str | None = None
    memory: int = 64  # most MiB of attention weights to hold at a time, and in a row group of the file

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("memory", self.memory, 1)
        if self.chunk_tokens is not None:
            at_least("chunk_tokens", self.chunk_tokens, 2)
        if self.shard is not None:
            written = re.fullmatch(r"([1-9]\d{0,8})/([1-9]\d{0,8})", self.shard)
            if written is None or int(written[1]) > int(written[2]):
                raise ValueError(f"shard ({self.shard!r}) must be i/n with i from 1 to n, as in 2/8")
            if self.text is not None:
                raise ValueError(f"shard ({self.shard}) takes a part of a split, but text is one sentence")
        for name in ("words", "chunk_tokens"):
            if getattr(self, name) and self.pronoun is not None:
                raise ValueError(f"{name} ({getattr(self, name)}) is only for a text without a pronoun")
        if any(not word.strip() for word in self.words):
            raise ValueError(f"words ({self.words}) must name at least one word")

    @property
    def part(self) -> tuple[int, int]:
        """Which part of how many, from 1: (1, 1) is all."""
        number, count = (self.shard or "1/1").split("/")
        return int(number), int(count)


@dataclass(kw_only=True)
class TrainedControls:
    """Trained controls of a stored run."""

    run: str = "outputs/demo"  # the run directory
    # The controls to train; masked_tokens, pairwise and nearest are possible too.
    controls: list[str] = field(default_factory=lambda: [*CONTROLS])
    split: str = "test"  # split on which the controls are measured, like the run
    trainer: RunsDevice = field(default_factory=RunsDevice)  # where they are trained and measured

    def __post_init__(self) -> None:
        one_of("split", self.split, SPLITS)
        for name in self.controls:
            one_of("controls", name, ALL_CONTROLS)
        if not self.controls:
            raise ValueError(f"controls must name at least one of {', '.join(ALL_CONTROLS)}")


@dataclass(kw_only=True)
class Report:
    """A report on one run or several."""

    run: str = "outputs/demo"  # the run directory
    # Several runs instead, in the order of the page; `outputs/a_*` stands for all that match.
    runs: list[str] = field(default_factory=list)
    # Folder for report.html; by default the run directory, or for several runs `report` beside the first.
    output: str | None = None
    split: str = "test"
    items: int = 800  # about how many main items, as whole quads, to use for causal tests and other maps
    sentences: int = 64  # number of sentences in the explorer
    untrained: int = 20  # number of untrained models to measure as a control
    formats: list[str] = field(default_factory=lambda: [*FIGURE_FORMATS])
    # Language of page, figures and progress: en, zh, or both (one page for each); the texts keep their own.
    interface_language: str = field(default_factory=environment_language)
    protocol: Protocol = field(default_factory=Protocol)
    trainer: Device = field(default_factory=Device)  # where it computes

    def __post_init__(self) -> None:
        one_of("split", self.split, SPLITS)
        figure_formats(self.formats)
        one_of("interface_language", self.interface_language, (*LANGUAGES, "both"))
        for name in ("items", "sentences"):
            at_least(name, getattr(self, name), 1)
        at_least("untrained", self.untrained, 0)


@dataclass(kw_only=True)
class Export:
    """A run as a folder that `transformers` loads."""

    run: str = "outputs/demo"  # the run directory
    output: str = MISSING  # the folder to write; it must be new or empty
    format: str = "bert"  # bert: a plain BERT, if the run has such parts; anaphora: the whole run, with a model card
    output_layer: bool | None = None  # write BertForMaskedLM, not BertModel; by default only if its layer was trained
    # Licence of the weights for the card of format=anaphora, as the hub writes it, such as apache-2.0.
    licence: str | None = None

    def __post_init__(self) -> None:
        one_of("format", self.format, ("bert", "anaphora"))
        if self.format != "bert" and self.output_layer is not None:
            raise ValueError(f"output_layer ({str(self.output_layer).lower()}) is only for format=bert")
        if self.format != "anaphora" and self.licence is not None:
            raise ValueError(f"licence ({self.licence!r}) is only for format=anaphora, which writes a model card")


@dataclass(kw_only=True)
class NameDecisions:
    """Two yes-or-no decisions an item: is this name, is that name, what the pronoun means (GAP)?"""

    runs: list[str] = field(default_factory=list)  # fine-tuned runs, one for each seed, such as `outputs/gap_*`
    weights: str | None = None  # pretrained weights, or a run, whose heads are read without fine-tuning
    data: Data = field(default=MISSING)
    # What the runs answer: test (the default), dev, train, or folds, that is, every run the fold that it was not
    # trained on. Weights are measured on all development rows (train and dev).
    split: str | None = None
    # Number of folds of the development rows, for what is chosen or fitted on them without fine-tuning; by default 10.
    folds: int | None = None
    exchanged: bool = False  # also ask the runs with the names exchanged, and take the mean of both answers
    output: str | None = None  # CSV file for the table
    trainer: Device = field(default_factory=Device)  # where it computes

    def __post_init__(self) -> None:
        if self.split is not None:
            one_of("split", self.split, (*SPLITS, "folds"))
        if self.folds is not None:
            at_least("folds", self.folds, 2)
        if bool(self.runs) == (self.weights is not None):
            raise ValueError("give either runs=[...] (fine-tuned) or weights=... (heads without fine-tuning)")
        if self.exchanged and not self.runs:
            raise ValueError("exchanged=true needs answers, which weights=... does not have; give runs=[...]")
        if self.split is not None and not self.runs:
            raise ValueError(
                f"split ({self.split!r}) is what runs=[...] answer: weights=... is measured on all development rows"
            )
        if self.folds is not None and self.runs:
            raise ValueError(f"folds ({self.folds}) is for weights=...; the folds of runs=[...] are data.folds")


@dataclass(kw_only=True)
class CorpusDescription:
    """A corpus to describe."""

    data: Data = field(default=MISSING)
    output: str | None = None  # folder for the tables as CSV and the items as Parquet, which `datasets` reads


@dataclass(kw_only=True)
class AntecedentSelection:
    """Heads as antecedent selectors, Clark et al. 2019, table 2: chosen on `dev`, reported on `split`."""

    run: str = "outputs/demo"  # a run directory, a folder with a model of transformers, or hf://owner/name
    data: Data | None = None  # by default the run's own, otherwise for instance data=litbank data.path=...
    split: str = "test"  # the split that is reported, `test` or `train`
    # Factors whose values get rows of their own, such as `seen` or `genre`.
    by: list[str] = field(default_factory=list)
    untrained: int = 5  # number of untrained models to measure as a control
    output: str | None = None  # folder for the files; by default `antecedents/<corpus>` in the run directory
    formats: list[str] = field(default_factory=lambda: [*FIGURE_FORMATS])
    trainer: Device = field(default_factory=Device)  # where it computes

    def __post_init__(self) -> None:
        one_of("split", self.split, ("test", "train"))
        figure_formats(self.formats)
        at_least("untrained", self.untrained, 0)


@dataclass(kw_only=True)
class CrossValidation:
    """Runs of all folds of one corpus, and shortcuts fitted on the same folds."""

    runs: list[str] = field(default_factory=list)  # one or more runs for each fold, such as `outputs/dpr_*`
    # Factors whose values get rows of their own; `type+stereotype` combines two.
    by: list[str] = field(default_factory=list)
    output: str | None = None  # CSV file for the table
    trainer: Device = field(default_factory=Device)  # where it computes

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("runs ([]) must name the runs of all folds")


@dataclass(kw_only=True)
class Transfer:
    """Runs that were trained on one corpus, evaluated on another one, beside shortcuts fitted on either."""

    runs: list[str] = field(default_factory=list)  # runs of one recipe (seeds or folds), such as `outputs/dpr_*`
    data: Data = field(default=MISSING)
    split: str = "test"
    folds: int = 5  # number of folds of the evaluated items, by group, for shortcuts that are fitted on them
    # Factors whose values get rows of their own; `type+stereotype` combines two.
    by: list[str] = field(default_factory=list)
    # A factor with two values, such as `stereotype`: the table shows how much higher accuracy is on the first of them
    # (in alphabetical order).
    contrast: str | None = None
    output: str | None = None  # CSV file for the table
    trainer: Device = field(default_factory=Device)  # where it computes

    def __post_init__(self) -> None:
        one_of("split", self.split, SPLITS)
        at_least("folds", self.folds, 2)
        if not self.runs:
            raise ValueError("runs ([]) must name at least one run")


@dataclass(kw_only=True)
class LabelTable:
    """Runs that label texts, beside linear models of the same tokens and of words and pairs of words."""

    runs: list[str] = field(default_factory=list)  # runs of one recipe, one for each seed, such as `outputs/sst2_*`
    split: str = "test"
    output: str | None = None  # CSV file for the table
    trainer: Device = field(default_factory=Device)  # where it computes

    def __post_init__(self) -> None:
        one_of("split", self.split, SPLITS)
        if not self.runs:
            raise ValueError("runs ([]) must name at least one run")


@dataclass(kw_only=True)
class RunComparison:
    """Runs to put side by side."""

    runs: list[str] = field(default_factory=list)  # two or more scored runs, such as `outputs/seed_*`
    output: str | None = None  # CSV file for the table

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("runs ([]) must name at least two run directories")
