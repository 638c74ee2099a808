"""Runs of any shape with random weights, without training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from anaphora.runs.directory import Run, randomly_initialised


def random_run(settings: Callable[..., Any], *overrides: str) -> Run:
    """Return a run with random weights that are larger than initial weights, so that no attention row is uniform."""
    config = settings(
        "model.width=16",
        "model.layers=2",
        "model/initialisation=normal",
        "model.initialisation.deviation=0.3",
        *overrides,
    )
    texts = ["Anna met the old king before she was tired. They didn't see Mary's dog: it rang in 5 cafés."] * 2
    texts += ["小红碰到王芳以后，她很高兴。李强没看见他们的猫，它买了3个米。"] * 2
    words = ["小红", "王芳", "李强", "以后", "高兴", "他们", "碰到", "没看见"]
    tokenizer = config.vocabulary.build(texts, words)
    model = randomly_initialised(config, tokenizer.size, seed=1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:  # norms and biases begin at one and zero
                weight.add_(0.2 * torch.sin(torch.arange(weight.numel(), dtype=torch.float32) + len(name)))
    return Run(Path("random"), config, tokenizer, model)
