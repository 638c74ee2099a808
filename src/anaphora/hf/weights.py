"""Checks that the weights in a folder belong to the model that its config.json describes."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from anaphora.base.errors import UserError
from anaphora.base.files import read_json
from anaphora.hf.parts import read_parameters, text_module, text_part
from anaphora.model.pretrained.families import BUFFER, WEIGHTS, acts_on_attention, check_not_quantised, declared_classes

if TYPE_CHECKING:
    from transformers import PreTrainedModel

INDEX = f"{WEIGHTS}.index.json"
"""File that maps each tensor to one of several weight files."""
_FLOATING = ("F64", "F32", "F16", "BF16")
"""Floating-point data types, as safetensors names them."""
_NUMBERED = re.compile(r"(^|\.)\d+\.")
"""Pattern of a layer's or an expert's index in the name of a tensor."""
_OF_EXPERT = re.compile(r"(.*\bexperts\.)(\d+)(\..+)")
"""Pattern of the name of an expert's tensor: what precedes the expert's index, the index, and the rest."""
_READ_WITH_TOKENS = re.compile(r"(embed|wpe|wte|pos_|position|alibi|rel_|relative|rotary)|^ln_|norm$", re.IGNORECASE)
"""Pattern of the names of embeddings and norms outside the layers; a model class may lack such tensors."""
_OLD_NAMES = {r"\bLayerNorm\.weight$": "LayerNorm.gamma", r"\bLayerNorm\.bias$": "LayerNorm.beta"}
"""Patterns of the names of norms, with the names in files that were converted from TensorFlow."""
_SHOWN = 3
"""Maximum number of names in a message."""


@dataclass(frozen=True)
class StoredTensor:
    """Description of a stored tensor, from the header of a safetensors file."""

    file: str  # name of the file
    type: str  # data type, as safetensors names it, such as F32
    shape: tuple[int, ...]


def stored_tensors(files: Mapping[str, Path]) -> dict[str, StoredTensor]:
    """Return the headers of all tensors of a model, keyed by name of the tensor.

    Args:
        files: path of each file, keyed by file name. If the file `INDEX` is present, the weight files listed there are
            read from the folder of this file; otherwise, the file `WEIGHTS` is read. If neither is present, the result
            is empty.

    Raises:
        UserError: a file is damaged or missing, or a tensor is stored twice or not in the file that the index states.
    """
    if INDEX not in files:
        return _header(files[WEIGHTS]) if WEIGHTS in files else {}
    index = files[INDEX]
    places = read_json(index, dict).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
        raise UserError(f"{index}: weight_map is missing or names no files; it says which file holds which tensor")
    tensors: dict[str, StoredTensor] = {}
    for file in sorted(set(places.values())):
        path = index.parent / file
        if not path.exists():
            raise UserError(f"{index}: {file} is not there; the weights are in several files, and all are needed")
        header = _header(path)
        if twice := sorted(header.keys() & tensors.keys()):
            raise UserError(
                f"{index}: {_listed(twice)} is in {tensors[twice[0]].file} and in {file}; remove the older file"
            )
        tensors |= header
    absent = [key for key, file in places.items() if key not in tensors or tensors[key].file != file]
    if absent:
        raise UserError(f"{index}: {_listed(absent)} should be in {places[absent[0]]}, which has no such tensor")
    return tensors


def _header(path: Path) -> dict[str, StoredTensor]:
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(size, path.stat().st_size)))
        header.pop("__metadata__", None)
        return {key: StoredTensor(path.name, one["dtype"], tuple(one["shape"])) for key, one in header.items()}
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        raise UserError(f"{path}: broken or cut off; fetch the file again") from None


def check_config(config: Mapping[str, Any], path: str) -> None:
    """Check that `transformers` can load the model that a config.json describes.

    Raises:
        UserError: the weights are quantised, the model class belongs to another family than `model_type`, or the model
            class is defined in code that comes with the model.
    """
    check_not_quantised(config, path)
    transformers, family = import_module("transformers"), config.get("model_type")
    classes, has_own_code = declared_classes(config)
    for field, name in classes:
        declared = getattr(getattr(transformers, name, None), "config_class", None)
        if declared is not None and declared.model_type not in (family, "") and not _reads(family, name):
            raise UserError(
                f"{path}: {field} ({name}) is of model_type {declared.model_type}, but model_type is {family}"
            )
        if has_own_code and not _is_of_transformers(name):
            known: Any = import_module("transformers.models.auto.configuration_auto")
            advice = f"; remove auto_map only if {family} of transformers computes the same attention"
            raise UserError(
                f"{path}: {field} ({name}) is code of the model's own (auto_map), which is never run"
                f"{advice if family in known.CONFIG_MAPPING_NAMES else ''}"
            )


def _reads(family: object, name: str) -> bool:
    """Return whether transformers loads models of a family with the class `name`, which another family defines.

    For instance, transformers loads models of the family gpt-sw3 with a class of GPT-2.
    """
    known: Any = import_module("transformers.models.auto.modeling_auto")
    named = [table.get(str(family)) for key, table in vars(known).items() if key.endswith("MAPPING_NAMES")]
    return any(name in one if isinstance(one, tuple) else name == one for one in named)


def _is_of_transformers(name: str) -> bool:
    """Return whether transformers has a class called `name`; case is ignored."""
    return name.lower() in {one.lower() for one in dir(import_module("transformers"))}


def check_no_key_is_ignored(config: Mapping[str, Any], model: PreTrainedModel, part: nn.Module, path: str) -> None:
    """Check that transformers uses every key of a config.json that changes how attention is computed.

    A key counts as used if its name is in the source code of the model. Keys whose value selects standard attention are
    not checked. If the model combines a text model with others, such as one for images, the section of config.json for
    the text model `part`, such as `text_config`, is checked too. If transformers ignores a key, UserError is raised.
    """
    _check_keys(config, model, path)
    kind = type(getattr(part, "config", model.config).get_text_config())
    of_texts = [module for module in part.modules() if type(getattr(module, "config", None)) is kind]
    for name, section in config.items():
        if isinstance(section, dict) and isinstance(getattr(model.config, name, None), kind) and of_texts:
            _check_keys(section, of_texts[0], f"{path}: {name}")


def _check_keys(config: Mapping[str, Any], model: Any, path: str) -> None:
    source = _source_of(model)
    for key, value in config.items():
        if acts_on_attention(key, value) and not re.search(rf"\b{key}\b", source):
            version = import_module("transformers").__version__
            raise UserError(
                f"{path}: {key} ({value!r}): transformers {version} ignores this key in models of the family "
                f"{model.config.model_type}, so the attention would not be that of the trained model"
            )
    _check_rotary(config, getattr(model.config, "rope_parameters", None) or {}, path)


def _check_rotary(config: Mapping[str, Any], used: Mapping[str, Any], path: str) -> None:
    """Check that the base of the rotary positions and the share of rotated features are those in config.json.

    `used` holds the values of the loaded model. If layers differ, it has values for each layer type; config.json may
    state these values under several names.
    """
    inner = [one for one in config.values() if isinstance(one, dict)]
    stated = [value for one in (config, *inner) for name, value in one.items() if re.search("rope|theta|rotary", name)]
    for key in ("rope_theta", "partial_rotary_factor"):
        values = [one[key] for one in (used, *used.values()) if isinstance(one, dict) and key in one]
        other = next((value for value in values if config.get(key) is not None and value not in stated), None)
        if other is not None:
            version = import_module("transformers").__version__
            raise UserError(
                f"{path}: {key} ({config[key]!r}): transformers {version} uses {other!r} in some layers, so the "
                "attention would not be that of the trained model"
            )


def _source_of(model: Any) -> str:
    """Return the source code of a model family: its models, its configuration, and the shared functions they call."""
    classes = (*type(model).__mro__, *type(model.config).__mro__)
    own = {one.__module__ for one in classes if one.__module__.startswith("transformers.models.")}
    source = "\n".join(inspect.getsource(import_module(name)) for name in sorted(own))
    masks = import_module("transformers.masking_utils")
    called = [getattr(masks, name) for name in set(re.findall(r"create_\w+_mask", source)) if hasattr(masks, name)]
    if "modeling_rope_utils" in source:
        called.append(import_module("transformers.modeling_rope_utils"))
    return source + "".join(inspect.getsource(one) for one in called)


def check_weights(
    model: PreTrainedModel, report: Mapping[str, Any], stored: Mapping[str, StoredTensor], name: str
) -> None:
    """Check that the stored weights include all that affect the attention maps, and that the model has loaded them.

    Output layers, poolers and buffers may be missing or unused. A missing pooler is set to zero, so that the model is
    the same each time it is loaded. `report` has the missing, unexpected and mismatched keys of `from_pretrained`,
    `stored` the headers of the stored tensors.

    Raises:
        UserError: weights are missing, unused, of the wrong shape or data type, or, except in embedding tables, not
            finite.
    """
    mismatched = sorted(report["mismatched_keys"])
    if mismatched:
        check_experts(stored, name)
        key, own, needed = mismatched[0]
        raise UserError(
            f"{name}: the weights do not fit config.json: {key} has the shape {tuple(own)} in the file, and "
            f"{tuple(needed)} by config.json{_more(mismatched)}"
        )
    part = text_module(model, name)
    place = next(f"{path}." if path else "" for path, module in model.named_modules() if module is part)
    missing = _zero_missing(model, report["missing_keys"], place, name)
    prefixes = _name_prefixes(model, place)
    unread = sorted(key for key in report["unexpected_keys"] if _affects_maps(key, part, place, prefixes, stored))
    if missing:
        moved = _name_with_other_prefix(missing, report["unexpected_keys"])
        changed = None if moved else _replacement_of(missing[0], report["unexpected_keys"])
        advice = "config.json and the weights must belong together"
        if moved or changed:
            advice = f"the file calls the first {moved}" if moved else f"the file has {changed} in place of the first"
        raise UserError(f"{name}: weights are missing in the file: {_listed(missing)}; {advice}")
    if unread:
        raise UserError(
            f"{name}: {type(model).__name__} does not read these weights of the file: {_listed(unread)}; without them "
            "its attention is not that of the model"
        )
    _check_numbers(model, report["missing_keys"], stored, prefixes, name)


def check_experts(stored: Mapping[str, StoredTensor], name: str) -> None:
    """Check that no expert of a layer lacks a tensor that another expert of the same layer has.

    The experts of a layer are assumed to have all indices from 0 to the largest that is stored. transformers joins the
    tensors of the experts; its own report of missing tensors therefore names only the joint tensor, or no tensor.

    Raises:
        UserError: a tensor of an expert is missing.
    """
    last: dict[str, int] = {}
    by_expert: dict[tuple[str, str], set[int]] = {}
    for match in filter(None, map(_OF_EXPERT.fullmatch, stored)):
        first, number, end = match[1], int(match[2]), match[3]
        last[first] = max(number, last.get(first, 0))
        by_expert.setdefault((first, end), set()).add(number)
    missing = [
        f"{first}{number}{end}"
        for (first, end), numbers in sorted(by_expert.items())
        for number in range(last[first] + 1)
        if number not in numbers
    ]
    if missing:
        raise UserError(f"{name}: weights are missing in the file: {_listed(missing)}; fetch the file again")


def _zero_missing(model: PreTrainedModel, keys: Collection[str], place: str, name: str) -> list[str]:
    """Set missing weights of the text encoder to zero; return the names of those that affect the attention maps."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    inside = {
        key: parameters[key]
        for key in sorted(keys)
        if key.startswith(place) and key in parameters and parameters[key].requires_grad
    }
    # The weights of a layer or an expert are needed even if no state of the short text depends on them.
    numbered = {key for key in inside if _NUMBERED.search(key.removeprefix(place))}
    others = {key: parameter for key, parameter in inside.items() if key not in numbered}
    needed = numbered | read_parameters(text_part(model, name), others, name)
    with torch.no_grad():
        for parameter in inside.values():
            parameter.zero_()
    return sorted(needed)


