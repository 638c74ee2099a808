"""What a study measures of one run: numbers by language and group of items, kept beside the run and used again.

A group is "all", a kind of cue, or what a measure adds: "pronoun", "distance 8", "value shuffled".
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.antecedent_selection import form_of
from anaphora.analysis.capture import answered, is_right
from anaphora.analysis.cells import KINDS, cells, rounded
from anaphora.analysis.classification import label_answers, labels_of
from anaphora.analysis.intervene import Edges, PackedSubject
from anaphora.analysis.roles import head_roles
from anaphora.analysis.scores import is_main
from anaphora.analysis.shuffle import PARTS, shuffled
from anaphora.analysis.study import Study, study
from anaphora.checkpoint import Layout, Run, training_record
from anaphora.config import Config, dumps
from anaphora.data.batch import Encoded
from anaphora.data.example import Example, whole_blocks
from anaphora.data.store import load as load_corpus
from anaphora.data.text import thinned
from anaphora.errors import UserError
from anaphora.files import write_json
from anaphora.model.settings import Label
from anaphora.studies import laboratory
from anaphora.studies.grid import Job
from anaphora.studies.settings import LABORATORY, OF_RUNS, Plan
from anaphora.workflow import measuring_code, weights_digest, write_scores

Groups = dict[str, dict[str, dict[str, float | None]]]
"""{language: {group: {measure: value}}}."""

MEASURED = "measured.json"
FAILURE = "failure.json"
DISTANCES = (0, 4, 8, 16, 32, 64)
"""Where the groups of distances begin, in words between antecedent and pronoun; the last has no end."""
ANTECEDENT_FROM = 0.1
"""Candidate accuracy above chance from which on a head is counted as one that follows antecedents."""
_KEPT = ("task_accuracy", "candidate_accuracy", "antecedent_mass", "quad_accuracy", "chance", "items")


@dataclass(frozen=True)
class Asked:
    """What is measured of every run of a study."""

    measures: tuple[str, ...]
    split: str
    items: int | None

    @classmethod
    def of(cls, plan: Plan) -> Asked:
        """What a plan asks for."""
        return cls(tuple(plan.measures), plan.split, plan.items)

    @property
    def of_runs(self) -> bool:
        """Whether anything asks for a finished run."""
        return any(measure not in LABORATORY for measure in self.measures)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "measures": list(self.measures)}


@dataclass(frozen=True, kw_only=True)
class Record:
    """What is known of one run of a study.

    Attributes:
        cell, seed: which run.
        status: "finished", "failed", "unfinished" or "not begun".
        error: why it failed.
        groups: what was measured; empty unless finished.
        head: layer and head that the development split chose, where heads were scored.
        seconds: that training took.
    """

    cell: str
    seed: int
    status: str
    error: str = ""
    groups: Groups
    head: tuple[int, int] | None = None
    seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Answers:
    """What a run does with the items of a split.

    Attributes:
        examples: N items.
        correct: (N,) whether the model's answer is right.
        found: the study of its heads; None for a model without attention.
    """

    examples: Sequence[Example]
    correct: NDArray[np.float64]
    found: Study | None


def measure(run: Run, asked: Asked) -> None:
    """Measure a finished run, unless that was done before, and write it into the run's directory."""
    key = {**asked.plain(), "weights": weights_digest(run), "code": _code()}
    if _known(run.directory, key):
        return
    groups: Groups = {}
    about_pronouns = any(name in OF_RUNS and name != "labels" for name in asked.measures)
    answers = _answers(run, asked) if about_pronouns else Answers([], np.zeros(0), None)
    for name in asked.measures:
        match name:
            case "labels":
                found = labels(run, asked)
            case "scores":
                found = scores(answers)
            case "forms":
                found = by_form(answers)
            case "distance":
                found = by_distance(answers)
            case "roles":
                found = relations(answers)
            case "shuffled":
                found = with_parts_shuffled(run, answers)
            case "cut":
                found = with_edges_cut(run, answers)
            case _:
                found = _of_settings(name, run.config)
        _merge(groups, found)
    head = [answers.found.head.layer, answers.found.head.head] if answers.found else None
    seconds = training_record(run.directory).get("train_seconds")
    write_json(run.directory / MEASURED, {"asked": key, "head": head, "train_seconds": seconds, "groups": groups})


