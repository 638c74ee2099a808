"""Interface texts of the browser page; its script fills in the placeholders in braces."""

from __future__ import annotations

from anaphora.base.locale.translation import _, pgettext
from anaphora.report.page.answer_notes import answer_phrases


def loading_phrase() -> str:
    """Return the text shown until the page's script has unpacked the model."""
    return _(
        "The model is being unpacked. If this line stays, JavaScript is off or the browser too old: any browser of "
        "2023 or later will do."
    )


def phrases() -> dict[str, str]:
    """Return the interface texts by name, in the language of the enclosing `spoken_in`."""
    return answer_phrases() | _marking_phrases() | _answer_phrases() | _map_phrases()


def _marking_phrases() -> dict[str, str]:
    return {
        "title": _("Type a sentence, see its attention"),
        "lead": _("The whole model is inside this page and computes in your browser. Nothing that you type leaves it."),
        "damaged": _(
            "This file is damaged: the weights of the model are incomplete. Get it again, or export it again."
        ),
        "text": _("Sentence"),
        "read": _("Show"),
        "examples": _("Or take one of these:"),
        "marking": _("A click on a word marks"),
        "marking_names": _("what the pronoun may mean"),
        "marking_pronoun": _("the pronoun"),
        "neighbours": _("Neighbouring marked words count as one name."),
        "words": _("The words of the sentence"),
        "pronoun": _("pronoun"),
        "candidate": _("candidate"),
        "another_pronoun": _("another pronoun; a click asks about it"),
        "empty": _("Type a sentence first."),
        "language": _("Type an English or a Chinese sentence: this page reads no other language."),
        "too_long": _("This sentence has {tokens} tokens, and the model reads at most {most}: type a shorter one."),
        "no_pronoun": _(
            "There is no he, she, it or they here: choose “the pronoun” above and click the word you mean."
        ),
        "too_many": _("This model compares at most {most} candidates: click some of them again."),
    }


def _answer_phrases() -> dict[str, str]:
    return {
        "answer": _("The model’s answer"),
        "before": _("as it is"),
        "after": _("with the edits"),
        "no_head": _(" (No head was chosen for this model, so this is the one that you select.)"),
        "sums": _("Weight on the candidates: "),
        "edit": _("Change the model"),
        "choose_edge": _("Click a word of the row, or a square of the map, to cut the edge to it."),
        "cut": _("Cut {from} → {to}:"),
        "in_head": _("in layer {layer} head {head}"),
        "in_layer": _("in every head of layer {layer}"),
        "in_every_head": _("in every layer and head"),
        "switch_off": _("Switch off layer {layer} head {head}"),
        "cut_done": _("{from} → {to} cut "),
        "off_done": _("layer {layer} head {head} switched off"),
        "off": pgettext("head", "off"),
        "undo": _("undo"),
        "undo_all": _("undo all"),
    }


def _map_phrases() -> dict[str, str]:
    return {
        "all_heads": _("The maps of all heads"),
        "heads_help": _(
            "One picture for each head. Below it stands the candidate to which the pronoun attends most, if it gets "
            "0.1 or more. Choose one with a click or the arrow keys."
        ),
        "chosen_head": _("Framed in green: layer {layer} head {head}, chosen on the development sentences."),
        "layer": _("layer {layer}"),
        "layer_head": _("layer {layer} head {head}"),
        "row": _("What {word} attends to in layer {layer} head {head}"),
        "attends": _("“{from}” attends to “{to}”: {share}"),
        "whole_map": _("The whole map"),
        "map_help": _(
            "A row is the word that attends, a column the word attended to. Arrow keys move through it; a click or "
            "Enter chooses an edge."
        ),
        "map_label": _("Attention map"),
        "about": _("Model: {name}, trained with Anaphora. It is small and can be wrong."),
        "rounded": _(
            "To keep this page small, its weights are rounded to 16 bits: weights of attention and answers can differ "
            "from those of the run by about 0.01."
        ),
        "seconds": pgettext("live page", "{seconds} s"),
    }
