"""A run as a folder that `transformers` loads: config.json, model.safetensors and the tokenizer."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import save_file

from anaphora.analysis.settings import Export
from anaphora.checkpoint import Run, load
from anaphora.data.pretrained import SEPARATOR, TOKENIZER
from anaphora.errors import UserError
from anaphora.files import whole, write_json, write_text
from anaphora.model.families import CONFIG, WEIGHTS
from anaphora.model.pretrained import exported
from anaphora.specials import CLS, MASK, PADDING, SPECIALS, UNKNOWN


def export(asked: Export) -> Path:
    """Write the encoder and the tokenizer of a run, without its read-out; the vocabulary's output where BERT has it.

    Raises:
        UserError: the folder holds something already, or what is asked for has no counterpart in `transformers`.
    """
    folder = Path(asked.output).expanduser()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"output ({asked.output}) holds something already; name a new folder")
    run = load(asked.run)
    learned = run.config.task.hidden_words > 0
    if asked.output_layer and not learned:
        raise UserError(f"output_layer (true): {asked.run} was not trained on hidden words (task.hidden_words=0)")
    wanted = learned and run.config.model.output_transform if asked.output_layer is None else asked.output_layer
    config, tensors = exported(run.resolver.encoder, run.resolver.output if wanted else None)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "tokenizer_config.json", _tokenizer_settings(run))
    write_text(folder / TOKENIZER, run.tokenizer.dumps())
    write_json(folder / CONFIG, config)
    with whole(folder / WEIGHTS) as draft:
        save_file(tensors, draft, metadata={"format": "pt"})  # transformers refuses a file that does not say so
    return folder


def _tokenizer_settings(run: Run) -> dict[str, object]:
    names = {"pad": PADDING, "unk": UNKNOWN, "cls": CLS, "mask": MASK}
    told: dict[str, object] = {f"{name}_token": SPECIALS[number] for name, number in names.items()}
    if SEPARATOR in {run.tokenizer.token(number) for number in run.tokenizer.encode("").ids}:
        told["sep_token"] = SEPARATOR
    position = run.config.model.position
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **told,
        "model_max_length": getattr(position, "max_length", 0),
    }
