"""Contents of TensorBoard for a run: tags, charts, hyperparameters, probe sentences and prediction tables.

docs/tensorboard.md explains each tag.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from anaphora.base.language import WIDE_CHARACTER, WIDE_RANGES
from anaphora.base.translation import _, spoken_in
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.batches.texts import EncodedTexts
from anaphora.data.example import Example
from anaphora.data.grouping import indices_by
from anaphora.settings.data import ControlledCorpus, TextCorpus
from anaphora.settings.model.attention import heads_of
from anaphora.settings.run import Config

LANGUAGE_TAGS = {"en": "english", "zh": "chinese"}
HEAD_CHARTS = {
    "heads_candidate_accuracy": "Candidate accuracy of each head · 各头的候选准确率",
    "heads_mass": "Mass on the antecedent · 落在先行词上的注意力",
    "heads_special": "Mass on special tokens · 落在特殊词元上的注意力",
    "heads_entropy": "Entropy of the pronoun's row, in nats · 代词行的熵（奈特）",
}
"""Tag groups of the measures of each layer and head, and the titles of their charts."""
FINAL_METRICS = {
    "final/accuracy": "accuracy",
    "final/loss": "loss",
    "final/best_head": "best head",
    "final/step": "step",
    "final/seconds": "seconds",
}
"""Tags of the metrics of the kept checkpoint, and their columns in the tab "HParams"."""
PROBES_PER_LANGUAGE = 2
"""Number of probe sentences in each language."""
MAX_PROBE_WORDS = 24
"""Maximum number of words in a probe sentence."""
MAX_TABLE_ROWS = 6
"""Maximum number of right answers in a table, and of wrong ones."""
_MARKDOWN_ESCAPES = str.maketrans({mark: f"&#{ord(mark)};" for mark in string.punctuation} | {"\n": " ", "\r": " "})
_MAX_TEXT_CHARACTERS = 300
"""Maximum number of characters in a table: of a text, or of an example on each side of its pronoun."""
_LINE_WIDTH = 56
"""Maximum width of a line of text in a table; a Chinese character has width 2. Longer lines would leave too little
width for the other columns, whose words TensorBoard would then break."""
_NO_BREAK_SPACE = "\u00a0"


def tensorboard_tag(measure: str) -> str:
    """Return the TensorBoard tag of a metric, both of the form "group/name".

    The groups "train" and "validation" become "curves"; the old group is then a prefix of the names of validation
    metrics and training losses, as in "curves/train_loss". A group such as "attention_mass" becomes "heads_mass".
    TensorBoard sorts groups by name and opens the first two, which must therefore have the most important curves.
    """
    group, _, name = measure.partition("/")
    match group:
        case "train":
            return f"curves/train_{name}" if name.startswith("loss") else f"curves/{name}"
        case "validation":
            return f"curves/validation_{name}"
        case _:
            return f"{group.replace('attention', 'heads')}/{name}"


def scalar_layout(config: Config, heads: bool) -> dict[str, dict[str, list[str]]]:
    """Return the charts of the tab "Custom Scalars", keyed by category and by title.

    A chart is a list of regular expressions of the tags that it shows. A chart of attention heads shows one measure for
    the heads of one layer, so that it remains readable if the model has many layers.

    Args:
        config: settings of the run.
        heads: whether attention heads are measured, which is the case if the encoder has attention weights and the data
            have pronouns.
    """
    answers, texts = config.task.prediction.kind != "none", isinstance(config.data, TextCorpus)
    # A chart has the same expressions in every run; otherwise TensorBoard draws it twice.
    progress = {"Loss and its parts · 损失及其组成": r"curves/(train|validation)_loss(_\w+)?$"}
    if texts and not answers:
        progress["Perplexity · 困惑度"] = r"curves/validation_perplexity$"
    if answers or heads:
        progress["Accuracy and the best head · 准确率与最好的头"] = r"curves/validation_(accuracy|best_head)$"
    progress |= {
        "Gradient norm before clipping · 裁剪前的梯度范数": r"curves/gradient_norm$",
        "Learning rate · 学习率": r"curves/learning_rate$",
        "Real tokens a second · 每秒真实词元数": r"curves/tokens_per_second$",
    }
    categories = {"Training · 训练": {title: [tags] for title, tags in progress.items()}}
    for measure, title in HEAD_CHARTS.items() if heads else ():
        categories[title] = {
            f"layer {layer} · 第 {layer} 层": [rf"{measure}/layer_{layer}_head_\d+$"]
            for layer in range(config.model.layers)
        }
    return categories


def hyperparameters(config: Config) -> dict[str, str | float]:
    """Return the values of the settings that experiments vary most, by dotted name; the same settings for every run."""
    model, task, optimizer = config.model, config.task, config.optimizer
    languages = ",".join(config.data.languages) if isinstance(config.data, ControlledCorpus) else "–"
    return {
        "data": config.data.kind,
        "data.languages": languages,
        "seed": config.seed,
        "model.layers": model.layers,
        "model.attention.heads": heads_of(model.attention),
        "model.width": model.width,
        "model.position": model.position.kind,
        "model.attention": model.attention.kind,
        "model.values": model.values,
        "model.tied_output": str(model.tied_output).lower(),
        "task.prediction": task.prediction.kind,
        "task.masked_lm": task.masked_lm,
        "task.supervision.weight": task.supervision.weight,
        "optimizer.matrices": optimizer.matrices,
        "optimizer.learning_rate": optimizer.learning_rate,
        "optimizer.matrices_learning_rate": optimizer.matrices_learning_rate or optimizer.learning_rate,
        "optimizer.steps": optimizer.steps,
    }


def image_steps(steps: int, every: int, most: int) -> frozenset[int]:
    """Return the steps at which images are drawn: the start, the end, and steps of validations, spread evenly.

    Args:
        steps: number of training steps.
        every: number of steps between two validations.
        most: maximum number of steps at which images are drawn; 1 draws images only at the end, 0 never.
    """
    possible = [*range(0, steps, every), steps]
    if most < 2:
        return frozenset(possible[-most:] if most else ())
    return frozenset(possible[index] for index in np.linspace(0, len(possible) - 1, most).round().astype(int))


def select_probes(examples: Sequence[Example], data: EncodedSplit) -> list[tuple[str, int]]:
    """Return TensorBoard tag and item index of the probe sentences, whose attention is drawn during training.

    For each language, up to two short items that count in main results (`Example.is_main`) are selected. They are
    evenly spaced in the split and alternate between the kinds of cues in the built-in corpus: set cues, such as gender,
    and role cues, such as the voice of the verb.
    """
    probes = []
    short = [
        example.is_main and len({word for word in tokens.words if word >= 0}) <= MAX_PROBE_WORDS
        for example, tokens in zip(examples, data.tokens, strict=True)
    ]
    for language, name in LANGUAGE_TAGS.items():
        items_by_kind = indices_by(
            example.factors.get("kind", "") if example.language == language and is_short else None
            for example, is_short in zip(examples, short, strict=True)
        )
        per_kind = -(-PROBES_PER_LANGUAGE // max(1, len(items_by_kind)))
        spread = [
            [items[index * len(items) // per_kind] for index in range(min(per_kind, len(items)))]
            for items in items_by_kind.values()
        ]
        in_turn = [item for turn in zip_longest(*spread) for item in turn if item is not None]
        probes += [
            (f"probe_{name}/sentence_{count}", item)
            for count, item in enumerate(in_turn[:PROBES_PER_LANGUAGE], start=1)
        ]
    return probes


@dataclass(frozen=True)
class ValidationPredictions:
    """Predictions of a model at a validation, in the order of the split.

    In shapes, N is the number of items, L of layers and H of heads.

    Attributes:
        predicted: (N,) index of the predicted candidate or label; -1 for the prediction "none of the candidates".
        probability: (N,) probability of the prediction among the possible predictions.
        head_choices: (N, L, H) index of the candidate with the most attention from the pronoun in each head; None if
            heads were not measured.
    """

    predicted: NDArray[np.int64]
    probability: NDArray[np.float32]
    head_choices: NDArray[np.int64] | None


def prediction_tables(
    predictions: ValidationPredictions, data: EncodedSplit, head: tuple[int, int] | None
) -> dict[str, str]:
    """Return a Markdown table of the first wrong and the first right predictions in each language, keyed by tag.

    If antecedents were replaced (`replace_labels`), the table shows the replacement, and a prediction is right if it
    equals the replacement. For pronouns, the last column shows the candidate with the most attention in `head`.
    """
    gold = data.gold
    is_right = np.where(
        predictions.predicted >= 0, gold[np.arange(len(gold)), predictions.predicted], ~gold.any(axis=1)
    )
    labelled = isinstance(data, EncodedTexts)
    has_labels = labelled or _labels_are_replaced(data)
    if predictions.head_choices is None or labelled:
        head = None
    languages = [item.language for item in (data.texts if isinstance(data, EncodedTexts) else data.examples)]
    tables = {}
    for language, name in LANGUAGE_TAGS.items():
        items = np.flatnonzero(np.array(languages) == language)
        if not len(items):
            continue
        right = is_right[items]
        phrases = _phrases(language)
        shown = ("text" if labelled else "pronoun", "label" if has_labels else "antecedent", "prediction")
        names = [phrases[column] for column in shown]
        summary = phrases["summary"].format(right=int(right.sum()), count=len(items), most=MAX_TABLE_ROWS)
        if head is not None:
            names.append(phrases["head choice"].format(layer=head[0], head=head[1]))
            summary += phrases["head summary"]
        columns = ["", *(name.replace(" ", _NO_BREAK_SPACE) for name in names)]
        rows = []
        for item in (*items[~right][:MAX_TABLE_ROWS], *items[right][:MAX_TABLE_ROWS]):
            if isinstance(data, EncodedTexts):
                row = _label_row(predictions, data, item)
            else:
                row = _candidate_row(predictions, data, item, phrases, head, has_labels)
            rows.append(["✓" if is_right[item] else "✗", *row])
        table = [columns, ["---"] * len(columns), *rows]
        tables[f"answers/{name}"] = f"{summary}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in table)
    return tables


def _phrases(language: str) -> dict[str, str]:
    """Return the headings and other fixed texts of a table, in the language of the table's items."""
    with spoken_in(language):
        return {
            "text": _("text"),
            "pronoun": _("text, the pronoun in bold"),
            "antecedent": _("antecedent"),
            "label": _("label"),
            "prediction": _("answer (p)"),
            "head choice": _("layer {layer} head {head}"),
            "none": _("(none of them)"),
            "summary": _(
                "{right} of {count} right. The first {most} wrong and the first {most} right "
                "answers, each with its probability p."
            ),
            "head summary": _(" Last, the candidate to which the best head gives most weight."),
        }


