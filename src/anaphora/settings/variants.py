"""Variants of each slot, and registration of variants that are defined outside the package.

A slot is a part of a recipe with interchangeable variants, such as the position encoding. The method `build` of a
variant's settings imports its module, so that an invalid setting is reported before torch is imported. Only code can
register a variant: a run's settings file has names and settings of variants, and loading it imports no code.
"""

from __future__ import annotations

import functools
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from anaphora.base.errors import UserError, one_line
from anaphora.settings import data as data_settings
from anaphora.settings import vocabulary as vocabulary_settings
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import position as position_settings
from anaphora.settings.model import prediction as prediction_settings
from anaphora.settings.registered import REGISTERED, Registration


@dataclass(frozen=True)
class RecipeSlot:
    """Replaceable part of a recipe (settings of a run), such as the position encoding."""

    settings: type[Any]  # base class of the variants' settings; its method `build` declares the slot's arguments
    result: str  # class of the return value of `build`, as "module:name"; "" if `build` returns nothing
    methods: tuple[str, ...] = ()  # names of further methods that the return value must have

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the names of the arguments of a variant's build function; the settings come first."""
        return ("settings", *list(inspect.signature(self.settings.build).parameters)[1:])


SLOTS: dict[str, RecipeSlot] = {
    "data": RecipeSlot(data_settings.Data, "builtins:tuple"),
    "vocabulary": RecipeSlot(vocabulary_settings.Vocabulary, "anaphora.data.tokens.tokenizer:Tokenizer"),
    "model/position": RecipeSlot(position_settings.Position, "anaphora.model.position:Position"),
    "model/attention": RecipeSlot(attention_settings.Attention, "anaphora.model.mixer:Mixer", ("project", "mix")),
    "model/feed_forward": RecipeSlot(model_settings.FeedForward, "torch.nn:Module", ("inside",)),
    "model/norm": RecipeSlot(model_settings.Norm, "torch.nn:Module"),
    "model/initialisation": RecipeSlot(model_settings.Initialisation, ""),
    "task/prediction": RecipeSlot(prediction_settings.Prediction, "anaphora.model.prediction:PredictionHead"),
}
"""Slots, keyed by config group."""


def _variants_of(base: type[Any]) -> dict[str, type[Any]]:
    """Return the variants of a slot: the subclasses of `base` in the same module, keyed by their `kind`.

    Classes without their own `kind`, and `NoData`, which users cannot select, are left out.
    """
    module = vars(sys.modules[base.__module__]).values()
    below: list[type[Any]] = [one for one in module if isinstance(one, type) and issubclass(one, base)]
    return {one.kind: one for one in below if "kind" in vars(one) and one not in (base, data_settings.NoData)}


VARIANTS: dict[type[Any], dict[str, type[Any]]] = {
    slot.settings: _variants_of(slot.settings) for slot in SLOTS.values()
}
"""Variants by name, for the base class of each slot; `register` adds to them."""


def register(slot: str, name: str, settings: type[Any], build: Callable[..., Any] | None = None) -> None:
    """Add a variant from outside the package: `slot=name` then selects it, and runs that use it can be loaded.

    A registration lasts as long as the process. A class may be registered again under the same name and from the same
    module, as happens when a notebook cell is run twice. The new class then replaces the earlier one.

    Args:
        slot: part of the recipe that the variant implements, such as "model/position";
            `anaphora.settings.variants.SLOTS` lists all slots.
        name: the name by which the variant is selected: lower-case letters, digits and underscores, beginning with a
            letter.
        settings: a dataclass that subclasses the slot's own settings class (`SLOTS[slot].settings`) and whose field
            `kind` has `name` as its default.
        build: the function that builds the variant, if the settings have no method `build` of their own. It is called
            with the arguments that `SLOTS[slot].arguments` lists, the settings first, and must return what the
            package's own variants of the slot return.

    Raises:
        UserError: the slot does not exist, the name is taken or not allowed, or `settings` or `build` does not fit the
            slot.
    """
    if slot not in SLOTS:
        raise UserError(f"slot ({slot!r}) must be one of {', '.join(SLOTS)}")
    option, base = f"{slot}={name}", SLOTS[slot].settings
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UserError(
            f"{option}: name ({name!r}) must be lower-case letters, digits and underscores, beginning with a letter"
        )
    known = VARIANTS[base].get(name)
    if known is not None and not (known in REGISTERED and _qualified_name(known) == _qualified_name(settings)):
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
    builder = build or getattr(settings.build, "__wrapped__", settings.build)
    try:
        if builder is base.build:
            raise TypeError
        inspect.signature(builder).bind(*SLOTS[slot].arguments)
    except (TypeError, ValueError):
        raise UserError(f"{option}: build must be a function of {', '.join(SLOTS[slot].arguments)}") from None
    settings.build = _checked(builder, option, SLOTS[slot])
    VARIANTS[base][name] = settings
    REGISTERED[settings] = Registration(option, builder)


def _qualified_name(settings: type[Any]) -> tuple[str, str]:
    return settings.__module__, settings.__qualname__


def _checked(build: Callable[..., Any], option: str, slot: RecipeSlot) -> Callable[..., Any]:
    """Wrap a build function so that it raises UserError unless its result has the class and methods of the slot."""

    @functools.wraps(build)
    def checked(*arguments: Any, **named: Any) -> Any:
        whole = inspect.signature(slot.settings.build).bind(*arguments, **named)
        whole.apply_defaults()
        result = build(*whole.args, **whole.kwargs)
        wanted = pkgutil.resolve_name(slot.result) if slot.result else type(None)
        if not isinstance(result, wanted):
            raise UserError(
                f"{option}: build must return {_type_name(wanted)}, but returned {_type_name(type(result))}"
            )
        for method in slot.methods:
            if not callable(getattr(result, method, None)):
                raise UserError(f"{option}: {type(result).__qualname__} needs a method {method}")
        return result

    return checked


def _type_name(kind: type[Any]) -> str:
    if kind is type(None):
        return "nothing"
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