def _name_prefixes(model: PreTrainedModel, place: str) -> tuple[str, ...]:
    """Return the name prefixes under which a file may store the weights of the text encoder, longest first."""
    base = f"{model.base_model_prefix}." if model.base_model_prefix else ""
    return tuple(sorted({place, base, place.removeprefix(base), f"{base}{place}"}, key=len, reverse=True))


def _affects_maps(
    key: str, part: nn.Module, place: str, prefixes: Sequence[str], stored: Mapping[str, StoredTensor]
) -> bool:
    """Return whether a stored tensor that the model has not loaded is a weight that affects the attention maps.

    Layers, embeddings and norms affect the maps; poolers, output layers and buffers do not. If the text encoder is a
    submodule of the model, at `place`, its other weights, such as prompts, are assumed to affect the maps too.
    """
    tensor = stored.get(key)
    shape = tensor.shape if tensor else ()
    is_causal_mask = key.endswith("bias") and len(shape) == 4
    if BUFFER.search(key) or is_causal_mask or (tensor is not None and tensor.type not in _FLOATING and not shape):
        return False
    children = {child for child, _ in part.named_children()}
    firsts = {prefix: key.removeprefix(prefix).partition(".")[0] for prefix in prefixes if key.startswith(prefix)}
    return any(
        "pool" not in first
        and (first in children or _READ_WITH_TOKENS.search(first) or (place and prefix.endswith(place)))
        for prefix, first in firsts.items()
    )


