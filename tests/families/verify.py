"""Verification of one family through the public interface: its maps are correct, or there is a one-line error."""

from __future__ import annotations

import copy
import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from families import oracle
from families.edits import TOLERANCE, compare_edits, distance_between
from families.exceptions import UNBUILDABLE
from families.registry import Family
from families.shrink import POSITIONS, tiny_config
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from torch import Tensor, nn

from anaphora.base.errors import UserError
from anaphora.data.own_sentence import example_from_query
from anaphora.hf.reader import TransformersModel, open_model

transformers: Any = import_module("transformers")
_WITH_DIGITS = "Anna was born in 2024, but it isn't here."
TEXTS = (
    "Anna helped Emma because she was weak.",
    "The old man left the park because he was unbelievably tired of it all.",
    "Nora.",
    "小红推了小明，因为他很生气。",
)
"""Texts of different lengths, one with a single word."""
QUERIES = ((TEXTS[0], "she", "Anna"), (TEXTS[1], "he", "man"), (TEXTS[3], "他", "小明"))


@dataclass(frozen=True)
class Outcome:
    """Outcome for a family.

    Attributes:
        kind: "verified", "refused", "not built" with a known reason; "FAILED", or "NOT BUILT" without a known reason.
        shape: "layers x heads" of the layers with attention.
        edits: "yes", or the reason why the attention cannot be edited.
        attends: whether a softmax mixes tokens in at least one layer; None if unknown.
        reason: reason of the refusal, or the problems, one per line.
        note: further remarks.
    """

    kind: str
    shape: str = ""
    reason: str = ""
    note: str = ""
    edits: str = ""
    attends: bool = True


def build(family: Family) -> Any:
    """Return a tiny model of a family with random weights, whose attention is far from uniform."""
    torch.manual_seed(0)
    model = family.model_class._from_config(tiny_config(family)).eval()
    with torch.no_grad():
        for part in model.modules():
            if isinstance(part, nn.Embedding):
                part.weight.normal_()
            elif isinstance(part, nn.Linear | nn.Conv1d):
                part.weight.normal_(std=part.weight[0].numel() ** -0.5)
            elif isinstance(part, transformers.pytorch_utils.Conv1D):
                part.weight.normal_(std=len(part.weight) ** -0.5)
    return model


@cache
def tokenizer(padding: int) -> Any:
    """Return a fast tokenizer with a small vocabulary and the family's id for padding."""
    special = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    special.insert(padding, "[PAD]")
    backend = Tokenizer(models.BPE(unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=60, special_tokens=special, show_progress=False))
    ends = [(name, special.index(name)) for name in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    names = {f"{name[1:-1].lower()}_token": name for name in special}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **names)


def verify(family: Family) -> Outcome:
    """Compare the maps of a family with those of the oracle."""
    try:
        model = build(family)
    except Exception as error:
        if family.model_type in UNBUILDABLE:
            return Outcome("not built", reason=UNBUILDABLE[family.model_type])
        return Outcome("NOT BUILT", reason=f"{type(error).__name__}: {error}"[:300])
    if family.model_type in UNBUILDABLE:
        return Outcome("FAILED", reason="it can be built: take it out of UNBUILDABLE")
    padding = getattr(model.config, "pad_token_id", None)
    own = tokenizer(padding if isinstance(padding, int) and 0 <= padding < 5 else 0)
    return Trial(model, own).outcome()


