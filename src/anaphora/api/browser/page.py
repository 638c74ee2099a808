"""Self-contained HTML page that runs a trained model in the browser."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.evidence.storage import answer_temperatures, chosen_head, stored_head
from anaphora.analysis.scores.heads import TIE
from anaphora.api.browser.shapes import check_supported, shape_of, stored_tokenizer
from anaphora.api.live.questions import FIRST_SENTENCES
from anaphora.base.errors import UserError
from anaphora.base.files import write_text
from anaphora.base.language import CHINESE_RANGES, CHINESE_SHARE, ENGLISH_WORDS, LANGUAGE_SAMPLE, LANGUAGES
from anaphora.base.translation import _, pgettext, spoken_in, spoken_language
from anaphora.data.own_sentence import SCRIPT_PATTERN, example_from_query
from anaphora.report.page import offline
from anaphora.report.page.answer_notes import LEAST_WEIGHT, answer_phrases
from anaphora.runs.directory import distinct_tensors
from anaphora.settings.model.attention import heads_of
from anaphora.settings.model.prediction import slots_of

if TYPE_CHECKING:
    from anaphora.runs.directory import Run

MOST_BYTES = 25_000_000
"""Maximum size of a page in bytes."""
MOST_CHARACTERS = 1_000
"""Maximum number of characters in a text on the page."""
_TEMPLATES = Path(__file__).with_name("templates")
_LIVE_TEMPLATES = _TEMPLATES.parent.parent / "live" / "templates"
_SCRIPTS = ("tokenizer.js", "encoder.js", "model.js", "map.js", "try.js")
_EXAMPLES: tuple[tuple[str, str, str, Sequence[str]], ...] = (
    *((language, *sentence) for language, sentences in FIRST_SENTENCES.items() for sentence in sentences),
    ("en", "The boy dropped the plate because it was hot.", "it", ("boy", "plate")),
    ("zh", "男孩放下了盘子，因为它很烫。", "它", ("男孩", "盘子")),
)
"""Example sentences: language, text, pronoun, candidates."""


def write_browser_page(path: Path, run: Run) -> None:
    """Write an HTML page that runs a trained model in the browser.

    Raises:
        UserError: the page would be larger than `MOST_BYTES`; also the errors of `browser_page`.
    """
    html = browser_page(run)
    size = len(html.encode("utf-8"))
    if size > MOST_BYTES:
        raise UserError(
            f"{run.name}: the page would have {size / 1e6:.0f} MB, and format=page writes at most "
            f"{MOST_BYTES // 1_000_000} MB: model.width, model.layers or the vocabulary is too large"
        )
    write_text(path, html)


def browser_page(run: Run) -> str:
    """Return an HTML page that runs a trained model in the browser.

    Weights are stored in float32. They are stored in float16 if this is exact, or if the page would otherwise be larger
    than `MOST_BYTES`.

    Raises:
        UserError: the page's script does not support the model or its tokenizer, a weight is not finite, or a result
            file of the run (scores, calibration temperatures) is damaged.
    """
    check_supported(run)
    html = _page(run, _pack_weights(run, 32))
    return html if len(html.encode("utf-8")) <= MOST_BYTES else _page(run, _pack_weights(run, 16))


def _page(run: Run, weights: _PackedWeights) -> str:
    tokenizer = stored_tokenizer(run)
    words = {}
    loading = {}
    for language in LANGUAGES:
        with spoken_in(language):
            words[language] = {name: offline.with_units(text) for name, text in _phrases().items()}
            # Shown until the page's script has unpacked the model.
            loading[language] = _(
                "The model is being unpacked. If this line stays, JavaScript is off or the browser too old: any "
                "browser of 2023 or later will do."
            )
    heads = {language: stored_head(run, language) if chosen_head(run, language) else None for language in LANGUAGES}
    data = {
        "name": run.name,
        "phrases": words,
        # With ANAPHORA_LANGUAGE=zh the page opens in Chinese, otherwise in the language of the browser.
        "opens": "zh" if spoken_language() == "zh" else None,
        "shape": {**shape_of(run), "sizes": weights.sizes},
        "tensors": [{"name": name, "size": int(np.prod(size))} for name, size in weights.sizes.items()],
        "precision": weights.precision,
        "rounded": weights.is_rounded,
        "tokenizer": tokenizer,
        "chinese": CHINESE_RANGES,
        "pronouns": SCRIPT_PATTERN,
        "english": sorted(ENGLISH_WORDS),
        "examples": _readable_examples(run),
        "heads": {
            language: None if head is None else {"layer": head.layer, "head": head.head}
            for language, head in heads.items()
        },
        "language": {"sample": LANGUAGE_SAMPLE, "share": CHINESE_SHARE},
        "temperatures": answer_temperatures(run),
        "least": LEAST_WEIGHT,
        "tie": TIE,
        "training": [
            [run.config.head_training(layer, head) for head in range(heads_of(run.config.model.attention))]
            for layer in range(run.config.model.layers)
        ],
        "most": slots_of(run.config.task.prediction) or None,
        "characters": MOST_CHARACTERS,
        "longest": run.config.model.position.longest_text,
        "colours": offline.weight_colours(),
    }
    html = offline.template_environment(_TEMPLATES).get_template("try.html.j2").render(
        name=run.name,
        loading=loading,
        most_characters=MOST_CHARACTERS,
        data=offline.script_json(data),
        weights=offline.trusted_markup(weights.text),
        scripts=[
            offline.read_asset("language.js"),
            *(offline.read_asset(name, _LIVE_TEMPLATES) for name in ("elements.js", "names.js")),
            *(offline.read_asset(name, _TEMPLATES) for name in _SCRIPTS),
        ],
        style=offline.read_asset("report.css"),
        live_style=offline.read_asset("live.css", _LIVE_TEMPLATES),
        own_style=offline.read_asset("try.css", _TEMPLATES),
        font_mark=offline.trusted_markup(offline.FONT_MARK),
    )  # fmt: skip
    written = [
        *loading.values(),
        *(text for texts in words.values() for text in texts.values()),
        "English中文",
        *tokenizer["tokens"],
    ]
    return offline.with_fonts(html, "".join(written))


@dataclass(frozen=True)
class _PackedWeights:
    """Base64-encoded weights of a model."""

    text: str  # all tensors in the order of `sizes`, as little-endian floats
    precision: int  # bits per weight, 32 or 16
    is_rounded: bool  # whether packing rounded any weight
    sizes: dict[str, tuple[int, ...]]  # shape of each tensor by name


def _pack_weights(run: Run, precision: int) -> _PackedWeights:
    """Encode the weights with 16 bits each if this is exact, otherwise with `precision` bits (32 or 16)."""
    is_word = run.config.task.prediction.kind == "word"  # other prediction heads do not use the output layer
    tensors = {
        name: weight.float().numpy()
        for name, weight in distinct_tensors(run.model).items()
        if is_word or not name.startswith("output.")
    }
    whole = np.concatenate([weight.ravel() for weight in tensors.values()]).astype("<f4")
    with np.errstate(over="ignore"):
        rounded = whole.astype("<f2")
    is_exact = np.array_equal(rounded, whole)
    precision = 16 if is_exact else precision
    numbers: NDArray[Any] = rounded if precision == 16 else whole
    if not np.isfinite(numbers).all():
        raise UserError(f"{run.name}: a weight is not a number of {precision} bits; format=page cannot write it")
    text = base64.b64encode(numbers.tobytes()).decode("ascii")
    sizes = {name: weight.shape for name, weight in tensors.items()}
    return _PackedWeights(text, precision, precision == 16 and not is_exact, sizes)


def _readable_examples(run: Run) -> list[dict[str, Any]]:
    """Return the example sentences whose words are all in the run's vocabulary; if there are none, all sentences."""
    readable = [one for one in _EXAMPLES if not run.tokenizer.encode(one[1]).unread]
    return [_example(*one) for one in readable or _EXAMPLES]


