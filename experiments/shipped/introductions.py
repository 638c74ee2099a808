"""Answer sentences like those in introductions to attention: python -m experiments.shipped.introductions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.base.language import LANGUAGES
from anaphora.cli import run_program
from experiments.shipped.settings import IntroductionSentences

if TYPE_CHECKING:
    from anaphora.api.pronoun_answers import PronounAnswer
    from anaphora.data.example import Example

CONFIDENT = 0.9
"""Minimum probability of a confident answer."""


def work(settings: IntroductionSentences) -> None:
    """Print each answer with its probability, and the numbers of correct answers and of confident correct answers."""
    import anaphora
    from anaphora.base.console import say
    from anaphora.data.corpora.tables import read
    from anaphora.settings.data import OwnExamples

    for language in LANGUAGES:
        path = Path(settings.sentences) / f"introductions.{language}.jsonl"
        examples = read(OwnExamples(path=str(path)))[0]["test"]
        answers = anaphora.answers(settings.run, examples)
        for example, answer in zip(examples, answers, strict=True):
            mark = "right" if is_right(example, answer) else "wrong"
            say(f"{mark} {probability(answer):.2f} {answer.answer}: {example.text}")
        right, confident = counts(examples, answers)
        say(f"{language}: {right} of {len(examples)} right, {confident} of them with at least {CONFIDENT}")


def counts(examples: Sequence[Example], answers: Sequence[PronounAnswer]) -> tuple[int, int]:
    """Return the number of correct answers, and of those with a probability of at least `CONFIDENT`."""
    right = [answer for example, answer in zip(examples, answers, strict=True) if is_right(example, answer)]
    return len(right), sum(probability(answer) >= CONFIDENT for answer in right)


def is_right(example: Example, answer: PronounAnswer) -> bool:
    """Return whether the most probable candidate is an antecedent."""
    return answer.answer in [example.words(number) for number in example.antecedents]


def probability(answer: PronounAnswer) -> float:
    """Return the probability of the most probable candidate."""
    return max(candidate.probability for candidate in answer.candidates)


if __name__ == "__main__":
    run_program(IntroductionSentences, work)
