"""Data of the explorer, an interactive view of sentences and their attention maps (templates/explorer.js).

The data are an entry for each sentence, with encoded attention maps, and the interface texts.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from math import isqrt, prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anaphora.analysis.maps.answers import NO_CANDIDATE
from anaphora.analysis.maps.words import attending_layers, word_roles
from anaphora.analysis.results.scores import Head
from anaphora.base.errors import UserError
from anaphora.base.language import is_right_to_left, language_of
from anaphora.base.translation import N_, _, pgettext
from anaphora.data.example import Example, Span
from anaphora.report.page.answer_notes import no_pronoun_note
from anaphora.report.page.offline import with_units
from anaphora.report.wording import factor_value_names, language_names, map_names

if TYPE_CHECKING:
    from anaphora.analysis.evidence.example_sentences import ExampleSentence


MOST_WEIGHTS = 50_000_000
"""Maximum number of attention weights of a text on a page, which has a byte for each."""


def explorer_entries(examples: Sequence[ExampleSentence]) -> list[dict[str, Any]]:
    """Return the sentences of one run as entries of the explorer, the page's interactive view of attention maps.

    Returns:
        One dictionary per sentence: {"id", "text", "language", "kind", "type", "words", "pronoun", "antecedents",
        "distractors", "special", "answer", "right", "head_right", "maps": {name: {"shape": [L, H or 1, W, W], "data":
        base64 of uint8}}} for W words. "pronoun" and each candidate are lists of word indices. "answer" is the text of
        the candidate that the model chose, "" for none of them; "right" says whether it is right. Both are None without
        an answer. "head_right" says whether the pronoun attends most to an antecedent in the chosen head.
        "direction" is "rtl" for a right-to-left script, and is missing otherwise. "pronoun_rows" has the unrounded
        weights from the pronoun, (L, H, W); it is not written to pages.
    """
    counts: dict[str, int] = {}
    sentences = []
    for sentence in examples:
        language = sentence.record.example.language
        counts[language] = counts.get(language, 0) + 1
        sentences.append(_sentence_entry(sentence, f"{language}-{counts[language]}"))
    return sentences


def _sentence_entry(sentence: ExampleSentence, name: str) -> dict[str, Any]:
    example, row = sentence.record.example, sentence.row
    pronoun, antecedents, distractors = word_roles(example, row.spans)
    return {
        "id": name,
        "text": example.text,
        "language": example.language,
        "kind": example.factors.get("kind"),
        "type": example.factors.get("type"),
        "words": list(row.words),
        "pronoun": pronoun,
        "antecedents": antecedents,
        "distractors": distractors,
        "special": _special_words(row.spans),
        "answer": _answer_text(example, sentence.answer),
        "right": sentence.model_correct,
        "head_right": sentence.head_correct,
        "maps": {name: pack_map(weights) for name, weights in sentence.maps.items()},
        "pronoun_rows": row.weights.tolist(),
        **_direction(row.words),
    }


def attention_entry(
    text: str, words: Sequence[str], spans: Sequence[Span], weights: NDArray[np.float32], example: Example | None = None
) -> dict[str, Any]:
    """Return the explorer entry of a text with the attention maps of all heads.

    Args:
        spans: (start, end) character span of each of the W words; the span of a special token is empty.
        weights: (L, H, W, W). Layers without attention are listed under the map's key "blank_layers", unless no layer
            has attention.
        example: the text with a pronoun and candidates; None for an entry without them.

    Raises:
        UserError: the maps have more than `MOST_WEIGHTS` weights.
    """
    attending = attending_layers(weights)
    heads = (len(attending) or len(weights)) * weights.shape[1]
    if heads * len(words) ** 2 > MOST_WEIGHTS:
        message = N_("text: it has {words} words; a page shows the maps of all {heads:head|heads} for at most {most}")
        raise UserError(message, words=len(words), heads=heads, most=isqrt(MOST_WEIGHTS // heads))
    blank = [layer for layer in range(len(weights)) if attending and layer not in attending]
    pronoun, antecedents, distractors = ([], [], []) if example is None else word_roles(example, spans)
    return completed_entry(
        {
            "text": text,
            "words": list(words),
            "pronoun": pronoun,
            "antecedents": antecedents,
            "distractors": distractors,
            "special": _special_words(spans),
            "maps": {"raw": {**pack_map(weights), **({"blank_layers": blank} if blank else {})}},
            **_direction(words),
        }
    )


def completed_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Add defaults for missing keys to an explorer entry; the default text joins all words except special tokens."""
    special = set(entry.get("special", ()))
    words = [word for index, word in enumerate(entry["words"]) if index not in special]
    text = entry.get("text") or ("" if language_of("".join(words)) == "zh" else " ").join(words)
    return {
        "id": "1",
        "text": text,
        "language": language_of(text),
        **dict.fromkeys(("kind", "type", "answer", "right", "head_right")),  # unknown
        **{name: [] for name in ("pronoun", "antecedents", "distractors", "special")},
        **entry,
    }