def measure_settings(config: Config, directory: Path, asked: Asked) -> None:
    """Measure what needs no training, unless that was done before, and write it into a directory."""
    plain = dumps(replace(config, name=None, output=""))
    key = {**asked.plain(), "settings": hashlib.sha256(plain.encode()).hexdigest()[:16], "code": _code()}
    if _known(directory, key):
        return
    groups: Groups = {}
    for name in asked.measures:
        _merge(groups, _of_settings(name, config))
    write_json(directory / MEASURED, {"asked": key, "head": None, "train_seconds": None, "groups": groups})


def scores(answers: Answers) -> Groups:
    """Task accuracy, and where there is attention the alignment of the head that the development split chose."""
    if answers.found is None:
        return _grouped(
            answers, [(language, group, np.flatnonzero(items)) for language, group, items in cells(answers.examples)]
        )
    languages = answers.found.metrics()["languages"]
    return {
        language: {
            group: {name: cell[name] for name in _KEPT}
            for group, cell in (("all", whole), *((kind, whole[kind]) for kind in KINDS if kind in whole))
        }
        for language, whole in languages.items()
    }


def by_form(answers: Answers) -> Groups:
    """Task accuracy and alignment by what the asked mention is: "pronoun", "proper" or "nominal"."""
    places: dict[tuple[str, str], list[int]] = {}
    for item in np.flatnonzero(is_main(answers.examples)).tolist():
        example = answers.examples[item]
        places.setdefault((example.language, form_of(example)), []).append(item)
    return _grouped(answers, [(*key, np.array(items)) for key, items in places.items()])


def by_distance(answers: Answers) -> Groups:
    """Task and candidate accuracy by the number of words between antecedent and pronoun: "distance 8" is 8 to 15."""
    places: dict[tuple[str, str], list[int]] = {}
    for item in np.flatnonzero(is_main(answers.examples)).tolist():
        written = answers.examples[item].factors.get("distance", "")
        if written.isdigit():
            begin = DISTANCES[int(np.searchsorted(DISTANCES, int(written), side="right")) - 1]
            places.setdefault((answers.examples[item].language, f"distance {begin}"), []).append(item)
    ordered = sorted(places, key=lambda key: (key[0], int(key[1].split()[1])))
    return _grouped(answers, [(*key, np.array(places[key])) for key in ordered])


def relations(answers: Answers) -> Groups:
    """How many heads follow each relation, told by the pronoun's rows: antecedent, cue, a fixed neighbour.

    `head_roles` says when a head follows the cue or a neighbour; it follows antecedents where it points at them in at
    least ten points more than a blind choice would.
    """
    if answers.found is None:
        raise UserError("measures ('roles') asks for attention maps, which a recurrent network does not have")
    groups: Groups = {}
    whole = answers.found.measured
    languages = np.array([example.language for example in whole.examples])
    for language in dict.fromkeys(languages):
        here = whole.select(np.flatnonzero((languages == language) & is_main(whole.examples)))
        roles = [entry["roles"] for entry in head_roles(here, answers.found.seen.records, {})]
        chance = float((here.gold.sum(axis=1) / np.maximum(here.present.sum(axis=1), 1)).mean())
        pointing = here.candidate_accuracy.mean(axis=0, dtype=np.float64) >= chance + ANTECEDENT_FROM
        counts = {
            "antecedent_heads": int(pointing.sum()),
            "predicate_heads": sum("predicate" in each for each in roles),
            "neighbour_heads": sum("positional" in each for each in roles),
        }
        followed = sum(count > 0 for count in counts.values())
        groups[str(language)] = {
            "all": {**{name: float(count) for name, count in counts.items()}, "relations": followed}
        }
    return groups


