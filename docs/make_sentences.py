"""Write docs/results/sentences.md and sentences.zh.md: python docs/make_sentences.py RUN [RUN...].

Finished runs are asked about the sentences of docs/sentences/*.jsonl: what each answers, and how much of its pronoun's
weight the chosen head gives to each candidate. Their training splits are read too, for the words that they show and
for the nearest sentence. Runs that learned everyday scenes have tables of their own.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

import anaphora
from anaphora.analysis.evidence.storage import read_evidence
from anaphora.analysis.scores.baselines.accuracy import unfitted_correctness
from anaphora.api import OpenRun
from anaphora.base.errors import UserError
from anaphora.data.controlled.scenes import REWORDED
from anaphora.data.corpora.tables import rows
from anaphora.data.example import Example, Span, from_record
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.runs.items import corpus_of
from anaphora.settings.data import EVERYDAY

DOCS = Path(__file__).parent
LANGUAGES = ("en", "zh")
NEAREST_SCENE = 0.75
"""No wording of a scene is nearer to one of the sentences; a test holds it."""
PAGES = {"en": DOCS / "results" / "sentences.md", "zh": DOCS / "results" / "sentences.zh.md"}
_CANDIDATE, _PRONOUN, _NOTHING = -1, -2, -3
"""What stands in a masked sentence instead of a token, and behind its end."""


@dataclass(frozen=True, eq=False)
class TrainingText:
    """What the training split of a run shows of one language.

    Attributes:
        tokens: the tokens that occur in it.
        masked: (N, T) its different sentences as token numbers, candidates and pronoun masked, filled up at the end.
        lengths: (N,).
        first: (N,) how often a sentence means its first mention.
    """

    tokens: frozenset[int]
    masked: NDArray[np.int32]
    lengths: NDArray[np.int64]
    first: NDArray[np.float64]

    def nearest(self, sentence: Sequence[int]) -> tuple[float, float]:
        """How near the nearest sentences are, and how often they mean their first mention.

        Nearness is 1 - edits / words of the longer sentence: 1 is a training sentence. An edit inserts, deletes or
        replaces one word (Levenshtein).
        """
        columns = self.masked.T
        edits = np.repeat(np.arange(len(columns) + 1, dtype=np.int16)[:, None], len(self.masked), axis=1)  # (T + 1, N)
        for position, word in enumerate(sentence, start=1):
            kept_or_replaced = edits[:-1] + (columns != word)
            edits[1:] = np.minimum(kept_or_replaced, edits[1:] + 1)
            edits[0] = position
            for column in range(1, len(edits)):
                np.minimum(edits[column], edits[column - 1] + 1, out=edits[column])
        fewest = edits[self.lengths, np.arange(len(self.lengths))]
        nearness = 1 - fewest / np.maximum(self.lengths, len(sentence))
        return float(nearness.max()), float(self.first[nearness == nearness.max()].mean())


@dataclass(frozen=True)
class Reading:
    """What one run makes of one sentence.

    Attributes:
        answer: the number of the candidate that it names; None for none of them.
        weights: the chosen head's weight from the pronoun to each candidate.
        cut: the words that its training never shows.
        nearness: of the nearest sentence of its training.
        copied: how often those sentences mean the mention in the antecedent's place.
    """

    answer: int | None
    weights: tuple[float, ...]
    cut: tuple[str, ...]
    nearness: float
    copied: float


@dataclass(frozen=True)
class Sentence:
    """One sentence, as every run reads it."""

    example: Example
    readings: tuple[Reading, ...]

    @property
    def is_known(self) -> bool:
        """Whether all its words occur in the training of every run."""
        return not any(reading.cut for reading in self.readings)

    def answered(self, run: int) -> bool:
        """Whether a run's answer is the antecedent."""
        return self.readings[run].answer in self.example.antecedents

    def pointed(self, run: int) -> bool:
        """Whether the antecedent gets more weight of a run's head than any other candidate."""
        weights = self.readings[run].weights
        best = [number for number, weight in enumerate(weights) if weight == max(weights)]
        return len(best) == 1 and best[0] in self.example.antecedents


@dataclass(frozen=True)
class Group:
    """Runs that share their tables, and the sentences of each language as they read them."""

    runs: Sequence[OpenRun]
    sentences: dict[str, list[Sentence]]

    @property
    def name(self) -> str:
        """Of the page's section."""
        return "everyday" if EVERYDAY in types(self.runs[0]) else "results"


