"""A run as a folder that `transformers` loads: config.json, model.safetensors and the tokenizer."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import save

from anaphora.base.errors import UserError
from anaphora.base.files import atomic_directory, check_writable, write_json, write_text
from anaphora.base.special_tokens import CLS, MASK, PADDING, SPECIAL_TOKENS, UNKNOWN
from anaphora.data.tokens.pretrained import SEPARATOR, TOKENIZER
from anaphora.model.pretrained.families import CONFIG, WEIGHTS
from anaphora.model.pretrained.weights import to_bert
from anaphora.runs.directory import Run, load
from anaphora.settings.commands.analysis import Export


def export(settings: Export) -> Path:
    """Write a run's encoder and tokenizer, without its prediction head; the vocabulary's output where BERT has it.

    Raises:
        UserError: the folder holds something already, or a part of the model has no counterpart in `transformers`.
    """
    folder = Path(settings.output).expanduser()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"output ({settings.output}) holds something already; name a new folder")
    check_writable(folder / CONFIG)
    run = load(settings.run)
    learned = run.config.task.masked_lm > 0
    if settings.output_layer and not learned:
        raise UserError(f"output_layer (true): {settings.run} was not trained on masked tokens (task.masked_lm=0)")
    with_output = (
        learned and run.config.model.output_transform if settings.output_layer is None else settings.output_layer
    )
    config, tensors = to_bert(run.model.encoder, run.model.output if with_output else None)
    with atomic_directory(folder) as draft:
        write_json(draft / "tokenizer_config.json", _tokenizer_settings(run))
        write_text(draft / TOKENIZER, run.tokenizer.dumps())
        write_json(draft / CONFIG, config)
        # transformers refuses a file that does not say so
        (draft / WEIGHTS).write_bytes(save(tensors, metadata={"format": "pt"}))
    return folder


def _tokenizer_settings(run: Run) -> dict[str, object]:
    names = {"pad": PADDING, "unk": UNKNOWN, "cls": CLS, "mask": MASK}
    tokens: dict[str, object] = {f"{name}_token": SPECIAL_TOKENS[number] for name, number in names.items()}
    if SEPARATOR in {run.tokenizer.token(number) for number in run.tokenizer.encode("").ids}:
        tokens["sep_token"] = SEPARATOR
    position = run.config.model.position
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **tokens,
        "model_max_length": getattr(position, "max_length", 0),
    }
