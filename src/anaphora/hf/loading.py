"""Loading of a model and its tokenizer from a folder or the Hugging Face Hub.

Code that comes with a model is not run, and pickled weights are not read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer
from torch import nn

from anaphora.base.errors import UserError, one_line
from anaphora.base.files import read_json
from anaphora.base.hub import HUB_PREFIX, is_reachable, no_folder_error, pickle_advice
from anaphora.data.tokens.vocabulary import TOKENIZER
from anaphora.hf.parts import text_module
from anaphora.hf.weights import (
    INDEX,
    check_config,
    check_experts,
    check_no_key_is_ignored,
    check_weights,
    stored_tensors,
)
from anaphora.model.pretrained.families import ADAPTER, CONFIG, WEIGHTS, check_no_adapter

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MASKED, CAUSAL, MULTIMODAL = "AutoModelForMaskedLM", "AutoModelForCausalLM", "AutoModelForMultimodalLM"
_DOUBLE_HEADS = frozenset({"GPT2DoubleHeadsModel", "OpenAIGPTDoubleHeadsModel"})
"""Decoders with an output layer over the vocabulary and one for multiple choice; no Auto class loads them."""
_TEXTS_TO_SPLIT = ("Anna was born in 2024, but Émile isn't here.", "小红推了小明，因为他很生气。")
"""Texts that show whether transformers and tokenizer.json split a text in the same way."""
_SHOWN_TOKENS = 8
_JSON_FILES = (TOKENIZER, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
_WEIGHTS_OF_OTHERS = (".bin", ".ckpt", ".gguf", ".h5", ".msgpack", ".onnx", ".pt", ".pth", ".safetensors")
"""Suffixes of files that may hold weights."""
_LFS_POINTER = b"version https://git-lfs"
"""Beginning of the small file that replaces a large one in a repository cloned without Git LFS."""
_NEEDED_FILES = "config.json, model.safetensors and the tokenizer's files"


def load_named(
    transformers: Any, name: str, tokenizer: PreTrainedTokenizerBase | None = None
) -> tuple[str, PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a model, in float32, and its tokenizer from a folder or the Hugging Face Hub ("hf://owner/name").

    Files from the Hub are downloaded to the cache of `transformers`. If the weights of the output layer are missing,
    the model is returned without this layer. If `tokenizer` is given, no other tokenizer is loaded. The result is the
    last component of `name`, the model and the tokenizer.

    Raises:
        UserError: the folder or model does not exist or cannot be reached; the model is an adapter, or needs code that
            is not part of `transformers`; the weights are pickled or quantised, or do not fit config.json;
            `transformers` ignores a key of config.json that changes the attention; or files are missing or damaged.
    """
    on_hub = name.removeprefix(HUB_PREFIX).strip("/") if name.startswith(HUB_PREFIX) else ""
    place, offline = (on_hub, not is_reachable()) if on_hub else (str(_checked_folder(name)), True)
    options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": offline}
    title = f"model ({name})"
    try:
        with quiet():
            check_no_adapter(_cached(place, ADAPTER, offline), place, title)
            written, _ = transformers.PreTrainedConfig.get_config_dict(place, **options)
            check_config(written, f"{title}: {CONFIG}")
            if tokenizer is None:
                tokenizer = _opened_tokenizer(transformers, place, title, options)
                _check_tokenizer(tokenizer, _cached(place, TOKENIZER, offline), title, str(written.get("model_type")))
            config = transformers.AutoConfig.from_pretrained(place, **options)
            if _asks_for_kernel(config):
                config._attn_implementation = None  # for all sub-models; maps are read with another one anyway
                options["config"] = config
            model, report = _class_of(transformers, config).from_pretrained(
                place,
                use_safetensors=True,
                dtype=torch.float32,
                ignore_mismatched_sizes=True,  # mismatches are in the report and cause an error below
                output_loading_info=True,
                **options,
            )
    except UserError:
        raise
    except Exception as error:  # missing or wrong files, pickles and no network raise unrelated classes
        if not on_hub:
            _check_files(Path(place), title)
        quoted = f"unknown value {error}" if isinstance(error, KeyError) else one_line(error)[:300].rstrip(".")
        reason = f"{quoted}; it needs {_NEEDED_FILES}, and no code of its own"
        if offline and on_hub:
            reason = f"the hub cannot be reached; without a network put {_NEEDED_FILES} into a folder and name it"
        if isinstance(error, RuntimeError):  # for instance if the tensors of experts cannot be joined
            check_experts(stored_tensors(_weight_files(place)), title)
        raise UserError(f"{title}: cannot be opened: {reason}") from None
    check_no_key_is_ignored(written, model, text_module(model, title), f"{title}: {CONFIG}")
    check_weights(model, report, stored_tensors(_weight_files(place)), title)
    if report["missing_keys"] and has_output_layer(model):
        model = model.base_model  # without the output layer, which was never trained
    return Path(place).name, model, tokenizer


