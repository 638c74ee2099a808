"""Measure missing scores, and write one self-contained HTML page: a report on runs, or an atlas of models.

An atlas compares the heads of the given models on the same items. It is written if a model is not a run of this
package, or if `data` or `corpora` is set. With output=NAME.csv, the stored scores of several runs are summarised.

Example: anaphora report run=outputs/demo interface_language=en
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from anaphora.analysis.evidence.plan import EvidencePlan
from anaphora.base.checks import FIGURE_FORMATS, at_least, figure_formats, one_of
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.base.files import OTHER_FOLDER, check_writable
from anaphora.base.language import LANGUAGES
from anaphora.base.translation import _, environment_language
from anaphora.commands.parts.settings import Overwriting
from anaphora.runs.presence import run_directories
from anaphora.settings.data import ControlledCorpus, Data
from anaphora.settings.typed import construct

if TYPE_CHECKING:
    from anaphora.runs.directory import Run


@dataclass(kw_only=True)
class Report(EvidencePlan, Overwriting):
    """Settings of `anaphora report`: a report on one run or several, or an atlas, which compares models."""

    any_model: ClassVar[bool] = True  # a transformers model has no config.yaml
    run: str = "outputs/demo"  # a run directory, a folder with a transformers model, or hf://owner/name
    # Several runs instead of `run`, in the order of the page; patterns such as `outputs/a_*` are expanded.
    runs: list[str] = field(default_factory=list)
    # Data of an atlas, by default the built-in corpus; a page on runs uses the runs' own data.
    data: Data | None = None
    corpora: list[str] = field(default_factory=list)  # further corpora of an atlas, as in [dpr:file,winobias:folder]
    causal_items: int = 100  # for an atlas, approximate number of main items in causal tests; 0 for no tests
    # Folder for the page; by default the run directory, for several runs `report` next to the first, and for an atlas
    # outputs/atlas. For several runs it can also be a CSV file, for the median and spread of their stored scores.
    output: str | None = None
    sentences: int = 64  # number of sentences in the page's explorer of maps
    formats: list[str] = field(default_factory=lambda: [*FIGURE_FORMATS])  # formats of figures: `png`, `svg`, `pdf`
    # Language of page, figures and progress messages: en, zh, or both (one page each); texts are not translated.
    interface_language: str = field(default_factory=environment_language)
    trainer: Device = field(default_factory=Device)  # device to compute on

    def __post_init__(self) -> None:
        super().__post_init__()
        figure_formats(self.formats)
        one_of("interface_language", self.interface_language, (*LANGUAGES, "both"))
        at_least("sentences", self.sentences, 1)
        at_least("causal_items", self.causal_items, 0)
        if self.data is not None or self.corpora:
            self.check_atlas()

    @property
    def models(self) -> list[str]:
        """Return the names of the runs or models, with patterns expanded."""
        return run_directories(self.runs) or [self.run]

    @property
    def atlas_folder(self) -> Path:
        """Return the folder of an atlas (a comparison of models), whose measurements later atlases reuse."""
        return Path(self.output or "outputs/atlas")

    def sources(self) -> dict[str, Data]:
        """Return the data settings of each corpus of an atlas (a comparison of models), keyed by corpus name.

        The corpus of the setting `data`, by default the built-in corpus, is the first; the corpora of the setting
        `corpora` follow.

        Raises:
            UserError: an element of `corpora` is not of the form corpus:path, the settings of a corpus are invalid, or
                a corpus is named twice.
        """
        own = self.data or ControlledCorpus()
        public: dict[str, Data] = {}
        for named in self.corpora:
            name, _colon, path = named.partition(":")
            if not path:
                raise UserError(f"corpora ({named!r}) must be a corpus and its path, such as dpr:train.c.txt")
            if name in (*public, *([own.kind] if self.data else ())):
                raise UserError(f"corpora ({named!r}): an atlas holds one {name}, and another one is given already")
            public[name] = construct(Data, {"kind": name, "path": path}, f"corpora ({named})")
        return {own.kind: own} | public

    def check_unused(self, what: str, *unused: str) -> None:
        """Raise UserError if a setting in `unused`, which has no effect on the output `what`, was changed."""
        default = Report()
        for name in unused:
            if (value := getattr(self, name)) != getattr(default, name):
                raise UserError(f"{name} ({value}) has no effect on {what}; leave it out")

    def check_atlas(self) -> None:
        """Check that split, language and corpora are valid for an atlas (a comparison of models)."""
        one_of("split", self.split, ("train", "test"))
        one_of("interface_language", self.interface_language, LANGUAGES)
        self.sources()


_OF_PAGES = ("sentences", "formats", "protocol")
"""Settings that only a page on runs uses."""
_OF_ATLASES = ("data", "corpora", "causal_items")
"""Settings that only an atlas uses."""


def report(settings: Report) -> list[Path]:
    """Measure missing scores, and write a self-contained HTML report on one or several runs, with figures and tables.

    If `output` ends in .csv, a table that summarises the stored scores of several runs is written instead. Otherwise,
    if a model is not a run of this package, or if `data` or `corpora` is set, an HTML page that compares the heads of
    models (an atlas) is written instead.

    Returns:
        The path of the page in each language (English first), of the CSV table, or of the atlas.

    Raises:
        UserError: a run is unfinished, two runs have the same name, a setting has no effect on what is written, or
            `gather_evidence` (for a report), `compare` (for a table) or `draw_atlas` (for an atlas) fails.
    """
    from anaphora.analysis.evidence.comparison import compare_runs
    from anaphora.analysis.evidence.measurement import gather_evidence
    from anaphora.base.console import console, say, working
    from anaphora.commands.parts.pages import page_folder, write_pages
    from anaphora.commands.parts.shared import check_names_differ, is_of_transformers, print_unread, print_weak_choice
    from anaphora.report.terminal import print_comparison, print_undecided, print_verdict
    from anaphora.runs.directory import claimed, load, locked_run

    if settings.output and Path(settings.output).suffix == ".csv":
        settings.check_unused("a table", *_OF_PAGES, *_OF_ATLASES, "items", "untrained", "interface_language")
        return [compare(run_directories(settings.runs), settings)]
    if settings.data or settings.corpora or any(is_of_transformers(name) for name in settings.models):
        from anaphora.commands.parts.atlas import draw_atlas

        settings.check_unused("an atlas", *_OF_PAGES)
        settings.check_atlas()
        return [draw_atlas(settings)]
    settings.check_unused("the page of a run", *_OF_ATLASES)
    # Measuring takes minutes, so runs that cannot be reported on are rejected first.
    runs = [load(directory, settings.trainer) for directory in settings.models]
    check_names_differ(runs)
    evidence = []
    places = [evidence_folder(run, settings) for run in runs]
    with ExitStack() as held:
        page = page_folder(runs, settings)
        for place in {folder.resolve(): folder for folder in (*places, page)}.values():
            held.enter_context(locked_run(place, OTHER_FOLDER))
        for run, place in zip(runs, places, strict=True):
            held.enter_context(claimed(place, evidence_results(place, run, settings), settings, "set overwrite=true"))
        held.enter_context(claimed(page, page_results(page, runs, settings), settings))
        for run, place in zip(runs, places, strict=True):
            with working(_("{run}: reading the data").format(run=run.name)) as progress:
                evidence.append(gather_evidence(run, settings, progress, place))
        with working(_("drawing the report")):
            pages = write_pages(evidence, settings)
    for of_run in evidence:
        if len(evidence) > 1:
            console.print(of_run.headline.run.name, soft_wrap=True)
        print_verdict(of_run.evidence)
        print_undecided(of_run.headline.capture.answers)
        print_weak_choice(of_run.headline)
        print_unread(of_run.headline.unread)
    if len(evidence) > 1 and (spreads := compare_runs([of_run.evidence for of_run in evidence])):
        print_comparison(spreads)
    for page in pages:
        say("report    {path}", path=page)
    return pages


def evidence_results(folder: Path, run: Run, settings: Report) -> dict[str, dict[str, Any]]:
    """Return the settings that determine a run's scores and verdict, keyed by the names of their files."""
    from anaphora.commands.parts.shared import result_settings
    from anaphora.commands.score import Scoring, results_of

    scores = results_of(folder, run, Scoring(split=settings.split, untrained=settings.untrained))
    evidence = result_settings(folder, run, settings, "items", "untrained")
    return scores | {f"tables/verdict_{settings.split}.csv": evidence | {"protocol.alpha": settings.protocol.alpha}}