class Trial:
    """Test of a model, with copies for the oracle.

    Args:
        model: model in evaluation mode; its modules are set to a mix of modes, with dropout.
        own: tokenizer of the model.
    """

    def __init__(self, model: Any, own: Any) -> None:
        self.pristine = copy.deepcopy(model)
        self.model, self.own = model, own
        model.train()
        next(part for part in model.modules() if isinstance(part, nn.Embedding | nn.Linear)).eval()
        self.before = _state(model)
        self.problems: dict[str, list[str]] = {}
        self.notes: list[str] = []

    def outcome(self) -> Outcome:
        shape, refusal, edits, opened = "", "", "", None
        try:
            opened = open_model(self.model, self.own)
            shape = f"{len(opened.reading.layers)} x {opened.heads}" + " and a sink" * opened.reading.has_sink
            self._read(opened)
            edits = self._edit(opened)
        except UserError as error:
            refusal = str(error)
        except Exception as error:
            self._problem("a traceback", f"{type(error).__name__}: {str(error)[:200]}")
        for name in _differences(self.before, _state(self.model)):
            self._problem("the user's model is another afterwards", name)
        if opened is not None and not refusal and not self.problems:
            self._check_folder(opened)  # last: models of one family may share their activation, with its mode
        if "\n" in refusal:
            self._problem("more than one line", repr(refusal))
        if self.problems:
            reasons = [_with_first(kind, details) for kind, details in self.problems.items()]
            return Outcome("FAILED", shape, "\n".join(reasons), "; ".join(self.notes), edits)
        if refusal:
            note, attends = self._why_refusing_may_be_wrong()
            return Outcome("refused", shape, refusal, note, attends=attends)
        return Outcome("verified", shape, note="; ".join(self.notes), edits=edits)

    def _read(self, opened: TransformersModel) -> None:
        truth = {text: self._truth(opened.tokenize(text).ids) for text in TEXTS}
        self._check_kind(opened, truth)
        for text in TEXTS:
            maps = self._attending(opened, opened.token_maps(opened.tokenize(text)))
            self._compare(opened, maps, truth[text], "alone")
        together = opened.run([opened.tokenize(text) for text in TEXTS])
        for row, text in enumerate(TEXTS):
            length = truth[text].tokens
            own = np.stack([layer[row, :, :length, :length].float().numpy() for layer in together])
            self._compare(opened, own, truth[text], "padded beside others")
        self._check_rows(opened, truth)
        self._check_long_texts(opened)

    def _edit(self, opened: TransformersModel) -> str:
        """Compare the states under edits with those of the oracle, if the model can be edited."""
        try:
            problems, notes = compare_edits(opened, [opened.tokenize(text) for text in TEXTS[:2]], self._truth)
        except UserError as error:
            return str(error).partition("not edited: ")[2] or str(error)
        for kind, detail in problems:
            self._problem(kind, detail)
        for note in notes:
            self._note(note)
        return "yes"

    def _truth(self, ids: Sequence[int], change: oracle.Change | None = None) -> oracle.Pass:
        """Run the oracle on a new copy of the model, which has not seen other texts."""
        return oracle.run(_part(copy.deepcopy(self.pristine)), ids, change)

    def _check_kind(self, opened: TransformersModel, truth: dict[str, oracle.Pass]) -> None:
        one = truth[TEXTS[1]]
        if not one.squares:
            self._problem("maps are shown, but no softmax mixes tokens", f"its uses: {one.others}")
        if one.others:
            self.notes.append(f"other uses of a softmax: {', '.join(one.others)}")
        with_sink = any(float(square.weights.sum(dim=-1).min()) < 1 - TOLERANCE for square in one.squares)
        if with_sink != opened.reading.has_sink:
            self._problem("sink", f"it says {opened.reading.has_sink}, but measured it is {with_sink}")
        causal = self._is_causal(opened.tokenize(TEXTS[1]).ids)
        if causal != opened.is_decoder:
            self._problem("is_decoder", f"it says {opened.is_decoder}, but measured it is {causal}")
        for square in one.squares:
            maps = square.maps(one.tokens)[0]
            if float((maps - maps.mean(dim=1, keepdim=True)).abs().max()) < 0.02:
                self.notes.append(f"weak: rows of {square.module} are nearly equal")
        numbers = one.layers()
        shown = opened.reading.layers
        if numbers is not None and numbers != shown:
            self._problem("layers' numbers", f"{list(shown)}, but the model's own are {list(numbers)}")

    def _is_causal(self, ids: Sequence[int]) -> bool:
        whole = self._truth(ids).states
        for place in (len(ids) // 2, len(ids) - 2):
            changed = list(ids)
            changed[place] = next(one for one in range(8, 50) if one != ids[place])
            other = self._truth(changed).states
            scale = float((whole - other).abs().max())
            if float((whole - other)[:place].abs().max()) > 1e-4 * scale:
                return False
        return True

    def _compare(self, opened: TransformersModel, maps: Any, truth: oracle.Pass, how: str) -> None:
        squares, length = truth.squares, truth.tokens
        label = f"{length} tokens {how}"
        if len(squares) != len(maps):
            self._problem("number of maps", f"{len(maps)}, but {len(squares)} blocks mix {label}")
            return
        for layer, (shown, square) in enumerate(zip(maps, squares, strict=True)):
            shown = torch.as_tensor(shown)
            options = square.maps(length)
            sums = shown.sum(dim=-1)
            if float((sums - 1).abs().max()) > TOLERANCE and not (
                opened.reading.has_sink and sums.max() < 1 + TOLERANCE
            ):
                detail = f"{float(sums.min()):.3f} to {float(sums.max()):.3f} in {label}, map {layer}"
                self._problem("sums of rows", detail)
            if float(shown.min()) < 0:
                self._problem("negative weights", f"{label}, map {layer}")
            distance = min((distance_between(shown, one) for one in options), default=np.inf)
            if not distance <= TOLERANCE:
                self._problem(
                    f"wrong weights {how}", f"{distance:.3g} off what {square.module} mixes {length} tokens with"
                )

    def _attending(self, opened: TransformersModel, weights: NDArray[np.float32]) -> Tensor:
        """Return the maps or rows of layers with attention, without the sink, after a check that rows sum to 1."""
        maps, numbers = torch.from_numpy(weights), list(opened.reading.layers)
        idle = [number for number in range(len(maps)) if number not in numbers]
        if maps[idle].any():
            self._problem("weights in a layer that does not attend", str(idle))
        if float((maps[numbers].sum(dim=-1) - 1).abs().max()) > TOLERANCE:
            self._problem("rows do not sum to 1", "with the sink" if opened.reading.has_sink else "alone")
        maps = maps[numbers]
        if opened.reading.has_sink:
            maps = maps[..., 1:] if maps.dim() == 3 else maps[..., 1:, 1:]
        return maps

    def _check_rows(self, opened: TransformersModel, truth: dict[str, oracle.Pass]) -> None:
        examples = [example_from_query(text, pronoun, [candidate]) for text, pronoun, candidate in QUERIES]
        for example, record in zip(examples, opened.records(examples), strict=True):
            one, tokens = truth[example.text], opened.tokenize(example.text)
            places = tokens.covering(example.pronoun)
            shown = self._attending(opened, record.weights)
            for layer, (row, square) in enumerate(zip(shown, one.squares, strict=False)):
                options = [each[:, places].mean(dim=1) for each in square.maps(one.tokens)]
                distance = min(distance_between(row, each) for each in options)
                if not distance <= TOLERANCE:
                    self._problem("wrong rows in records", f"{distance:.3g} off in {example.text[:9]!r}, map {layer}")

    def _check_long_texts(self, opened: TransformersModel) -> None:
        """Check that texts around and above the number of positions give correct maps, or a one-line error."""
        for length in (POSITIONS, POSITIONS + 1, POSITIONS * 3 // 2):
            text = "Anna" + "." * (length - len(self.own("Anna")["input_ids"]))
            assert len(self.own(text)["input_ids"]) == length
            try:
                tokens = opened.tokenize(text)
                maps = self._attending(opened, opened.token_maps(tokens))
            except UserError as error:
                if "\n" in str(error):
                    self._problem("more than one line", repr(str(error)))
                continue
            self._compare(opened, maps, self._truth(tokens.ids), "alone")

    def _check_folder(self, opened: TransformersModel) -> None:
        """Check that a saved and reloaded model gives the same maps, twice."""
        expected = opened.token_maps(opened.tokenize(TEXTS[0]))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "model"
            copy.deepcopy(self.pristine).save_pretrained(folder)
            self.own.save_pretrained(folder)
            try:
                again, report = transformers.AutoModel.from_pretrained(
                    folder, output_loading_info=True, dtype=torch.float32
                )
                ids = list(opened.tokenize(TEXTS[0]).ids)
                states = oracle.run(_part(again), ids).states
                # The classes of some families split texts in their own way, whatever tokenizer.json says.
                read = transformers.AutoTokenizer.from_pretrained(folder)
                sound = not report["missing_keys"] and torch.allclose(states, self._truth(ids).states, atol=1e-4)
                sound = sound and read(_WITH_DIGITS)["input_ids"] == self.own(_WITH_DIGITS)["input_ids"]
            except Exception as error:
                self._note(f"AutoModel cannot read what the model saved: {type(error).__name__}")
                return
            try:
                for _ in range(2):
                    maps = open_model(str(folder)).token_maps(opened.tokenize(TEXTS[0]))
                    if maps.shape != expected.shape or np.abs(maps - expected).max() > TOLERANCE:
                        self._problem("opened from a folder", "it has other maps")
            except UserError as error:
                if sound:
                    self._problem("refused from a sound folder", str(error))
                else:
                    self._note(f"from a folder: {error}")

    def _why_refusing_may_be_wrong(self) -> tuple[str, bool]:
        """Return what a refused model computes, and whether this may include attention."""
        try:
            ids = self.own(TEXTS[1])["input_ids"]
            one = self._truth(ids)
        except Exception as error:
            return f"the model itself reads no text: {type(error).__name__}: {str(error)[:80]}", True
        note = f"{len(one.squares)} blocks mix tokens by a softmax; other uses: {', '.join(one.others) or 'none'}"
        return note, bool(one.mixtures)

    def _problem(self, kind: str, detail: str) -> None:
        self.problems.setdefault(kind, []).append(detail)

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def _with_first(kind: str, details: Sequence[str]) -> str:
    return f"{kind}: {details[0]}" + (f", and {len(details) - 1} more" if len(details) > 1 else "")


def _part(model: Any) -> Any:
    """Return the encoder of an encoder-decoder model, or another model without its output layer."""
    return model.get_encoder() if model.config.is_encoder_decoder else model.base_model


def _state(model: nn.Module) -> dict[str, Any]:
    """Return the state of a model that must not change."""
    configurations = {
        f"configuration of {name or 'the model'}": json.dumps(
            {**part.config.to_dict(), "attention": str(part.config._attn_implementation)}, default=str, sort_keys=True
        )
        for name, part in model.named_modules()
        if isinstance(getattr(part, "config", None), transformers.PreTrainedConfig)
    }
    digest = hashlib.sha256()
    for name, weights in sorted(model.state_dict().items()):
        digest.update(name.encode() + weights.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    hooks = [len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules()]
    return {
        **configurations,
        "mode": [part.training for part in model.modules()],
        "list of modules": [(name, type(part).__name__) for name, part in model.named_modules()],
        "weights": digest.hexdigest(),
        "hooks": hooks,
        "output": _output(model),
    }


def _output(model: Any) -> Any:
    """Return the exact output of a copy for a text that is longer than every attention window."""
    again = _part(copy.deepcopy(model)).eval()
    ids = torch.arange(5, 45)[None]
    try:
        with torch.no_grad():
            torch.manual_seed(0)
            return again(input_ids=ids, attention_mask=torch.ones_like(ids))[0].numpy().tobytes()
    except Exception as error:
        return type(error).__name__


def _differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for name in before:
        if before[name] != after.get(name):
            yield name
