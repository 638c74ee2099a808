"""Settings of the evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Sentences:
    """Evaluation of runs on forty well-known sentences, for docs/results/sentences.md and sentences.zh.md."""

    runs: list[str] = field(default_factory=list)  # runs whose heads have been chosen, such as outputs/compositions_*

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("runs ([]) must name at least one run, as in runs=[outputs/demo]")
