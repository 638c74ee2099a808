"""Generator of the pages docs/results/sentences.md and sentences.zh.md.

For the sentences in en.jsonl and zh.jsonl, the pages show each run's answer, and the weight from the pronoun to each
candidate in its chosen head. The runs' training splits are loaded for their words and for the nearest training
sentence. Runs trained on everyday scenes have separate tables.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

import anaphora
from anaphora.analysis.evidence.storage import read_evidence
from anaphora.analysis.scores.baselines.shortcuts import unfitted_correctness
from anaphora.api import OpenRun
from anaphora.base.errors import UserError
from anaphora.data.corpora.tables import rows
from anaphora.data.example import Example, Span, from_record
from anaphora.data.tokens.tokenizer import TokenizedText
from experiments.everyday.scenes import EVERYDAY, REWORDED
from experiments.everyday.settings import EverydayCorpus
from experiments.sentences.nearness import masked, means_first, training_text
from experiments.sentences.words import PHRASES

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
LANGUAGES = ("en", "zh")
NEAREST_SCENE = 0.75
"""Maximum nearness of a scene's text to one of the sentences, which a test checks."""
PAGES = {"en": DOCS / "results" / "sentences.md", "zh": DOCS / "results" / "sentences.zh.md"}


@dataclass(frozen=True)
class Reading:
    """Result of one run on one sentence.

    Attributes:
        answer: index of the predicted candidate; None for "none of them".
        weights: weight from the pronoun to each candidate in the chosen head.
        cut: words that are not in the training split.
        nearness: nearness of the nearest training sentences.
        copied: share of these sentences whose antecedent has the same place (first or second) as in this sentence.
    """

    answer: int | None
    weights: tuple[float, ...]
    cut: tuple[str, ...]
    nearness: float
    copied: float


@dataclass(frozen=True)
class Sentence:
    """Sentence with the results of all runs."""

    example: Example
    readings: tuple[Reading, ...]

    @property
    def is_known(self) -> bool:
        """Return whether all words occur in the training split of every run."""
        return not any(reading.cut for reading in self.readings)

    def answered(self, run: int) -> bool:
        """Return whether a run's answer is an antecedent."""
        return self.readings[run].answer in self.example.antecedents

    def pointed(self, run: int) -> bool:
        """Return whether an antecedent gets more weight in a run's head than any other candidate."""
        weights = self.readings[run].weights
        best = [number for number, weight in enumerate(weights) if weight == max(weights)]
        return len(best) == 1 and best[0] in self.example.antecedents


@dataclass(frozen=True)
class Group:
    """Runs that share tables, with their results on the sentences of each language."""

    runs: Sequence[OpenRun]
    sentences: dict[str, list[Sentence]]

    @property
    def name(self) -> str:
        """Return the name of the page's section."""
        return "everyday" if knows_scenes(self.runs[0]) else "results"


def main(directories: Sequence[str]) -> None:
    """Evaluate the runs and write both pages; raise UserError if no head of a run has been chosen."""
    runs = [anaphora.load(directory) for directory in directories]
    for run in runs:
        if run.chosen_head is None:
            raise UserError(f"{run.name}: no head has been chosen yet; anaphora score chooses one")
    groups = [
        Group(chosen, {language: read_sentences(language, chosen) for language in LANGUAGES})
        for chosen in ([run for run in runs if not knows_scenes(run)], [run for run in runs if knows_scenes(run)])
        if chosen
    ]
    for language, path in PAGES.items():
        path.write_text(page(language, groups), encoding="utf-8")
        sys.stdout.write(f"{path}\n")


def knows_scenes(run: OpenRun) -> bool:
    """Return whether a run was trained on everyday scenes."""
    return isinstance(run.run.config.data, EverydayCorpus)


def examples(language: str) -> list[Example]:
    """Return the sentences of one language."""
    return [from_record(row) for _, row in rows(HERE / f"{language}.jsonl")]


def read_sentences(language: str, runs: Sequence[OpenRun]) -> list[Sentence]:
    """Return the sentences of a language with each run's results."""
    return [Sentence(example, tuple(read(run, example) for run in runs)) for example in examples(language)]


def read(run: OpenRun, example: Example) -> Reading:
    """Evaluate one run on one sentence."""
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


