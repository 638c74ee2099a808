"""Models of `transformers` under interventions: maps and outputs with edited attention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from anaphora.analysis.causal.interventions import Intervention
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.hf import interface
from anaphora.hf.editing import EditOfOneText, EditPoint, edited_attention
from anaphora.hf.verification.forward import reading_mode, run_model
from anaphora.hf.verification.reading import MapReading
from anaphora.model.mixer import Edit

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, eq=False)
class EditableModel:
    """A model whose attention can be edited by interventions.

    Attributes:
        part: the model without its output layer.
        reading: how its maps are read.
        points: where each layer that attends is edited.
        padded: makes the inputs of texts, (B, T) each.
    """

    part: PreTrainedModel
    reading: MapReading
    points: Sequence[EditPoint]
    padded: Callable[[Sequence[TokenizedText]], Mapping[str, Tensor]]

    def read(
        self,
        tokens: Sequence[TokenizedText],
        interventions: Sequence[Intervention],
        model: PreTrainedModel | None = None,
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return the maps of every attending layer under interventions, and the model's output.

        Models that are read in eager mode get each text by itself, because padding may change which tokens they select.

        Args:
            tokens: of B texts; edits see them padded at their ends to T tokens.
            interventions: by the model's own layer numbers; a layer that does not attend has nothing to edit.
            model: the same with an output layer; None for the part alone.

        Returns:
            (B, H, T, T) for each layer, and the first output of each text, (T or fewer, ...).

        Raises:
            UserError: the model attends in these texts otherwise than in the probe.
        """
        implementation, edits = self.reading.implementation, self._edits_by_block(interventions)
        rows, length = len(tokens), max(len(one.ids) for one in tokens)
        tables: dict[Edit, dict[str, Tensor]] = defaultdict(dict)
        maps: list[list[Tensor]] = []
        outputs: list[Tensor] = []
        for row, batch in enumerate([tokens] if implementation == interface.NAME else [[one] for one in tokens]):
            own: Mapping[int, Sequence[Edit]] = edits
            if len(batch) < rows:
                own = {
                    block: [EditOfOneText(edit, row, (rows, length), tables[edit]) for edit in edits_of_block]
                    for block, edits_of_block in edits.items()
                }
            inputs = self.padded(batch)
            sizes = (len(batch), self.reading.heads, inputs["input_ids"].shape[1])
            with (
                reading_mode(model or self.part, implementation),
                edited_attention(self.part, self.points, own, sizes) as attention,
            ):
                outputs += list(run_model(model or self.part, inputs, **self.reading.options)[0])
            missing = length - sizes[2]
            maps.append([functional.pad(one, (0, missing, 0, missing)) for _, one in sorted(attention.weights.items())])
        return [torch.cat(layer) for layer in zip(*maps, strict=True)], outputs

    def _edits_by_block(self, interventions: Sequence[Intervention]) -> dict[int, list[Edit]]:
        """Return the edits of each block, by its number among those that attend."""
        edits: dict[int, list[Edit]] = defaultdict(list)
        for intervention in interventions:
            for layer, edit in intervention.items():
                if layer in self.reading.layers:
                    edits[self.reading.layers.index(layer)].append(edit)
        return edits