def page_results(folder: Path, runs: Sequence[Run], settings: Report) -> dict[str, dict[str, Any]]:
    """Return what determines the content of a report page, keyed by the name of its file.

    For the page in a run's own directory, this is the run's data; for other pages, the names and weights of the runs.
    """
    from anaphora.commands.parts.pages import page_stem
    from anaphora.commands.parts.shared import identity, result_settings

    is_own = len(runs) == 1 and folder.resolve() == runs[0].directory.resolve()
    several = {"runs": [identity(run) for run in runs]}
    return {f"{page_stem(settings.split)}.html": result_settings(folder, runs[0], settings) if is_own else several}


def compare(runs: Sequence[str], settings: Report) -> Path:
    """Print the median, minimum and maximum of every stored score over runs; write them as CSV and return its path.

    Raises:
        UserError: there are fewer than two runs, a run has not been scored on the split, no run has scores of items
            that count in main results (`Example.is_main`), or the table cannot be written.
    """
    from anaphora.analysis.evidence.comparison import compare_runs
    from anaphora.commands.parts.shared import check_table, scored_evidence, write_table
    from anaphora.report.terminal import print_comparison

    check_table(settings)
    if len(runs) < 2:
        raise UserError(f"runs ({list(runs)}) must name at least two run directories for the table {settings.output}")
    rows = compare_runs([scored_evidence(run, settings.split) for run in runs])
    if not rows:
        raise UserError(f"runs ({list(runs)}): none of them has scores of main items")
    print_comparison(rows)
    write_table(settings, [row.to_row() for row in rows])
    return Path(settings.output or "")


def evidence_folder(run: Run, settings: Report) -> Path:
    """Return the folder for a run's results.

    By default this is the run directory. If the run directory is not writable and `output` is set, it is a subfolder of
    `output`.
    """
    from anaphora.analysis.evidence.storage import metrics_path
    from anaphora.base.console import say

    if settings.output:
        try:
            check_writable(metrics_path(run.directory, settings.split))
        except UserError as error:
            folder = Path(settings.output) / run.name
            say("{error}; its numbers go to {folder}", error=error, folder=folder)
            return folder
    return run.directory