def _labels_are_replaced(data: EncodedSplit) -> bool:
    """Return whether the candidates to be predicted differ from the antecedents, as in control runs."""
    return any(
        set(np.flatnonzero(data.gold[number]).tolist()) != set(example.antecedents)
        for number, example in enumerate(data.examples)
    )


def _candidate_row(
    predictions: ValidationPredictions,
    data: EncodedSplit,
    item: int,
    phrases: dict[str, str],
    head: tuple[int, int] | None,
    has_labels: bool,
) -> list[str]:
    example = data.examples[item]
    start, end = example.pronoun
    first, last = max(0, start - _MAX_TEXT_CHARACTERS), end + _MAX_TEXT_CHARACTERS
    text = _wrapped_markdown(example.text[first:last], (start - first, end - first))
    text = "… " * (first > 0) + text + " …" * (last < len(example.text))

    def words(candidate: int) -> str:
        return escape_markdown(example.words(candidate)) if candidate >= 0 else phrases["none"]

    labels = np.flatnonzero(data.gold[item]).tolist() if has_labels else example.antecedents
    predicted = _with_probability(words(int(predictions.predicted[item])), predictions.probability[item])
    row = [text, " / ".join(map(words, labels)) or phrases["none"], predicted]
    if head is not None:
        assert predictions.head_choices is not None
        row.append(words(int(predictions.head_choices[item][head])))
    return row


