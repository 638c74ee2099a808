"""Translation of the English sentences stored in result files.

The catalogue of translations has the placeholders {0}, {1}, ... in place of the numbers of each sentence.
"""

from __future__ import annotations

import itertools
import re

from anaphora.base.translation import N_, _
from anaphora.report.wording import baseline_names, clauses, joined_sentences, kind_names, label, language_name

_NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w-])")
_CHANCE = re.compile(r"\(([01]\.\d{3})\)")
_BEST = re.compile(r"above every baseline \(best: (?P<baseline>[\w ]+) (?P<share>[\d.]+)\)")
_CHECK = re.compile(
    r"(?P<language>\w+) (?:(?P<kind>\w+) cues|items) (?P<measure>task|candidate) "
    r"(?P<share>[\d.]+) % \(chance (?P<chance>[\d.]+) %\)"
)
_WITH_CHANCE = N_("task accuracy within {0} points of chance ({1} %)")
"""Catalogue entry of stored sentences such as "task accuracy within 5 points of chance (0.440)"."""


def stored_sentence(text: str) -> str:
    """Translate a sentence from a result file; accuracies of chance and of the best baseline become percentages.

    A sentence outside the catalogue of translations stays in English.
    """
    if best := _BEST.fullmatch(text):
        baseline = label(baseline_names(), best["baseline"])
        share = f"{100 * float(best['share']):.1f}"
        return _("above every baseline (best: {baseline}, {share} %)").format(baseline=baseline, share=share)
    text = _CHANCE.sub(lambda chance: f"({100 * float(chance[1]):.1f} %)", text)
    numbers = itertools.count()
    message = _NUMBER.sub(lambda _number: f"{{{next(numbers)}}}", text)
    translated = _(message)
    return text if translated == message else translated.format(*_NUMBER.findall(text))


def observed_text(text: str) -> str:
    """Translate the stored result of a trained control: its accuracies and, if one is unexpected, what this means."""
    checks = list(_CHECK.finditer(text))
    if not checks:
        return stored_sentence(text)
    measured = _("{measured}.").format(measured=clauses([_check_text(check) for check in checks]))
    meaning = text[checks[-1].end() :].removeprefix(".").strip()
    return joined_sentences([measured, _(meaning)] if meaning else [measured])


def _check_text(check: re.Match[str]) -> str:
    texts = {
        ("task", True): _("{language}, {kind}: task accuracy {share} % (chance {chance} %)"),
        ("candidate", True): _("{language}, {kind}: candidate accuracy {share} % (chance {chance} %)"),
        ("task", False): _("{language}: task accuracy {share} % (chance {chance} %)"),
        ("candidate", False): _("{language}: candidate accuracy {share} % (chance {chance} %)"),
    }
    return texts[check["measure"], check["kind"] is not None].format(
        language=language_name(check["language"]),
        kind=label(kind_names(), check["kind"] or ""),
        share=check["share"],
        chance=check["chance"],
    )
