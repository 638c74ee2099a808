"""Write docs/results/pointing_heads.md, its Chinese version and pictures: python -m experiments.pointing_heads.page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from anaphora.base.files import write_json, write_text
from anaphora.cli import run_program
from anaphora.report.numbers import shown_interval, with_minus
from experiments.pointing_heads.claims import (
    Decision,
    Number,
    Parts,
    accuracy,
    best_shortcut,
    copies_of,
    decide,
    digits,
    fewest_copies,
    floats,
    mean,
    of_types,
    rounded,
)
from experiments.pointing_heads.items import CORPORA, READINGS
from experiments.pointing_heads.measure import GAP, stored_parts
from experiments.pointing_heads.phrases import EN, ZH, Words
from experiments.pointing_heads.pictures import TYPES, draw_pictures, shortcut_of_type
from experiments.pointing_heads.rows import RULES, Part
from experiments.pointing_heads.settings import Pages

Row = Sequence[str]


def work(settings: Pages) -> None:
    """Write the pages and pictures."""
    parts = stored_parts(settings.output)
    decisions = decide(parts)
    write_json(Path(settings.verdicts), [asdict(rounded(decision)) for decision in decisions])
    for language, words, ending in (("en", EN, ".md"), ("zh", ZH, ".zh.md")):
        text = Path(__file__).with_name(f"page.{language}.md").read_text(encoding="utf-8")
        tables = {
            "verdicts": verdicts(decisions, words),
            "types": types(parts, words),
            "corpora": corpora(parts, words),
            "edges": edges(parts, words),
        }
        facts = {name: table(rows) for name, rows in tables.items()} | sentences(parts, words)
        for name, fact in facts.items():
            text = text.replace(f"{{{name}}}", fact)
        write_text(Path(settings.folder) / f"pointing_heads{ending}", text)
        draw_pictures(parts, words, language, Path(settings.pictures))


def table(rows: Iterable[Row]) -> str:
    """Return rows as a Markdown table; the first row has the column names."""
    head, *body = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body))


def verdicts(decisions: Sequence[Decision], words: Words) -> Iterator[Row]:
    """Yield the table of claims with their values and verdicts."""
    yield [words.columns[name] for name in ("claim", "rule", "numbers", "verdict")]
    for decision in decisions:
        claim, rule = words.claims[decision.name]
        numbers = dict.fromkeys(shown(number, words) for number in decision.numbers)
        yield [claim, rule, words.semicolon.join(numbers) or "-", words.verdicts[decision.verdict]]


def shown(number: Number, words: Words) -> str:
    """Return a value as text, with its name and interval."""
    name = words.sets.get(number.of) or " ".join(words.sets[part] for part in number.of.split())
    value = number.value if isinstance(number.value, str) else with_minus(f"{number.value:.{digits(number.interval)}f}")
    return f"{name}{words.colon}{value}{interval_text(number.interval)}"


def bracketed(text: str, words: Words) -> str:
    """Return a text in the brackets of the page's language, to follow a number."""
    return words.brackets.format(text=text)


def interval_text(interval: tuple[float, float] | None) -> str:
    """Return an interval in brackets; "" for None and for a single point."""
    ends = shown_interval(interval)
    return "" if ends is None else f" [{', '.join(with_minus(f'{end:.{digits(ends)}f}') for end in ends)}]"


