"""Scores of a head and of a model's answers by language, cue category, cue type, stratum and template.

A stratum is a set of items that are built in the same way, such as those with unseen names. Axes are N (items) and R
(untrained models).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.results.scores import KINDS, Cell, Groups, Head, LanguageScores, ScoreIntervals, WorstTemplate
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.cells import clusters, factor_values, languages_of, mean_and_interval, rounded
from anaphora.analysis.scores.heads import MEASURES, HeadScores, head_accuracy, is_main
from anaphora.analysis.scores.quads import minimal_pairs_of, quads_of, set_products, sets_inside
from anaphora.data.grouping import indices_by

if TYPE_CHECKING:
    import pandas
    import pyarrow


@dataclass(frozen=True)
class Summary:
    """Scores of a head and of answers on items of the main results (`Example.is_main`), and on other items by stratum.

    A stratum is a set of items that are built in the same way, such as those with unseen names.
    """

    languages: dict[str, LanguageScores]
    strata: Groups[Cell]


@dataclass(frozen=True, kw_only=True)
class TemplateRow:
    """Row of the file tables/templates_<split>.csv: scores of a model and one head on the items of one template."""

    language: str
    stratum: str
    template: str
    items: int
    task_accuracy: float | None
    candidate_accuracy: float | None
    antecedent_mass: float | None


def summarise(
    test: HeadScores,
    head: Head,
    task_correct: NDArray[np.floating],
    baselines: Mapping[str, NDArray[np.floating]],
    random_init: NDArray[np.floating],
) -> Summary:
    """Return the scores of a head that was chosen on other items, of the model's answers and of baselines.

    Args:
        test: scores of all heads on N items.
        task_correct: correctness of the model's answers to the scored items (`test.kept`), (N,). For a model without
            answers, all values are NaN, and the task accuracy is None.
        baselines: correctness of each baseline by name, (N,); fractions for ties.
        random_init: correctness of the head chosen in each of R untrained models on development items, (R, N); NaN on
            items that were not measured. R may be 0.

    Returns:
        Scores on items of the main results (`Example.is_main`) by language, and on other items by language and stratum.
        Intervals are bootstrapped over templates (`clusters`). Values have 6 decimal places; None marks values that
        cannot be computed.

    Raises:
        ValueError: the shape of an array does not match N.
    """
    table = _ItemValues(test, head, task_correct, baselines, random_init)
    main = is_main(test.examples)
    languages = languages_of(test.examples)
    strata = factor_values(test.examples, "stratum")
    summary = Summary({}, {})
    for language in sorted(set(languages)):
        spoken = languages == language
        if (spoken & main).any():
            summary.languages[language] = _language(table, spoken & main)
        others = sorted(set(strata[spoken & ~main]))
        summary.strata[language] = {name: table.cell(spoken & (strata == name)) for name in others}
    return summary


def template_rows(test: HeadScores, head: Head, task_correct: NDArray[np.floating]) -> list[TemplateRow]:
    """Return the scores of a head on the items of each template (sentence pattern), by language and stratum.

    Items without a template are left out.
    """
    table = _ItemValues(test, head, task_correct, {}, np.zeros((0, len(test.examples))))
    rows = indices_by(
        (example.language, example.factors.get("stratum") or "main", example.factors["template"])
        if example.factors.get("template")
        else None
        for example in test.examples
    )
    measures = ("task_accuracy", "candidate_accuracy", "antecedent_mass")
    listed = []
    for (language, stratum, name), items in rows.items():
        means = {measure: rounded(table.values[measure][items].mean()) for measure in measures}
        listed.append(TemplateRow(language=language, stratum=stratum, template=name, items=len(items), **means))
    return listed


def heads_frame(scores: HeadScores) -> pandas.DataFrame:
    """Return a table with the scores of all heads, with a row per language, layer and head.

    Only items of the main results (`Example.is_main`) count. The columns are the number of items, the means of
    `MEASURES`, and "macro_candidate_accuracy", which averages over the items of each combination of cue category
    (`kind`) and cue type, then over the combinations. Layers without attention have no rows.
    """
    import pandas

    attending, heads = list(scores.attending_layers), scores.shape[1]
    rows = len(attending) * heads
    scores = scores.select(is_main(scores.examples))
    languages = languages_of(scores.examples)
    frames = []
    for language in dict.fromkeys(languages):
        spoken = languages == language
        columns: dict[str, object] = {
            "language": [language] * rows,
            "layer": np.repeat(attending, heads),
            "head": np.tile(np.arange(heads), len(attending)),
            "items": [int(spoken.sum())] * rows,
        }
        means = {name: getattr(scores, name)[spoken].mean(axis=0, dtype=np.float64) for name in MEASURES}
        means["macro_candidate_accuracy"] = head_accuracy(scores.select(spoken))
        columns |= {name: mean[attending].reshape(-1) for name, mean in means.items()}
        frames.append(pandas.DataFrame(columns))
    names = ["language", "layer", "head", "items", *MEASURES, "macro_candidate_accuracy"]
    return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame(columns=names)


SCORE_COLUMNS = {
    "item": "number of the item in its split",
    "language": "en or zh",
    "layer": "layer, from 0",
    "head": "head of the layer, from 0",
    "task_correct": "whether the model's own answer is right, 0 or 1; empty where it answers nothing",
    "candidate_accuracy": "1 where the head's strongest candidate is an antecedent; a tie among k counts 1 / k",
    "focal_accuracy": "the same among the candidates that the cue may pick",
    "open_accuracy": "the same among all words but the pronoun's own and special tokens",
    "antecedent_mass": "the head's weight on the antecedents, from 0 to 1",
    "lift": "that weight over the antecedents' share of the tokens; 1 for uniform attention",
    "share": "that weight over the weight on all candidates",
    "reciprocal_rank": "1 / rank of the best antecedent among the distractors",
}
"""Descriptions of the columns in the table of scores, also stored in its file."""


def scores_table(scores: HeadScores, task_correct: NDArray[np.floating]) -> pyarrow.Table:
    """Return a table with the scores of all heads on single items, with the columns `SCORE_COLUMNS`.

    Rows are sorted by item, layer and head; layers without attention have none.
    """
    import pyarrow

    attending, heads = np.array(scores.attending_layers, dtype=np.int16), scores.shape[1]
    items, layers = len(scores.examples), len(attending)
    each = layers * heads
    columns: dict[str, object] = {
        "item": np.repeat(scores.kept.astype(np.int32), each),
        "language": np.repeat(languages_of(scores.examples), each),
        "layer": np.tile(np.repeat(attending, heads), items),
        "head": np.tile(np.arange(heads, dtype=np.int16), items * layers),
        "task_correct": pyarrow.array(np.repeat(task_correct.astype(np.float32), each), from_pandas=True),
    }
    measures = {name: getattr(scores, name)[:, attending].reshape(-1) for name in MEASURES}
    return pyarrow.table(columns | measures, schema=scores_schema())


def scores_schema() -> pyarrow.Schema:
    """Return the schema of the table of scores, whose columns are `SCORE_COLUMNS`."""
    import pyarrow

    types = {"item": pyarrow.int32(), "language": pyarrow.string(), "layer": pyarrow.int16(), "head": pyarrow.int16()}
    return pyarrow.schema([(name, types.get(name, pyarrow.float32())) for name in SCORE_COLUMNS])


class _ItemValues:
    """Scores of single items, minimal pairs and quads, whose means are the scores of a `Cell`."""

    def __init__(
        self,
        test: HeadScores,
        head: Head,
        task_correct: NDArray[np.floating],
        baselines: Mapping[str, NDArray[np.floating]],
        random_init: NDArray[np.floating],
    ) -> None:
        count = len(test.examples)
        for name, array in {"task_correct": task_correct, **baselines}.items():
            if array.shape != (count,):
                raise ValueError(f"{name}: the shape is {array.shape}; expected ({count},), one for each scored item")
        if random_init.ndim != 2 or random_init.shape[1] != count:
            raise ValueError(f"random_init: the shape is {random_init.shape}; expected (models, {count})")
        self.examples = test.examples
        self.clusters = clusters(test.examples)
        names = ("candidate_accuracy", "open_accuracy", "focal_accuracy", "antecedent_mass", "lift")
        self.values = {
            "task_accuracy": task_correct.astype(np.float64),
            **{name: test.at(head, name) for name in names},
        }
        correct = self.values["candidate_accuracy"]
        sets = {"quad_accuracy": quads_of(test.examples), "minimal_pair_accuracy": minimal_pairs_of(test.examples)}
        self.sets = {name: (named, *set_products(correct, named)) for name, named in sets.items()}
        self.chance = test.chance
        self.baselines, self.random_init = baselines, random_init

    def cell(self, items: NDArray[np.bool_]) -> Cell:
        measured = self.random_init[:, items]
        measured = measured[:, ~np.isnan(measured).all(axis=0)]
        per_model = measured.mean(axis=1, dtype=np.float64) if measured.size else np.zeros(0)
        baselines = {name: rounded(correct[items].mean(dtype=np.float64)) for name, correct in self.baselines.items()}
        mean, high = (per_model.mean(), np.percentile(per_model, 95)) if len(per_model) else (None, None)
        untrained = {"random_init": rounded(mean), "random_init_95": rounded(high)}
        return replace(self.cell_without_baselines(items), baselines=baselines | untrained)

    def cell_without_baselines(self, items: NDArray[np.bool_]) -> Cell:
        means: dict[str, float | None] = {}
        intervals: dict[str, Interval | None] = {}
        numbers = np.flatnonzero(items)
        for name, values in self.values.items():
            bounds = (0.0, np.inf if name == "lift" else 1.0)
            means[name], intervals[name] = mean_and_interval(values[numbers], self.clusters[numbers], bounds)
        for name, (named, values, first) in self.sets.items():
            inside = sets_inside(named, first, items)
            means[name], intervals[name] = mean_and_interval(values[inside], self.clusters[first[inside]], (0.0, 1.0))
        chance = rounded(self.chance[numbers].mean())
        return Cell(items=len(numbers), **means, chance=chance, intervals=ScoreIntervals(**intervals), baselines={})


def _language(table: _ItemValues, items: NDArray[np.bool_]) -> LanguageScores:
    kinds, types = factor_values(table.examples, "kind"), factor_values(table.examples, "type")
    named = dict.fromkeys(name for name in types[items] if name)
    inside = {kind: items & (kinds == kind) for kind in KINDS}
    cells: dict[str, Any] = {kind: table.cell(chosen) for kind, chosen in inside.items() if chosen.any()}
    return LanguageScores(
        **vars(table.cell(items)),
        **cells,
        types={name: table.cell_without_baselines(items & (types == name)) for name in named},
        worst_template=_worst_template(table, items),
    )


def _worst_template(table: _ItemValues, items: NDArray[np.bool_]) -> WorstTemplate | None:
    """Return the template with the lowest candidate accuracy or, in a tie, task accuracy; None without templates."""
    names = factor_values(table.examples, "template")
    rows = []
    for name in dict.fromkeys(name for name in names[items] if name):
        inside = items & (names == name)
        candidate, task = (table.values[each][inside].mean() for each in ("candidate_accuracy", "task_accuracy"))
        rows.append((candidate, task, name, int(inside.sum())))
    if not rows:
        return None
    candidate, task, name, count = min(rows)
    return WorstTemplate(template=name, items=count, task_accuracy=rounded(task), candidate_accuracy=rounded(candidate))