def _label_row(predictions: ValidationPredictions, data: EncodedTexts, item: int) -> list[str]:
    text = data.texts[item].text
    shortened = _wrapped_markdown(text[:_MAX_TEXT_CHARACTERS]) + " …" * (len(text) > _MAX_TEXT_CHARACTERS)
    gold = int(data.gold[item].argmax())
    label, answer = (escape_markdown(data.labels[number]) for number in (gold, int(predictions.predicted[item])))
    return [shortened, label, _with_probability(answer, predictions.probability[item])]


def _with_probability(answer: str, probability: np.float32) -> str:
    return f"{answer}{_NO_BREAK_SPACE}({probability:.2f})"


def _wrapped_markdown(text: str, bold: tuple[int, int] = (0, 0)) -> str:
    """Break a text into lines of Markdown of at most `_LINE_WIDTH`; a wider word gets a line of its own.

    The characters from bold[0] to bold[1] are bold.
    """
    lines, line, width = [], "", 0
    start, end = bold
    # A unit is a word with the space after it, or a Chinese character with the punctuation after it. A line ends only
    # after a unit.
    units = re.finditer(rf"[{WIDE_RANGES}][，。、；：！？）”》]*|[^\s{WIDE_RANGES}]+\s*|\s+", text)
    for unit in units:
        marked = "".join(
            "**" * (place == start < end) + escape_markdown(text[place]) + "**" * (place == end - 1 >= start)
            for place in range(*unit.span())
        )
        own_width = len(unit[0].rstrip()) + len(WIDE_CHARACTER.findall(unit[0]))
        if line and width + own_width > _LINE_WIDTH:
            lines.append(line)
            line, width = "", 0
        line += marked
        width += own_width + len(unit[0]) - len(unit[0].rstrip())
    return "<br>".join([*lines, line])


def escape_markdown(text: str) -> str:
    """Escape a text for Markdown: punctuation marks become character references, and line breaks become spaces."""
    return text.translate(_MARKDOWN_ESCAPES)


def markdown_code_block(text: str) -> str:
    """Return a text of one or more lines as a Markdown code block."""
    return "\n".join(f"    {line}" for line in text.splitlines())
