"""Sections of the report on all heads (accuracies, training, quads, roles), and on the chosen head in sentences."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import to_hex

from anaphora.analysis.results.scores import ALL, KINDS, Head
from anaphora.analysis.scores.measures.roles import HeadRoles
from anaphora.base.language import LANGUAGES
from anaphora.base.translation import N_, _
from anaphora.report import titles
from anaphora.report.figures import heads, maps, pictures, style
from anaphora.report.figures.sheet import MIN_PRINTED_WEIGHT, WordRoles
from anaphora.report.numbers import NOT_MEASURED, format_percent, with_minus
from anaphora.report.page.elements import (
    FigureElement,
    HeadRolesElement,
    NoteElement,
    PageElement,
    PlacedSections,
    ReportRun,
    Section,
    SentenceEntry,
    SentencesElement,
    ShadedSentence,
    ShadedWord,
)
from anaphora.report.page.explorer import pronoun_row
from anaphora.report.wording import (
    clauses,
    group_label,
    head_name,
    head_role_names,
    heads_listed,
    label,
    language_name,
    listed,
    value_label,
)

_SORTS = {
    N_("Right: the head picks the antecedent and the model answers correctly"): (True, True),
    N_("The head picks another candidate, the answer is right all the same"): (True, False),
    N_("The head picks the antecedent, the answer is wrong"): (False, True),
    N_("Wrong: both the head and the answer"): (False, False),
    N_("The head picks the antecedent; the model gives no answer"): (None, True),
    N_("The head picks another candidate; the model gives no answer"): (None, False),
}
"""Heading -> (whether the answer is right, or None without an answer; whether the head picks the antecedent)."""
_MOST = 2
"""Maximum number of sentences per outcome and language."""


def heads_section(run: ReportRun) -> Section:
    """Return the section on the candidate accuracy of every head on the development split."""
    elements: list[PageElement] = []
    evidence = run.evidence
    chosen = (evidence.head.layer, evidence.head.head)
    for language, scores in run.heads.items():
        cell = evidence.languages.get(language)
        threshold = cell.baselines.get("random_init_95") if cell else None
        chance = run.heads_chance[language]
        values = np.asarray(scores, dtype=np.float64)
        name = language_name(language)
        title = titles.heads_title(values, chance, threshold, language, evidence)
        figure = heads.head_grid_figure(values, chance, chosen, title, threshold, evidence.head.chosen_on)
        share = format_percent(float(values[chosen]))
        if threshold is None:
            summary = _("{texts}: candidate accuracy {share} % at the chosen head.").format(texts=name, share=share)
        else:
            limit = heads.head_threshold(threshold, chance)
            count = int((values > limit).sum())
            text = (
                _(
                    "{texts}: candidate accuracy {share} % at the chosen head; {count} of {heads:head is|heads are} "
                    "above "
                    "{threshold} %, which 95 % of untrained models do not reach."
                )
                if threshold >= chance
                else _(
                    "{texts}: candidate accuracy {share} % at the chosen head; {count} of {heads:head is|heads are} "
                    "above "
                    "chance, {threshold} %, and above what 95 % of untrained models stay below."
                )
            )
            summary = text.format(
                texts=name,
                share=share,
                count=count,
                heads=np.count_nonzero(~np.isnan(values)),
                threshold=format_percent(limit),
            )
        elements.append(FigureElement(name=f"heads_{language}", figure=figure, alt=summary))
    if evidence.heads_on_development and evidence.protocol:
        p, alpha = evidence.heads_on_development.p, evidence.protocol.alpha
        known = {(layer, head): one for layer, row in enumerate(p) for head, one in enumerate(row) if one is not None}
        better = [head for head, value in known.items() if value < alpha]
        note = (
            _(
                "Better than with permuted antecedents on the development split, p < {alpha:g} after "
                "correction for choosing the best of {count} heads: {heads}."
            )
            if better
            else _(
                "No head is better than with permuted antecedents on the development split, p < {alpha:g} "
                "after correction for choosing the best of {count}."
            )
        )
        text = note.format(alpha=alpha, count=len(known), heads=heads_listed(better))
        elements.append(NoteElement(text=text))
    held_out = evidence.is_of_held_out_items
    return Section(
        name="heads",
        title=_("Which heads do it?"),
        explanation=_(
            "Candidate accuracy of every head. One head is chosen here, on the development split; all other numbers "
            "come from sentences that had no part in the choice."
        )
        if held_out
        else _(
            "Candidate accuracy of every head on the development split. The head of this page was not chosen "
            "on separate sentences, so none of these numbers is a test of it."
        ),
        elements=elements,
    )


def quads_section(run: ReportRun) -> Section:
    """Return the section on quads (two cues, each with both orders of the candidates), with one figure per quad."""
    elements: list[PageElement] = []
    for language, kind, cells in run.quads:
        sentences = clauses([_sentence_with_weights(cell, language) for cell in cells])
        summary = _("{group}: {text}").format(group=group_label(language, kind), text=sentences)
        title = titles.quad_title(cells, language, kind, run.evidence.head.position)
        name = f"quad_{language}_{kind}"
        elements.append(FigureElement(name=name, figure=maps.quad_figure(cells, title), alt=summary))
    return Section(
        name="quads",
        title=_("The same words, another reading"),
        explanation=_(
            "A quad puts the same scene four times: the cue changes who is meant, and the order changes who comes "
            "first. Attention that follows meaning moves with the cue and stays when only the order changes."
        ),
        elements=elements,
        missing=_("No picture: the measured sentences have no quads, or only octads."),
    )


def _sentence_with_weights(cell: maps.QuadCell, language: str) -> str:
    """Return the text of a sentence of a quad, followed by the attention weight on each candidate."""
    gap = "" if language == "zh" else " "
    weights = np.asarray(cell.weights, dtype=np.float64)
    roles = WordRoles(len(cell.words), cell.pronoun, cell.antecedents, cell.distractors)
    mentions = [(_("antecedent"), entry) for entry in roles.antecedents]
    mentions += [(_("other candidate"), entry) for entry in roles.distractors]
    shares = [
        _("{role} “{words}” {share}").format(
            role=role, words=gap.join(cell.words[word] for word in entry), share=f"{weights[entry].sum():.2f}"
        )
        for role, entry in mentions
    ]
    return _("“{text}”: {shares}").format(text=cell.text or gap.join(cell.words), shares=listed(shares))


def alignment_section(run: ReportRun) -> Section:
    """Return the section on the candidate accuracy of all heads during training.

    The section has no figure if there are fewer than two validations, or if the validations lack candidate accuracy.
    """
    elements: list[PageElement] = []
    head = run.evidence.head.position
    if run.chance is not None and run.validations:
        name = f"attention_candidate_accuracy/layer_{head.layer}_head_{head.head}"
        figure = pictures.alignment_through_training(run.validations, head, run.chance)
        if figure:
            first, last = run.validations[0], run.validations[-1]
            summary = _(
                "Candidate accuracy of {head} goes from {first} % at step {first_step} to {last} % at step {last_step}."
            ).format(
                head=head_name(head.layer, head.head),
                first=format_percent(first.get(name)),
                first_step=f"{first['step']:,.0f}",
                last=format_percent(last.get(name)),
                last_step=f"{last['step']:,.0f}",
            )
            elements.append(FigureElement(name="alignment_through_training", figure=figure, alt=summary))
    return Section(
        name="alignment",
        title=_("When does it appear?"),
        explanation=_("Candidate accuracy of every head during training, and the accuracy of the model’s answers."),
        elements=elements,
    )


def _roles_section(run: ReportRun) -> Section:
    evidence = run.evidence
    by_head = {(roles.layer, roles.head): roles for roles in evidence.head_roles or ()}
    elements: list[PageElement] = []
    if by_head:
        chosen = (evidence.head.layer, evidence.head.head)
        numbers = sorted({head for _, head in by_head})
        rows = [
            (
                layer,
                [
                    (roles.roles, _role_numbers(roles), (layer, head) == chosen)
                    for head in numbers
                    if (roles := by_head.get((layer, head))) is not None
                ],
            )
            for layer in sorted({layer for layer, _ in by_head})
        ]
        elements.append(HeadRolesElement(heads=numbers, rows=rows))
    return Section(
        name="roles",
        title=_("What do the other heads do?"),
        explanation=_(
            "From the pronoun’s rows alone. Positional: in 90 % of them the largest weight is the same number"
            " of tokens back or ahead. Special: half of the weight is on special tokens such as [CLS]. Cue: "
            "in half of them the largest weight is on the cue’s words. Antecedent: ten points above the best "
            "shortcut. The bar marks the chosen head."
        ),
        elements=elements,
    )


def _role_numbers(roles: HeadRoles) -> str:
    parts = []
    if roles.positional.share is not None:
        offset = roles.positional.offset or 0
        beside = _("{share} % {tokens} ahead") if offset > 0 else _("{share} % {tokens} back")
        text = beside if offset else _("{share} % on itself")
        parts.append(text.format(share=format_percent(roles.positional.share), tokens=abs(offset)))
    for name, share in (("special", roles.special), ("cue", roles.cue)):
        if share is not None:
            parts.append(f"{label(head_role_names(), name)} {_('{value} %').format(value=format_percent(share))}")
    lead = roles.antecedent.accuracy_over_best_baseline
    if lead is not None:
        parts.append(_("antecedent {points} points").format(points=with_minus(f"{100 * lead:+.0f}")))
    return " · ".join(parts)


def _examples_section(run: ReportRun) -> Section:
    """Return the section of example sentences, grouped by whether the head and the model pick the antecedent.

    Each group has at most `_MOST` sentences per language. Sentences in the page's interactive view
    of attention maps are linked to it.
    """
    elements: list[PageElement] = []
    languages = dict.fromkeys(sentence["language"] for sentence in run.sentences)
    for sort, (right, points) in _SORTS.items():
        chosen: list[SentenceEntry] = []
        for language in languages:
            chosen += [
                entry
                for entry in run.sentences
                if entry["language"] == language
                and entry.get("right") is right
                and bool(entry.get("head_right")) == points
            ][:_MOST]
        if chosen:
            shaded = [_shaded_sentence(sentence, run.evidence.head.position, run.is_explored) for sentence in chosen]
            elements.append(SentencesElement(title=_(sort), sentences=shaded))
    return Section(
        name="examples",
        title=_("Right and wrong, sentence by sentence"),
        explanation=_(
            "The first sentences of each sort, not the prettiest. Shading is the pronoun’s weight at the chosen head."
        ),
        elements=elements,
        missing=_("No sentences were given."),
    )


def _shaded_sentence(sentence: SentenceEntry, head: Head, explored: bool) -> ShadedSentence:
    words, row = sentence["words"], pronoun_row(sentence, head)
    roles = {word: "other" for entry in sentence["distractors"] for word in entry}
    roles |= {word: "antecedent" for entry in sentence["antecedents"] for word in entry}
    roles |= dict.fromkeys(sentence["pronoun"], "pronoun")
    shaded = []
    for number, (word, weight) in enumerate(zip(words, row, strict=True)):
        if number in (sentence.get("special") or ()):
            continue
        paint = style.WEIGHTS(min(float(weight), 1.0))
        share = f"{weight:.2f}" if weight >= MIN_PRINTED_WEIGHT else ""
        shaded.append(ShadedWord(word, to_hex(paint), style.text_colour_on(paint), roles.get(number, ""), share))
    factors = " · ".join(value_label(str(sentence[name])) for name in ("kind", "type") if sentence.get(name))
    identity = sentence["id"] if explored else None
    answer = sentence.get("answer")
    answer_text = NOT_MEASURED if answer is None else answer or _("none of them")
    return ShadedSentence(sentence["language"], identity, shaded, factors, answer_text)


SECTIONS: PlacedSections = {
    40: heads_section,
    50: quads_section,
    140: alignment_section,
    150: _roles_section,
    180: _examples_section,
}
FIGURES = (
    *(f"heads_{language}" for language in LANGUAGES),
    *(f"quad_{language}_{kind}" for language in LANGUAGES for kind in (*KINDS, ALL)),
    "alignment_through_training",
)
