"""Settings of a study: question, cells (configurations), seeds, execution, and the rules that decide its verdict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar

from omegaconf import MISSING

from anaphora.base.checks import FIGURE_FORMATS, at_least, figure_formats, one_among, one_of, thread_count
from anaphora.base.device import RunsDevice
from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES
from anaphora.base.translation import environment_language
from anaphora.data.corpora.word_classes import FORMS
from anaphora.settings.data import SPLITS

BASE_CELL = "base"
"""Name of the base cell, the configuration from which all other cells of a study differ."""
RUN_MEASURES = (
    *("scores", "forms", "distance", "roles", "levels", "one_head", "permuted", "knockout", "routes", "labels"),
)
"""Measures that need finished runs."""
SETTINGS_MEASURES = ("scaling", "symmetry", "time")
"""Measures that need only the settings, without training."""
MEASURES = (*RUN_MEASURES, *SETTINGS_MEASURES)
TASK_MEASURE = "task_accuracy"
ALIGNMENT_MEASURES = ("candidate_accuracy", "antecedent_mass", "quad_accuracy")
"""Measures of how well the chosen head marks the antecedent; compared only between runs that solve the task."""

ANY_LANGUAGE = "any"
"""Language key of measures that are computed without sentences."""
DISTANCE_BINS = (0, 4, 8, 16, 32, 64)
"""Lower bounds of the groups of distances between antecedent and pronoun, in words."""
HEAD_WIDTHS = (4, 8, 16, 32, 64, 128, 256)
SENTENCE_LENGTHS = (32, 64, 128, 256, 512)

_ANSWERS = (TASK_MEASURE, "chance", "items")
_OF_HEAD = (*_ANSWERS, "candidate_accuracy", "antecedent_mass")
HEADLINE_MEASURES = (TASK_MEASURE, *ALIGNMENT_MEASURES, "chance", "items")
"""Columns of study.csv that the measure `scores` fills."""
LEVEL_MEASURES = (TASK_MEASURE, "candidate_accuracy", "antecedent_mass", "octad_accuracy", "items")
"""Columns of study.csv that the measure `levels` fills."""
_KINDS, _LEVELS = ("all", "set", "role"), ("L0", "L1", "L2")
_EDITS = {
    "permuted": [f"{part} permuted" for part in ("query", "key", "value")],
    "knockout": [f"{edges} knocked out" for edges in ("candidates", "all", "pronoun")],
}
_MEASURED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "scores": (HEADLINE_MEASURES, _KINDS),
    "forms": (_OF_HEAD, FORMS),
    "distance": (_OF_HEAD, tuple(f"distance {least}" for least in DISTANCE_BINS)),
    "roles": (("antecedent_heads", "predicate_heads", "neighbour_heads", "relations"), ("all",)),
    "levels": (LEVEL_MEASURES, ("set", *_LEVELS, "unseen_names", *(f"short_text_{level}" for level in _LEVELS))),
    "one_head": (
        ("antecedent_points", "other_edges_points", "patch_flips", "exchange_flips", "pronoun_specificity"),
        (*_KINDS, *_LEVELS),
    ),
    **{
        name: (_ANSWERS, (*edits, *(f"{edit}, {kind}" for edit, kind in product(edits, _KINDS[1:]))))
        for name, edits in _EDITS.items()
    },
    "routes": (
        (*_ANSWERS, r"without_layer_\d+_accuracy", "without_relay_accuracy", r"layer_\d+_candidate_accuracy"),
        (".*",),  # the types of cue, which the data name
    ),
    "labels": (_ANSWERS, ("all",)),
    "scaling": (("score_variance", "entropy_bits", "gradient_norm"), tuple(f"d_k {width}" for width in HEAD_WIDTHS)),
    "symmetry": (("permutation_change", "shift_change"), ("all",)),
    "time": (("seconds_per_step",), tuple(f"tokens {length}" for length in SENTENCE_LENGTHS)),
}
"""Columns of study.csv that each of `MEASURES` fills, and its groups of items, as regular expressions."""


@dataclass(kw_only=True)
class VerdictRule:
    """Settings of one condition on which the verdict of a study depends: bounds on a measure in one cell.

    A cell is a configuration of the study. The bounds apply to the median, minimum or maximum of the measure over
    seeds. If a baseline (another cell or group of items) is given, they apply to the difference from this baseline.
    The condition must hold in each of `languages`, by default in every measured language.
    """

    statement: str = MISSING  # the condition in words
    statement_zh: str | None = None  # the same in Chinese, for the Chinese page
    cell: str = MISSING  # the cell or pool that the condition is about
    measure: str = "task_accuracy"  # a column of study.csv
    seed_statistic: str = "median"  # statistic over the seeds: median, lowest or highest
    group: str = "all"  # group of items: all, set, role, or another group in study.csv
    baseline_cell: str | None = None  # a cell whose values are subtracted, seed by seed
    baseline_group: str | None = None  # a group whose values are subtracted, from `baseline_cell` if that is set
    languages: list[str] = field(default_factory=list)  # by default every measured language
    at_least: float | None = None  # smallest value for which the condition holds
    at_most: float | None = None  # largest value for which the condition holds

    def __post_init__(self) -> None:
        if self.at_least is None and self.at_most is None:
            raise UserError(f"rules ({self.statement!r}) must have at_least, at_most or both")
        for name, bound in (("at_least", self.at_least), ("at_most", self.at_most)):
            if bound is not None and is_share(self.measure) and abs(bound) > 1:
                raise UserError(
                    f"rules ({self.statement!r}): {name} ({bound:g}) must be from -1 to 1; {self.measure} is a share, "
                    "so 60 % is 0.6"
                )
        one_of(f"rules ({self.statement!r}): seed_statistic", self.seed_statistic, ("median", "lowest", "highest"))

    def check_is_measured(self, with_routes: bool) -> None:
        """Check that one of `MEASURES` produces the column of study.csv, the groups and the languages of the rule.

        The study need not compute this measure; the rule then remains undecided. The measure `routes` counts only if
        the study computes it (`with_routes`), because its groups depend on the data.

        Raises:
            UserError: no measure produces the column, or no measure that produces the column has the group or language.
        """
        columns = dict.fromkeys(column for of_measure, _ in _MEASURED.values() for column in of_measure)
        self._check_matches("measure", self.measure, columns)
        filled = [
            name
            for name, (of_measure, _) in _MEASURED.items()
            if any(re.fullmatch(column, self.measure) for column in of_measure) and (with_routes or name != "routes")
        ]
        if not filled:
            raise UserError(f"rules ({self.statement!r}): measure ({self.measure!r}) needs routes among the measures")
        groups = dict.fromkeys(group for name in filled for group in _MEASURED[name][1])
        for setting, group in (("group", self.group), ("baseline_group", self.baseline_group)):
            if group is not None:
                self._check_matches(setting, group, groups)
        spoken = (ANY_LANGUAGE,) if set(filled) & {*SETTINGS_MEASURES} else LANGUAGES
        for language in self.languages:
            one_of(f"rules ({self.statement!r}): languages", language, spoken)

    def _check_matches(self, setting: str, value: str, patterns: Iterable[str]) -> None:
        if not any(re.fullmatch(pattern, value) for pattern in patterns):
            listed = one_among([pattern.replace(r"\d+", "0") for pattern in patterns])
            raise UserError(f"rules ({self.statement!r}): {setting} ({value!r}) must be {listed}")


@dataclass(kw_only=True)
class Slurm:
    """Settings of the resources of each run of a study on a Slurm cluster, for `executor=slurm`."""

    minutes: int = 60  # time limit of a run; a run that reaches it is queued again and resumed
    timeouts: int = 3  # number of times a run may reach the limit before it counts as failed
    memory: float | None = 4  # memory of each run, in GB
    gpus: int = 0  # number of GPUs of each run
    partition: str | None = None  # partition of the jobs; by default that of the cluster
    account: str | None = None  # account to charge for the time
    setup: list[str] = field(default_factory=list)  # shell commands before a run, for instance ["module load cuda"]
    more: list[str] = field(default_factory=list)  # other options of sbatch, for instance ["qos=long","exclusive"]

    def __post_init__(self) -> None:
        at_least("slurm.minutes", self.minutes, 1)
        at_least("slurm.timeouts", self.timeouts, 0)
        at_least("slurm.gpus", self.gpus, 0)
        if self.memory is not None and self.memory <= 0:
            raise UserError(f"slurm.memory ({self.memory}) must be positive")
        for option in self.more:
            if not re.fullmatch(r"[a-z][a-z-]*(=.+)?", option):
                raise UserError(
                    f"slurm.more ({option!r}) must be an option of sbatch without its dashes: name=value, or name"
                )


@dataclass(kw_only=True)
class StudyPlan:
    """Settings of a study over many runs: each cell is a configuration, trained and measured once per seed."""

    most_used: ClassVar[tuple[str, ...]] = (
        *("output", "seeds", "only", "more", "train", "items", "minutes", "executor", "side_by_side"),
        *("trainer.device", "interface_language"),
    )
    """Settings in the short help."""

    name: str = MISSING  # name of the study's folder in `output`
    question: str = MISSING  # the question that the study answers
    prediction: str = MISSING  # the expected result, and why
    question_zh: str | None = None  # the question in Chinese, for the Chinese page; by default the English one
    prediction_zh: str | None = None  # the prediction in Chinese; by default the English one
    names: dict[str, str] = field(default_factory=dict)  # cell, pool or factor -> its name on pages and in figures
    names_zh: dict[str, str] = field(default_factory=dict)  # cell, pool or factor -> its Chinese name
    base: list[str] = field(default_factory=list)  # overrides of anaphora train that all cells share
    factors: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # factor -> cell -> overrides
    pairs: list[list[str]] = field(default_factory=list)  # cells whose changes are combined, to measure interactions
    pools: dict[str, list[str]] = field(default_factory=dict)  # pool -> cells whose runs are also summarised together
    seeds: list[int] = field(default_factory=lambda: [0, 1, 2, 3, 4])  # each cell is run once with each seed
    # `scores`, `forms`, `distance`, `roles`, `levels`, `one_head`, `permuted`, `knockout`, `routes`, `labels`; without
    # training `scaling`, `symmetry`, `time`.
    measures: list[str] = field(default_factory=lambda: ["scores"])
    rules: list[VerdictRule] = field(default_factory=list)  # the claim holds if all rules hold
    solved: float = 0.98  # task accuracy (0 to 1) from which a task counts as solved and alignment is compared
    minutes: float | None = None  # stop if the study would take longer, as estimated from the first run
    executor: str = "here"  # where runs are trained: `here`, or `slurm` for jobs on a cluster
    slurm: Slurm = field(default_factory=Slurm)  # resources of jobs on a cluster
    # Number of runs at a time, each in its own process if greater than 1; on a cluster, number of jobs at a time.
    side_by_side: int = 1
    threads: int | None = None  # threads of each run; by default torch decides, or runs share the cores; 1 on a cluster
    only: list[str] = field(default_factory=list)  # cells to train and measure; by default all
    train: bool = True  # false: train nothing, but measure and show finished runs
    more: list[str] = field(default_factory=list)  # overrides after those of each cell, for instance ['trainer=smoke']
    items: int | None = None  # about how many items of each split to measure; by default all
    overwrite: bool = False  # replace measures of another split or number of items; trained runs are kept
    trainer: RunsDevice = field(default_factory=RunsDevice)  # device to train and measure on
    split: str = "test"  # split on which the chosen head is measured: `train`, `dev` or `test`
    output: str = "outputs/studies"  # folder for all studies
    formats: list[str] = field(default_factory=lambda: [*FIGURE_FORMATS])  # file formats of figures
    # Language of pages, figures and progress: en, zh, or both (one page for each).
    interface_language: str = field(default_factory=environment_language)

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) != len(self.seeds) or min(self.seeds) < 0:
            raise UserError(f"seeds ({self.seeds}) must be one or more different numbers, each at least 0")
        if not self.measures:
            raise UserError(f"measures must name at least one of {', '.join(MEASURES)}")
        for measure in self.measures:
            one_of("measures", measure, MEASURES)
        one_of("split", self.split, SPLITS)
        figure_formats(self.formats)
        one_of("interface_language", self.interface_language, (*LANGUAGES, "both"))
        one_of("executor", self.executor, ("here", "slurm"))
        at_least("side_by_side", self.side_by_side, 1)
        thread_count("threads", self.threads)
        at_least("items", self.items, 1)
        if not 0 <= self.solved <= 1:
            raise UserError(f"solved ({self.solved}) must be from 0 to 1")
        if self.minutes is not None and self.minutes <= 0:
            raise UserError(f"minutes ({self.minutes}) must be positive")
        self._check_cells()
        for rule in self.rules:
            rule.check_is_measured("routes" in self.measures)

    def _check_cells(self) -> None:
        single = {name: overrides for cells in self.factors.values() for name, overrides in cells.items()}
        count = sum(map(len, self.factors.values()))
        if len(single) < count or BASE_CELL in single:
            raise UserError(f"factors must give every cell a name of its own, and none of them {BASE_CELL!r}")
        for setting, name in (("name", self.name), *(("factors", name) for name in single)):
            if not re.fullmatch(r"[\w.-]+", name):
                raise UserError(f"{setting} ({name!r}): a name becomes a folder; use letters, digits, '_', '-' and '.'")
        for pair in self.pairs:
            for name in pair:
                if name not in single:
                    raise UserError(f"pairs ({name!r}) must be one of the factors' cells: {', '.join(single)}")
            if len(set(pair)) != len(pair) or len(pair) < 2:
                raise UserError(f"pairs ({pair}) must name at least two different cells")
        names = [BASE_CELL, *single, *(combined_cell_name(pair) for pair in self.pairs)]
        self._check_pools(names)
        of_one_cell = [rule for rule in self.rules if rule.cell not in self.pools]
        for name in (
            *self.only,
            *(rule.cell for rule in of_one_cell),
            *(rule.baseline_cell or BASE_CELL for rule in of_one_cell),
        ):
            if name not in names:
                raise UserError(f"{name!r} is no cell of the study {self.name} (it has: {', '.join(names)})")
        nameable = [*self.factors, BASE_CELL, *single, *self.pools]
        for setting, own_names in (("names", self.names), ("names_zh", self.names_zh)):
            for name in own_names:
                if name not in nameable:
                    raise UserError(f"{setting} ({name!r}) must be a factor, a cell or a pool: {', '.join(nameable)}")

    def _check_pools(self, cells: list[str]) -> None:
        for pool, pooled in self.pools.items():
            if pool in cells:
                raise UserError(f"pools ({pool!r}) must have a name of its own, and there is a cell of that name")
            for name in pooled:
                if name not in cells:
                    raise UserError(f"pools ({pool}: {name!r}) must be one of the study's cells: {', '.join(cells)}")
            if len(set(pooled)) != len(pooled) or len(pooled) < 2:
                raise UserError(f"pools ({pool}: {pooled}) must name at least two different cells")
        for rule in self.rules:
            if rule.cell in self.pools and rule.baseline_cell is not None:
                raise UserError(
                    f"rules ({rule.statement!r}): baseline_cell ({rule.baseline_cell}) must be absent, because the "
                    f"runs of the pool {rule.cell} have no partners of the same seed there"
                )


def is_share(measure: str) -> bool:
    """Return whether a measure is a share from 0 to 1, which is shown in percent."""
    return measure in (*ALIGNMENT_MEASURES, "chance") or measure.endswith(("_accuracy", "_share", "_flips"))


def combined_cell_name(cells: list[str]) -> str:
    """Return the name of the cell (configuration) that combines the changes of several cells."""
    return "+".join(cells)
