from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugin_util import markdown_to_safe_html
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import metadata

from anaphora.base.batch import Batch
from anaphora.data.store import load as load_corpus
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.runs.directory import RunFiles
from anaphora.settings.data import OwnExamples
from anaphora.settings.run import Config
from anaphora.training.callbacks import ValidationCheckpoint
from anaphora.training.items import replace_labels
from anaphora.training.module import TrainingModule
from anaphora.training.run import train
from anaphora.training.tensorboard import layout as shown
from anaphora.training.tensorboard.curves import CurvesCallback

Tiny = Callable[..., Config]
PICTURES = {
    f"probe_{language}/sentence_{number}_{what}"
    for language in ("english", "chinese")
    for number in (1, 2)
    for what in ("pronoun", "maps")
}
TRAINING = {"curves/train_loss", "curves/gradient_norm", "curves/learning_rate", "curves/tokens_per_second"}
VALIDATION = {f"curves/validation_{name}" for name in ("loss", "accuracy", "best_head")}


def read(directory: Path) -> EventAccumulator:
    events = EventAccumulator(str(directory), size_guidance={"tensors": 0, "scalars": 0, "images": 0})
    return events.Reload()


def charts(events: EventAccumulator) -> dict[str, dict[str, list[str]]]:
    layout = layout_pb2.Layout.FromString(events.Tensors("custom_scalars__config__")[0].tensor_proto.string_val[0])
    return {one.title: {chart.title: list(chart.multiline.tag) for chart in one.chart} for one in layout.category}


def hparams(events: EventAccumulator, tag: str) -> Any:
    return metadata.parse_session_start_info_plugin_data(events.SummaryMetadata(tag).plugin_data.content)