def check_loaded(transformers: Any, model: object) -> None:
    """Raise UserError unless `model` is a model of `transformers` with its weights in memory, not a wrapper of one."""
    name = type(model).__name__
    if isinstance(model, transformers.PreTrainedModel):
        if model.device.type == "meta":
            raise UserError(f"model ({name}) has no weights in memory; load it without offloading, without device_map")
        return
    if hasattr(model, "merge_and_unload"):
        raise UserError(f"model ({name}) is a model with an adapter of peft; merge it: model.merge_and_unload()")
    if hasattr(model, "peft_config"):
        raise UserError(
            f"model ({name}) has an adapter of peft that adds vectors of its own to every text and cannot be merged; "
            "model.get_base_model() is the model without it"
        )
    inner = _path_inside(transformers, model)
    if inner is not None:
        raise UserError(f"model ({name}) only holds a model of transformers; give the model itself: {inner}")
    raise UserError(
        f"model ({name}) must be a folder, hf://owner/name, a run, or a model of transformers; maps of other "
        "torch modules: anaphora.analysis.maps.of_torch"
    )


def _path_inside(transformers: Any, model: object) -> str | None:
    """Return the Python expression of the `transformers` model inside a wrapper, such as "model.model" for a pipeline.

    The result is None if the object `model` contains no such model.
    """
    attributes = {} if isinstance(model, nn.Module) else getattr(model, "__dict__", {})
    holders = {"model": model} | {f"model.{name}": value for name, value in attributes.items() if name[0] != "_"}
    for holder, module in holders.items():
        for path, inner in module.named_modules() if isinstance(module, nn.Module) else ():
            if isinstance(inner, transformers.PreTrainedModel):
                is_attribute = all(part.isidentifier() for part in path.split(".") if path)
                return f"{holder}{'.' * bool(path)}{path}" if is_attribute else f"{holder}.get_submodule({path!r})"
    return None


def _checked_folder(name: str) -> Path:
    """Return the path of a folder after a check that it has a configuration and safetensors weights."""
    folder = Path(name).expanduser()
    if folder.is_file():
        raise UserError(f"model ({name}) is a file; name its folder, with {_NEEDED_FILES}")
    if not folder.is_dir():
        raise no_folder_error("model", name)
    if not (folder / CONFIG).exists() and not (folder / ADAPTER).exists():
        inner = sorted(path.parent for depth in ("*", "*/*") for path in folder.glob(f"{depth}/{CONFIG}"))
        where = f"; {inner[0].relative_to(folder)} in it has one: name that folder" if inner else ""
        raise UserError(f"model ({name}): there is no config.json of a model of transformers{where}")
    for path in (folder / CONFIG, folder / INDEX):
        if path.exists():
            # For a broken file, transformers shows only a traceback; infinite limits, as in Mamba's, are no fault.
            read_json(path, dict, constant=float)
    if (folder / WEIGHTS).exists() and (folder / INDEX).exists():
        raise UserError(
            f"model ({name}): there are both {WEIGHTS} and {INDEX}, which names other files; remove the one that does "
            "not hold the model's weights"
        )
    if not any(folder.glob("*.safetensors")):
        raise _no_weights_error(folder, f"model ({name})")
    return folder


def _no_weights_error(folder: Path, title: str) -> UserError:
    """Return the error for a folder without safetensors weights; the message names weights in other formats."""
    pickles = sorted(path.name for path in folder.glob("pytorch_model*.bin"))
    paths = sorted(path for depth in ("*", "*/*") for path in folder.glob(depth) if path.is_file())
    other = next((path.relative_to(folder) for path in paths if path.suffix in _WEIGHTS_OF_OTHERS), None)
    advice = f"; {other} is not read in its place: store the model with save_pretrained(folder)" if other else ""
    is_link = (folder / WEIGHTS).is_symlink() and not (folder / WEIGHTS).exists()
    problem = "is a link to a file that is missing" if is_link else "is missing"
    return UserError(f"{title}: {WEIGHTS} {problem}{pickle_advice(pickles) or advice}")