def _example(language: str, text: str, pronoun: str, candidates: Sequence[str]) -> dict[str, Any]:
    example = example_from_query(text, pronoun, candidates)
    spans = [span for mentions in example.candidates for span in mentions]
    return {"language": language, "text": text, "pronoun": example.pronoun, "candidates": spans}


def _phrases() -> dict[str, str]:
    """Return the texts of the page's interface, keyed by name; the page's script fills in placeholders in braces."""
    return answer_phrases() | {
        "title": _("Type a sentence and see its attention"),
        "lead": _("The whole model is inside this page and computes in your browser. Nothing that you type leaves it."),
        "damaged": _(
            "This file is damaged: the weights of the model are incomplete. Download it again, or export it again."
        ),
        "text": _("Sentence"),
        "read": _("Show"),
        "examples": _("Or take one of these:"),
        "marking": _("A click on a word marks"),
        "marking_names": _("what the pronoun may refer to"),
        "marking_pronoun": _("the pronoun"),
        "neighbours": _("Neighbouring marked words count as one name."),
        "words": _("The words of the sentence"),
        "pronoun": _("pronoun"),
        "candidate": _("candidate"),
        "another_pronoun": _("another pronoun; a click asks about it"),
        "empty": _("Type a sentence first."),
        "language": _("Type an English or a Chinese sentence: this page reads no other language."),
        "too_long": _("This sentence has {tokens} tokens, and the model reads at most {most}: type a shorter one."),
        "too_many_characters": _(
            "This text has {characters} characters, and this page reads at most {most}: type a shorter one."
        ),
        "no_pronoun": _(
            "There is no he, she, it or they here: choose “the pronoun” above and click the word you mean."
        ),
        "too_many": _("This model compares at most {most} candidates: click some of them again to unmark them."),
        "answer": _("The model’s answer"),
        "before": _("as it is"),
        "percent": _("{value} %"),
        "after": _("with the edits"),
        "no_head": _(" (No head was chosen for this model, so this is the one that you selected.)"),
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
        "all_heads": _("The maps of all heads"),
        "heads_help": _(
            "One picture for each head. Below it is the candidate to which the pronoun attends most, if its "
            "weight is 0.1 or more. Choose a head with a click or the arrow keys."
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
            "To keep this page small, its weights are rounded to 16 bits: attention weights and answers can "
            "differ from those of the run by about 0.01."
        ),
        "seconds": pgettext("live page", "{seconds} s"),
    }