def types(parts: Parts, words: Words) -> Iterator[Row]:
    """Yield the table of accuracies by type of cue, with the best shortcut and, for all types, other controls."""
    names = [words.sets[reading.name] for reading in READINGS]
    best = [f"{words.columns['shortcut']}{words.aside}{words.sets[language]}" for language in ("en", "zh")]
    yield [words.columns["type"], words.columns["items"], *names, *best]
    for name in (*TYPES, "all"):
        cells, count = [], ""
        for reading in READINGS:
            part = parts[f"everyday-{reading.name}"]
            chosen = np.flatnonzero(of_types(part, TYPES if name == "all" else (name,)))
            own = {"group": [part["group"][item] for item in chosen]}
            value, interval = accuracy(own, floats(part["right"])[chosen])
            cells.append(f"{value:.1f}{interval_text(interval)}")
            count = str(len(chosen))
        fitted = (
            [100 * shortcut_of_type(parts, one, name) for one in ("en", "zh")] if name != "all" else all_types(parts)
        )
        yield [words.types[name], count, *cells, *(f"{value:.1f}" for value in fitted)]
    seconds = [mean(100 * floats(parts[f"everyday-{reading.name}"]["second"])) for reading in READINGS]
    yield [words.columns["second"], "", *(f"{value:.1f}" for value in seconds), "", ""]
    for kind in ("untrained", "shuffled"):
        values = [copies_of(parts, reading.model, reading.name)[kind] for reading in READINGS]
        count = "/".join(dict.fromkeys(str(len(one)) for one in values))
        title = words.columns["copies"].format(count=count, kind=words.sets[kind])
        yield [title, "", *(f"{max(one):.1f}" if one else "-" for one in values), "", ""]


def all_types(parts: Parts) -> list[float]:
    """Return the accuracy of the best shortcut of each language, in %."""
    shortcuts = [parts[f"shortcuts-{language}"] for language in ("en", "zh")]
    return [100 * float(floats(one["shortcuts"][best_shortcut(one)]).mean()) for one in shortcuts]


def sentences(parts: Parts, words: Words) -> dict[str, str]:
    """Return the values in the page's text, by name of the placeholder."""
    of_pronouns, mentioned = [], []
    for name in CORPORA["e5"]:
        right, rules = 100 * floats(parts[f"corpus-e5-{name}"]["right"]), parts[f"rules-{name}"]
        mentioned.append(
            f"{mean(100 * floats(rules['shortcuts']['most_mentioned'])):.1f} %{bracketed(words.sets[name], words)}"
        )
        pronouns = np.array(rules["form"]) == "pronoun"
        if pronouns.any():
            count = bracketed(f"{words.sets[name]}{words.aside}{pronouns.sum()}", words)
            of_pronouns.append(f"{right[pronouns].mean():.1f} %{count}")
    weights = [floats(parts[f"vector-{reading.name}"]["weights"]).mean(axis=0) for reading in READINGS]
    on_corpora = [(model, name) for model, names in CORPORA.items() for name in names]
    likely = parts.get("likelihoods")
    everyday = [parts[f"everyday-{reading.name}"] for reading in READINGS]
    neighbours = [[mean(100 * floats(row)) for row in part["neighbours"].values()] for part in everyday]
    ahead = [float(number.value) for one in decide(parts) if one.name == "pronoun_alone" for number in one.numbers]

    def listed(shares: Iterable[float]) -> str:
        return words.comma.join(f"{share:.0f}" for share in shares)

    def span(shares: Sequence[float]) -> str:
        return words.span.format(least=f"{min(shares):.0f}", most=f"{max(shares):.0f}")

    def distances(types: Sequence[str]) -> str:
        return words.comma.join(by_distance(parts[f"everyday-{reading.name}"], types) for reading in READINGS)

    return {
        "pronouns": words.comma.join(of_pronouns),
        "mentioned": words.comma.join(mentioned),
        "weights": words.comma.join(f"{edge:.2f} / {matched:.2f}" for edge, matched in weights),
        "distance": distances(TYPES),
        "roles": distances(("role",)),
        "follows": listed(50 + mean(50 * floats(part["stays"])) for part in everyday),
        "nouns": listed(mean(100 * floats(part["noun"])) for part in everyday),
        "neighbours": span([share for rows in neighbours for share in rows]),
        "ahead": span(ahead),
        "copies": words.copies.format(
            everyday=fewest_copies(parts),
            gap=fewest_copies(parts, [of for of in on_corpora if of[1] == GAP]),
            corpora=fewest_copies(parts, [of for of in on_corpora if of[1] != GAP]),
        ),
        "likelihoods": "" if likely is None else words.likelihoods.format(
            layer=likely["head"][0],
            head=likely["head"][1],
            pointing=f"{mean(100 * floats(likely['pointing'])):.1f}",
            right=f"{mean(100 * floats(likely['right'])):.1f}",
            items=len(likely["right"]),
            without=f"{mean(100 * floats(likely['without']['gold'])):.1f}",
        ),
    }  # fmt: skip


