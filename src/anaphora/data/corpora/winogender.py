"""Reader of Winogender (Rudinger et al. 2018): an occupation, a participant and a pronoun of one of three genders.

Two files of the authors' repository are needed. all_sentences.tsv has the columns `sentence` and `sentid`, which is
occupation.participant.answer.gender.txt (answer 0 is the occupation, 1 the participant, who may be "someone").
templates.tsv gives the positions of these words, as $OCCUPATION, $PARTICIPANT and one of $NOM_PRONOUN, $POSS_PRONOUN
and $ACC_PRONOUN in each template.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from anaphora.base.errors import UserError
from anaphora.base.translation import N_
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path
from anaphora.data.corpora.reading import DroppedRowError, Row, example_of, read_examples, tab_separated
from anaphora.data.example import Example
from anaphora.settings.data import Winogender

SENTENCES, TEMPLATES = "all_sentences.tsv", "templates.tsv"
ORIGIN = Origin(
    files=f"a folder with {SENTENCES} and {TEMPLATES}", licence=N_("see its repository"), names=(SENTENCES, TEMPLATES)
)
_OCCUPATION, _PARTICIPANT = "occupation(0)", "other-participant(1)"
_GENDERS = ("female", "male", "neutral")
_SLOTS = re.compile(r"(?:\b(?:the|a|an) )?\$(?:OCCUPATION|PARTICIPANT)|\$(?:NOM|POSS|ACC)_PRONOUN", re.IGNORECASE)


def read(settings: Winogender) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return the examples by split and a report on dropped rows.

    The sentences about an occupation share a group. Two of them are a minimal pair if they have the same participant
    and gender, but different templates. A sentence that does not match its template is dropped.
    """
    folder = existing_path(settings.path, ORIGIN.files)
    for name in (SENTENCES, TEMPLATES):
        if not (folder / name).exists():
            raise UserError(f"data.path ({settings.path}) must be {ORIGIN.files}: no {name}")
    columns = (_OCCUPATION, _PARTICIPANT, "answer", "sentence")
    listed = tab_separated(folder / TEMPLATES, columns)
    templates = {(row[_OCCUPATION], row["answer"]): row["sentence"] for _, row in listed}
    rows = tab_separated(folder / SENTENCES, ("sentid", "sentence"))
    return read_examples(settings, lambda row: _example(row, templates), rows)


def _example(row: Row, templates: Mapping[tuple[str, str], str]) -> Example:
    parts = row["sentid"].removesuffix(".txt").split(".")
    if len(parts) != 4 or parts[2] not in ("0", "1") or parts[3] not in _GENDERS:
        raise UserError(f"sentid: {row['sentid']!r} must be occupation.participant.0 or 1.{' or '.join(_GENDERS)}.txt")
    occupation, participant, answer, gender = parts
    if (occupation, answer) not in templates:
        raise UserError(f"sentid: {row['sentid']!r} has no template with this occupation and answer in {TEMPLATES}")
    text = row["sentence"]
    match = _pattern(templates[occupation, answer], occupation, participant).fullmatch(text)
    if match is None:
        raise DroppedRowError(N_("the sentence does not match its template"))
    return example_of(
        "winogender",
        text,
        match.span("pronoun"),
        ((match.span("occupation"),), (match.span("participant"),)),
        (int(answer),),
        group=f"winogender/{occupation}",
        minimal_pair=f"winogender/{occupation}/{participant}/{gender}",
        gender=gender,
        participant="someone" if participant == "someone" else "named",
        answer=("occupation", "participant")[int(answer)],
    )


def _pattern(template: str, occupation: str, participant: str) -> re.Pattern[str]:
    """Compile a template to a regular expression with the groups pronoun, occupation and participant."""
    written, at = "", 0
    for slot in _SLOTS.finditer(template):
        written += re.escape(template[at : slot.start()])
        name = slot[0].rpartition("$")[2].lower()
        article = re.escape(slot[0].partition("$")[0])
        if name.endswith("pronoun"):
            written += r"(?P<pronoun>\w+)"
        elif name == "participant" and participant == "someone":
            written += "(?P<participant>someone)"
        else:
            word = occupation if name == "occupation" else participant
            written += rf"(?P<{name}>{article}{re.escape(word)})"
        at = slot.end()
    groups = re.findall(r"\(\?P<(\w+)>", written)
    if sorted(groups) != ["occupation", "participant", "pronoun"]:
        raise UserError(f"template {template!r} must hold $OCCUPATION, $PARTICIPANT and one pronoun, each once")
    return re.compile(written + re.escape(template[at:]), re.IGNORECASE)
