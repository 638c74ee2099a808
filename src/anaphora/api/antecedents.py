"""Antecedent selection by the attention heads of any model (Clark et al. 2019, section 4.3), with baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anaphora.analysis.evidence.headline import Progress, no_progress
from anaphora.analysis.results.typed_json import table_row
from anaphora.analysis.tasks.antecedent_selection import (
    Passages,
    Selections,
    collect_selections,
    has_preceding_antecedent,
    selection_table,
)
from anaphora.api.models import untrained_model
from anaphora.api.runs import OpenRun
from anaphora.base.checks import at_least, whole_number
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import _
from anaphora.data.example import Example
from anaphora.settings.model.encoder import check_length

if TYPE_CHECKING:
    from anaphora.hf.reader import TransformersModel

Texts = Callable[[int], object]
"""Progress callback, called with the number of texts in each forward pass."""


@dataclass(frozen=True, eq=False)
class AntecedentSelections:
    """Antecedents selected by a model's heads, and a table that compares the heads with baselines.

    Attributes:
        development: selections on the development mentions, on which heads are chosen.
        measured: selections on the measured mentions.
        rows: table rows with the columns of `SelectorAccuracy`.
    """

    development: Selections
    measured: Selections
    rows: list[dict[str, Any]]


def with_preceding_antecedent(examples: Sequence[Example], split: str) -> list[Example]:
    """Return the examples that have an antecedent before the mention.

    Raises:
        UserError: no example has one; the message names the split.
    """
    kept = [example for example in examples if has_preceding_antecedent(example)]
    if not kept:
        raise UserError(f"split ({split}) holds no mention with an antecedent before it")
    return kept


def reads_one_pronoun(model: OpenRun | TransformersModel) -> bool:
    """Return whether the model takes the pronoun as a second sequence, so that each mention needs a forward pass."""
    return isinstance(model, OpenRun) and bool(model.run.config.model.second_sequence)


def select_antecedents(
    model: OpenRun | TransformersModel,
    development: Sequence[Example],
    measured: Sequence[Example],
    untrained: int,
    by: Sequence[str] = (),
    progress: Progress = no_progress,
    texts: Texts = lambda _: None,
) -> AntecedentSelections:
    """Choose heads on the development mentions and evaluate them on the measured mentions.

    Each text takes one forward pass.

    Args:
        model: run or `transformers` model.
        development, measured: examples whose mention has a preceding antecedent.
        untrained: number of randomly initialised models of the same architecture to evaluate as a control.
        by: names of factors; each value of a factor gets its own table rows.
        progress: callback that receives the name of each stage.
        texts: callback that receives the number of texts in each forward pass.

    Raises:
        UserError: a text is too long for the model, a mention has no token, `untrained` is negative, or the model takes
            the pronoun as a second sequence (see `reads_one_pronoun`).
    """
    at_least("untrained", whole_number("untrained", untrained), 0)

    def selections(of: OpenRun | TransformersModel) -> tuple[Selections, Selections]:
        return _selections(of, development, texts), _selections(of, measured, texts)

    progress(_("{model}: which word each head picks").format(model=model.name))
    own = selections(model)
    controls = []
    for seed in range(1, untrained + 1):
        stage = _("{model}: which word an untrained model picks, {number} of {all}")
        progress(stage.format(model=model.name, number=seed, all=untrained))
        controls.append(selections(untrained_model(model, seed)))
    progress(_("{model}: drawing documents for the intervals").format(model=model.name))
    return AntecedentSelections(*own, [table_row(row) for row in selection_table(*own, controls, by)])


def _selections(model: OpenRun | TransformersModel, examples: Sequence[Example], texts: Texts) -> Selections:
    if not isinstance(model, OpenRun):
        return collect_selections(examples, model.numbered_records(examples, progress=texts))
    run = model.run
    passages = Passages(examples, run.tokenizer)
    check_length(run.config.model, passages.encoded.max_tokens())
    return collect_selections(examples, passages.records(run.model.encoder, run.config.batching, texts))
