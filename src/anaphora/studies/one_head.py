"""What a study measures of the chosen head alone: whether answers rest on its edge to the antecedent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.causal_tests import one_head_tests_of_run
from anaphora.analysis.evidence.examination import sampled_main_items
from anaphora.analysis.evidence.headline import Headline
from anaphora.analysis.maps.capture import maps_of_each
from anaphora.analysis.results.scores import Head
from anaphora.analysis.scores.cells import Cells, cells
from anaphora.analysis.scores.levels import COMPOSITION_LEVELS, level_cells
from anaphora.analysis.scores.specificity import pronoun_specificity
from anaphora.data.example import Example
from anaphora.runs.directory import Run
from anaphora.studies.records import GroupMeasures

SAMPLED_ITEMS = 800
"""About so many items of a split, as whole blocks: the model answers each of them some ten times."""
_MEASURES = ("antecedent_points", "other_edges_points", "patch_flips", "exchange_flips")


def one_head_measures(headline: Headline) -> GroupMeasures:
    """{language: {"all", kind or level: {measure: value}}} of the head that the development split chose.

    Points are of task accuracy lost where nothing is taken along the edge to the antecedent, or along all other edges;
    flips are shares of answers. `pronoun_specificity` is the pronoun's mass on its antecedent over that of the best
    other word. Of compositions, each level is tested on all its items.

    Raises:
        UserError: the run answers nothing, or no item can be tested.
    """
    run, head, examples = headline.run, headline.head, headline.measured.examples
    groups = _measured(run, sampled_main_items(examples, SAMPLED_ITEMS), head, cells)
    of_levels = {number for _, _, items in _levels(examples) for number in np.flatnonzero(items).tolist()}
    if of_levels:
        compositions = [examples[number] for number in sorted(of_levels)]
        for language, levels in _measured(run, compositions, head, _levels).items():
            groups.setdefault(language, {}).update(levels)
    return groups


def _levels(examples: Sequence[Example]) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    """The levels alone: set cues are main items, and stand among those."""
    return (cell for cell in level_cells(examples) if cell[1] in COMPOSITION_LEVELS)


def _measured(run: Run, examples: Sequence[Example], head: Head, by: Cells) -> GroupMeasures:
    tested = one_head_tests_of_run(run, examples, head, by)
    whole = maps_of_each(run.model, run.tokenizer, list(examples), run.config.task.prediction)
    specificity = pronoun_specificity(examples, whole, head, by)
    return {
        language: {
            name: {
                **{measure: getattr(cell, measure) for measure in _MEASURES},
                "pronoun_specificity": specificity[language][name].ratio,
            }
            for name, cell in named.items()
        }
        for language, named in tested.items()
    }
