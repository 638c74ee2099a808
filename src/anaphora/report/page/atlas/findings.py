"""The sentences at the head of the atlas: what its numbers say, each with the numbers that it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anaphora.analysis.evidence.schema.evidence import VERDICT_SCOPE, in_group
from anaphora.analysis.evidence.schema.scores import Cell
from anaphora.analysis.scores.cells import ALL
from anaphora.report.numbers import format_count, format_number, format_percent
from anaphora.report.page.atlas.entry import AtlasEntry, best_shortcut, numbered_head, row_of
from anaphora.report.page.atlas.tasks import RULE_POLICIES, RULE_SELECTORS, mention_type
from anaphora.report.wording import label, language_name, phrase


def findings(entries: Sequence[AtlasEntry], language: str) -> Iterator[str]:
    """The findings on one corpus, all of whose models are given."""
    for code in dict.fromkeys(code for entry in entries for code in entry.evidence.languages):
        yield from _head_findings(entries, code, language)
    yield from _antecedent_findings(entries, language)
    yield from _name_findings(entries, language)


def _head_findings(entries: Sequence[AtlasEntry], code: str, language: str) -> Iterator[str]:
    """Whose head attends to the antecedent most often, and beside what; and what the answer loses without the edge."""
    scored = [
        (whole.candidate_accuracy, entry, whole)
        for entry in entries
        if (whole := entry.evidence.languages.get(code)) is not None and whole.candidate_accuracy is not None
    ]
    if not scored:
        return
    best, entry, whole = max(scored, key=lambda each: each[0])
    shortcut = best_shortcut(whole)
    low, high = whole.intervals.candidate_accuracy or (None, None)
    above = [other.model for _, other, cell in scored if _is_above_all(cell)]
    where = {"corpus": label("corpora", entry.corpus, language), "spoken": language_name(code, language)}
    yield phrase(
        "atlas", "finding", language,
        **where,
        model=entry.model,
        head=entry.head,
        share=format_percent(best),
        low=format_percent(low),
        high=format_percent(high),
        items=format_count(whole.items),
        chance=format_percent(whole.chance),
        rule=label("baselines", shortcut[0], language) if shortcut else "",
        shortcut=format_percent(shortcut[1] if shortcut else None),
        untrained=format_percent(whole.baselines.get("random_init")),
        above=phrase("atlas", "above" if above else "above_none", language, models=", ".join(above)),
    )  # fmt: skip
    for entry in entries:
        cell = in_group(entry.evidence.causal_cells, code, ALL)
        loss = None if cell is None else cell.knockout[VERDICT_SCOPE].edges.get("gold")
        if cell is None or loss is None or loss.drop is None or loss.interval is None:
            continue
        yield phrase(
            "atlas", "finding_causal", language,
            **where,
            model=entry.model,
            task=format_percent(cell.task_accuracy),
            items=format_count(cell.items),
            drop=format_percent(loss.drop),
            low=format_percent(loss.interval[0]),
            high=format_percent(loss.interval[1]),
            layer=entry.evidence.head.layer,
        )  # fmt: skip


def _is_above_all(cell: Cell) -> bool:
    """Whether the whole interval is above chance, every shortcut and the untrained models."""
    if cell.intervals.candidate_accuracy is None:
        return False
    shortcut = best_shortcut(cell)
    others = (cell.chance, shortcut and shortcut[1], cell.baselines.get("random_init"))
    return cell.intervals.candidate_accuracy[0] > max((one for one in others if one is not None), default=1.0)


def _antecedent_findings(entries: Sequence[AtlasEntry], language: str) -> Iterator[str]:
    """Whose head is the best selector of pronouns' antecedents, beside the rules."""
    picked = []
    for entry in entries:
        rows, column = entry.antecedents or (), mention_type(entry.antecedents or ())
        any_word = row_of(rows, subset="all", selector="best head", field="words", column=column)
        mention = row_of(rows, subset="all", selector="best head", field="mentions", column=column)
        if any_word is not None and mention is not None:
            picked.append((any_word["accuracy"], entry, any_word, mention, column))
    if not picked:
        return
    share, entry, any_word, mention, column = max(picked, key=lambda each: each[0])
    rules = {
        name: row["accuracy"]
        for name in RULE_SELECTORS
        if (row := row_of(entry.antecedents or (), subset="all", selector=name, column=column)) is not None
    }
    best = max(rules, key=lambda name: rules[name])
    yield phrase(
        "atlas", "finding_antecedents", language,
        corpus=label("corpora", entry.corpus, language),
        form=label("mention_types", column, language),
        model=entry.model,
        head=numbered_head(any_word["layer"], any_word["head"]),
        share=format_percent(share),
        low=format_percent(any_word["low"]),
        high=format_percent(any_word["high"]),
        items=format_count(any_word["items"]),
        mentions=format_percent(mention["accuracy"]),
        mentions_head=numbered_head(mention["layer"], mention["head"]),
        nearest=format_percent(rules["nearest"]),
        rule=label("selectors", best.replace(" ", "_"), language),
        best=format_percent(rules[best]),
    )  # fmt: skip


def _name_findings(entries: Sequence[AtlasEntry], language: str) -> Iterator[str]:
    """Whose head decides names best, beside the rules."""
    decided = [(row, entry) for entry in entries if (row := row_of(entry.names or (), policy="head")) is not None]
    if not decided:
        return
    row, entry = max(decided, key=lambda each: float(each[0]["f1"]))
    rules = {one["policy"]: one["f1"] for one in entry.names or () if one["policy"] in RULE_POLICIES}
    best = max(rules, key=lambda name: rules[name])
    yield phrase(
        "atlas", "finding_names", language,
        corpus=label("corpora", entry.corpus, language),
        head=entry.head,
        model=entry.model,
        f1=format_percent(row["f1"]),
        low=format_percent(row["low"]),
        high=format_percent(row["high"]),
        bias=format_number(row["bias"], 2),
        rule=label("name_policies", best.replace(" ", "_"), language),
        best=format_percent(rules[best]),
    )  # fmt: skip
