"""Registry of the text model types of the installed transformers, found in its Auto classes and signatures."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import Any

transformers: Any = import_module("transformers")
OTHER_INPUTS = ("pixel", "image", "video", "audio", "input_features", "input_values", "bbox", "visual", "patches")
"""Words in the names of arguments for other inputs than text."""


@dataclass(frozen=True)
class Family:
    """Model type with its Auto class.

    Attributes:
        model_type: model type as in config.json.
        class_name: class of the base model, or of a model with an output layer if there is no base model.
    """

    model_type: str
    class_name: str

    @property
    def model_class(self) -> Any:
        return getattr(transformers, self.class_name)


def text_families() -> list[Family]:
    """Return the model types whose forward pass takes token ids and no images, audio or boxes."""
    families = [family for kind in _configurations() if (family := find_family(kind)) is not None]
    return [family for family in families if reads_texts_alone(family)]


def find_family(model_type: str) -> Family | None:
    """Return a model type with its class; None if no Auto class for text has this type."""
    automatic: Any = import_module("transformers.models.auto.modeling_auto")
    for names in (
        automatic.MODEL_MAPPING_NAMES,
        automatic.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        automatic.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        automatic.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    ):
        if model_type in names:
            name = names[model_type]
            return Family(model_type, name if isinstance(name, str) else name[0])
    return None


def _configurations() -> list[str]:
    return sorted(import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING_NAMES)


def reads_texts_alone(family: Family) -> bool:
    """Return whether the forward pass takes token ids, and has no argument for another kind of input."""
    if not hasattr(transformers, family.class_name):  # a class that the library names and does not export
        return False
    try:
        arguments = inspect.signature(family.model_class.forward).parameters
    except ImportError:  # of a library that models of sounds need
        return False
    return "input_ids" in arguments and not any(word in name for name in arguments for word in OTHER_INPUTS)
