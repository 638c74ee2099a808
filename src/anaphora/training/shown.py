"""What TensorBoard shows of a run: its tags, their charts, the settings to compare by, probe sentences and answers.

docs/tensorboard.md explains each tag.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from anaphora.config import Config
from anaphora.data.batch import Encoded
from anaphora.data.encoded_texts import EncodedTexts
from anaphora.data.example import Example
from anaphora.data.settings import Controlled, Texts
from anaphora.model.settings import heads_of

LANGUAGES = {"en": "english", "zh": "chinese"}
HEAD_CHARTS = {
    "heads_pointing": "Candidate accuracy of each head · 各头的候选准确率",
    "heads_mass": "Mass on the antecedent · 落在先行词上的注意力",
    "heads_special": "Mass on special tokens · 落在特殊标记上的注意力",
    "heads_entropy": "Entropy of the pronoun's row, in nats · 代词行的熵（奈特）",
}
"""The groups of tags of what is measured of each layer and head, and the titles of their charts."""
FINAL_MEASURES = {
    "final/accuracy": "accuracy",
    "final/loss": "loss",
    "final/best_head": "best head",
    "final/step": "step",
    "final/seconds": "seconds",
}
"""Tags of what the kept weights reached, and their columns in the tab "HParams"."""
PROBES = 2
"""Sentences of each language that are drawn."""
LONGEST_PROBE = 24
"""Words of a sentence that is drawn, at most."""
ANSWERS = 6
"""Right answers in a table, and wrong ones, at most."""
_LITERAL = str.maketrans({mark: f"&#{ord(mark)};" for mark in string.punctuation} | {"\n": " ", "\r": " "})
_LONGEST_TEXT = 300
"""Characters of a text in a table."""


def tag_of(measure: str) -> str:
    """The tag of a measure of a step or a validation.

    TensorBoard sorts groups by name and opens the first two: few curves that tell how a run goes, and what it reached.
    """
    group, _, name = measure.partition("/")
    match group:
        case "train":
            return f"curves/train_{name}" if name.startswith("loss") else f"curves/{name}"
        case "validation":
            return f"curves/validation_{name}"
        case _:
            return f"{group.replace('attention', 'heads')}/{name}"


def layout(config: Config, heads: bool) -> dict[str, dict[str, list[str]]]:
    """The charts of "Custom Scalars": category -> title -> regular expressions of tags.

    A chart holds one measure of one layer's heads, so that twelve heads in six layers stay readable.

    Args:
        config: the run's settings.
        heads: whether heads are measured: the encoder has maps and the data ask about pronouns.
    """
    answers, texts = config.task.readout.kind != "no_readout", isinstance(config.data, Texts)
    # A chart has the same expressions in every run: TensorBoard would draw it twice.
    progress = {"Loss and its parts · 损失及其组成": r"curves/(train|validation)_loss(_\w+)?$"}
    if texts and not answers:
        progress["Perplexity · 困惑度"] = r"curves/validation_perplexity$"
    if answers or heads:
        progress["Accuracy and the best head · 准确率与最佳注意力头"] = r"curves/validation_(accuracy|best_head)$"
    progress |= {
        "Gradient norm before clipping · 裁剪前的梯度范数": r"curves/gradient_norm$",
        "Learning rate · 学习率": r"curves/learning_rate$",
        "Real tokens a second · 每秒实际词元数": r"curves/tokens_per_second$",
    }
    categories = {"Training · 训练": {title: [tags] for title, tags in progress.items()}}
    for measure, title in HEAD_CHARTS.items() if heads else ():
        categories[title] = {
            f"layer {layer} · 第 {layer} 层": [rf"{measure}/layer_{layer}_head_\d+$"]
            for layer in range(config.model.layers)
        }
    return categories


def compared_settings(config: Config) -> dict[str, str | float]:
    """The settings that experiments vary, by the name that a command gives them; the same names for every run."""
    model, task, optimizer = config.model, config.task, config.optimizer
    languages = ",".join(config.data.languages) if isinstance(config.data, Controlled) else "–"
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
        "task.readout": task.readout.kind,
        "task.hidden_words": task.hidden_words,
        "task.supervision.weight": task.supervision.weight,
        "optimizer.matrices": optimizer.matrices,
        "optimizer.learning_rate": optimizer.learning_rate,
        "optimizer.steps": optimizer.steps,
    }


def moments(steps: int, every: int, most: int) -> frozenset[int]:
    """The steps at which pictures are drawn: evenly spread from the start over validations to the end.

    Args:
        steps: of the run.
        every: steps between two validations.
        most: how many moments; one alone is the end.
    """
    possible = [*range(0, steps, every), steps]
    if most < 2:
        return frozenset(possible[-most:] if most else ())
    return frozenset(possible[place] for place in np.linspace(0, len(possible) - 1, most).round().astype(int))


def probes(examples: Sequence[Example], data: Encoded) -> list[tuple[str, int]]:
    """The sentences that are drawn: tag and number in the split.

    In each language the short sentences are taken in turn from the kinds of cue; of a kind alone, at equal distances.
    Sentences of strata beside the main one are left out. The choice knows nothing of any model.
    """
    found = []
    for language, name in LANGUAGES.items():
        piles: dict[str, list[int]] = {}
        for number, example in enumerate(examples):
            words = len({word for word in data.tokens[number].words if word >= 0})
            main = example.factors.get("stratum") in (None, "", "main")
            if example.language == language and main and words <= LONGEST_PROBE:
                piles.setdefault(example.factors.get("kind", ""), []).append(number)
        each = -(-PROBES // max(1, len(piles)))
        spread = [[pile[place * len(pile) // each] for place in range(min(each, len(pile)))] for pile in piles.values()]
        chosen = [one for turn in zip_longest(*spread) for one in turn if one is not None][:PROBES]
        found += [(f"probe_{name}/sentence_{place}", number) for place, number in enumerate(chosen, start=1)]
    return found


@dataclass(frozen=True)
class Answers:
    """What a validation's questions were answered: N items in the order of the split, L layers, H heads.

    Attributes:
        chosen: (N,) the number of the candidate or label, -1 for none of them.
        share: (N,) its probability among those that could be chosen.
        pointed: (N, L, H) the candidate that each head weighs most; None where no head was looked at.
    """

    chosen: NDArray[np.int64]
    share: NDArray[np.float32]
    pointed: NDArray[np.int64] | None


def answer_tables(found: Answers, data: Encoded, head: tuple[int, int] | None) -> dict[str, str]:
    """Tag -> a Markdown table of the first wrong and the first right answers in each language.

    Args:
        found: the answers.
        data: what was asked.
        head: layer and head whose choice stands beside the model's; None for none.
    """
    gold = data.gold
    is_right = np.where(found.chosen >= 0, gold[np.arange(len(gold)), found.chosen], ~gold.any(axis=1))
    labelled = isinstance(data, EncodedTexts)
    languages = [one.language for one in (data.texts if isinstance(data, EncodedTexts) else data.examples)]
    tables = {}
    for language, name in LANGUAGES.items():
        items = np.flatnonzero(np.array(languages) == language)
        if not len(items):
            continue
        right = is_right[items]
        pointed = head if found.pointed is not None and not labelled else None
        words = _WORDS[language]
        asked = ("text", "label") if labelled else ("asked", "antecedent")
        columns = ["", *(words[each] for each in (*asked, "answer", "share"))]
        if pointed is not None:
            columns.append(words["pointed"].format(layer=pointed[0], head=pointed[1]))
        shown = [*items[~right][:ANSWERS], *items[right][:ANSWERS]]
        line = _label_line(found, data) if isinstance(data, EncodedTexts) else _line(found, data, words, pointed)
        rows = [["✓" if is_right[item] else "✗", *line(item)] for item in shown]
        said = words["said"].format(right=int(right.sum()), count=len(items), most=ANSWERS)
        table = [columns, ["---"] * len(columns), *rows]
        tables[f"answers/{name}"] = f"{said}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in table)
    return tables


_WORDS = {
    "en": {
        "text": "text",
        "asked": "text, the pronoun in bold",
        "antecedent": "antecedent",
        "label": "label",
        "answer": "answer",
        "share": "probability",
        "pointed": "layer {layer} head {head} points at",
        "none": "(none of them)",
        "said": "{right} of {count} right. The first {most} wrong and the first {most} right answers:",
    },
    "zh": {
        "text": "文本",
        "asked": "文本，代词为粗体",
        "antecedent": "先行词",
        "label": "标签",
        "answer": "回答",
        "share": "概率",
        "pointed": "第 {layer} 层第 {head} 头指向",
        "none": "（都不是）",
        "said": "{count} 个中答对 {right} 个。前 {most} 个答错与前 {most} 个答对的：",
    },
}


def _line(
    found: Answers, data: Encoded, words: dict[str, str], head: tuple[int, int] | None
) -> Callable[[int], list[str]]:
    def line(item: int) -> list[str]:
        example = data.examples[item]
        start, end = example.pronoun
        before, after = example.text[max(0, start - _LONGEST_TEXT) : start], example.text[end : end + _LONGEST_TEXT]
        cut = start > _LONGEST_TEXT, len(example.text) - end > _LONGEST_TEXT
        text = f"{'… ' * cut[0]}{literal(before)}**{literal(example.text[start:end])}**{literal(after)}{' …' * cut[1]}"
        meant = " / ".join(literal(example.words(one)) for one in example.antecedents) or words["none"]
        told = [text, meant, _name(int(found.chosen[item]), example, words), f"{found.share[item]:.2f}"]
        if head is not None:
            assert found.pointed is not None
            told.append(_name(int(found.pointed[item][head]), example, words))
        return told

    return line


def _label_line(found: Answers, data: EncodedTexts) -> Callable[[int], list[str]]:
    def line(item: int) -> list[str]:
        text = data.texts[item].text
        cut = literal(text[:_LONGEST_TEXT]) + " …" * (len(text) > _LONGEST_TEXT)
        gold = int(data.gold[item].argmax())
        named = (literal(data.labels[number]) for number in (gold, int(found.chosen[item])))
        return [cut, *named, f"{found.share[item]:.2f}"]

    return line


def _name(candidate: int, example: Example, words: dict[str, str]) -> str:
    return literal(example.words(candidate)) if candidate >= 0 else words["none"]


def literal(text: str) -> str:
    """A text that Markdown shows as it is, in one line: every mark as a character reference."""
    return text.translate(_LITERAL)


def verbatim(text: str) -> str:
    """A text of several lines that Markdown shows as it is."""
    return "\n".join(f"    {line}" for line in text.splitlines())