def by_distance(part: Part, types: Sequence[str]) -> str:
    """Return the accuracies, in %, on sentences with the nearer and with the farther candidate as antecedent."""
    farthest: dict[str, int] = {}
    for group, distance in zip(part["group"], part["distance"], strict=True):
        farthest[group] = max(distance, farthest.get(group, 0))
    is_far = np.array([farthest[group] == one for group, one in zip(part["group"], part["distance"], strict=True)])
    right = 100 * floats(part["right"])
    asked = of_types(part, types)
    return f"{right[asked & ~is_far].mean():.1f} / {right[asked & is_far].mean():.1f}"


def corpora(parts: Parts, words: Words) -> Iterator[Row]:
    """Yield the table of accuracies of the head and the better positional rule on other corpora."""
    yield [words.columns[name] for name in ("corpus", "items", "head", "rule_of_position", "chance", "any_copies")]
    for model, names in CORPORA.items():
        for name in names:
            part = parts[f"corpus-{model}-{name}"]
            value, interval = accuracy(part, part["right"])
            rule = best_shortcut(part, RULES[:2])
            copies = [value for values in copies_of(parts, model, name).values() for value in values]
            yield [
                f"{words.sets[name]}{words.aside}{words.sets[model]}",
                str(len(part["right"])),
                f"{value:.1f}{interval_text(interval)}",
                f"{mean(100 * floats(part['shortcuts'][rule])):.1f}{bracketed(words.shortcuts[rule], words)}",
                f"{mean(100 * floats(part['chance'])):.1f}",
                f"{max(copies):.1f}{bracketed(str(len(copies)), words)}" if copies else "-",
            ]

    for name, part in parts.items():
        if name.startswith("controlled-"):
            _, model, language = name.split("-")
            yield from controlled(part, model, language, words)


def controlled(part: Part, model: str, language: str, words: Words) -> Iterator[Row]:
    """Yield the table of accuracies on the built-in corpus, by kind of cue."""
    for kind, title in words.kinds.items():
        chosen = np.flatnonzero(np.array(part["kind"]) == kind)
        own = {"group": [part["group"][item] for item in chosen]}
        value, interval = accuracy(own, floats(part["right"])[chosen])
        rules = {name: 100 * floats(part["shortcuts"][name])[chosen].mean() for name in RULES[:2]}
        rule = max(rules, key=lambda name: rules[name])
        yield [
            words.controlled.format(kind=title, language=words.sets[language], model=words.sets[model]),
            str(len(chosen)),
            f"{value:.1f}{interval_text(interval)}",
            f"{rules[rule]:.1f}{bracketed(words.shortcuts[rule], words)}",
            f"{100 * floats(part['chance'])[chosen].mean():.1f}",
            "-",
        ]


def edges(parts: Parts, words: Words) -> Iterator[Row]:
    """Yield the table of results by vectors, probes and likelihoods, with and without the edge."""
    yield ["", *(words.columns[name] for name in ("whole", "edge", "matched"))]
    for reading in READINGS:
        if part := parts.get(f"vector-{reading.name}"):
            whole, fall = floats(part["margin"]), part["fall"]
            cut = [whole - floats(fall[name]) for name in ("edge", "matched")]
            yield [
                f"{words.columns['vector']}{words.aside}{words.sets[reading.name]}",
                *(with_minus(f"{one.mean():.3f}") for one in (whole, *cut)),
            ]
    for reading in READINGS:
        if part := parts.get(f"probe-{reading.name}"):
            rights = [mean(100 * floats(part["right"][name])) for name in ("whole", "edge", "matched")]
            yield [
                f"{words.columns['probe']}{words.aside}{words.sets[reading.name]}",
                *(f"{one:.1f}" for one in rights),
            ]


if __name__ == "__main__":
    run_program(Pages, work)