def _check_files(folder: Path, title: str) -> None:
    """Raise UserError if a model's weights are missing, or a file in its folder is damaged or a Git LFS pointer."""
    if not (folder / WEIGHTS).exists() and not (folder / INDEX).exists():
        raise _no_weights_error(folder, title)
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        with path.open("rb") as file:
            if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
                raise UserError(f"{path}: only a pointer of Git LFS; fetch the file itself: git lfs pull")
        if path.name in _JSON_FILES:
            read_json(path, dict)
        elif path.suffix == ".safetensors":
            try:
                with safe_open(path, framework="numpy"):
                    pass
            except SafetensorError:
                raise UserError(f"{path}: broken or cut off; fetch the file again") from None


def _asks_for_kernel(config: Any) -> bool:
    """Return whether a configuration requests a custom attention kernel, which may need a GPU or code from the Hub."""
    parts = [config, *(getattr(config, name, None) for name in config.sub_configs)]
    return any(getattr(one, "_attn_implementation", None) not in (None, "eager", "sdpa") for one in parts)


def _opened_tokenizer(transformers: Any, place: str, title: str, options: dict[str, Any]) -> Any:
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **options)
    except (ValueError, AttributeError) as error:  # a missing file raises either, depending on the version
        if not any(words in str(error) for words in ("backend tokenizer", "'NoneType'", "tiktoken")):
            raise
        raise UserError(
            f"{title}: its tokenizer is missing, or in a format or of a class that transformers cannot read here; put "
            f"{TOKENIZER} beside config.json"
        ) from None
    if len(tokenizer) <= len(tokenizer.all_special_ids):  # transformers invents one if the files are missing
        raise UserError(f"{title}: its tokenizer is missing; put {TOKENIZER} beside config.json")
    return tokenizer


def _check_tokenizer(tokenizer: Any, path: Path | None, title: str, family: str) -> None:
    """Check that the tokenizer which transformers has loaded splits texts as tokenizer.json specifies.

    Many tokenizer classes ignore a part of tokenizer.json, such as whether an added token includes adjacent spaces.
    """
    if path is None or not getattr(tokenizer, "is_fast", False):
        return
    written = Tokenizer.from_file(str(path))
    added = [
        one.content
        for one in written.get_added_tokens_decoder().values()
        if not one.special or one.lstrip or one.rstrip
    ]
    for text in (*_TEXTS_TO_SPLIT, f"She met {' and '.join(added)} there."):
        of_file, read = _tokens(written, text), _tokens(tokenizer.backend_tokenizer, text)
        if of_file != read:
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(of_file, read, strict=False)))
            start = max(0, same - 2)
            known: Any = import_module("transformers.models.auto.tokenization_auto")
            advice = 'write "tokenizer_class": "PreTrainedTokenizerFast" into tokenizer_config.json'
            if family in getattr(known, "MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS", ()):  # the class is not read there
                advice = "in Python, give tokenizer=PreTrainedTokenizerFast.from_pretrained(...) of transformers"
            raise UserError(
                f"{title}: {TOKENIZER} splits {text!r} into {_shown(of_file, start)}, but transformers, which reads "
                f"it as {type(tokenizer).__name__}, into {_shown(read, start)}; if {TOKENIZER} is right, {advice}"
            )


def _tokens(backend: Tokenizer, text: str) -> list[str]:
    """Return the tokens of a text without special tokens and padding."""
    encoding = backend.encode(text, add_special_tokens=False)
    return [token for token, is_real in zip(encoding.tokens, encoding.attention_mask, strict=True) if is_real]


def _shown(tokens: list[str], start: int) -> str:
    return f"{'... ' * bool(start)}{' '.join(tokens[start : start + _SHOWN_TOKENS])} ..."


def _weight_files(place: str) -> dict[str, Path]:
    """Return the path of the weight file or, failing that, of the index of weight files, keyed by file name."""
    paths = ((name, _cached(place, name, offline=True)) for name in (WEIGHTS, INDEX))
    return next(({name: path} for name, path in paths if path is not None), {})