def main(directories: Sequence[str]) -> None:
    """Ask the runs and write both pages."""
    if not directories:
        raise UserError("name at least one run: python docs/make_sentences.py outputs/demo")
    runs = [anaphora.load(directory) for directory in directories]
    for run in runs:
        if run.chosen_head is None:
            raise UserError(f"{run.name}: no head has been chosen yet; scripts/score_attention.py chooses one")
    groups = [
        Group(chosen, {language: read_sentences(language, chosen) for language in LANGUAGES})
        for chosen in (
            [run for run in runs if EVERYDAY not in types(run)],
            [run for run in runs if EVERYDAY in types(run)],
        )
        if chosen
    ]
    for language, path in PAGES.items():
        path.write_text(page(language, groups), encoding="utf-8")
        sys.stdout.write(f"{path}\n")


def types(run: OpenRun) -> Sequence[str]:
    """The types of cue that the data of a run name."""
    return getattr(run.run.config.data, "types", ())


def examples(language: str) -> list[Example]:
    """The list of one language, in its order."""
    return [from_record(row) for _, row in rows(DOCS / "sentences" / f"{language}.jsonl")]


def read_sentences(language: str, runs: Sequence[OpenRun]) -> list[Sentence]:
    """Every sentence of a language with what each run makes of it."""
    return [Sentence(example, tuple(read(run, example) for run in runs)) for example in examples(language)]


def read(run: OpenRun, example: Example) -> Reading:
    """Ask one run about one sentence."""
    names = [_written(spans[0]) for spans in example.candidates]
    answer = run.answer(example.text, _written(example.pronoun), names)
    row = run.attention(example.text).row(_written(example.pronoun))
    words = [example.words(number) for number in range(len(names))]
    tokens = run.run.tokenizer.encode(example.text)
    training = training_text(run, example.language)
    nearness, first = training.nearest(masked(example, tokens))
    return Reading(
        answer=None if answer is None else words.index(answer),
        weights=tuple(row.to(name) for name in names),
        cut=tuple(cut_words(example.text, tokens, training.tokens)),
        nearness=nearness,
        copied=first if means_first(example) else 1 - first,
    )


_TRAINING: dict[str, TrainingText] = {}


def training_text(run: OpenRun, language: str) -> TrainingText:
    """The training split of a run in one language; runs that share their data share it."""
    name = f"{language} {run.run.config.data} {run.run.config.vocabulary}"
    if name not in _TRAINING:
        shown = [each for each in corpus_of(run.run).examples("train") if each.language == language]
        texts = run.run.tokenizer.encode_batch([each.text for each in shown])
        meant: dict[tuple[int, ...], list[bool]] = {}
        for each, tokens in zip(shown, texts, strict=True):
            meant.setdefault(tuple(masked(each, tokens)), []).append(means_first(each))
        sentences = sorted(meant)
        lengths = np.array([len(sentence) for sentence in sentences])
        filled = np.full((len(sentences), lengths.max()), _NOTHING, dtype=np.int32)
        for number, sentence in enumerate(sentences):
            filled[number, : len(sentence)] = sentence
        first = np.array([np.mean(meant[sentence]) for sentence in sentences])
        _TRAINING[name] = TrainingText(frozenset(one for text in texts for one in text.ids), filled, lengths, first)
    return _TRAINING[name]


def means_first(example: Example) -> bool:
    """Whether the antecedent is the mention that comes first."""
    first = min(range(len(example.candidates)), key=lambda number: example.candidates[number][0])
    return first in example.antecedents


def masked(example: Example, tokens: TokenizedText) -> list[int]:
    """A sentence's token numbers, a candidate or the pronoun as one mask each: names are no part of a pattern."""
    mentions = [span for spans in example.candidates for span in spans]
    numbers: list[int] = []
    for number, span in zip(tokens.ids, tokens.spans, strict=True):
        if span == (0, 0):
            continue
        mask = _CANDIDATE if any(_overlap(span, one) for one in mentions) else None
        mask = _PRONOUN if _overlap(span, example.pronoun) else mask
        if mask is None or not numbers or numbers[-1] != mask:
            numbers.append(number if mask is None else mask)
    return numbers


