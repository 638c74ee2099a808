"""Measurement of the study's parts, each stored in its own file, so that an interrupted run can be continued."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from anaphora.analysis.results.scores import Head
from anaphora.api.models import open_any
from anaphora.base.console import say
from anaphora.base.errors import UserError
from anaphora.base.files import read_json, write_json
from anaphora.base.language import LANGUAGES
from anaphora.data.example import sample_quads
from anaphora.hf.reader import TransformersModel
from experiments.pointing_heads import edges, rows
from experiments.pointing_heads.examples import examples_part
from experiments.pointing_heads.items import (
    CORPORA,
    DEVELOPMENT,
    READINGS,
    Reading,
    controlled,
    corpus,
    everyday,
    training_items,
)
from experiments.pointing_heads.rows import Part, accuracy_of, chosen_head
from experiments.pointing_heads.settings import SECOND, PointingHeads

KINDS_OF_COPY = ("untrained", "shuffled")
GAP = "gap"
_OF_PARTS = ("models", "data", "sentences", "measured", "items", "likelihood_items", "training_items")
"""Settings that change the measurements; the numbers of copies are not among them, since copies may be added later."""


class Study:
    """Measurements (parts) of the study: first heads are chosen on development sentences, then they are measured."""

    def __init__(self, settings: PointingHeads) -> None:
        self.settings = settings
        self.folder = Path(settings.output) / "parts"
        self._settings_path = self.folder.parent / "settings.json"  # written with the first part
        self._of_parts = {name: getattr(settings, name) for name in _OF_PARTS}
        self.everyday = cache(partial(everyday, settings))
        self.corpus = cache(partial(corpus, settings))

    def plan(self) -> Iterator[tuple[str, Callable[[], Part]]]:
        """Yield each measurement (part) of the study: its name, and the function that computes it."""
        for model, languages in DEVELOPMENT.items():
            for language in languages:
                yield f"development-{model}-{language}", partial(self._development, model, language)
        for language in LANGUAGES:
            yield f"examples-{language}", partial(self._examples, language)
        for reading in READINGS:
            yield f"everyday-{reading.name}", partial(self._everyday, reading)
            yield f"vector-{reading.name}", partial(self._vector, reading)
            yield f"probe-{reading.name}", partial(self._probe, reading)
        for name in CORPORA["e5"]:
            yield f"rules-{name}", partial(self._rules, name)
        for model, corpora in CORPORA.items():
            for name in corpora:
                yield f"corpus-{model}-{name}", partial(self._corpus, model, name)
            for language in DEVELOPMENT[model]:
                yield f"controlled-{model}-{language}", partial(self._controlled, model, language)
        for language in LANGUAGES:
            yield f"shortcuts-{language}", partial(self._shortcuts, language)
        yield "likelihoods", self._likelihoods
        copies = [(model, kind) for model in reversed(CORPORA) for kind in KINDS_OF_COPY]
        for seed in range(self.settings.copies):
            for model, kind in copies:
                yield f"copy-{model}-{kind}-{seed}", partial(self._copy, model, kind, seed)
        for seed in range(max(self.settings.gap_copies, self.settings.few_copies)):
            for model, kind in copies:
                yield f"copy-{model}-{kind}-{seed}-corpora", partial(self._copy_on_corpora, model, kind, seed)

    def measure(self) -> None:
        """Measure the requested parts that have no file yet."""
        self._check_settings()
        beginnings = tuple(self.settings.parts) or ("",)
        for name, part in self.plan():
            path = self.folder / f"{name}.json"
            if name.startswith(beginnings) and not path.exists():
                say(f"measuring {name}")
                measured = part()
                if not self._settings_path.exists():
                    write_json(self._settings_path, self._of_parts)
                write_json(path, measured)

    def _check_settings(self) -> None:
        """Check that the stored parts were measured with the same settings.

        Raises:
            UserError: a setting that changes the content of a part has another value.
        """
        if not self._settings_path.exists():
            return
        for name, value in read_json(self._settings_path, dict.fromkeys(_OF_PARTS, object)).items():
            if name in self._of_parts and self._of_parts[name] != value:
                raise UserError(
                    f"{name} ({self._of_parts[name]}) was {value} when {self.folder} was measured; name another output"
                )

    def _development(self, model: str, language: str) -> Part:
        return rows.development_part(self._model(model), self.everyday(language, "dev"))

    def _examples(self, language: str) -> Part:
        head = self._heads("e5", "en")[0]
        return examples_part(f"{self.settings.models}/e5", head, self.everyday(language, "dev"))

    def _everyday(self, reading: Reading) -> Part:
        heads, measured = self._heads(reading.model, reading.chosen_in), self.everyday(reading.language, "measured")
        return rows.everyday_part(self._model(reading.model), heads, measured)

    def _shortcuts(self, language: str) -> Part:
        return rows.shortcuts_part(training_items(self.settings, language), self.everyday(language, "measured"))

    def _vector(self, reading: Reading) -> Part:
        head = self._heads(reading.model, reading.chosen_in)[0]
        return edges.vector_part(self._model(reading.model), head, self.everyday(reading.language, "measured"))

    def _probe(self, reading: Reading) -> Part:
        head, measured = self._heads(reading.model, reading.chosen_in)[0], self.everyday(reading.language, "measured")
        splits = ("dev", "test") if self.settings.measured == SECOND else ("dev",)  # nothing that is measured
        fitted_on = [example for split in splits for example in self.everyday(reading.language, split)]
        return edges.probe_part(self._model(reading.model), head, fitted_on, measured)

    def _corpus(self, model: str, name: str) -> Part:
        return rows.corpus_part(self._model(model), self._heads(model, "en")[0], self.corpus(name))

    def _rules(self, name: str) -> Part:
        return rows.rules_part(self.corpus(name))

    def _controlled(self, model: str, language: str) -> Part:
        return rows.corpus_part(self._model(model), self._heads(model, "en")[0], controlled(self.settings, language))

    def _likelihoods(self) -> Part:
        development, measured = self.everyday("en", "dev"), self.everyday("en", "measured")
        some = sample_quads(measured, self.settings.likelihood_items)
        return edges.likelihoods_part(self._model("smollm2"), development, some)

    def _copy(self, name: str, kind: str, seed: int) -> Part:
        """Choose a head in a copy with untrained or shuffled weights, and measure it on the everyday sentences."""
        copied = rows.copy_of(self._model(name), kind, seed)
        chosen = {
            language: chosen_head(rows.development_part(copied, self.everyday(language, "dev")))
            for language in DEVELOPMENT[name]
        }
        accuracy = {
            reading.name: accuracy_of(copied, chosen[reading.chosen_in], self.everyday(reading.language, "measured"))
            for reading in READINGS
            if reading.model == name
        }
        return {"accuracy": accuracy, "heads": {language: [head.layer, head.head] for language, head in chosen.items()}}

    def _copy_on_corpora(self, name: str, kind: str, seed: int) -> Part:
        """Measure a copy's head, chosen on English sentences, on corpora."""
        copied = rows.copy_of(self._model(name), kind, seed)
        head = Head(*read_json(self.folder / f"copy-{name}-{kind}-{seed}.json", {"heads": dict})["heads"]["en"])
        counts = dict.fromkeys(CORPORA[name], self.settings.few_copies) | {GAP: self.settings.gap_copies}
        asked = [corpus for corpus, count in counts.items() if seed < count]
        return {"accuracy": {corpus: accuracy_of(copied, head, self.corpus(corpus)) for corpus in asked}}

    def _model(self, name: str) -> TransformersModel:
        """Open a model, or return it from the cache of open models."""
        opened = open_any(f"{self.settings.models}/{name}")
        if not isinstance(opened, TransformersModel):
            raise TypeError(f"{name} is a run, and no model of transformers")
        return opened

    def _heads(self, model: str, language: str) -> list[Head]:
        part = read_json(self.folder / f"development-{model}-{language}.json", {"ranked": [[int]]})
        return [Head(*head) for head in part["ranked"]]


def stored_parts(output: str) -> dict[str, Part]:
    """Return the stored measurements by name of the part."""
    return {path.stem: read_json(path, dict) for path in sorted((Path(output) / "parts").glob("*.json"))}