def with_parts_shuffled(run: Run, answers: Answers) -> Groups:
    """Task accuracy when queries, keys or values are traded between the tokens of a sentence: "query shuffled"."""
    groups: Groups = {}
    data = Encoded(answers.examples, run.tokenizer)
    for part in PARTS:
        with shuffled(run.resolver.encoder, part, run.config.seed):
            correct = answered(run.resolver, data, run.config.batching, run.config.task.readout)
        _merge(groups, _changed(answers.examples, correct, f"{part} shuffled"))
    return groups


def with_edges_cut(run: Run, answers: Answers) -> Groups:
    """Task accuracy where, in every layer and head, some words cannot see others: "no candidate seen", "nothing seen".

    Of the first the pronoun attends to no candidate, of the second to no other word at all, of "pronoun unseen" no
    candidate attends to the pronoun. A cut edge's weight goes to the rest of its row.

    Raises:
        UserError: the run has no attention.
    """
    if answers.found is None:
        raise UserError("measures ('cut') asks for attention maps, which a recurrent network does not have")
    data = Encoded(answers.examples, run.tokenizer)
    subject = PackedSubject(run.resolver, data, run.config.batching, run.config.task.readout)
    groups: Groups = {}
    for name, edges in _cuts(data, *subject.shape).items():
        scores = subject.cut(edges)
        chosen = scores.argmax(axis=1)
        chosen[chosen == scores.shape[1] - 1] = -1
        right = [is_right(answer, example) for answer, example in zip(chosen.tolist(), answers.examples, strict=True)]
        _merge(groups, _changed(answers.examples, np.array(right, dtype=np.float64), name))
    return groups


def _cuts(data: Encoded, layers: int, heads: int) -> dict[str, Edges]:
    found: dict[str, list[tuple[int, int, int]]] = {"no candidate seen": [], "nothing seen": [], "pronoun unseen": []}
    for item, (example, tokens) in enumerate(zip(data.examples, data.tokens, strict=True)):
        pronoun = tokens.covering(example.pronoun)
        candidates = {token for spans in example.candidates for span in spans for token in tokens.covering(span)}
        others = [token for token in range(len(tokens.ids)) if token not in pronoun]
        found["no candidate seen"] += [(item, query, key) for query in pronoun for key in sorted(candidates)]
        found["nothing seen"] += [(item, query, key) for query in pronoun for key in others]
        found["pronoun unseen"] += [(item, query, key) for query in sorted(candidates) for key in pronoun]
    everywhere = np.indices((layers, heads)).reshape(2, -1)
    cuts = {}
    for name, edges in found.items():
        item, query, key = np.repeat(np.array(edges, dtype=np.int64).T, layers * heads, axis=1)
        layer, head = np.tile(everywhere, len(edges))
        cuts[name] = Edges(item, layer, head, query, key)
    return cuts


def _changed(examples: Sequence[Example], correct: NDArray[np.float64], name: str) -> Groups:
    """Task accuracy of a model to which something was done, in groups that say what: `name`, and "name, set"."""
    return _grouped(
        Answers(examples, correct, None),
        [
            (language, name if group == "all" else f"{name}, {group}", np.flatnonzero(items))
            for language, group, items in cells(examples)
        ],
    )


def labels(run: Run, asked: Asked) -> Groups:
    """How many texts of the split get their label: task accuracy, and as chance the share of the commonest label.

    Raises:
        UserError: the run tells no labels.
    """
    if not isinstance(run.config.task.readout, Label):
        raise UserError(f"measures ('labels') asks for task.readout=label, not {run.config.task.readout.kind}")
    texts = thinned(load_corpus(run.config.data).texts(asked.split), asked.items or run.config.trainer.limit_items)
    names = labels_of(run)
    right = np.array([names[number] for number in label_answers(run, texts)]) == [one.label for one in texts]
    groups: Groups = {}
    for language in dict.fromkeys(one.language for one in texts):
        here = [number for number, one in enumerate(texts) if one.language == language]
        commonest = max(Counter(texts[number].label for number in here).values())
        means = {"task_accuracy": rounded(right[here].mean()), "chance": rounded(commonest / len(here))}
        groups[language] = {"all": {**means, "items": float(len(here))}}
    return groups