def cut_words(text: str, tokens: TokenizedText, shown: frozenset[int]) -> list[str]:
    """The words of a text that training never shows: cut into several tokens, or one that does not occur there.

    Chinese has no blanks: of it the stretches of tokens that do not occur.
    """
    parts: dict[int, list[int]] = {}
    for position, word in enumerate(tokens.words):
        if word >= 0:
            parts.setdefault(word, []).append(position)
    unknown = [
        (tokens.spans[part[0]][0], tokens.spans[part[-1]][1])
        for part in parts.values()
        if len(part) > 1 or tokens.ids[part[0]] not in shown
    ]
    stretches: list[Span] = []
    for start, end in unknown:
        if stretches and stretches[-1][1] == start:
            start = stretches.pop()[0]
        stretches.append((start, end))
    return list(dict.fromkeys(text[start:end] for start, end in stretches))


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _written(span: Span) -> str:
    return f"{span[0]}:{span[1]}"


# --- The pages ----------------------------------------------------------------------------------------------------


def page(language: str, groups: Sequence[Group]) -> str:
    """The whole page in one language, about the sentences of both."""
    say = PHRASES[language]
    runs = [run for group in groups for run in group.runs]
    names = " ".join(f"outputs/{run.name}" for run in runs)
    commands = "\n".join(command for run in runs for command in _training_commands(run))
    parts = [say["opening"].format(train=commands, runs=names)]
    for group in groups:
        every = [one for each in group.sentences.values() for one in each]
        parts += [say[group.name].format(same=_same_answers(every), limit=NEAREST_SCENE, runs=len(group.runs))]
        if group.name == EVERYDAY:
            parts += [scenes_table(group.runs, say)]
            if len(groups) > 1:
                parts += [say["scenes"].format(**_answered_before_and_after(groups))]
        for written in LANGUAGES:
            parts += [f"### {say[written + group.name]}\n\n{summary_table(group.sentences[written], say)}"]
    parts += [say["nearness"].format(**_nearness(groups[0].sentences))]
    for group in groups:
        for written in LANGUAGES:
            parts += [f"## {say['all' + group.name]}{say[written]}\n\n{sentence_table(group.sentences[written], say)}"]
    return "\n\n".join(parts) + "\n"


def _training_commands(run: OpenRun) -> list[str]:
    """The commands that train a run of an experiment on compositions and choose its head."""
    if run.name == "demo":
        return ["make demo"]
    config = run.run.config
    experiment = "everyday" if EVERYDAY in types(run) else "compositions"
    seeds = {"seed": config.seed, "data.seed": getattr(config.data, "seed", 0)}
    settings = "".join(f" {name}={seed}" for name, seed in seeds.items() if seed)
    return [
        f".venv/bin/python scripts/train.py experiment={experiment}{settings} name={run.name}",
        f".venv/bin/python scripts/score_attention.py run=outputs/{run.name} split=dev untrained=0",
    ]


