"""Entries of an atlas, and sentences with the conclusions that are drawn from the entries.

An atlas compares the heads of several models on the same items. An entry has the results of one model on one corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.evidence import VERDICT_SCOPE, Evidence, in_group
from anaphora.analysis.results.scores import ALL, Cell
from anaphora.analysis.results.typed_json import Interval
from anaphora.base.translation import N_, _, pgettext
from anaphora.data.tokens.words import UnreadMentions
from anaphora.report.antecedents import RULES, Rows, row_of
from anaphora.report.numbers import (
    format_count,
    format_number,
    format_percent,
    format_points,
    interval_of,
    shown_interval,
)
from anaphora.report.wording import (
    baseline_names,
    head_name,
    label,
    language_name,
    mention_type_names,
    name_policy_names,
    selector_names,
    translated,
)

RULE_POLICIES = ("random", "nearest", "first", "parallel roles")


@dataclass(frozen=True, kw_only=True)
class AtlasEntry:
    """Results of one model on one corpus, for a page that compares models (an atlas).

    Attributes:
        is_decoder: whether attention is causal, so that a pronoun attends only to earlier words.
        corpus: key of the corpus in `corpus_names`.
        heads: (L, H) candidate accuracy of every head on the development split, by language; NaN in layers without
            attention.
        untested: one-line reason why there are no causal tests; None if there are tests or none were requested.
        unread: items with a pronoun or candidate outside the model's vocabulary; None if there are none.
        antecedents: rows of `selection_table` (how often rules and heads select an antecedent), if the corpus has
            documents; None on other corpora or if `unselected` is true.
        unselected: whether the corpus has documents but the model cannot be scored on selecting antecedents.
        names: rows of `name_decisions` (for each name of an item, whether the pronoun refers to it), if the corpus is
            GAP; None on other corpora.
    """

    model: str
    is_decoder: bool
    corpus: str
    evidence: Evidence
    heads: Mapping[str, NDArray[np.float64]]
    untested: str | None = None
    unread: UnreadMentions | None = None
    antecedents: Rows | None = None
    unselected: bool = False
    names: Rows | None = None

    @property
    def head(self) -> str:
        """Return the chosen head as "layer.head", both counted from 0."""
        return f"{self.evidence.head.layer}.{self.evidence.head.head}"


def task_accuracy(evidence: Evidence, code: str, kind: str) -> float | None:
    """Return the accuracy of the model's answers in one language and cue category ("set", "role" or "all").

    If the model answered only the items of the causal tests, the accuracy on these items is returned. The result is
    None if there are no answers.
    """
    cell = in_group(evidence.scores, code, kind)
    if cell is not None and cell.task_accuracy is not None:
        return cell.task_accuracy
    tested = in_group(evidence.causal_cells, code, kind)
    return None if tested is None else tested.task_accuracy


corpus_names = translated(
    controlled=N_("Built-in sentences"),
    jsonl=N_("Own items"),
    gap=N_("GAP"),
    dpr=N_("DPR"),
    winogrande=N_("WinoGrande"),
    cluewsc=N_("CLUEWSC2020"),
    mandarinograd=N_("Mandarinograd"),
    xwino=N_("XWINO"),
    wsc273=N_("WSC273"),
    pdp60=N_("PDP-60"),
    winobias=N_("WinoBias"),
    winogender=N_("Winogender"),
    knowref=N_("KnowRef"),
    litbank=N_("LitBank"),
    ontogum=N_("OntoGUM"),
    conll2012=N_("CoNLL-2012"),
    corefud=N_("CorefUD"),
    clusters=N_("JSON lines with clusters"),
    silver=N_("Silver-standard items"),
)


def findings(entries: Sequence[AtlasEntry]) -> Iterator[str]:
    """Yield the conclusions on one corpus as sentences; `entries` has the results of each model on this corpus."""
    for code in dict.fromkeys(code for entry in entries for code in entry.evidence.languages):
        yield from _head_findings(entries, code)
    yield from _antecedent_findings(entries)
    yield from _name_findings(entries)


def _head_findings(entries: Sequence[AtlasEntry], code: str) -> Iterator[str]:
    """Yield conclusions for one language: a sentence on the best chosen head, and one sentence per model on answers.

    The best chosen head is the one with the highest candidate accuracy over all models. The sentence on a model's
    answers says how their accuracy changes if the pronoun cannot attend to the antecedent in any head of the chosen
    head's layer, provided that the change and its interval were measured. If no heads were scored, nothing is yielded.
    """
    scored = [
        (whole.candidate_accuracy, entry, whole)
        for entry in entries
        if (whole := entry.evidence.languages.get(code)) is not None and whole.candidate_accuracy is not None
    ]
    if not scored:
        return
    best, entry, whole = max(scored, key=lambda each: each[0])
    compared = [(other.model, cell) for _, other, cell in scored if None not in _baselines(cell).values()]
    above = [model for model, cell in compared if _is_above_all(cell)]
    where = {"corpus": label(corpus_names(), entry.corpus), "spoken": language_name(code)}
    yield _(
        "{corpus}, {spoken}: {head} of {model} gives the antecedent the most weight of all candidates in {share} % of "
        "{items:item|items}{interval}. For comparison: {others}. {above}"
    ).format(
        **where,
        model=entry.model,
        head=head_name(entry.evidence.head.layer, entry.evidence.head.head),
        share=format_percent(best),
        interval=_interval_phrase(whole.intervals.candidate_accuracy),
        items=format_count(whole.items),
        others=_comparison(whole),
        above=(
            _("With its whole interval above all three: {models}.")
            if above
            else _("No model is above all three with its whole interval.")
        ).format(models=pgettext("list", ", ").join(above))
        if compared
        else "",
    )
    for entry in entries:
        cell = in_group(entry.evidence.causal_cells, code, ALL)
        loss = None if cell is None else cell.knockout[VERDICT_SCOPE].edges.get("gold")
        if cell is None or loss is None or loss.drop is None or loss.interval is None:
            continue
        points, ends, phrase = round(100 * loss.drop, 1), loss.interval, _(" (95 % interval {low} to {high})")
        if points < 0:
            ends = Interval(-ends.high, -ends.low)
        if points > 0:
            text = _(
                "{corpus}, {spoken}: {model} answers {task} % of {items:item|items} correctly, and {drop} "
                "points fewer{interval} once the pronoun’s edge to the antecedent is cut in all heads of "
                "layer {layer}."
            )
        elif points:
            text = _(
                "{corpus}, {spoken}: {model} answers {task} % of {items:item|items} correctly, and {drop} "
                "points more{interval} once the pronoun’s edge to the antecedent is cut in all heads of layer"
                " {layer}."
            )
        else:
            text = _(
                "{corpus}, {spoken}: {model} answers {task} % of {items:item|items} correctly, and as "
                "many{interval} once the pronoun’s edge to the antecedent is cut in all heads of layer "
                "{layer}."
            )
            phrase = _(" (95 % interval of the difference: {low} to {high} points)")
        yield text.format(
            **where,
            model=entry.model,
            task=format_percent(cell.task_accuracy),
            items=format_count(cell.items),
            drop=format_points(abs(points)),
            interval=_interval_phrase(ends, phrase),
            layer=entry.evidence.head.layer,
        )


def _interval_phrase(span: tuple[float, float] | None, phrase: str | None = None) -> str:
    """Return an interval of shares as a phrase such as " (95 % interval 41.0 to 53.2)"; "" if none is shown."""
    ends = shown_interval(span)
    if ends is None:
        return ""
    low, high = map(format_percent, ends)
    return (phrase or _(" (95 % interval {low} to {high})")).format(low=low, high=high)


def _baselines(cell: Cell) -> dict[str, float | None]:
    """Return the baselines of a head: chance, accuracy of the best shortcut, and mean accuracy of untrained models.

    The keys are "chance", "shortcut" and "untrained"; a value that was not measured is None.
    """
    shortcut = cell.best_shortcut
    return {
        "chance": cell.chance,
        "shortcut": None if shortcut is None else shortcut.accuracy,
        "untrained": cell.baselines.get("random_init"),
    }


def _comparison(cell: Cell) -> str:
    """Return the measured baselines of a head (`_baselines`) as a list for use in a sentence."""
    shortcut = cell.best_shortcut
    rule = "" if shortcut is None else label(baseline_names(), shortcut.name)
    texts = {
        "chance": _("guessing {share} %"),
        "shortcut": _("the best shortcut ({rule}) {share} %"),
        "untrained": _("its untrained models {share} %"),
    }
    return pgettext("list", ", ").join(
        texts[name].format(rule=rule, share=format_percent(share))
        for name, share in _baselines(cell).items()
        if share is not None
    )


def _is_above_all(cell: Cell) -> bool:
    """Return whether the 95 % interval of the candidate accuracy is above all baselines (`_baselines`).

    The result is False if the interval or a baseline was not measured.
    """
    interval = cell.intervals.candidate_accuracy
    return interval is not None and all(one is not None and interval[0] > one for one in _baselines(cell).values())


def _antecedent_findings(entries: Sequence[AtlasEntry]) -> Iterator[str]:
    """Yield a sentence on how often antecedents are selected by the best head of all models and by rules.

    If antecedent selection was not measured, nothing is yielded.
    """
    picked = []
    for entry in entries:
        rows = entry.antecedents or ()
        column = "pronoun" if row_of(rows, subset="all", column="pronoun") else "all"
        any_word = row_of(rows, subset="all", selector="best head", field="words", column=column)
        mention = row_of(rows, subset="all", selector="best head", field="mentions", column=column)
        if any_word is not None and mention is not None:
            picked.append((any_word["accuracy"], entry, any_word, mention, column))
    if not picked:
        return
    share, entry, any_word, mention, column = max(picked, key=lambda each: each[0])
    rules = {
        name: row["accuracy"]
        for name in RULES
        if (row := row_of(entry.antecedents or (), subset="all", selector=name, column=column)) is not None
    }
    best = max(rules, key=lambda name: rules[name])
    yield _(
        "{corpus}, {form}: the word that {head} of {model} attends to most belongs to the antecedent for {share} % of "
        "{items}{interval} when any word of the text may be it, and for {mentions} % "
        "({mentions_head}) among the mentions before it; the nearest mention is right for {nearest} %, the best rule "
        "({rule}) for {best} %."
    ).format(
        corpus=label(corpus_names(), entry.corpus),
        form=label(mention_type_names(), column),
        model=entry.model,
        head=head_name(any_word["layer"], any_word["head"]),
        share=format_percent(share),
        interval=_interval_phrase(interval_of(any_word)),
        items=format_count(any_word["items"]),
        mentions=format_percent(mention["accuracy"]),
        mentions_head=head_name(mention["layer"], mention["head"]),
        nearest=format_percent(rules["nearest"]),
        rule=label(selector_names(), best),
        best=format_percent(rules[best]),
    )


def _name_findings(entries: Sequence[AtlasEntry]) -> Iterator[str]:
    """Yield a sentence with the F1 scores of the best chosen head and the best rule on GAP; nothing without scores."""
    decided = [(row, entry) for entry in entries if (row := row_of(entry.names or (), policy="head")) is not None]
    if not decided:
        return
    row, entry = max(decided, key=lambda each: float(each[0]["f1"]))
    rules = {one["policy"]: one["f1"] for one in entry.names or () if one["policy"] in RULE_POLICIES}
    best = max(rules, key=lambda name: rules[name])
    yield _(
        "{corpus}: decided by {head} of {model}, the names reach F1 {f1} %{interval}, with a ratio of feminine to "
        "masculine of {bias}; the best rule ({rule}) has F1 {best} %."
    ).format(
        corpus=label(corpus_names(), entry.corpus),
        head=head_name(entry.evidence.head.layer, entry.evidence.head.head),
        model=entry.model,
        f1=format_percent(row["f1"]),
        interval=_interval_phrase(interval_of(row)),
        bias=format_number(row["bias"], 2),
        rule=label(name_policy_names(), best),
        best=format_percent(rules[best]),
    )
