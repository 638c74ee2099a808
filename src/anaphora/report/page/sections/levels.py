"""Section on compositions by how much of each training showed, with shortcut baselines."""

from __future__ import annotations

from anaphora.base.locale.translation import _
from anaphora.report.numbers import format_percent
from anaphora.report.page.elements import PlacedSections, ReportRun, Section, TableElement
from anaphora.report.tables import level_table
from anaphora.report.wording import label, language_name, level_names, shortcut_names


def levels_section(run: ReportRun) -> Section | None:
    """Return the section on composition levels; None if the corpus has no compositions."""
    evidence = run.evidence
    if not evidence.levels:
        return None
    table = level_table(evidence, "{accuracy}\n{name}")
    shortcuts = [
        [
            language_name(language),
            label(level_names(), name),
            label(shortcut_names(), shortcut),
            format_percent(accuracy),
        ]
        for language, levels in evidence.levels.items()
        for name, level in levels.items()
        if name != "set"
        for shortcut, accuracy in [*level.shortcuts.items(), ("rule_model", level.rule_model)]
    ]
    return Section(
        name="levels",
        title=_("Does it hold for combinations that training never showed?"),
        explanation=_(
            "In compositions the predicate, the state and the voice (active or passive; in Chinese, who comes "
            "first) together say who is meant, and no two of them do. Training showed predicate and state together "
            "in both voices, in the other voice only, or never together, though each with others. An octad, the "
            "sentences of one predicate with two states (with set cues, a quad), counts if the head is right on each "
            "of them. The best shortcut is that of a closed list, learned on the whole training split; one that is "
            "wrong more often than right repeats the answers of the other voice."
        ),
        elements=[
            table,
            TableElement(
                title=_(
                    "Every shortcut of the list, and a model of the rule, which is given predicate, state and "
                    "voice by name"
                ),
                columns=[*table.columns[:2], _("shortcut"), _("accuracy, %")],
                rows=shortcuts,
                texts=3,
                folded=True,
            ),
        ],
    )


SECTIONS: PlacedSections = {30: levels_section}