@pytest.fixture(scope="module")
def watched(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> EventAccumulator:
    """Return the events of a run of eight steps with two layers of four heads, with pictures at five steps."""
    config = tiny(tmp_path_factory.mktemp("watched"), "trainer.pictures=8", "task.supervision.weight=0.1")
    return read(train(config))


def head_tags(events: EventAccumulator) -> set[str]:
    return {tag for tag in events.Tags()["scalars"] if tag.startswith("heads_")}


def test_a_run_logs_these_tags_and_no_others(watched: EventAccumulator) -> None:
    tags = watched.Tags()
    heads = {
        f"{measure}/layer_{layer}_head_{head}" for measure in shown.HEAD_CHARTS for layer in (0, 1) for head in (0, 1)
    }
    assert set(tags["scalars"]) == {
        *TRAINING - {"curves/tokens_per_second"},  # eight steps are too few to tell
        *("curves/train_loss_answer", "curves/train_loss_supervision"),
        *VALIDATION,
        *heads,
        *shown.FINAL_METRICS,
    }
    assert set(tags["images"]) == PICTURES
    assert set(tags["tensors"]) == {"custom_scalars__config__", "settings", "answers/english", "answers/chinese"}


def test_a_loss_of_one_part_is_logged_once_and_throughput_from_ten_steps_on(tiny: Tiny, tmp_path: Path) -> None:
    few = ("optimizer.steps=20", "validation.every=20", "trainer.pictures=0")
    events = read(train(tiny(tmp_path, *few)))
    assert {tag for tag in events.Tags()["scalars"] if tag.startswith("curves/")} - VALIDATION == TRAINING
    assert [one.step for one in events.Scalars("curves/train_loss")] == [1, 10, 20]
    assert [one.step for one in events.Scalars("curves/tokens_per_second")] == [10, 20]
    assert all(one.value > 0 for one in events.Scalars("curves/tokens_per_second"))
    assert events.Tags()["images"] == []


def test_the_charts_name_every_heads_curve_once_and_nothing_that_is_not_logged(watched: EventAccumulator) -> None:
    tags = watched.Tags()["scalars"]
    expressions = [each for category in charts(watched).values() for chart in category.values() for each in chart]
    tags_of = {each: [tag for tag in tags if re.match(each, tag)] for each in expressions}
    quiet = r"curves/tokens_per_second$"  # ten steps later
    assert [each for each, matched in tags_of.items() if not matched and each != quiet] == []
    for tag in head_tags(watched):
        assert sum(tag in matched for matched in tags_of.values()) == 1
    largest = [len(matched) for each, matched in tags_of.items() if each.startswith("heads_")]
    assert largest == [2] * 2 * len(shown.HEAD_CHARTS)  # a layer's heads


def test_charts_of_many_layers_tell_layer_1_from_layer_10(settings: Callable[..., Config]) -> None:
    charted = shown.scalar_layout(settings("model.layers=12", "model.attention.heads=4"), heads=True)
    expressions = [each for title in shown.HEAD_CHARTS.values() for chart in charted[title].values() for each in chart]
    tag = "heads_mass/layer_1_head_11"
    assert [each for each in expressions if re.match(each, tag)] == [r"heads_mass/layer_1_head_\d+$"]


def test_the_learning_rate_of_the_matrices_is_a_setting_to_compare_by(settings: Callable[..., Config]) -> None:
    muon = settings("optimizer.matrices=muon", "optimizer.matrices_learning_rate=0.02")
    assert shown.hyperparameters(muon)["optimizer.matrices_learning_rate"] == 0.02


def test_the_settings_to_compare_by_are_one_dozen_or_so_with_final_measures_and_no_hp_metric(
    watched: EventAccumulator,
) -> None:
    start = hparams(watched, metadata.SESSION_START_INFO_TAG)
    values = {name: value.number_value or value.string_value for name, value in start.hparams.items()}
    assert values["model.layers"] == 2
    assert values["model.position"] == "rotary"
    assert values["task.supervision.weight"] == 0.1
    assert values["optimizer.matrices_learning_rate"] == values["optimizer.learning_rate"] == 0.01
    assert len(values) <= 17
    experiment = metadata.parse_experiment_plugin_data(
        watched.SummaryMetadata(metadata.EXPERIMENT_TAG).plugin_data.content
    )
    measures = {one.name.tag for one in experiment.metric_infos}
    assert measures <= set(watched.Tags()["scalars"])
    assert "hp_metric" not in watched.Tags()["scalars"]
    assert watched.SummaryMetadata(metadata.SESSION_END_INFO_TAG).plugin_data.plugin_name == "hparams"


def test_what_was_reached_is_that_of_the_kept_weights(watched: EventAccumulator) -> None:
    losses = watched.Scalars("curves/validation_loss")
    best = min(losses, key=lambda one: float(one.value))
    (final,) = watched.Scalars("final/loss")
    assert (final.step, final.value) == (best.step, best.value)
    assert watched.Scalars("final/step")[0].value == best.step


def test_the_settings_of_a_run_stand_there_as_text(watched: EventAccumulator) -> None:
    text = watched.Tensors("settings")[0].tensor_proto.string_val[0].decode()
    page = html.unescape(re.sub("<[^>]+>", "", markdown_to_safe_html(text)))
    assert {"name: run", "  layers: 2", "    kind: rotary"} <= set(page.splitlines())


def test_pictures_are_few_and_spread_from_the_start_to_the_end(watched: EventAccumulator) -> None:
    for tag in PICTURES:
        assert [one.step for one in watched.Images(tag)] == [0, 2, 4, 6, 8]


@pytest.mark.parametrize(
    ("steps", "every", "most", "expected"),
    [(2500, 250, 8, 8), (2500, 250, 3, 3), (2500, 1, 8, 8), (10, 100, 8, 2), (2500, 250, 1, 1), (2500, 250, 0, 0)],
)
def test_however_long_a_run_its_moments_are_bounded(steps: int, every: int, most: int, expected: int) -> None:
    image_steps = shown.image_steps(steps, every, most)
    assert len(image_steps) == expected
    assert all(step % every == 0 or step == steps for step in image_steps)
    assert most == 0 or steps in image_steps
    assert most < 2 or 0 in image_steps


def test_a_moment_draws_once_for_each_probe_and_a_validation_else_nothing(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    monkeypatch.setattr(CurvesCallback, "_draw", lambda curves, board, model, step: steps.append(step))
    train(tiny(tmp_path, "trainer.pictures=2"))
    assert steps == [0, 8]


def test_the_probe_sentences_change_as_the_model_learns(watched: EventAccumulator) -> None:
    first, *_, last = watched.Images("probe_chinese/sentence_1_pronoun")
    begun, ended = (np.asarray(Image.open(BytesIO(each.encoded_image_string))) for each in (first, last))
    assert begun.shape == ended.shape
    assert not np.array_equal(begun, ended)


def test_a_model_without_maps_logs_no_map(tiny: Tiny, tmp_path: Path) -> None:
    events = read(train(tiny(tmp_path, "model/attention=gru", "trainer.pictures=8")))
    assert head_tags(events) == set()
    assert events.Tags()["images"] == []
    assert set(charts(events)) == {"Training · 训练"}
    assert "curves/validation_best_head" not in events.Tags()["scalars"]
    assert "answers/english" in events.Tags()["tensors"]


def test_logging_changes_nothing_of_what_is_learnt(tiny: Tiny, tmp_path: Path, finished: Path) -> None:
    more = train(tiny(tmp_path, "trainer.pictures=8", "model.dropout=0"))
    assert RunFiles(more).weights.read_bytes() == RunFiles(finished).weights.read_bytes()


def test_a_resumed_run_goes_on_with_its_curves_and_repeats_no_step(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole_step = TrainingModule.training_step

    def dies(module: TrainingModule, batch: Batch, batch_idx: int) -> Any:
        if module.global_step == 21:
            raise RuntimeError("the machine went down")
        return whole_step(module, batch, batch_idx)

    config = tiny(tmp_path, "optimizer.steps=30", "validation.every=15", "trainer.pictures=8")
    monkeypatch.setattr(TrainingModule, "training_step", dies)
    with pytest.raises(RuntimeError, match="the machine went down"):
        train(config)
    before = read(tmp_path / "run")
    assert [one.step for one in before.Scalars("curves/train_loss")] == [1, 10, 20]
    monkeypatch.setattr(TrainingModule, "training_step", whole_step)
    time.sleep(1.1)  # event files are read in the order of their names, which count seconds
    train(tiny(tmp_path, f"resume={tmp_path / 'run'}", "trainer.pictures=8"))
    events = read(tmp_path / "run")
    assert [one.step for one in events.Scalars("curves/train_loss")] == [1, 10, 20, 30]
    assert [one.step for one in events.Scalars("curves/validation_loss")] == [15, 30]
    assert [one.step for one in events.Images("probe_english/sentence_1_maps")] == [0, 15, 30]


def test_the_time_of_logging_stands_beside_that_of_training(finished: Path) -> None:
    record = json.loads(RunFiles(finished).training.read_text())
    assert 0 < record["curves_seconds"] < record["train_seconds"]


def test_a_run_that_needs_no_more_steps_still_tells_what_it_reached(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(history: ValidationCheckpoint) -> None:
        raise RuntimeError("the machine went down")

    finish = ValidationCheckpoint.finish
    monkeypatch.setattr(ValidationCheckpoint, "finish", dies)
    with pytest.raises(RuntimeError):
        train(tiny(tmp_path))
    monkeypatch.setattr(ValidationCheckpoint, "finish", finish)
    time.sleep(1.1)
    train(tiny(tmp_path, f"resume={tmp_path / 'run'}"))
    assert len(read(tmp_path / "run").Scalars("final/loss")) == 1


HARD = "a | b *c* _d_ `e` <script>f</script> [g](h) \\i # j & k ~~l~~ 他说：“好”"


def test_marks_in_a_text_are_shown_as_they_are() -> None:
    table = f"| one | two |\n| --- | --- |\n| {shown.escape_markdown(HARD)} | **{shown.escape_markdown('<b>')}** |"
    page = markdown_to_safe_html(table)
    cells = [html.unescape(re.sub("<[^>]+>", "", cell)) for cell in re.findall("<td>(.*?)</td>", page)]
    assert cells == [HARD, "<b>"]
    assert page.count("<strong>") == 1
    assert "<script" not in page
    assert "<b>" not in page


def test_settings_of_several_lines_are_shown_as_they_are() -> None:
    text = "a: '```'\nb:\n- <i>*c*\n"
    page = markdown_to_safe_html(shown.markdown_code_block(text))
    assert html.unescape(re.sub("<[^>]+>", "", page)).strip() == text.strip()


@pytest.fixture(scope="module")
def examples(table: Path) -> list[Any]:
    corpus = load_corpus(OwnExamples(path=str(table)))
    return [one for split in ("train", "dev", "test") for one in corpus.examples(split)]


def encoded(examples: list[Any]) -> Any:
    from anaphora.data.batches.encoded import EncodedSplit

    return EncodedSplit(examples, word_vocabulary([one.text for one in examples], (), 1))


def test_probes_are_two_different_sentences_of_each_language(examples: list[Any]) -> None:
    probes = shown.select_probes(examples, encoded(examples))
    assert [tag for tag, _ in probes] == sorted(
        {tag.rpartition("_")[0] for tag in PICTURES}, key=lambda tag: (not tag.startswith("probe_english"), tag)
    )
    assert len({examples[number].text for _, number in probes}) == 4
    assert {examples[number].language for tag, number in probes if "english" in tag} == {"en"}


def test_a_long_sentence_is_no_probe(examples: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "MAX_PROBE_WORDS", 3)
    assert shown.select_probes(examples, encoded(examples)) == []


def test_answers_stand_in_a_table_wrong_ones_first(examples: list[Any]) -> None:
    data = encoded(examples)
    chosen = np.array([one.antecedents[0] for one in examples])
    english = [number for number, one in enumerate(examples) if one.language == "en"]
    chosen[english[3]] = 1 - chosen[english[3]]
    pointed = np.zeros((len(examples), 2, 2), dtype=np.int64)
    predictions = shown.ValidationPredictions(chosen, np.full(len(examples), 0.75, np.float32), pointed)
    tables = shown.prediction_tables(predictions, data, (1, 0))
    lines, _, *rows = tables["answers/english"].split("\n")
    assert lines.startswith(f"{len(english) - 1} of {len(english)} right.")
    assert [row[2] for row in rows[2:]] == ["✗"] + ["✓"] * shown.MAX_TABLE_ROWS
    wrong = examples[english[3]]
    cells = [html.unescape(cell.strip()) for cell in rows[2].strip("|").split(" | ")]
    assert cells[1].replace("**", "").replace("<br>", "") == wrong.text
    assert cells[2:] == [
        wrong.words(wrong.antecedents[0]),
        f"{wrong.words(1 - wrong.antecedents[0])}\u00a0(0.75)",
        wrong.words(0),
    ]
    assert "第 1 层第 0 头" in tables["answers/chinese"].replace("\u00a0", " ")


def test_a_long_text_is_broken_between_words_so_that_names_beside_it_stay_whole() -> None:
    text = "Before Ada left, " * 9 + "she | met (Eve)."
    start = text.index("she")
    lines = shown._wrapped_markdown(text, (start, start + 3)).split("<br>")
    assert all(len(html.unescape(line).replace("**", "").rstrip()) <= shown._LINE_WIDTH for line in lines)
    assert html.unescape("".join(lines)) == text.replace("she", "**she**")
    assert all(line.endswith(" ") for line in lines[:-1])
    chinese = shown._wrapped_markdown("小明告诉小红，他走了。" * 8, (9, 10)).split("<br>")
    assert all(not line.startswith(("，", "。")) for line in chinese)
    assert "".join(chinese).count("**") == 2


@pytest.mark.parametrize("labels", ["shuffled", "nearest"])
def test_where_labels_are_replaced_the_table_shows_those_by_which_an_answer_is_right(
    examples: list[Any], labels: str
) -> None:
    # Another type of cue than gender, so that all candidates are compatible.
    data = encoded([replace(one, factors={**one.factors, "type": "other"}) for one in examples])
    replace_labels(data, labels, (0,))
    chosen = data.gold.argmax(axis=1)
    assert any(one.antecedents != (label,) for one, label in zip(examples, chosen.tolist(), strict=True))
    predictions = shown.ValidationPredictions(chosen, np.full(len(examples), 0.75, np.float32), None)
    for language, heading in (("english", "label"), ("chinese", "标签")):
        _, _, columns, _, *rows = shown.prediction_tables(predictions, data, None)[f"answers/{language}"].split("\n")
        assert columns.split(" | ")[2] == heading
        for row in rows:
            sign, _, label, answer = row.strip("|").split(" | ")
            assert (sign.strip(), f"{label}\u00a0(0.75)") == ("✓", answer.strip())
