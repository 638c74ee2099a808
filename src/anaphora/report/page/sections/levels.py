"""The section on compositions by how much of each training showed, with the shortcuts of the closed list."""

from __future__ import annotations

from anaphora.base.locale.translation import _
from anaphora.report.numbers import format_percent
from anaphora.report.page.elements import PlacedSections, ReportRun, Section, TableElement
from anaphora.report.tables import level_table
from anaphora.report.wording import label, language_name, level_names, shortcut_names


def levels_section(run: ReportRun) -> Section | None:
    """Return the section on levels with every shortcut of the list; None if the corpus has no compositions."""
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
            "first) together say who is meant, and no two of them do. L0: predicate and state were seen together "
            "in both voices. L1: in one voice alone, and the other is tested. L2: never together, though each with "
            "others. An octad counts where the head is right on each of its sentences. Beside them is the best of "
            "a closed list of shortcuts, learned on the whole training split; one that is wrong more often than "
            "right has learned what training showed of L1."
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