def summary_table(sentences: Sequence[Sentence], say: dict[str, str]) -> str:
    """Known words, cut words and both: what the runs answer and where their heads point, beside what luck gives."""
    groups = {
        "known": [sentence for sentence in sentences if sentence.is_known],
        "cut": [sentence for sentence in sentences if not sentence.is_known],
        "both": list(sentences),
    }
    columns = ("sentences", "answer", "head", "answer_and_head", "pairs", "copied", "chance", "nearest", "first")
    lines = [f"| | {' | '.join(say[column] for column in columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, group in groups.items():
        if not group:
            continue
        measured = [_measured(group, run) for run in range(len(group[0].readings))]
        policies = unfitted_correctness([sentence.example for sentence in group])
        cells = [
            str(len(group)),
            *(_spread(shares) for shares in zip(*measured, strict=True)),
            _spread([float(np.mean([one.readings[run].copied for one in group])) for run in range(len(measured))]),
            *(_spread([float(policies[policy].mean())]) for policy in columns[-3:]),
        ]
        lines.append(f"| {say[name]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _measured(sentences: Sequence[Sentence], run: int) -> tuple[float, ...]:
    """The shares of one run: answers, heads, both at once, and minimal pairs of which both answers are right."""
    right = np.array([(one.answered(run), one.pointed(run)) for one in sentences])
    pairs: dict[str, list[bool]] = {}
    for sentence in sentences:
        if sentence.example.minimal_pair:
            pairs.setdefault(sentence.example.minimal_pair, []).append(sentence.answered(run))
    whole = [all(answers) for answers in pairs.values() if len(answers) > 1]
    return (*right.mean(axis=0).tolist(), float(right.all(axis=1).mean()), float(np.mean(whole)))


def _spread(shares: Sequence[float], unit: str = "") -> str:
    """Shares in percent: their median with a unit, the lowest and the highest."""
    ends = f" ({100 * min(shares):.0f}–{100 * max(shares):.0f})" if len(shares) > 1 else ""
    return f"{100 * median(shares):.0f}{unit}{ends}"


def scenes_table(runs: Sequence[OpenRun], say: dict[str, str]) -> str:
    """How the runs do on scenes of the development split, with nouns that are new there and in words that are."""
    stored = [evidence for run in runs if (evidence := read_evidence(run.run.directory, "dev"))]
    lines = [f"| | {' | '.join(say[language + kind] for language in LANGUAGES for kind in ('answers', 'heads'))} |"]
    lines.append("|---" * (2 * len(LANGUAGES) + 1) + "|")
    for stratum in (EVERYDAY, REWORDED):
        cells = [
            _spread([getattr(evidence.strata[language][stratum], measure) for evidence in stored])
            for language in LANGUAGES
            for measure in ("task_accuracy", "candidate_accuracy")
        ]
        lines.append(f"| {say[f'{stratum}_row']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def sentence_table(sentences: Sequence[Sentence], say: dict[str, str]) -> str:
    """Every sentence with its antecedent, the answers, the head's weights and what of them is right."""
    columns = ("number", "sentence", "answers", "right_answers", "weights", "right_heads", "unknown", "near")
    lines = [f"| {' | '.join(say[column] for column in columns)} |", "|---" * len(columns) + "|"]
    for number, sentence in enumerate(sentences, start=1):
        example, readings = sentence.example, sentence.readings
        words = [example.words(candidate) for candidate in range(len(example.candidates))]
        answers = Counter(say["none"] if one.answer is None else words[one.answer] for one in readings)
        weights = (
            f"{word} {median(one.weights[candidate] for one in readings):.2f}" for candidate, word in enumerate(words)
        )
        cut = dict.fromkeys(word for one in readings for word in one.cut)
        cells = [
            str(number),
            _marked(example),
            ", ".join(f"{word} {count}" for word, count in answers.most_common()),
            _in_words([sentence.answered(run) for run in range(len(readings))], say),
            ", ".join(weights),
            _in_words([sentence.pointed(run) for run in range(len(readings))], say),
            say["comma"].join(cut) or say["no_word"],
            f"{max(one.nearness for one in readings):.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _marked(example: Example) -> str:
    """The sentence with its antecedent in bold and its pronoun in italics."""
    marks = {example.pronoun: "*"}
    marks |= {span: "**" for index in example.antecedents for span in example.candidates[index]}
    text = example.text
    for (start, end), mark in sorted(marks.items(), reverse=True):
        text = f"{text[:start]}{mark}{text[start:end]}{mark}{text[end:]}"
    return text


def _in_words(right: Sequence[bool], say: dict[str, str]) -> str:
    if sum(right) in (0, len(right)):
        return say["right" if right[0] else "wrong"]
    return say["some"].format(right=sum(right), runs=len(right))


def _same_answers(sentences: Sequence[Sentence]) -> str:
    """In how many minimal pairs a run names one candidate in both sentences, in percent: the median over the runs."""
    shares = []
    for run in range(len(sentences[0].readings)):
        answers: dict[str, list[int | None]] = {}
        for sentence in sentences:
            if sentence.example.minimal_pair:
                answers.setdefault(sentence.example.minimal_pair, []).append(sentence.readings[run].answer)
        shares.append(float(np.mean([len(set(of_pair)) == 1 for of_pair in answers.values()])))
    return f"{100 * median(shares):.0f}"


def _answered_before_and_after(groups: Sequence[Group]) -> dict[str, str]:
    """The share of each language's sentences that are answered correctly, in percent: without scenes, and with them."""
    shares = {
        f"{language}_{name}": [_measured(group.sentences[language], run)[0] for run in range(len(group.runs))]
        for name, group in zip(("before", "after"), groups, strict=True)
        for language in LANGUAGES
    }
    return {name: _spread(of_runs, " %") for name, of_runs in shares.items()}


def _nearness(sentences: dict[str, list[Sentence]]) -> dict[str, str]:
    """Of each language the median and the highest nearness."""
    numbers: dict[str, str] = {}
    for language, of_language in sentences.items():
        nearness = [max(one.nearness for one in sentence.readings) for sentence in of_language]
        numbers |= {f"{language}_median": f"{median(nearness):.2f}", f"{language}_most": f"{max(nearness):.2f}"}
    return numbers


_OPENING_EN = """# Forty sentences that people type first

<!-- Written by docs/make_sentences.py; do not edit by hand. -->

**English** | [简体中文](sentences.zh.md)

Linguistics textbooks, test sets and blog posts about attention share a stock of sentences, such as those about a trophy
and a suitcase, councilmen and demonstrators, or an animal and a street. Whoever tries a model is likely to type one of
them. Here are forty of this kind in each language, in our own words. The list ([English](../sentences/en.jsonl),
[Chinese](../sentences/zh.jsonl), in the format of [your own data](../own_data.md)) was fixed before any run was
evaluated on it. In half of the sentences, every word occurs in the built-in corpus without its everyday scenes; in the
other half, at least one does not. The pronoun refers to the first mention as often as to the second, and all but two
sentences in each language come in minimal pairs, which differ only in the cue.

The first group of runs was trained with the demo's recipe and includes the demo's own run, whose scores are in
[compositions](compositions.md#results). The second group also learned [everyday scenes](../corpus.md#everyday-scenes).
All runs learn from the built-in corpus and from nothing else.

```bash
{train}
.venv/bin/python docs/make_sentences.py {runs}
```"""

_OPENING_ZH = """# 人们最先输入的四十句话

<!-- 由 docs/make_sentences.py 生成，请勿手工修改。 -->

[English](sentences.md) | **简体中文**

语言学教科书、测试集和介绍注意力的文章常用同一类句子，讲的是奖杯和箱子、议员和示威者、动物和马路。
试用模型的人，往往先输入其中一句。这样的句子，这里每种语言收了四十句，措辞都是我们自己的。
句子清单（[英语](../sentences/en.jsonl)、[汉语](../sentences/zh.jsonl)，格式见[自有数据](../own_data.zh.md)）在用它测量任何模型之前就已确定。
其中一半句子的每个词都在内置语料（不算日常场景）中出现过，另一半至少有一个词没有出现过。
先行词在前的句子与先行词在后的句子一样多；每种语言除两句以外，都两两组成最小对立对，一对里的两句只有线索不同。

第一组运行用演示的配方，其中包括演示本身的运行（得分见[组合泛化](compositions.zh.md#结果)）；
第二组还学了[日常场景](../corpus.zh.md#日常场景)。所有运行都只在内置语料上训练。

```bash
{train}
.venv/bin/python docs/make_sentences.py {runs}
```"""

_RESULTS_EN = """## Results

Numbers are in percent: the median over {runs} runs, with the lowest and the highest in brackets. A run's head, chosen
on the development split, picks the antecedent if the antecedent gets more of the pronoun's weight than the other
candidate does. "Pairs" says in how many minimal pairs both answers are right (25 by luck). "Copied" shows how often the
answer of the [nearest training sentence](#no-training-sentence-near-them) would be right. The last two columns show the
same for the candidate nearest to the pronoun and for the first one.

A word that training never shows is split into subwords, down to single letters; in Chinese a character may be
completely unknown, and the tables at the end of this page list unknown stretches of text, which need not be words. The
model does not understand such words. Where they occur, answer and head often disagree: a candidate's score is the mean
over its subwords, most of which training never shows. But knowing every word is not enough. The corpus of these runs
teaches which of two people a reason is about and which class of things a predicate suits; nothing in it says that a big
trophy does not fit into a suitcase. In {same} % of the pairs (median) a run names the same candidate in both sentences:
what differs between them does not change its answer."""

_EVERYDAY_EN = """## With everyday scenes

These runs also learned [everyday scenes](../corpus.md#everyday-scenes), 195 in English and 161 in Chinese. The scenes
were written after the list of sentences, by people who knew the list, so many scenes are about the same situations:
something that does not go into something else, an animal that does not cross a road. Only the wordings differ. An
automated test measures how near the wordings of the scenes, their gaps unfilled, come to the sentences (in Chinese,
character by character): the nearness (defined below) is at most {limit}. Training sentences, in which the gaps are
filled, can come nearer (see the last column of the tables below). So read these tables as the answer to one question:
does a model that has learned a situation in many wordings understand it in one more? In {same} % of the pairs (median)
it does not: a run names the same candidate in both sentences, although their pronouns refer to different ones.

The next table answers this question with scenes of the development split, in percent (chance 50; number of runs:
{runs}). In the first row, a scene is worded as in training, but with nouns that are new in this scene; in the second,
wording and reason are new too:"""

_SCENES_EN = """So what the model learns of a scene is mostly its wordings. With new nouns, most items are answered
correctly, and the head mostly picks the antecedent; in wordings that training never shows, accuracy is much lower. The
scenes use some 3,900 English and 2,800 Chinese words. The runs that learned the scenes answer {en_after} of the forty
English sentences correctly and {zh_after} of the Chinese ones; the other runs, {en_before} and {zh_before}. So at least
here, an encoder of this size mostly learns the scenes by heart, and little of what the wordings of a scene share."""

_EVERYDAY_ZH = """## 学过日常场景的运行

这些运行还学了[日常场景](../corpus.zh.md#日常场景)，英语 195 个，汉语 161 个。场景写于句子清单之后，编写的人看过清单，
所以许多场景说的就是同样的事：一件东西放不进另一件东西，一只动物没有过马路，只是说法不同。
有一项测试拿场景的原文（空位未填，汉语逐字比较）与这些句子相比，接近度（算法见下文）都不超过 {limit}；
训练句子填好了空位，可能更接近（见下面各表的最后一栏）。
所以这几张表回答的是：一种情形，模型学过许多种说法，再换一种说法还懂不懂？
在 {same} % 的最小对立对中（中位数），模型并不懂：两句里的代词指不同的候选，同一个运行却给出同一个候选。

下表用开发集里的场景回答这个问题（数字都是百分比，随机水平为 50；运行次数：{runs}）。
第一行里，场景的说法与训练时相同，只是名词没有在这个场景里出现过；第二行里，说法和理由也是新的："""

_SCENES_ZH = """可见，对这些场景，模型背下来的是一句句说法：换了名词，大多数样例仍能答对，头也大多选中先行词；
换成训练中没有的说法，准确率就低得多。
日常场景用到约 3,900 个英语词和 2,800 个汉语词。学过日常场景的运行，
四十句英语答对 {en_after}，没有学过的运行答对 {en_before}；
四十句汉语答对 {zh_after}，没有学过的运行答对 {zh_before}。
就这些运行来看，这样大小的编码器多半是把场景背下来，很少学会同一场景各种说法的共同点。"""

_RESULTS_ZH = """## 结果

数字都是百分比，取 {runs} 次运行的中位数，括号里是最低值和最高值。
代词在选定的头（在开发集上选出）里给先行词的权重大于给另一个候选的权重，就算头选中先行词；
“两句都对”一栏，是两句都答对的最小对立对所占的比例（随机水平为 25）；
“照搬”一栏，是照搬[最接近的训练句子](#与训练句子的距离)的答案时的准确率。
最后两栏是两条捷径的准确率：一条总选离代词最近的候选，另一条总选第一个候选。

训练中从未出现的词会拆成子词，英语有时拆到单个字母；汉语里有的字模型完全不认识，本页末尾的表列出的是未知的片段，不一定是词。
模型不理解这样的词和字。遇到它们时，回答和头常常不一致：候选的得分是它各个子词得分的平均值，而这些子词大多从未在训练中出现过。
但认识每个词还不够。这些运行的语料教的是，一个理由说的是两人中的哪一个，一个谓语适合哪一类事物；太大的奖杯放不进箱子，语料里并没有写。
在 {same} % 的最小对立对中（中位数），同一个运行对两句给出同一个候选：两句之间的差别没有改变回答。"""

_NEARNESS_EN = """## No training sentence near them

The last column of the tables below shows how near a sentence comes to the nearest training sentence of its language in
the corpus of the runs. Candidates and pronoun are masked, and we count the fewest words that must be inserted, deleted
or replaced to turn one into the other. Nearness is 1 minus this count divided by the number of words in the longer
sentence: it is 1 for a training sentence. For the demo's corpus, the median is {en_median} in English and {zh_median}
in Chinese; the highest is {en_most} in English and {zh_most} in Chinese. "Tom was pushed by Bob because he was angry"
and its active form are the nearest: the corpus has many sentences of the same structure with other names and words.

In the tables, the antecedent is in bold and the pronoun in italics; the head's weights are medians over the runs."""

_NEARNESS_ZH = """## 与训练句子的距离

下面各表的最后一栏，是每个句子与最接近它的训练句子（在这些运行的语料里，同一种语言）的接近度。
比较时遮住候选和代词，数出把一句变成另一句最少要插入、删除或替换几个词。
用这个数除以两句中较长一句的词数，再用 1 减去所得的商，就是接近度；训练句子自身的接近度为 1。
就演示的语料而言，英语的中位数是 {en_median}，汉语是 {zh_median}；最高分别是 {en_most} 和 {zh_most}。
最接近的是“Tom was pushed by Bob because he was angry”和它的主动形式：语料中有许多结构相同的句子，只是名字和词不同。

表中粗体的是先行词，斜体或加点线的是代词；头的权重是各次运行的中位数。"""

PHRASES = {
    "en": {
        "opening": _OPENING_EN,
        "results": _RESULTS_EN,
        "everyday": _EVERYDAY_EN,
        "scenes": _SCENES_EN,
        "enanswers": "English: answer right",
        "enheads": "the head picks the antecedent",
        "zhanswers": "Chinese: answer right",
        "zhheads": "the head picks the antecedent",
        "everyday_row": "new nouns",
        f"{REWORDED}_row": "new nouns, wording and reason",
        "nearness": _NEARNESS_EN,
        "allresults": "All sentences: ",
        "alleveryday": "All sentences with everyday scenes: ",
        "en": "English",
        "zh": "Chinese",
        "enresults": "English",
        "zhresults": "Chinese",
        "eneveryday": "English with everyday scenes",
        "zheveryday": "Chinese with everyday scenes",
        "copied": "copied",
        "known": "every word known",
        "cut": "with unknown words",
        "both": "all",
        "sentences": "sentences",
        "answer": "answer right",
        "head": "head picks the antecedent",
        "answer_and_head": "answer and head right",
        "pairs": "pairs",
        "chance": "chance",
        "nearest": "nearest candidate",
        "first": "first candidate",
        "number": "",
        "sentence": "sentence",
        "answers": "answers (runs)",
        "right_answers": "the answer is",
        "weights": "head's weight",
        "right_heads": "the head is",
        "unknown": "unknown words or stretches",
        "near": "nearness",
        "none": "none of them",
        "no_word": "none",
        "comma": ", ",
        "right": "right",
        "wrong": "wrong",
        "some": "right in {right} of {runs}",
    },
    "zh": {
        "opening": _OPENING_ZH,
        "results": _RESULTS_ZH,
        "everyday": _EVERYDAY_ZH,
        "scenes": _SCENES_ZH,
        "enanswers": "英语：回答正确",
        "enheads": "头选中先行词",
        "zhanswers": "汉语：回答正确",
        "zhheads": "头选中先行词",
        "everyday_row": "名词是新的",
        f"{REWORDED}_row": "名词、说法和理由都是新的",
        "nearness": _NEARNESS_ZH,
        "allresults": "全部句子：",
        "alleveryday": "学过日常场景的运行，全部句子：",
        "en": "英语",
        "zh": "汉语",
        "enresults": "英语",
        "zhresults": "汉语",
        "eneveryday": "英语，学过日常场景",
        "zheveryday": "汉语，学过日常场景",
        "copied": "照搬",
        "known": "每个词都认识",
        "cut": "有不认识的词",
        "both": "全部",
        "sentences": "句数",
        "answer": "回答正确",
        "head": "头选中先行词",
        "answer_and_head": "回答和头都正确",
        "pairs": "两句都对",
        "chance": "随机水平",
        "nearest": "最近的候选",
        "first": "第一个候选",
        "number": "",
        "sentence": "句子",
        "answers": "模型的回答（运行数）",
        "right_answers": "回答",
        "weights": "头的权重",
        "right_heads": "头的选择",
        "unknown": "不认识的词或片段",
        "near": "接近度",
        "none": "都不是",
        "no_word": "无",
        "comma": "、",
        "right": "正确",
        "wrong": "错误",
        "some": "{right}/{runs} 正确",
    },
}

if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as error:
        raise SystemExit(f"error: {error}") from None
