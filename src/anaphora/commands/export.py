"""Export a run as a folder for `transformers`, or as a page that runs the model in the browser.

Example: anaphora export run=outputs/demo format=page output=try.html
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import MISSING

from anaphora.base.checks import PAGE_ENDINGS, file_ending, one_of
from anaphora.base.errors import UserError, counted
from anaphora.base.files import OTHER_FOLDER, atomic_directory, check_new, check_writable, write_json, write_text
from anaphora.base.language import LANGUAGES
from anaphora.commands.parts.settings import Overwriting
from anaphora.model.pretrained.families import CONFIG, WEIGHTS
from anaphora.settings.model.attention import heads_of
from anaphora.settings.vocabulary import CLS, MASK, PADDING, SPECIAL_TOKENS, UNKNOWN

if TYPE_CHECKING:
    from torch import Tensor

    from anaphora.analysis.evidence.evidence import Evidence
    from anaphora.report.cards import CardFacts
    from anaphora.runs.directory import Run


@dataclass(kw_only=True)
class Export(Overwriting):
    """Settings of `anaphora export`."""

    run: str = "outputs/demo"  # the run directory
    output: str = MISSING  # folder to write, which must be new or empty; for format=page a file, such as try.html
    # bert: a plain BERT model, if BERT has all parts of the run's model; anaphora: the whole run, with a model card;
    # page: one HTML file that runs the model in the browser, offline and without Python.
    format: str = "bert"
    # Write BertForMaskedLM, not BertModel; by default true if the output layer was trained and has BERT's transform.
    output_layer: bool | None = None
    # Licence of the weights for the model card of format=anaphora, as the Hub writes it, such as apache-2.0.
    licence: str | None = None

    def __post_init__(self) -> None:
        one_of("format", self.format, ("bert", "anaphora", "page"))
        if self.format == "page":
            file_ending("output", self.output, *PAGE_ENDINGS)
        elif self.overwrite:
            raise ValueError("overwrite (true) is only for format=page; a folder must be new or empty")
        if self.format != "bert" and self.output_layer is not None:
            raise ValueError(f"output_layer ({str(self.output_layer).lower()}) is only for format=bert")
        if self.format != "anaphora" and self.licence is not None:
            raise ValueError(f"licence ({self.licence!r}) is only for format=anaphora, which writes a model card")


def export(settings: Export) -> Path:
    """Write a run in the requested format, and return the path.

    Raises:
        UserError: the folder is not empty, the format does not support a part of the model, `output_layer` is set but
            was not trained, pretrained weights are to be published as a run, or the page would be too large.
    """
    from anaphora.base.console import console
    from anaphora.runs.directory import load

    output, is_page = Path(settings.output), settings.format == "page"
    if not is_page and output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UserError(f"output ({settings.output}) is not empty; name a new folder")
    if is_page:
        check_new(output, settings.overwrite)
    else:
        check_writable(output / CONFIG, OTHER_FOLDER)
    run = load(settings.run)
    if settings.format == "anaphora" and run.is_pretrained:
        raise UserError(
            f"format (anaphora) needs a trained run, and {settings.run} is pretrained weights; publish the folder "
            "as it is, or set format=bert"
        )
    if is_page:
        from anaphora.api.browser.page import write_browser_page

        check_new(output, settings.overwrite)
        write_browser_page(output, run)
    elif settings.format == "bert":
        _write_bert(run, settings, output)
    else:
        _write_run(run, settings.licence, output)
    console.print(str(output), soft_wrap=True)
    return output


def _write_bert(run: Run, settings: Export, folder: Path) -> None:
    """Write the encoder as BertModel, or as BertForMaskedLM with the output layer; the prediction head is left out."""
    from anaphora.model.pretrained.weights import to_bert

    learned = run.config.task.masked_lm > 0
    if settings.output_layer and not learned:
        raise UserError(f"output_layer (true): {settings.run} was not trained on masked tokens (task.masked_lm=0)")
    with_output = (
        learned and run.config.model.output_transform if settings.output_layer is None else settings.output_layer
    )
    config, tensors = to_bert(run.model.encoder, run.model.output if with_output else None)
    with atomic_directory(folder) as draft:
        _write_tokenizer(run, draft)
        write_json(draft / CONFIG, config)
        _write_weights(draft, tensors)


def _write_run(run: Run, licence: str | None, folder: Path) -> None:
    """Write the whole run, a model card, and the run's training.json, calibration and test scores, where they exist.

    Scores of a head chosen for each language are in the folders "en" and "zh".
    """
    from anaphora.analysis.evidence.storage import calibration_paths, metrics_path, read_evidence
    from anaphora.report.cards import CARD, model_card
    from anaphora.runs.directory import distinct_tensors
    from anaphora.runs.published import config_json

    # Scores measured on this machine take precedence over those published with the run.
    names = ("", *LANGUAGES)
    places = [(name, place / name) for place in (run.files.directory, run.directory) for name in names]
    measured = {name: place for name, place in places if metrics_path(place, "test").exists()}
    stored = (read_evidence(place, "test", run.argument) for place in measured.values())
    evidence = [each for each in stored if each is not None]
    with atomic_directory(folder) as draft:
        _write_tokenizer(run, draft, {"model_input_names": ["input_ids", "attention_mask"]})
        write_text(draft / CARD, model_card(_card_facts(run, licence, evidence), evidence))
        for name, place in measured.items():
            (draft / name).mkdir(exist_ok=True)
            shutil.copyfile(metrics_path(place, "test"), metrics_path(draft / name, "test"))
        calibrations = [path for path in calibration_paths(run) if path.exists()]
        for file in (run.files.training, *calibrations[:1]):
            if file.exists():
                shutil.copyfile(file, draft / file.name)
        write_json(draft / CONFIG, config_json(run.config, run.tokenizer.size))
        _write_weights(draft, distinct_tensors(run.model))


def _write_weights(folder: Path, tensors: dict[str, Tensor]) -> None:
    # transformers rejects a file without this metadata
    from safetensors.torch import save

    (folder / WEIGHTS).write_bytes(save(tensors, metadata={"format": "pt"}))


def _card_facts(run: Run, licence: str | None, evidence: Sequence[Evidence]) -> CardFacts:
    from anaphora.analysis.maps.capture import answers_pronouns
    from anaphora.data.corpora.division import origin_of
    from anaphora.report.cards import CardFacts
    from anaphora.runs.directory import training_record

    config, data = run.config, run.config.data
    record = training_record(run.files.directory)
    measured = tuple(language for each in evidence for language in each.languages)
    languages: tuple[str, ...] = measured or getattr(data, "languages", ())
    terms = origin_of(data).licence
    training = {
        "Data": f"`data={data.kind}`" + (f", of which the published files state as licence: {terms}" if terms else ""),
        "Started from": config.start and Path(config.start).name,
        "Task": f"`task.prediction={config.task.prediction.kind}`, `task.masked_lm={config.task.masked_lm:g}`",
        "Steps": f"{record['steps']:,}" if "steps" in record else None,
        "Seed": str(config.seed),
    }
    model = config.model
    return CardFacts(
        name=run.name,
        languages=tuple(dict.fromkeys(languages)),
        licence=licence,
        architecture={
            "Encoder": f"{counted(model.layers, 'layer')} of {counted(heads_of(model.attention), 'head')}, width "
            f"{model.width}",
            "Parts": f"`model/attention={model.attention.kind}`, `model/position={model.position.kind}`, "
            f"`model.norm.placement={model.norm.placement}`, `model.values={model.values}`",
            "Vocabulary": f"{run.tokenizer.size:,} tokens",
            "Weights": f"{sum(weight.numel() for weight in run.model.parameters()):,}",
        },
        training={name: fact for name, fact in training.items() if fact},
        answers=answers_pronouns(config.task.prediction),
    )


def _write_tokenizer(run: Run, folder: Path, more: dict[str, object] | None = None) -> None:
    from anaphora.data.tokens.vocabulary import SEPARATOR, TOKENIZER

    names = {"pad": PADDING, "unk": UNKNOWN, "cls": CLS, "mask": MASK}
    settings: dict[str, object] = {"tokenizer_class": "PreTrainedTokenizerFast"}
    settings |= {f"{name}_token": SPECIAL_TOKENS[number] for name, number in names.items()}
    if SEPARATOR in {run.tokenizer.token(number) for number in run.tokenizer.encode("").ids}:
        settings["sep_token"] = SEPARATOR
    longest = getattr(run.config.model.position, "max_length", None)
    if longest is not None:
        settings["model_max_length"] = longest
    write_json(folder / "tokenizer_config.json", settings | (more or {}))
    write_text(folder / TOKENIZER, run.tokenizer.dumps())
