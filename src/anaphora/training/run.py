"""From settings to a run directory: read the data, train, keep the best weights; resumable, never overwriting."""

from __future__ import annotations

import logging
import re
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytorch_lightning as lightning

from anaphora import config as configuration
from anaphora.checkpoint import Layout, Run, fresh, load, save_settings
from anaphora.config import Config
from anaphora.data import vocabulary
from anaphora.data.batch import Batch, Encoded, TrainingBatches, Twins, evaluation_batches, hidden_alike
from anaphora.data.example import Example, whole_blocks
from anaphora.data.names import with_exchanged_names, with_other_names
from anaphora.data.settings import Texts
from anaphora.data.store import Corpus
from anaphora.data.store import load as load_corpus
from anaphora.data.tokenizer import Tokenizer
from anaphora.errors import UserError
from anaphora.files import held
from anaphora.model.resolver import Resolver
from anaphora.model.settings import NoReadout, check_length, slots_of
from anaphora.place import device_of
from anaphora.start import located
from anaphora.training.callbacks import Bar, History
from anaphora.training.controls import freeze, shuffle_labels
from anaphora.training.curves import Curves
from anaphora.training.module import TrainingModule
from anaphora.training.texts import Material, texts_of


@dataclass(frozen=True)
class Result:
    """What a training run reached."""

    directory: Path
    steps: int
    seconds: float
    validation_loss: float


def train(config: Config, overrides: str = "") -> Result:
    """Train a model and leave its run directory.

    Args:
        config: the settings; `config.resume` names a run to continue with the settings that it was begun with.
        overrides: what sets this run apart in a sweep, for the default name.

    Raises:
        UserError: anything that a user can mend, before any long work.
    """
    resumed = config.resume is not None
    if config.resume is not None:
        directory = Path(config.resume)
        config = replace(configuration.read(Layout(directory).config), trainer=config.trainer, resume=None)
    else:
        directory = Path(config.output) / (config.name or default_name(overrides))
    layout, accelerator = Layout(directory), device_of(config.trainer.device).type
    _refuse_another(layout, resumed)
    with held(directory):
        _refuse_another(layout, resumed)  # another process may have ended here just now
        return _train(config, layout, accelerator, resumed)


def _refuse_another(layout: Layout, resumed: bool) -> None:
    """Refuse a directory in which there is nothing to continue, or something that would be overwritten."""
    if resumed and layout.weights.exists():
        raise UserError(f"{layout.directory}: this run has finished; there is nothing to resume")
    if not resumed and layout.config.exists():
        raise UserError(
            f"{layout.directory} already holds a run; choose another name=, "
            f"or continue it with resume={layout.directory}"
        )


def _train(config: Config, layout: Layout, accelerator: str, resumed: bool) -> Result:
    source = None if config.start is None or (resumed and layout.last.exists()) else open_start(config.start)
    known = Tokenizer.load(layout.tokenizer) if resumed else source.tokenizer if source is not None else None
    prepared = texts_of if isinstance(config.data, Texts) else questions_of
    config, tokenizer, encoded, validation = prepared(config, known)
    check_length(config.model, max(encoded.longest(), validation.longest()))
    if config.task.shuffled_labels:
        for number, split in enumerate((encoded, validation)):
            shuffle_labels(split, (config.seed, number))
    twins = twins_of(encoded, config) if config.task.twin_contrast else None
    if not resumed:
        save_settings(layout, config, tokenizer)
    resolver = fresh(config, tokenizer.size, config.seed).train()
    if source is not None:
        take_over(resolver, source, config)
    freeze(resolver, config.optimizer.frozen, config.optimizer.frozen_layers)
    steps = min(config.optimizer.steps, config.trainer.limit_steps or config.optimizer.steps)
    data = Rounds(config, encoded, validation, steps, twins)
    module = TrainingModule(resolver, config.task, config.optimizer, config.seed)
    curves = Curves(layout.directory, config, tokenizer, validation, steps, resumed)
    history = History(layout, config.validation, lambda: curves.seconds)
    if config.trainer.compile:
        resolver.encoder.compile()
    quiet()
    trainer = lightning.Trainer(
        accelerator=accelerator,
        devices=1,
        precision=config.trainer.precision,  # type: ignore[arg-type]  # checked by its settings
        max_steps=steps,
        max_epochs=-1,
        reload_dataloaders_every_n_epochs=1,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        logger=False,
        callbacks=[curves, history, *([Bar(steps)] if config.trainer.progress else [])],
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
    )
    try:
        trainer.fit(module, datamodule=data, ckpt_path=str(layout.last) if resumed and layout.last.exists() else None)
    except SystemExit:
        # Lightning makes an exit of an interrupt.
        raise KeyboardInterrupt from None
    record = history.finish()
    best = record["validations"][record["best_validation"]]
    curves.finish(best, record["train_seconds"])
    return Result(
        directory=layout.directory,
        steps=record["steps"],
        seconds=record["train_seconds"],
        validation_loss=best.get("validation/loss", float("nan")),
    )


