"""Settings of the replication."""

from __future__ import annotations

from dataclasses import dataclass, field

from anaphora.base.checks import at_least, between
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.commands.parts.settings import Overwriting


@dataclass(kw_only=True)
class Replication(Overwriting):
    """Replication of Abnar and Zuidema 2020, table 1, on generated sentences: raw attention, rollout and flow."""

    output: str = "outputs/replication"  # folder for the results; finished runs in it are reused
    seeds: list[int] = field(default_factory=lambda: [0, 1, 2])  # seeds, one for each model
    sentences: int = 40_000  # number of different training sentences; one in fifty is held out for validation
    items: int = 500  # number of test sentences, none of which is a training sentence
    layers: int = 6
    heads: int = 8
    width: int = 128
    dropout: float = 0.1  # dropout rate of the embedding, of every branch and of attention weights, in training only
    masked: float = 0.05  # share of words masked in training, so that the model has seen [MASK] before blank-out
    steps: int = 1000  # training steps, one batch each
    batch_tokens: int = 512  # maximum number of tokens in a batch, padding included
    learning_rate: float = 1e-3  # peak learning rate, reached after the warm-up
    trainer: Device = field(default_factory=Device)  # device to compute on

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) != len(self.seeds) or min(self.seeds) < 0:
            raise UserError(f"seeds ({self.seeds}) must be one or more different numbers, each at least 0")
        for name, least in (("sentences", 50), ("items", 2), ("layers", 1), ("heads", 1), ("steps", 1)):
            at_least(name, getattr(self, name), least)
        at_least("batch_tokens", self.batch_tokens, 32)
        if self.width < 2 or self.width % self.heads:
            raise UserError(f"width ({self.width}) must be a multiple of heads ({self.heads}), 2 at least")
        between("dropout", self.dropout, 0, 1)
        between("masked", self.masked, 0, 1)
        if self.learning_rate <= 0:
            raise UserError(f"learning_rate ({self.learning_rate}) must be positive")
