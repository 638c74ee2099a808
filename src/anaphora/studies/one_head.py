"""What a study measures of the chosen head alone: whether answers rest on its edge to the antecedent."""

from __future__ import annotations

from anaphora.analysis.causal.tests import one_head_tests_of_run
from anaphora.analysis.evidence.examination import sampled_main_items
from anaphora.analysis.evidence.headline import Headline
from anaphora.analysis.maps.capture import maps_of_each
from anaphora.analysis.scores.specificity import pronoun_specificity

SAMPLED_ITEMS = 800
"""About so many items of a split, as whole blocks: the model answers each of them some ten times."""
_MEASURES = ("antecedent_points", "other_edges_points", "patch_flips", "exchange_flips")


def one_head_measures(headline: Headline) -> dict[str, dict[str, dict[str, float | None]]]:
    """{language: {"all" or kind: {measure: value}}} of the head that the development split chose.

    Points are of task accuracy lost where nothing is taken along the edge to the antecedent, or along all other edges;
    flips are shares of answers. `pronoun_specificity` is the pronoun's mass on its antecedent over that of the best
    other word.

    Raises:
        UserError: the run answers nothing, or no item can be tested.
    """
    run, head = headline.run, headline.head
    few = sampled_main_items(headline.measured.examples, SAMPLED_ITEMS)
    tested = one_head_tests_of_run(run, few, head)
    whole = maps_of_each(run.model, run.tokenizer, few, run.config.task.prediction)
    specificity = pronoun_specificity(few, whole, head)
    return {
        language: {
            kind: {
                **{name: cell[name] for name in _MEASURES},
                "pronoun_specificity": specificity[language][kind]["ratio"],
            }
            for kind, cell in kinds.items()
        }
        for language, kinds in tested.items()
    }