def record_of(job: Job, asked: Asked) -> Record:
    """What lies in a run's directory, read and not measured."""
    measured, failure = job.directory / MEASURED, job.directory / FAILURE
    if measured.exists():
        stored = json.loads(measured.read_text(encoding="utf-8"))
        if {name: stored["asked"].get(name) for name in asked.plain()} == asked.plain():
            head = stored["head"]
            return Record(
                cell=job.cell,
                seed=job.seed,
                status="finished",
                groups=stored["groups"],
                head=(head[0], head[1]) if head else None,
                seconds=stored["train_seconds"],
            )
    if failure.exists():
        error = json.loads(failure.read_text(encoding="utf-8"))["error"]
        return Record(cell=job.cell, seed=job.seed, status="failed", error=error, groups={})
    status = "unfinished" if Layout(job.directory).config.exists() else "not begun"
    return Record(cell=job.cell, seed=job.seed, status=status, groups={})


def _answers(run: Run, asked: Asked) -> Answers:
    corpus = load_corpus(run.config.data)
    limit = asked.items or run.config.trainer.limit_items
    splits = {name: corpus.examples(name) for name in ("dev", asked.split)}
    chosen = {name: whole_blocks(found, limit) if limit else found for name, found in splits.items()}
    examples = chosen[asked.split]
    if not examples:
        raise UserError(f"split ({asked.split}) holds no items")
    if not run.resolver.encoder.has_maps:
        data = Encoded(examples, run.tokenizer)
        correct = answered(run.resolver, data, run.config.batching, run.config.task.readout)
        return Answers(examples, correct, None)
    found = study(run, None, chosen["dev"], examples, asked.split, 0)
    write_scores(found, run.directory)
    return Answers(found.measured.examples, found.task_correct, found)


def _of_settings(name: str, config: Config) -> Groups:
    match name:
        case "scaling":
            return laboratory.scaling(config, config.seed)
        case "symmetry":
            return laboratory.symmetry(config, config.seed)
        case "time":
            return laboratory.step_time(config, config.seed)
    raise UserError(f"measures ({name!r}) is none that a study can take")


def _grouped(answers: Answers, groups: Sequence[tuple[str, str, NDArray[np.int64]]]) -> Groups:
    """The means over some items each: task accuracy, and the chosen head's alignment where there is one."""
    values = {"task_accuracy": answers.correct}
    if answers.found is not None:
        head = answers.found.head
        for name in ("candidate_accuracy", "antecedent_mass"):
            values[name] = getattr(answers.found.measured, name)[:, head.layer, head.head].astype(np.float64)
    chance = [len(one.antecedents) / max(len(one.candidates), 1) for one in answers.examples]
    values["chance"] = np.array(chance, dtype=np.float64)
    found: Groups = {}
    for language, group, items in groups:
        means: dict[str, float | None] = {name: rounded(each[items].mean()) for name, each in values.items()}
        found.setdefault(language, {})[group] = {**means, "items": float(len(items))}
    return found


def _merge(groups: Groups, found: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> None:
    for language, each in found.items():
        for group, values in each.items():
            groups.setdefault(language, {}).setdefault(group, {}).update(values)


def _known(directory: Path, key: Mapping[str, Any]) -> bool:
    path = directory / MEASURED
    return path.exists() and json.loads(path.read_text(encoding="utf-8"))["asked"] == key


def _code() -> str:
    here = hashlib.sha256(measuring_code().encode())
    for name in ("measures.py", "laboratory.py"):
        here.update((Path(__file__).parent / name).read_bytes())
    return here.hexdigest()[:16]
