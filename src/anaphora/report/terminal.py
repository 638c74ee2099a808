"""What a command prints of the scores and of the verdict."""

from __future__ import annotations

from anaphora.analysis.evidence.schema.evidence import Evidence
from anaphora.base.console import console
from anaphora.report.groups import kind_groups
from anaphora.report.headline import headline_sentence, headline_table
from anaphora.report.levels import levels_table
from anaphora.report.wording import language_name


def print_verdict(evidence: Evidence) -> None:
    """Print what the rules give for every language and kind of cue, and the rows that fail or are open."""
    for group in kind_groups(evidence.verdict):
        failed = [row.rule for row in group.cell.rows if row.passed is False]
        unmeasured = [row.rule for row in group.cell.rows if row.passed is None]
        reasons = [f"fails: {', '.join(failed)}"] if failed else []
        reasons += [f"not measured: {', '.join(unmeasured)}"] if unmeasured else []
        why = f" ({'; '.join(reasons)})" if reasons else ""
        console.print(f"{group.label}: {group.cell.verdict}{why}", soft_wrap=True)


def print_headline(evidence: Evidence) -> None:
    """Print the headline table, the sentence that says what it shows, and what was left out."""
    console.print(headline_table(evidence))
    if evidence.levels:
        console.print(levels_table(evidence))
    console.print(headline_sentence(evidence))
    for language, whole in evidence.languages.items():
        worst = whole.worst_template
        if worst and worst.task_accuracy is not None:
            console.print(
                f"{language_name(language)}: worst template {worst.template}, "
                f"task accuracy {worst.task_accuracy:.2f} on {worst.items} items"
            )
    for reason, count in evidence.dropped.items():
        console.print(f"left out: {count} items ({reason})")
