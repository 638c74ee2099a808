"""The phrases of the live page; its script fills in names in braces."""

from __future__ import annotations

from anaphora.base.locale.translation import _, pgettext


def phrases() -> dict[str, str]:
    """Return the page's phrases by name, in the language of the enclosing `spoken_in`."""
    return {
        "title": _("Type a sentence, see its attention"),
        "lead": _("Maps of every layer and head, at once. Nothing leaves this machine."),
        "model": _("Model"),
        "text": _("Sentence"),
        "show": _("Show"),
        "mark": _("Click a word to mark it: once as a candidate, twice as the pronoun, three times as neither."),
        "side_by_side": _("side by side"),
        "working": _("asking the model …"),
        "took": pgettext("live page", "{seconds} s"),
        "answers": _("The model’s answer"),
        "none": _("none of them"),
        "candidate": _("candidate"),
        "before": _("as it is"),
        "after": _("with the edits"),
        "edit": _("Change the model"),
        "edit_hint": _("Click a cell of the whole map to choose an edge."),
        "cut": _("cut {from} → {to} in layer {layer} head {head}"),
        "cut_layer": _("in every head of the layer"),
        "cut_all": _("in every layer and head"),
        "off": _("switch off layer {layer} head {head}"),
        "undo": _("undo all"),
        "remove": _("undo"),
        "more_edits": _("and {count} more"),
        "decoder": _("A decoder: a word sees only what stands before it."),
        "lost": _("The server does not answer. Is it still running?"),
    }