def _cached(place: str, name: str, offline: bool) -> Path | None:
    """Return the local path of a file in a folder or on the Hugging Face Hub; None if the file does not exist.

    Unless `offline` is True, a file on the Hub is downloaded if needed.
    """
    hub: Any = import_module("transformers.utils.hub")
    path = hub.cached_file(
        place,
        name,
        local_files_only=offline,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return None if path is None else Path(path)


def _class_of(transformers: Any, config: Any) -> Any:
    """Return the class that loads a stored model: an Auto class, or a class that config.json names.

    Two cases need the class that config.json names. `AutoModel` has no class for the family, as for SiglipTextModel, or
    `AutoModel` loads a class that expects another prefix in the names of the weights, as for DPRContextEncoder.
    """
    names: Any = import_module("transformers.models.auto.modeling_auto")
    architectures = config.architectures or ()
    for automatic, known in _class_names().items():
        if any(name in known for name in architectures):
            return getattr(transformers, automatic)
    family = config.model_type
    is_pair = family in names.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    if is_pair and not config.is_encoder_decoder and family in names.MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES:
        return transformers.AutoModelForTextEncoding  # an encoder without its decoder, as in T5ForTokenClassification
    base = names.MODEL_MAPPING_NAMES.get(family)
    prefix = getattr(getattr(transformers, str(base), None), "base_model_prefix", "")
    for own in (getattr(transformers, str(name), None) for name in architectures):
        has_other_prefix = bool(prefix) and getattr(own, "base_model_prefix", prefix) not in ("", prefix)
        if own is not None and (base is None or has_other_prefix):
            return own
    return transformers.AutoModel


def has_output_layer(model: PreTrainedModel) -> bool:
    """Return whether a model has an output layer over the vocabulary; False for encoder-decoders.

    For a model that also takes images or sounds as input, the result is True only if the model can generate text.
    """
    continues = isinstance(model, import_module("transformers").GenerationMixin) and predicts_by(model, MULTIMODAL)
    known = continues or predicts_by(model, MASKED) or predicts_by(model, CAUSAL)
    if type(model).__name__ in _for_pretraining():  # some, such as ELECTRA's, only detect replaced tokens
        known = model.get_output_embeddings() is not None
    return known and not model.config.is_encoder_decoder


def predicts_by(model: PreTrainedModel, automatic: str) -> bool:
    """Return whether a model is of a class that the Auto class `automatic`, such as "AutoModelForMaskedLM", loads."""
    return type(model).__name__ in _class_names()[automatic]


@cache
def _class_names() -> dict[str, frozenset[str]]:
    """Return the names of the model classes that `AutoModel` does not load, keyed by the Auto class that loads them.

    The classes are language models, encoders of encoder-decoders, and encoder-decoders made of two separate models.
    """
    names: Any = import_module("transformers.models.auto.modeling_auto")
    whole = {name for name in names.MODEL_MAPPING_NAMES.values() if isinstance(name, str)}
    pairs = {
        name
        for family, name in names.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES.items()
        if family not in names.MODEL_MAPPING_NAMES
    }
    return {
        # The output layers for sentences and for choices are ignored.
        MASKED: frozenset(names.MODEL_FOR_MASKED_LM_MAPPING_NAMES.values()) | _for_pretraining(),
        CAUSAL: frozenset(names.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()) | _DOUBLE_HEADS,
        MULTIMODAL: frozenset(names.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES.values()),
        "AutoModelForTextEncoding": frozenset(names.MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES.values()) - whole,
        "AutoModelForSeq2SeqLM": frozenset(pairs),
    }


def _for_pretraining() -> frozenset[str]:
    """Return the names of classes such as BertForPreTraining, in families that also have a masked language model.

    Most of these classes have two output layers, for masked tokens and for pairs of sentences. Some, such as ELECTRA's,
    only detect replaced tokens.
    """
    names: Any = import_module("transformers.models.auto.modeling_auto")
    masked = names.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    both = {name for family, name in names.MODEL_FOR_PRETRAINING_MAPPING_NAMES.items() if family in masked}
    return frozenset(both - {*masked.values(), *names.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()})


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress progress bars and warnings of transformers inside the `with` block."""
    logging: Any = import_module("transformers.utils.logging")
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