def cut_words(text: str, tokens: TokenizedText, shown: frozenset[int]) -> list[str]:
    """Return the words of a text that are not in the training split as one token.

    Adjacent words without a space between them, as in Chinese, are joined.
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


def _written(span: Span) -> str:
    return f"{span[0]}:{span[1]}"


# --- The pages ----------------------------------------------------------------------------------------------------


def page(language: str, groups: Sequence[Group]) -> str:
    """Return the page in one language, on the sentences of both languages."""
    say = PHRASES[language]
    runs = [run for group in groups for run in group.runs]
    names = ",".join(f"outputs/{run.name}" for run in runs)
    commands = "\n".join(command for run in runs for command in _training_commands(run))
    parts = [say["opening"]]
    for group in groups:
        every = [one for each in group.sentences.values() for one in each]
        parts += [say[group.name].format(same=_same_answers(every), limit=NEAREST_SCENE, runs=len(group.runs))]
        if group.name == EVERYDAY:
            parts += [scenes_table(group.runs, say)]
            if len(groups) > 1:
                parts += [say["scenes"].format(**_answered_before_and_after(groups))]
        for written in LANGUAGES:
            parts += [f"### {say[written + group.name]}\n\n{summary_table(group.sentences[written], say)}"]
        if group is groups[0]:
            parts += [say["commands"].format(train=commands, runs=names)]
    parts += [say["nearness"].format(**_nearness(groups[0].sentences))]
    for group in groups:
        for written in LANGUAGES:
            parts += [f"## {say['all' + group.name]}{say[written]}\n\n{sentence_table(group.sentences[written], say)}"]
    return "\n\n".join(parts) + "\n"


def _training_commands(run: OpenRun) -> list[str]:
    """Return the commands that train a run on compositions and choose its head."""
    if run.name == "demo":
        return ["make demo"]
    config = run.run.config
    knows = knows_scenes(run)
    train = ".venv/bin/python -m experiments.everyday train" if knows else "anaphora train experiment=compositions"
    score = ".venv/bin/python -m experiments.everyday score" if knows else "anaphora score"
    seeds = {"seed": config.seed, "data.seed": getattr(config.data, "seed", 0)}
    settings = "".join(f" {name}={seed}" for name, seed in seeds.items() if seed)
    return [f"{train}{settings} name={run.name}", f"{score} run=outputs/{run.name} split=dev untrained=0"]


def summary_table(sentences: Sequence[Sentence], say: dict[str, str]) -> str:
    """Return the table of accuracies of answers and heads, with chance, for sentences of known and unknown words."""
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
    """Return a run's accuracies: answers, heads, both at once, and minimal pairs with two correct answers."""
    right = np.array([(one.answered(run), one.pointed(run)) for one in sentences])
    pairs: dict[str, list[bool]] = {}
    for sentence in sentences:
        if sentence.example.minimal_pair:
            pairs.setdefault(sentence.example.minimal_pair, []).append(sentence.answered(run))
    whole = [all(answers) for answers in pairs.values() if len(answers) > 1]
    return (*right.mean(axis=0).tolist(), float(right.all(axis=1).mean()), float(np.mean(whole)))


def _spread(shares: Sequence[float], unit: str = "") -> str:
    """Return the median share in percent, with its unit and the lowest and highest share."""
    ends = f" ({100 * min(shares):.0f}–{100 * max(shares):.0f})" if len(shares) > 1 else ""
    return f"{100 * median(shares):.0f}{unit}{ends}"


def scenes_table(runs: Sequence[OpenRun], say: dict[str, str]) -> str:
    """Return the table of accuracies on development scenes with new nouns, and with new descriptions and clauses."""
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
    """Return the table of all sentences with antecedent, answers, weights in the head, and their correctness."""
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
    """Return the sentence with the antecedent in bold and the pronoun in italics."""
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
    """Return the share of minimal pairs with the same answer in both sentences, in percent: the median over runs."""
    shares = []
    for run in range(len(sentences[0].readings)):
        answers: dict[str, list[int | None]] = {}
        for sentence in sentences:
            if sentence.example.minimal_pair:
                answers.setdefault(sentence.example.minimal_pair, []).append(sentence.readings[run].answer)
        shares.append(float(np.mean([len(set(of_pair)) == 1 for of_pair in answers.values()])))
    return f"{100 * median(shares):.0f}"


def _answered_before_and_after(groups: Sequence[Group]) -> dict[str, str]:
    """Return the accuracies by language, in percent, of runs trained without everyday scenes and of runs with them."""
    shares = {
        f"{language}_{name}": [_measured(group.sentences[language], run)[0] for run in range(len(group.runs))]
        for name, group in zip(("before", "after"), groups, strict=True)
        for language in LANGUAGES
    }
    return {name: _spread(of_runs, " %") for name, of_runs in shares.items()}


def _nearness(sentences: dict[str, list[Sentence]]) -> dict[str, str]:
    """Return the median and highest nearness for each language."""
    numbers: dict[str, str] = {}
    for language, of_language in sentences.items():
        nearness = [max(one.nearness for one in sentence.readings) for sentence in of_language]
        numbers |= {f"{language}_median": f"{median(nearness):.2f}", f"{language}_most": f"{max(nearness):.2f}"}
    return numbers