def _name_with_other_prefix(missing: Sequence[str], unexpected: Collection[str]) -> str | None:
    """Return the name of the first missing weight in the file if this name differs only in its prefix, else None."""
    ends = [missing[0].split(".", number)[-1] for number in range(missing[0].count(".") - 1)]
    return next((key for end in ends for key in sorted(unexpected) if key.endswith(f".{end}")), None)


def _replacement_of(missing: str, unexpected: Collection[str]) -> str | None:
    """Return the name of a tensor that the file has in place of a missing weight, else None.

    Layers that are pruned, parametrised or quantised, or have an adapter, store their weight as several tensors.
    """
    layer, _, kind = missing.rpartition(".")
    return next((key for key in sorted(unexpected) if key.startswith(f"{layer}.") and kind in key), None)


def _check_numbers(
    model: PreTrainedModel,
    missing: Collection[str],
    stored: Mapping[str, StoredTensor],
    prefixes: Sequence[str],
    name: str,
) -> None:
    """Raise UserError for stored weights of an unsupported data type and for loaded weights that are not finite."""
    for key, tensor in stored.items():  # whatever its name, since transformers renames and joins tensors
        if tensor.type.startswith("F") and tensor.type not in _FLOATING:
            raise _wrong_type(key, tensor, name)
    names = {key for key, _ in model.named_parameters(remove_duplicate=False)}
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    for key, parameter in model.named_parameters():
        spelled = {f"{prefix}{key.removeprefix(own)}" for own in prefixes if key.startswith(own) for prefix in prefixes}
        spelled |= {re.sub(new, old, one) for one in spelled for new, old in _OLD_NAMES.items()}
        in_file = sorted(one for one in spelled if one in stored and one not in names - {key})
        if len(in_file) > 1:
            raise UserError(f"{name}: {_listed(in_file)} of the file are one weight of the model; remove all but one")
        if in_file and stored[in_file[0]].type not in _FLOATING:
            raise _wrong_type(key, stored[in_file[0]], name)
        # Embedding tables, most of a file, are not tested here: a text uses few of their rows, and a map that is not
        # finite raises an error. A finite sum proves that all values are finite; an infinite one may be an overflow.
        is_tested = id(parameter) not in tables and key not in missing  # missing weights may be uninitialised memory
        if is_tested and not parameter.sum().isfinite() and not parameter.isfinite().all():
            raise UserError(f"{name}: {key} holds numbers that are not finite; fetch the file again")


def _wrong_type(key: str, tensor: StoredTensor, name: str) -> UserError:
    place = f"{name}: {key} holds numbers of type {tensor.type} in {tensor.file}"
    return UserError(f"{place}; it must be one of {', '.join(_FLOATING)}")


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(keys[:_SHOWN]) + _more(keys[_SHOWN - 1 :])


def _more(keys: Sequence[object]) -> str:
    return f" and {len(keys) - 1} more" if len(keys) > 1 else ""