def open_start(name: str) -> Run:
    """What a run starts from.

    Raises:
        UserError: there is nothing, or it cannot be read.
    """
    return load(located(name, "start"))


def take_over(resolver: Resolver, source: Run, config: Config) -> None:
    """Give a model the weights of what it starts from: encoder, vocabulary output, and a read-out of the same settings.

    A control's encoder may lack what it takes away, its positions or queries and keys; all that it has is taken over.

    Raises:
        UserError: the encoders have different shapes.
    """
    try:
        missing, _ = resolver.encoder.load_state_dict(source.resolver.encoder.state_dict(), strict=False)
    except RuntimeError:
        missing = ["shape"]
    if missing:
        raise UserError(f"start ({config.start}): its encoder has another shape than the settings in model say")
    resolver.output.load_state_dict(source.resolver.output.state_dict())
    if config.task.readout == source.config.task.readout:
        resolver.readout.load_state_dict(source.resolver.readout.state_dict())


def questions_of(config: Config, known: Tokenizer | None) -> Material:
    """Examples of pronouns, as the settings ask for them; the vocabulary is learned where none is known."""
    corpus = load_corpus(config.data)
    limit = config.trainer.limit_items
    training, development = examples_of(corpus, "train", limit), examples_of(corpus, "dev", limit)
    exchanged = [with_exchanged_names(one) for one in training] if config.task.exchanged_names else []
    training += [*exchanged, *with_other_names(training, config.task.other_names, config.seed)]
    check_examples(config, [*training, *development])
    tokenizer = known or vocabulary.build(config.vocabulary, [one.text for one in training], corpus.words)
    validation = Encoded(whole_blocks(development, config.validation.items), tokenizer)
    return Material(config, tokenizer, Encoded(training, tokenizer), validation)


class Rounds(lightning.LightningDataModule):
    """Training in rounds of `validation.every` steps, each followed by a validation.

    A Lightning epoch is a round, so that every checkpoint stands between two rounds and resuming needs to know only
    the number of steps done.
    """

    def __init__(
        self, config: Config, training: Encoded, validation: Encoded, steps: int, twins: Twins | None = None
    ) -> None:
        super().__init__()
        self.config, self.validation, self.steps = config, validation, steps
        self.slots = slots_of(config.task.readout)
        self.batches = TrainingBatches(
            training, config.batching, config.seed, self.slots, config.task.hidden_words, twins
        )

    def train_dataloader(self) -> Iterable[Batch]:
        assert self.trainer is not None
        done = self.trainer.global_step
        end = min(self.steps, done + self.config.validation.every)
        return _Round(self.batches, done, end)

    def val_dataloader(self) -> Iterable[Batch]:
        batches = evaluation_batches(self.validation, self.config.batching, self.slots)
        if isinstance(self.config.data, Texts) and isinstance(self.config.task.readout, NoReadout):
            batches = hidden_alike(batches, self.config.task.hidden_words, self.validation.vocabulary)
        return _Pass(list(batches))


class _Round:
    """The batches of some steps, as often as one iterates."""

    def __init__(self, batches: TrainingBatches, first: int, last: int) -> None:
        self.batches, self.first, self.last = batches, first, last

    def __len__(self) -> int:
        return self.last - self.first

    def __iter__(self) -> Iterator[Batch]:
        return self.batches.between(self.first, self.last)


class _Pass:
    """Batches read once through; Lightning would take a plain list of them for a list of loaders."""

    def __init__(self, batches: list[Batch]) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.batches)


def examples_of(corpus: Corpus, split: str, limit: int | None) -> list[Example]:
    """A split's examples, evenly thinned to a limit."""
    found = corpus.examples(split)
    if not found:
        raise UserError(f"the {split} split is empty")
    return whole_blocks(found, limit) if limit else found


def twins_of(training: Encoded, config: Config) -> Twins:
    """The twins of the training split.

    Raises:
        UserError: there are none with different answers.
    """
    found = Twins(training)
    if not len(found.pairs):
        raise UserError(
            f"task.twin_contrast ({config.task.twin_contrast}) needs twins, items that share `twin` and candidates but "
            f"have different answers, and the training split of data={config.data.kind} has none: leave it at 0"
        )
    return found


def check_examples(config: Config, examples: list[Example]) -> None:
    """Refuse data that the task cannot answer."""
    if config.task.readout.kind == "no_readout" or config.task.readout.none_of_them:
        return
    for number, example in enumerate(examples):
        if not example.antecedents:
            raise UserError(
                f"item {number} has no antecedent ({example.text[:60]!r}), and the task has no answer for that: "
                "set task.readout.none_of_them=true"
            )


def default_name(overrides: str) -> str:
    """A run's name when none is given: the time, and in a sweep what sets the run apart."""
    apart = re.sub(r"[^\w.=+,-]+", "_", overrides)[:80]
    return time.strftime("%Y-%m-%d_%H-%M-%S") + (f"_{apart}" if apart else "")


def quiet() -> None:
    """Keep Lightning's hints off the screen; its errors still show."""
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="pytorch_lightning")
    warnings.filterwarnings("ignore", module="torch.utils._pytree")
