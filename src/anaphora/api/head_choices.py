"""Evaluation of any model's attention heads on antecedent selection and on the choice between two names.

Antecedent selection follows Clark et al. 2019, section 4.3; the choice between two names follows GAP (Webster et al.
2018). Axes are N (items), L (layers), H (heads per layer) and K (heads in all layers, L * H).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.headline import no_progress
from anaphora.analysis.maps.answers import shares_chosen
from anaphora.analysis.maps.capture import answers_pronouns, log_probabilities
from anaphora.analysis.maps.words import mention_mass
from anaphora.analysis.results.scores import Head, existing_head
from anaphora.analysis.results.typed_json import table_row
from anaphora.analysis.tasks import gap
from anaphora.analysis.tasks.antecedent_selection import (
    Passages,
    Selections,
    collect_selections,
    has_preceding_antecedent,
    selection_table,
)
from anaphora.api.runs import OpenRun
from anaphora.api.scoring import pronoun_records
from anaphora.base.checks import at_least, whole_number
from anaphora.base.console import Progress
from anaphora.base.errors import UserError
from anaphora.base.translation import _
from anaphora.data.example import Example
from anaphora.runs.items import encode
from anaphora.settings.model.encoder import check_length

if TYPE_CHECKING:
    from anaphora.api.models import AnyModel

Texts = Callable[[int], object]
"""Progress callback, called with the number of texts in each batch."""


@dataclass(frozen=True, eq=False)
class AntecedentSelections:
    """Antecedents selected by a model's heads, and a table that compares the heads with baselines.

    Attributes:
        development: selections in the split on which heads are chosen.
        measured: selections in the evaluated split.
        rows: rows of the table, with the fields of `SelectorAccuracy` as columns.
    """

    development: Selections
    measured: Selections
    rows: list[dict[str, Any]]


def with_preceding_antecedent(examples: Sequence[Example], split: str) -> list[Example]:
    """Return the examples that have an antecedent before the mention; raise UserError if there are none."""
    kept = [example for example in examples if has_preceding_antecedent(example)]
    if not kept:
        chosen = ", and heads are chosen on it before another split is measured (data.dev_share)"
        raise UserError(f"split ({split}) holds no mention with an antecedent before it{chosen * (split == 'dev')}")
    return kept


def reads_one_pronoun(model: AnyModel) -> bool:
    """Return whether a model takes the pronoun as a second sequence, and so needs a forward pass for each mention."""
    return isinstance(model, OpenRun) and bool(model.run.config.model.second_sequence)


def select_antecedents(
    model: AnyModel,
    development: Sequence[Example],
    measured: Sequence[Example],
    untrained: int,
    by: Sequence[str] = (),
    progress: Progress = no_progress,
    texts: Texts = lambda _: None,
) -> AntecedentSelections:
    """Choose the heads that select the antecedents of mentions best in `development`, and evaluate them on `measured`.

    Each model needs one forward pass per text, for all mentions of the text.

    Args:
        development, measured: examples whose mention has a preceding antecedent.
        untrained: number of randomly initialised models of the same architecture to evaluate as a control.
        by: names of item attributes (`Example.factors`); each value of an attribute gets its own table rows.
        texts: progress callback, called with the number of texts in each batch.

    Raises:
        UserError: a text is too long for the model, a mention has no token, every mention of a split shares its token
            with its antecedents, `untrained` is negative, or the model has no attention maps or takes the pronoun as a
            second input sequence (`reads_one_pronoun`).
    """
    at_least("untrained", whole_number("untrained", untrained), 0)

    def selections(of: AnyModel) -> tuple[Selections, Selections]:
        return _selections(of, development, texts), _selections(of, measured, texts)

    progress(_("{model}: which word each head picks").format(model=model.name))
    own = selections(model)
    controls = []
    for seed in range(1, untrained + 1):
        stage = _("{model}: which word an untrained model picks, {number} of {all}")
        progress(stage.format(model=model.name, number=seed, all=untrained))
        controls.append(selections(model.untrained(seed)))
    progress(_("{model}: drawing documents for the intervals").format(model=model.name))
    return AntecedentSelections(*own, [table_row(row) for row in selection_table(*own, controls, by)])


def _selections(model: AnyModel, examples: Sequence[Example], texts: Texts) -> Selections:
    if not isinstance(model, OpenRun):
        return collect_selections(examples, model.numbered_records(examples, progress=texts))
    run = model.run
    passages = Passages(examples, run.tokenizer)
    check_length(run.config.model, passages.encoded.max_tokens())
    return collect_selections(examples, passages.records(run.model.encoder, run.config.batching, texts))


Masses = NDArray[np.float64]


def name_decisions(
    model: AnyModel,
    development: Sequence[Example],
    measured: Sequence[Example],
    head: Head,
    untrained: int,
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """Score a head's choice between two names as a yes/no decision for each name (Webster et al. 2018).

    Simple rules (`gap.rule_scores`), the best heads of untrained models, and the model's own answers, if any, are
    scored in the same way. The policy "head" accepts the name to which the pronoun gives more weight; "head with
    threshold" accepts neither if this weight is below a threshold chosen on the development items.

    Args:
        development: items on which the threshold, and the heads of untrained models, are chosen.
        measured: items to evaluate.
        head: the head, chosen on the development items.
        untrained: number of randomly initialised models of the same architecture to evaluate as a control.

    Returns:
        One row for each policy (rule, head or model) with "policy", "items" and the columns of `score_columns`;
        undefined values, such as a ratio with denominator 0 or a missing interval, are None.

    Raises:
        UserError: the head does not exist, there are no items, an item does not have two names and a gender, or
            `untrained` is negative; also the errors of `pronoun_records`.
    """
    existing_head(head, model.attending_layers, model.heads)
    at_least("untrained", whole_number("untrained", untrained), 0)
    examples = gap.require_two_names(measured)
    gold = gap.gold_decisions(gap.require_two_names(development), 2)
    progress(_("{model}: name decisions").format(model=model.name))
    number = list(model.attending_layers).index(head.layer) * model.heads + head.head
    top, _names, right = gap.strongest_names(_name_masses(model, development)[..., [number]], gold)
    (threshold,) = gap.best_thresholds(top, right, int(gold.sum()))[0]
    scores: dict[str, gap.GapScore] = gap.rule_scores(examples)
    head_masses = _name_masses(model, examples)[..., number]
    scores["head"] = gap.gap_score(_decide(head_masses)[None], examples)
    scores["head with threshold"] = gap.gap_score(_decide(head_masses, threshold)[None], examples)
    controls = []
    for seed in range(1, untrained + 1):
        stage = _("{model}: name decisions of an untrained model, {number} of {all}")
        progress(stage.format(model=model.name, number=seed, all=untrained))
        control = model.untrained(seed)
        _top, _names, right = gap.strongest_names(_name_masses(control, development), gold)
        controls.append(_decide(_name_masses(control, examples)[..., int(right.mean(axis=0).argmax())]))
    if controls:
        scores["untrained"] = gap.gap_score(np.stack(controls), examples)
    if isinstance(model, OpenRun) and answers_pronouns(model.run.model.prediction):
        answers = log_probabilities(model.run.model, encode(model.run, examples), model.run.config.batching)
        scores["answers"] = gap.gap_score(shares_chosen(answers)[None, :, :2], examples)
    return [
        {
            "policy": name,
            "items": len(examples),
            **{key: float(value) if np.isfinite(value) else None for key, value in gap.score_columns(one).items()},
        }
        for name, one in scores.items()
    ]


def _name_masses(model: AnyModel, examples: Sequence[Example]) -> Masses:
    """Return the attention mass from the pronoun to each of two names in each head, (N, 2, K).

    Layers without attention are left out.
    """
    layers = list(model.attending_layers)
    records = pronoun_records(model, examples)[0]
    return np.stack([mention_mass(record)[layers].reshape(-1, 2).T for record in records]).astype(np.float64)


def _decide(masses: Masses, threshold: float = -np.inf) -> gap.Decisions:
    """Accept an item's name with the larger weight if this weight reaches the threshold: (N, 2) -> (N, 2)."""
    top, names, _right = gap.strongest_names(masses[..., None], np.zeros(masses.shape, dtype=np.bool_))
    return names[..., 0] * (top >= threshold)