def pronoun_row(sentence: Mapping[str, Any], head: Head) -> NDArray[np.float64]:
    """Return the attention weights from the pronoun to each word in one head, (W,), from an explorer entry.

    The weights are averaged over the tokens of the pronoun.
    """
    return np.array(sentence["pronoun_rows"][head.layer][head.head], dtype=np.float64)


def _direction(words: Sequence[str]) -> dict[str, str]:
    """Return the key "direction" of an explorer entry if its words are in a right-to-left script, otherwise no key."""
    return {"direction": "rtl"} if is_right_to_left(words) else {}


def _special_words(spans: Sequence[Span]) -> list[int]:
    return [number for number, (start, end) in enumerate(spans) if start == end]


def _answer_text(example: Example, answer: int | None) -> str | None:
    if answer is None:
        return None
    if answer == NO_CANDIDATE:
        return ""
    start, end = example.candidates[answer][0]
    return example.text[start:end]


def pack_map(weights: ArrayLike) -> dict[str, Any]:
    """Encode an attention map for an explorer entry: clip the weights to [0, 1] and round them to multiples of 1 / 255.

    The weights are (L, H, W, W), or (L, 1, W, W) without heads, and finite. The result has the map's "shape", and its
    "data" as base64 of uint8.

    Raises:
        UserError: weights of another shape.
    """
    array = np.asarray(weights, dtype=np.float32)
    if array.ndim != 4 or array.shape[2] != array.shape[3]:
        raise UserError(f"a map must be layers x heads x words x words, got {' x '.join(map(str, array.shape))}")
    scaled = array * 255.0
    np.rint(scaled, out=scaled)
    data = scaled.clip(0, 255).astype(np.uint8)
    return {"shape": list(array.shape), "data": base64.b64encode(data.tobytes()).decode("ascii")}


def unpack_map(stored: Mapping[str, Any]) -> NDArray[np.float64]:
    """Decode an attention map encoded by `pack_map`: (L, H, W, W) in [0, 1].

    Raises:
        UserError: the shape does not have four axes, or the number of bytes does not match the shape.
    """
    data = np.frombuffer(base64.b64decode(stored["data"]), dtype=np.uint8)
    shape = tuple(int(size) for size in stored["shape"])
    if len(shape) != 4 or data.size != prod(shape):
        raise UserError(f"a map of {data.size} weights has shape {shape}; expected layers x heads x words x words")
    weights: NDArray[np.float64] = data.reshape(shape) / 255.0
    return weights


def compress_map(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Compress the data of an encoded attention map by zlib, RFC 1950 (Deutsch and Gailly 1996), for large pages.

    "encoding" becomes "deflate"; `unpack_map` cannot read the result.
    """
    # Weights rarely repeat, so a search for repetitions is slow and gains nothing over Huffman codes.
    packer = zlib.compressobj(strategy=zlib.Z_HUFFMAN_ONLY)
    data = packer.compress(base64.b64decode(stored["data"])) + packer.flush()
    return {**stored, "data": base64.b64encode(data).decode("ascii"), "encoding": "deflate"}


def explorer_words() -> dict[str, dict[str, str]]:
    """Return the texts of the explorer's interface and the labels of maps, languages and item attributes."""
    words = {
        "phrases": explorer_phrases(),
        "maps": map_names(),
        "languages": language_names(),
        "values": factor_value_names(),
    }
    return {name: {key: with_units(text) for key, text in texts.items()} for name, texts in words.items()}


def explorer_phrases() -> dict[str, str]:
    """Return the texts of the explorer's interface under the keys that the explorer's script uses."""
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
        "list": pgettext("list", ", "),
        "right": _(" right"),
        "wrong": _(" wrong"),
        "points": _("; the chosen head points "),
        "points_right": _(" at the antecedent."),
        "points_wrong": _(" elsewhere."),
        "choose_edge": _("A click on the map chooses an edge; the heads are then shaded by its weight."),
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
