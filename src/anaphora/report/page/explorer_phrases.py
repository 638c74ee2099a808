"""Phrases of the page's explorer."""

from __future__ import annotations

from anaphora.base.locale.translation import _
from anaphora.report.page.answer_notes import no_pronoun_note


def explorer_phrases() -> dict[str, str]:
    """Return the phrases of the explorer, by their keys in its script."""
    return {
        "no_script": _("The explorer needs JavaScript, which this browser has switched off."),
        "choose_sentence": _("Choose a sentence"),
        "search": _("Search words"),
        "search_label": _("Search words in the sentences"),
        "language": _("Language"),
        "all_languages": _("all languages"),
        "cue_tag": _("{kind} cue"),
        "answer_tag": _("answer "),
        "head_tag": _("head "),
        "cue": _("Kind of cue"),
        "result": _("Right or wrong"),
        "right_or_wrong": _("right or wrong"),
        "answer_right": _("answer right"),
        "answer_wrong": _("answer wrong"),
        "head_right": _("head right"),
        "head_wrong": _("head wrong"),
        "count": _("{count} of {all} sentences"),
        "map": _("Map"),
        "layer_label": _("Layer"),
        "head_label": _("Head"),
        "keep_special": _("keep special tokens"),
        "between": _("Texts"),
        "all_words": _("within and between both"),
        "first_to_second": _("from the first to the second"),
        "second_to_first": _("from the second to the first"),
        "within_first": _("within the first"),
        "within_second": _("within the second"),
        "colours": _("Colours"),
        "fitted": _("up to the map’s greatest weight"),
        "whole": _("from 0 to 1 in every map"),
        "log": _("logarithmic"),
        "log_low": _("0.004 or less"),
        "log_high": _("{top}, logarithmic"),
        "link": _("link to this view"),
        "all_heads": _("Every head as a picture"),
        "whole_map": _("The whole map"),
        "how_to": _(
            "A row is the word that attends, a column the word attended to. Arrow keys move through it; a click or "
            "Enter chooses an edge."
        ),
        "map_label": _("Attention map"),
        "pronoun": _("pronoun"),
        "antecedent": _("antecedent"),
        "other": _("other candidate"),
        "candidate": _("candidate"),
        "steps": _("Weights are stored in steps of 1/255."),
        "special_dropped": _(
            "Special tokens are dropped; what is left of each row is scaled up so that it sums to as much as before."
        ),
        "old_browser": _("This browser cannot unpack the maps. Any browser of 2023 or later can."),
        "answers": _("The model answers "),
        "none_of_them": _("none of them"),
        "right": _(" right"),
        "wrong": _(" wrong"),
        "points": _("; the chosen head points "),
        "points_right": _(" at the antecedent."),
        "points_wrong": _(" elsewhere."),
        "choose_edge": _("A click into the map chooses an edge; the heads are then shaded by its weight."),
        "shaded_by_edge": _("Heads are shaded by the weight from {from} to {to}."),
        "shaded_by_antecedent": _("Heads are shaded by the pronoun’s weight on the antecedent."),
        "layer": _("layer {layer}"),
        "layer_head": _("layer {layer} head {head}"),
        "no_attention": _("layer {layer}: no attention"),
        "weight": _("{place}, weight {share}"),
        "on_antecedent": _("{place}, {share} on the antecedent"),
        "most": _("Most: "),
        "choose_word": no_pronoun_note(),
        "row": _("What {word} attends to"),
        "column": _("What attends to {word}"),
        "attends": _("“{from}” attends to “{to}”: {share}"),
    }
