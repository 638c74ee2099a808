"""The variants of every slot, and how one is registered from outside the package."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from anaphora.base.errors import UserError, one_line
from anaphora.settings import data as data_settings
from anaphora.settings import vocabulary as vocabulary_settings
from anaphora.settings.extensions import PARTS, Part
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import position as position_settings
from anaphora.settings.model import prediction as prediction_settings

GROUPS: dict[str, type[Any]] = {
    "data": data_settings.Data,
    "vocabulary": vocabulary_settings.Vocabulary,
    "model/position": position_settings.Position,
    "model/attention": attention_settings.Attention,
    "model/feed_forward": model_settings.FeedForward,
    "model/norm": model_settings.Norm,
    "model/initialisation": model_settings.Initialisation,
    "task/prediction": prediction_settings.Prediction,
}
"""Every slot with the settings class that its variants subclass."""

_UNCHOSEN = (data_settings.NoData,)
"""Settings with a kind of their own that no option chooses."""


def _variants_of(base: type[Any]) -> dict[str, type[Any]]:
    """The settings of a slot by their kind, which is their option's name: the classes below `base` in its module.

    A class without a kind of its own is a base of others.
    """
    module = vars(sys.modules[base.__module__]).values()
    below: list[type[Any]] = [
        one for one in module if isinstance(one, type) and issubclass(one, base) and one is not base
    ]
    return {one.kind: one for one in below if "kind" in vars(one) and one not in _UNCHOSEN}


VARIANTS: dict[type[Any], dict[str, type[Any]]] = {base: _variants_of(base) for base in GROUPS.values()}
"""The variants of every slot by the option that chooses them; `register` adds to it."""

BUILDER_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "data": ("settings",),
    "vocabulary": ("settings", "texts", "words"),
    "model/position": ("settings", "width", "heads"),
    "model/attention": ("settings", "width"),
    "model/feed_forward": ("settings", "width"),
    "model/norm": ("settings", "width"),
    "model/initialisation": ("settings", "weight"),
    "task/prediction": ("settings", "model", "output"),
}
"""The arguments of the function that builds a variant of a slot."""


def register(slot: str, name: str, settings: type[Any], build: Callable[..., Any]) -> None:
    """Add a variant from outside the package: `slot=name` then chooses it, and runs that use it can be loaded.

    A registration lasts as long as the process. A class may be registered again under the same name and from the same
    module, as happens when a notebook cell is run twice; it then replaces the earlier one.

    Args:
        slot: the slot that the variant fills, such as "model/position"; `anaphora.settings.variants.GROUPS` lists all
            slots.
        name: the name by which the variant is chosen: lower-case letters, digits and underscores, beginning with a
            letter.
        settings: a dataclass that subclasses the slot's own settings class (`GROUPS[slot]`) and whose field `kind` has
            `name` as its default.
        build: the function that builds the variant. It is called with the arguments that `BUILDER_ARGUMENTS[slot]`
            lists, the settings first, and must return what the package's own builder for the slot returns.

    Raises:
        UserError: the slot does not exist, the name is taken or not allowed, or `settings` or `build` does not fit the
            slot.
    """
    if slot not in GROUPS:
        raise UserError(f"slot ({slot!r}) must be one of {', '.join(GROUPS)}")
    option, base, options = f"{slot}={name}", GROUPS[slot], VARIANTS[GROUPS[slot]]
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UserError(
            f"{option}: name ({name!r}) must be lower-case letters, digits and underscores, beginning with a letter"
        )
    known = options.get(name)
    if known is not None and not (known in PARTS and _qualified_name(known) == _qualified_name(settings)):
        raise UserError(f"{option} exists already; choose another name")
    if not (isinstance(settings, type) and issubclass(settings, base) and "__dataclass_fields__" in vars(settings)):
        raise UserError(
            f"{option}: settings ({getattr(settings, '__name__', settings)}) must be a subclass of "
            f"{base.__module__}.{base.__name__} with @dataclass(kw_only=True) above it"
        )
    if settings.kind != name:
        raise UserError(f'{option}: settings ({settings.__name__}) must have kind: str = "{name}"')
    try:
        OmegaConf.structured(settings)
    except (OmegaConfBaseException, NameError) as error:
        raise UserError(f"{option}: settings ({settings.__name__}) cannot be used: {one_line(error)}") from None
    wanted = BUILDER_ARGUMENTS[slot]
    try:
        inspect.signature(build).bind(*wanted)
    except (TypeError, ValueError):
        raise UserError(f"{option}: build must be a function of {', '.join(wanted)}") from None
    options[name] = settings
    PARTS[settings] = Part(option, build)


def _qualified_name(settings: type[Any]) -> tuple[str, str]:
    return settings.__module__, settings.__qualname__
