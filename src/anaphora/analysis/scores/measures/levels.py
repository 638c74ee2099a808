"""Scores on items whose antecedent depends on predicate, state and voice: cue types `composition` and `short_text`.

In such an item, an event (the predicate, in the active or passive voice) is combined with a state, a phrase that
describes one participant, such as "was tired". The level is determined by the number of voices in which predicate and
state occur together in training: two for L0, one for L1, none for L2 (`data.controlled.octads`). For each language,
there are scores for four kinds of sets: the sentences of each level; the short texts of each level; the items with
unseen names; and "set", the items in which the words alone decide, in any order. N is the number of items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.maps.answers import Floats
from anaphora.analysis.results.scores import Head, Shortcut
from anaphora.analysis.results.typed_json import Interval
from anaphora.analysis.scores.baselines.order_models import RULE, RULE_MODEL, is_of_two
from anaphora.analysis.scores.baselines.shortcuts import order_shortcuts
from anaphora.analysis.scores.cells import bootstrap_interval, clusters, factor_values, languages_of, rounded
from anaphora.analysis.scores.heads import HeadScores, is_main
from anaphora.analysis.scores.quads import quads_of, set_products, sets_inside
from anaphora.data.example import Example

if TYPE_CHECKING:
    from anaphora.data.tokens.tokenizer import Tokenizer


COMPOSITION_LEVELS = ("L0", "L1", "L2")
UNSEEN_NAMES = "unseen_names"
SHORT_TEXT = "short_text"
"""Cue type of texts of a few sentences in which predicate, state and voice decide, and prefix of results for them."""


@dataclass(frozen=True, kw_only=True)
class LevelIntervals:
    """95 % cluster-bootstrap intervals of a `Level`'s measures; None if there are too few clusters (`has_interval`)."""

    task_accuracy: Interval | None
    candidate_accuracy: Interval | None
    antecedent_mass: Interval | None


@dataclass(frozen=True, kw_only=True)
class Level:
    """Scores of a head and of the model on one set of items from `level_cells`, such as the sentences of level L0.

    Attributes:
        octad_accuracy: share of quads and octads in which the head is right on every item. A quad has each of two cues
            with both orders of the names (four items); an octad is a quad in each of two voices (eight items).
        shortcuts: accuracy of each shortcut (`composition_shortcuts`) or, in the set named "set", of each baseline.
        rule_model: accuracy of a model that is given predicate, cue and voice (`RULE`) and learns how they determine
            the antecedent; it does not count as a shortcut.
        random_init: mean accuracy, over untrained models, of the head chosen in each model; None without such models.
    """

    items: int
    task_accuracy: float | None
    candidate_accuracy: float | None
    octad_accuracy: float | None
    antecedent_mass: float | None
    best_shortcut: Shortcut | None
    shortcuts: dict[str, float | None]
    rule_model: float | None
    random_init: float | None
    intervals: LevelIntervals


def composition_shortcuts(
    train: Sequence[Example], test: Sequence[Example], tokenizer: Tokenizer
) -> dict[str, NDArray[np.float64]]:
    """Return the correctness of shortcuts that choose the first or second name on N test items: {name: (N,)}.

    The shortcuts (`order_shortcuts`) apply only to items that have a level (L0, L1 or L2), the factors predicate, cue
    and voice (`RULE`), and two candidates to choose from (`is_of_two`). For other items, and in a language without such
    training items, the correctness is NaN. If the shortcuts apply to no test item, the result is empty.
    """
    splits, numbers = [], []
    for language in dict.fromkeys(example.language for example in test):
        known = [example for example in train if _is_composition(example, language)]
        items = [item for item, example in enumerate(test) if _is_composition(example, language)]
        if known and items:
            splits.append((known, [test[item] for item in items]))
            numbers.append(items)
    results: dict[str, Floats] = {}
    for items, shortcuts in zip(numbers, order_shortcuts(splits, tokenizer), strict=True):
        for name, right in shortcuts.items():
            results.setdefault(name, np.full(len(test), np.nan))[items] = right
    return results


def level_scores(
    test: HeadScores,
    head: Head,
    task_correct: NDArray[np.floating],
    baselines: Mapping[str, NDArray[np.floating]],
    shortcuts: Mapping[str, NDArray[np.floating]],
    random_init: NDArray[np.floating],
) -> dict[str, dict[str, Level]]:
    """Return the scores of a head and of the model's answers, by language and by level or other set of items.

    Languages whose items have no levels are left out.

    Args:
        task_correct: correctness of the model's answers, (N,).
        baselines: correctness of each baseline by name, (N,); reported for the set named "set".
        shortcuts: result of `composition_shortcuts`; reported for the other sets of items.
        random_init: correctness of the head chosen in each of R untrained models, (R, N); NaN on items not measured.

    Returns:
        {language: {name: scores}} with the names "set", "L0", "L1", "L2", "unseen_names", "short_text_L0" and so on.
    """
    pointing, mass = test.at(head, "candidate_accuracy"), test.at(head, "antecedent_mass")
    quads = quads_of(test.examples)
    whole, first = set_products(pointing, quads)
    labels = clusters(test.examples)
    languages: dict[str, dict[str, Level]] = {}
    for language, name, items in level_cells(test.examples):
        inside = sets_inside(quads, first, items)
        compared = baselines if name == "set" else shortcuts
        means = {each: float(right[items].mean()) for each, right in compared.items()}
        rule = means.pop(RULE_MODEL, None)
        # A shortcut that does not apply to every item has no accuracy here.
        listed = {each: round(value, 6) for each, value in means.items() if not np.isnan(value)}
        best = max(listed, key=lambda each: listed[each], default=None)
        untrained = random_init[:, items]
        measured = {
            "task_accuracy": task_correct[items].astype(np.float64),
            "candidate_accuracy": pointing[items],
            "antecedent_mass": mass[items],
        }
        languages.setdefault(language, {})[name] = Level(
            items=int(items.sum()),
            **{each: rounded(values.mean()) for each, values in measured.items()},
            octad_accuracy=rounded(whole[inside].mean()) if len(inside) else None,
            best_shortcut=None if best is None else Shortcut(name=best, accuracy=listed[best]),
            shortcuts=dict(listed),
            rule_model=rounded(rule),
            random_init=None if np.isnan(untrained).all() else rounded(float(np.nanmean(untrained))),
            intervals=LevelIntervals(
                **{each: bootstrap_interval(values, labels[items], (0, 1)) for each, values in measured.items()}
            ),
        )
    return languages


def level_cells(examples: Sequence[Example]) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    """Yield language, name and mask (N,) of each non-empty group of items: set cues, or a level of combinations."""
    main = is_main(examples)
    kinds, levels, strata = (factor_values(examples, name) for name in ("kind", "level", "stratum"))
    languages = languages_of(examples)
    in_texts = factor_values(examples, "type") == SHORT_TEXT
    invented = strata == "invented"
    for language in sorted(set(languages[levels != ""])):
        spoken = languages == language
        named = {
            "set": spoken & main & (kinds == "set"),
            **{level: spoken & ~invented & ~in_texts & (levels == level) for level in COMPOSITION_LEVELS},
            UNSEEN_NAMES: spoken & invented & (levels != ""),
            **{f"{SHORT_TEXT}_{level}": spoken & in_texts & (levels == level) for level in COMPOSITION_LEVELS},
        }
        yield from ((language, name, items) for name, items in named.items() if items.any())


def _is_composition(example: Example, language: str) -> bool:
    has_level = example.factors.get("level") in COMPOSITION_LEVELS and all(factor in example.factors for factor in RULE)
    return example.language == language and has_level and is_of_two(example)
