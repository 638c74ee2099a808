from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from anaphora.analysis.evidence.plan import ALL_CONTROLS, CONTROLS
from anaphora.base.errors import UserError
from anaphora.cli import register_commands
from anaphora.commands.controls import TrainedControls
from anaphora.commands.cross_validate import CrossValidation
from anaphora.settings.compose import checked_resume, composed, for_hydra, with_quoted_texts
from anaphora.settings.data import PlainText
from anaphora.settings.model import prediction as prediction_settings
from anaphora.settings.run import Config, config_yaml, read_config
from anaphora.settings.typed import construct, error_message, resolve
from anaphora.settings.variants import SLOTS, VARIANTS
from anaphora.settings.vocabulary import WordVocabulary
from anaphora.studies.plan import StudyPlan

CONFIGS = Path(__file__).parents[2] / "configs"
Compose = Callable[..., Any]
EXPERIMENTS = sorted(path.stem for path in (CONFIGS / "experiment").glob("*.yaml"))
OPTIONS = [
    *(f"{group}={name}" for group, slot in SLOTS.items() for name in VARIANTS[slot.settings]),
    *(
        f"{group}={path.stem}"
        for group in ("data", "model", "recipe", "task", "task/prediction", "trainer")
        for path in sorted((CONFIGS / group).glob("*.yaml"))
    ),
]


BUILT_IN = (
    "data=controlled",
    "data=controlled_large",
    "data=gender_and_voice",
    "data=compositions",
    "data=short_text",
    "data=compositions_and_short_text",
)
"""Data options that need no file."""
LABELS = (
    *("task=classification", "task/prediction=label"),
    *("recipe=classification", "recipe=classification_fine_tuned"),
)
"""Options with a prediction head for labels."""
TEXTS = [
    f"data={name}" for name in ("plain_text", "labelled_text", "sst2", "rotten_tomatoes", "ag_news", "chnsenticorp")
]
ON_FILES = (
    *("chinese_pronouns", "chinese_pronouns_from_scratch", "gap", "pretrain"),
    *("sentiment", "sentiment_fine_tuned"),
)
"""Experiments on the user's data."""


def needed(option: str) -> list[str]:
    """Return the further arguments that an option requires."""
    if option in TEXTS:
        return ["data.path=somewhere", f"recipe={'pretrain' if option == 'data=plain_text' else 'classification'}"]
    if option.startswith("data="):
        return ["recipe=token_values", *([] if option in BUILT_IN else ["data.path=somewhere"])]
    if option in LABELS:
        return ["data=sst2", "data.path=somewhere"]
    return ["task.masked_lm=0.2"] if option == "task/prediction=none" else []


def test_there_are_experiments() -> None:
    assert EXPERIMENTS


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_composes_resolves_and_says_what_it_asks(name: str, compose: Compose) -> None:
    config = resolve(compose(f"experiment={name}", *(["data.path=somewhere"] if name in ON_FILES else [])), Config)
    assert isinstance(config, Config)
    lines = (CONFIGS / "experiment" / f"{name}.yaml").read_text().splitlines()
    assert lines[0] == "# @package _global_"
    assert lines[1].startswith("# ")


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_of_every_group_composes_resolves_and_is_read_back(
    option: str, compose: Compose, tmp_path: Path
) -> None:
    config = resolve(compose(option, *needed(option)), Config)
    (tmp_path / "config.yaml").write_text(config_yaml(config))
    assert read_config(tmp_path / "config.yaml") == config
    group, _, name = option.partition("=")
    if group in SLOTS and name in VARIANTS[SLOTS[group].settings]:
        place: Any = config
        for part in group.split("/"):
            place = getattr(place, part)
        assert type(place) is VARIANTS[SLOTS[group].settings][name]


@pytest.mark.parametrize("prediction", ["word", "slot", "bilinear", "pair"])
def test_fine_tuning_takes_another_prediction_head_that_can_say_none_of_them(prediction: str, compose: Compose) -> None:
    config = resolve(compose("recipe=fine_tuned", f"task/prediction={prediction}"), Config)
    assert config.task.prediction == VARIANTS[SLOTS["task/prediction"].settings][prediction](none_of_them=True)


@pytest.mark.parametrize(("primary", "settings"), [("train", Config), ("demo", Config)])
def test_every_primary_config_resolves(primary: str, settings: type[Any], compose: Compose) -> None:
    assert isinstance(resolve(compose(primary=primary), settings), settings)


def test_the_defaults_of_a_dataclass_are_the_defaults_of_the_command(compose: Compose) -> None:
    config = resolve(compose(), Config)
    assert config.vocabulary == WordVocabulary()
    for part in ("optimizer", "validation", "batching"):
        assert getattr(config, part) == type(getattr(config, part))()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("+new.key=2", "unknown setting new "),
        ("+model.wdth=3", r"unknown setting model.wdth; did you mean model.width\?"),
        ("+model.position.max_length=3", r"unknown setting model.position.max_length"),
        ("+optimizer.schedule.kind=x", "unknown setting optimizer.schedule"),
        ("model.width=7", r"model.width \(7\) must be a multiple of model.attention.heads \(2\)"),
        ("model.width=6", r"model.width / heads \(3\) must be even"),
        ("model.dropout=1.5", r"model.dropout \(1.5\) must be at least 0 and below 1"),
        ("model.values=other", r"model.values \('other'\) must be one of hidden, token"),
        ("model.norm.placement=mid", r"model.norm.placement \('mid'\) must be one of pre, post"),
        ("optimizer.decay=steps", r"optimizer.decay \('steps'\) must be one of linear, cosine, cooldown, constant"),
        ("optimizer.clip=0", r"optimizer.clip \(0.0\) must be positive"),
        ("validation.every=0", r"validation.every \(0\) must be at least 1"),
        ("trainer.device=tpu", r"trainer.device \('tpu'\) must be one of auto, cpu, cuda, mps"),
        ("trainer.precision=64", r"trainer.precision \('64'\) must be one of 32, bf16-mixed"),
        ("batching.tokens=5", r"batching.tokens \(5\) must be at least batching.row_tokens"),
        ("batching.kind=sorted", r"batching.kind \('sorted'\) must be one of packed, buckets"),
        ("data.seed=-1", r"data.seed \(-1\) must be at least 0"),
        ("data.languages=[en,de]", r"data.languages \('de'\) must be one of en, zh"),
        ("data=jsonl", "data.path is missing"),
        ("task/prediction=none", "task.masked_lm must be above 0"),
        ("data.kind=other", r"data.kind \('other'\) must be one of controlled, jsonl, dpr, gap"),
        ("vocabulary.kind=other", r"vocabulary.kind \('other'\) must be one of word, character, wordpiece, bpe"),
        ("vocabulary.min_count=0", r"vocabulary.min_count \(0\) must be at least 1"),
        ("name=${nothing.there}", "nothing.there"),
    ],
)
def test_a_wrong_setting_is_reported_by_its_path(override: str, message: str, compose: Compose) -> None:
    with pytest.raises(UserError, match=message) as error:
        resolve(compose(override), Config)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "override", ["model.wdth=3", "seed=abc", "seed=null", "model/position=magic", "nothing=3", "experiment=none"]
)
def test_what_hydra_itself_refuses_is_refused(override: str, compose: Compose) -> None:
    with pytest.raises((HydraException, OmegaConfBaseException)):
        compose(override)


@pytest.mark.parametrize("chosen", ["task.supervision.layers=[3]", "task.supervision.heads=[2]"])
def test_supervision_of_a_head_that_is_not_there_is_reported(chosen: str, compose: Compose) -> None:
    with pytest.raises(UserError, match=r"task.supervision.(layer|head)s \([23]\) must be"):
        resolve(compose("task.supervision.weight=1", chosen), Config)
    resolve(compose(chosen), Config)


def test_a_pointer_at_a_head_that_is_not_there_is_reported(compose: Compose) -> None:
    with pytest.raises(UserError, match=r"task.prediction.layer \(5\) must be at least -3 and below 3"):
        resolve(compose("task/prediction=pointer", "task.prediction.layer=5"), Config)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("model:\n  wdth: 3", "wdth"),
        ("modell:\n  width: 3", "modell"),
        ("model:\n  position:\n    bse: 3", "bse"),
        ("optimizer:\n  steps: many", "steps"),
    ],
)
def test_a_typo_in_an_experiment_file_is_refused(line: str, message: str, tmp_path: Path, compose: Compose) -> None:
    folder = Path(shutil.copytree(CONFIGS, tmp_path / "configs"))
    (folder / "experiment" / "typo.yaml").write_text(f"# @package _global_\n{line}\n")
    with pytest.raises((UserError, HydraException, OmegaConfBaseException)) as error:
        resolve(compose("experiment=typo", folder=folder), Config)
    assert message in f"{error.value} {error.value.__cause__}"


def test_a_stored_setting_that_is_no_more_known_is_reported_with_its_file(tmp_path: Path, compose: Compose) -> None:
    content = yaml.safe_load(config_yaml(resolve(compose(), Config)))
    content["optimizer"]["momentum"] = 0.9
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(
        UserError, match=r"config.yaml: unknown setting optimizer.momentum .*another version of Anaphora"
    ):
        read_config(tmp_path / "config.yaml")


def test_a_missing_group_of_settings_is_reported(compose: Compose) -> None:
    plain = OmegaConf.to_container(compose(), resolve=True)
    assert isinstance(plain, dict)
    del plain["model"]
    with pytest.raises(UserError, match="model is missing"):
        construct(Config, plain, "")


def test_every_variant_carries_a_kind_of_its_own() -> None:
    for base, options in VARIANTS.items():
        kinds = [variant.kind for variant in options.values()]
        assert len(set(kinds)) == len(kinds), base
        assert all(issubclass(variant, base) for variant in options.values())


def test_every_setting_has_a_type_that_is_checked() -> None:
    for base, options in VARIANTS.items():
        for variant in options.values():
            for one in dataclasses.fields(variant):
                if one.name != "kind":
                    with pytest.raises(UserError, match=one.name):
                        construct(base, {"kind": kind_of(variant), one.name: {"no": "such"}}, "group")


def kind_of(variant: type[Any]) -> str:
    return str(variant.kind)


def test_the_evidence_command_names_every_control() -> None:
    assert tuple(TrainedControls().controls) == CONTROLS
    assert {f"control_{name}" for name in ALL_CONTROLS} == {name for name in EXPERIMENTS if name.startswith("control_")}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ("optimizer.value_curriculum.end=0.7", "validation.keep=last"),
            r"optimizer.value_curriculum.end \(0.7\) must be from its start \(0\) to 2/3",
        ),
        (
            ("optimizer.value_curriculum.start=0.6", "optimizer.value_curriculum.end=0.5"),
            r"optimizer.value_curriculum.end \(0.5\) must be from its start \(0.6\)",
        ),
        (("optimizer.value_curriculum.end=0.5",), r"set validation.keep=last \(not best\)"),
        (
            ("optimizer.value_curriculum.end=0.5", "validation.keep=last", "trainer.compile=true"),
            "set trainer.compile=false",
        ),
        (
            ("optimizer.value_curriculum.end=0.5", "validation.keep=last", "model.values=token"),
            r"needs model.values=hidden \(not token\)",
        ),
        (("optimizer.frozen=[keys]",), r"optimizer.frozen \('keys'\) must be one of query, key, value, output"),
        (
            ("optimizer.frozen=[key]", "model/attention=shared_query_key"),
            r"optimizer.frozen \('key'\) is no projection of model.attention=shared_query_key; allowed: query, value",
        ),
        (
            ("optimizer.frozen=[value]", "model/attention=parameter_free"),
            r"optimizer.frozen \('value'\) is no projection of model.attention=parameter_free; allowed: none",
        ),
    ],
)
def test_what_cannot_be_frozen_is_reported(overrides: tuple[str, ...], message: str, compose: Compose) -> None:
    with pytest.raises(UserError, match=message):
        resolve(compose(*overrides), Config)
    resolve(compose("optimizer.frozen=[value]", "model/attention=uniform"), Config)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ("data=sst2",),
            r"task.prediction=word answers a question about a pronoun, and data=sst2 has none: choose task=masked_lm",
        ),
        (
            ("task=classification",),
            r"task.prediction=label needs texts with labels, for instance data=sst2, and data=contr",
        ),
        (
            ("data=plain_text", "task=classification"),
            r"task.prediction=label needs texts with labels.*data=plain_text has",
        ),
        (("data=plain_text", "task=masked_lm", "task.supervision.weight=1"), "data=plain_text has no pronouns"),
        (("data=plain_text", "task=masked_lm", "task.labels=shuffled"), "task.prediction=none learns none without"),
        (("task=masked_lm", "task.labels=shuffled"), "task.labels=shuffled replaces labels, and task.prediction=none"),
        (("task=masked_lm", "task.labels=nearest"), "task.labels=nearest replaces labels, and task.prediction=none"),
        (("data=sst2", "task=classification", "task.labels=nearest"), "task.labels=nearest needs pronouns"),
        (("data=sst2", "task=masked_lm", "task.labels=shuffled"), "task.prediction=none learns none without"),
        (
            ("data=sst2", "task=classification", "task.exchanged_names=true"),
            "task.exchanged_names gives candidates other names, and data=sst2 has no candidates",
        ),
        (("data=plain_text", "task=masked_lm", "task.other_names=2"), "task.other_names gives candidates other names"),
        (("task.labels=silver",), r"task.labels \('silver'\) must be one of gold, shuffled, nearest"),
        (
            ("data=sst2", "task=classification", "task.prediction.pooling=last"),
            r"task.prediction.pooling \('last'\) must be",
        ),
        (("data=sst2", "task=classification", "task.prediction.none_of_them=true"), "every text has one of the labels"),
        (
            ("data=sst2", "task=classification", "task.prediction.labels=[a,a]"),
            r"labels \(\['a', 'a'\]\) must name each",
        ),
        (("task=masked_lm", "task.prediction.none_of_them=true"), "none_of_them is an answer, and task.pred"),
        (
            ("data=sst2", "task=classification", "objective=best_head"),
            r"objective \(best_head\) is measured on pronouns, and data=sst2 has none: use validation_loss",
        ),
        (("vocabulary=bpe", "vocabulary.size=9"), r"vocabulary.size \(9\) must be at least 16"),
        (
            ("data=plain_text", "task=masked_lm", "model.second_sequence=true"),
            "model.second_sequence takes the pronoun out of the text, and data=plain_text has no pronouns",
        ),
        (
            ("task=masked_lm", "validation.patience=3"),
            r"validation.patience \(3\) waits for a lower validation loss, and task.prediction=none on data=controlled",
        ),
    ],
)
def test_a_task_that_the_data_cannot_answer_is_reported(
    overrides: tuple[str, ...], message: str, compose: Compose
) -> None:
    path = ("data.path=somewhere",) if overrides[0].startswith("data=") else ()
    with pytest.raises(UserError, match=message):
        resolve(compose(*overrides, *path), Config)


@pytest.mark.parametrize(
    ("overrides", "reader"),
    [
        (("task/prediction=pointer",), "task.prediction"),
        (("task.supervision.weight=1",), "task.supervision"),
        (("task/prediction=pair", "task.prediction.attention=true"), "task.prediction.attention=true"),
    ],
)
def test_an_encoder_whose_rows_are_read_is_not_compiled(
    overrides: tuple[str, ...], reader: str, compose: Compose
) -> None:
    assert not resolve(compose(*overrides), Config).trainer.compile
    with pytest.raises(UserError, match=f"attention rows, as {reader} does: set trainer.compile=false"):
        resolve(compose(*overrides, "trainer.compile=true"), Config)
    assert resolve(compose("trainer.compile=true"), Config).trainer.compile


def test_a_leading_tilde_is_the_home_in_every_setting_that_names_files(
    compose: Compose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/anna")
    own = ("data=plain_text", "data.path='~/pages.txt'", "data.also=['~/more.txt',here.txt]", "task=masked_lm")
    config = resolve(compose(*own, "output='~/runs'", "resume='~/tiny'", "name='~'"), Config)
    assert isinstance(config.data, PlainText)
    assert (config.data.path, config.data.also) == ("/home/anna/pages.txt", ["/home/anna/more.txt", "here.txt"])
    assert (config.output, config.resume, config.name) == ("/home/anna/runs", "/home/anna/tiny", "~")
    runs = ["~/ti*", "hf://owner/~", "~anna/run"]
    assert construct(CrossValidation, {"runs": runs}, "").runs == ["/home/anna/ti*", *runs[1:]]


@pytest.mark.parametrize("attention", ["gru", "lstm"])
@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("task/prediction=pair_with_attention", "task.prediction.attention=true"),
        ("objective=best_head", "objective=best_head"),
        ("task.supervision.weight=1", "task.supervision"),
        ("task/prediction=pointer", "task.prediction"),
    ],
)
def test_what_reads_attention_is_refused_where_there_is_none(
    attention: str, override: str, message: str, compose: Compose
) -> None:
    with pytest.raises(UserError, match=f"{message} needs attention rows, and model.attention={attention} has none"):
        resolve(compose(f"model/attention={attention}", override), Config)


def test_a_task_chooses_its_prediction_head_and_the_command_has_the_last_word(compose: Compose) -> None:
    hidden = ("data=plain_text", "data.path=somewhere", "task=masked_lm")
    assert resolve(compose(*hidden), Config).task.prediction == prediction_settings.NoPrediction()
    first = ("data=sst2", "data.path=somewhere", "task=classification")
    assert resolve(compose(*first), Config).task.prediction == prediction_settings.Label()
    assert (
        resolve(compose("task=masked_lm", "task/prediction=slot"), Config).task.prediction == prediction_settings.Slot()
    )


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("seeds=3", [3]),
        ("seeds=0,1", [0, 1]),
        ("more=trainer=smoke", ["trainer=smoke"]),
        ('only=[小红, "a,b",2024_10]', ["小红", "a,b", "2024_10"]),
        ("name=运行/第 1 次", "运行/第 1 次"),
        ("output=结果,一", "结果,一"),
        ("output=2024_10_05", "2024_10_05"),
        ("name=1e5", "1e5"),
        ("name=inf", "inf"),
        ("output=true", "true"),
        ("output=~/runs=1 (old)", "~/runs=1 (old)"),
    ],
)
def test_names_of_files_and_lists_are_read_as_they_are_typed(typed: str, read: object) -> None:
    (quoted,) = with_quoted_texts([typed], StudyPlan)
    value = OverridesParser.create().parse_override(quoted).value()
    if isinstance(value, list):
        value = [getattr(one, "text", one) for one in value]
    assert getattr(value, "text", value) == read


def test_other_arguments_and_sweeps_are_left_as_they_are() -> None:
    for arguments in (
        ["name=a,b", "text"],
        ["name=choice(1,2)", "output=range(1,3)", "resume=${name}", "name='1e5'", 'name="1"', "start=a/b 1.0"],
        ["-m", "name=a,b"],
        ["name=1,2", "output=甲,乙", "-m"],
        ["optimizer.frozen=a,b"],
    ):
        assert with_quoted_texts(arguments, Config) == arguments


def test_files_and_folders_may_have_chinese_names() -> None:
    assert with_quoted_texts(["-m", "name=2024_10_05", "seed=1,2"], Config) == ["-m", 'name="2024_10_05"', "seed=1,2"]
    typed = ["name=运行", "data.path=目录/样例.jsonl", "name=own", "data=jsonl"]
    assert with_quoted_texts(typed, Config) == ['name="运行"', 'data.path="目录/样例.jsonl"', "name=own", "data=jsonl"]


def test_the_place_of_data_beside_resume_is_that_of_moved_data() -> None:
    typed = ["resume=outputs/own", "data.path=there/items.jsonl", "trainer.device=cpu"]
    assert checked_resume(typed) == [typed[0], "resume_data.path=there/items.jsonl", typed[2]]
    assert checked_resume(typed[1:]) == typed[1:]
    lists = ["resume=outputs/own", "data.also=[a.txt]", "data.without=[b.jsonl]"]
    assert checked_resume(lists) == [lists[0], "resume_data.also=[a.txt]", "resume_data.without=[b.jsonl]"]


def test_hydra_gets_its_options_last_and_a_place_of_settings_as_an_absolute_path() -> None:
    typed = ["seed=1,2", "-m", "--config-dir", "mine", "name=a", "--info", "optimizer.steps=3"]
    assert for_hydra(typed) == ["seed=1,2", "name=a", "optimizer.steps=3", "-m", "--config-dir", "mine", "--info"]
    assert for_hydra(["-i", "defaults", "seed=1"]) == ["seed=1", "-i", "defaults"]
    assert for_hydra(["-cp", "."]) == ["-cp", str(Path.cwd())]
    assert for_hydra(["--config-path=."]) == [f"--config-path={Path.cwd()}"]
    moved = ["hydra.run.dir=there", "hydra.job.chdir=true"]
    assert for_hydra(moved) == moved


def test_a_file_of_settings_without_its_package_is_told_the_line_that_it_lacks(
    tmp_path: Path, compose: Compose
) -> None:
    folder = Path(shutil.copytree(CONFIGS, tmp_path / "configs"))
    (folder / "experiment" / "mine.yaml").write_text("optimizer:\n  steps: 3\n")
    with pytest.raises(HydraException) as caught:
        compose("experiment=mine", folder=folder)
    assert error_message(caught.value) == (
        "experiment/mine.yaml: settings of several groups need the first line '# @package _global_' in this file"
    )


@pytest.mark.parametrize("file", ["experiment/mine.yaml", "recipe/mine.yaml", "model/mine.yaml"])
def test_a_number_for_a_boolean_in_a_file_is_refused(file: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(CONFIGS, tmp_path / "configs"))
    group = file.partition("/")[0]
    text = "tied_output: {}\n" if group == "model" else "# @package _global_\nmodel:\n  tied_output: {}\n"
    register_commands()
    (folder / file).write_text(text.format(2))
    with pytest.raises(
        UserError, match=rf"^{group}=mine: model.tied_output \(2\) must be of type bool \(true or false"
    ):
        composed(folder, "train", [f"{group}=mine"])
    (folder / file).write_text(text.format("false"))
    assert not composed(folder, "train", [f"{group}=mine"]).model.tied_output


def test_a_chosen_file_whose_values_a_recipe_replaces_is_reported(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(CONFIGS, tmp_path / "configs"))
    (folder / "model" / "thin.yaml").write_text("width: 32\ndropout: 0.2\n")
    register_commands()
    assert composed(folder, "train", ["model=thin"]).model.width == 32
    with pytest.raises(UserError, match=r"^model=thin sets model.width to 32, but recipe=small sets it to 64: write"):
        composed(folder, "train", ["model=thin", "recipe=small"])
    both = composed(folder, "train", ["recipe=small", "model=thin", "model.width=32"])
    assert (both.model.width, both.model.dropout) == (32, 0.2)
    composed(folder, "train", ["recipe=small", "experiment=compositions", "trainer=smoke", "data=short_text"])
    composed(folder, "train", ["recipe=small", "task=masked_lm", "task/prediction=none"])
    long = 5000 * "x"
    assert composed(folder, "train", ["recipe=small", f"output={long}"]).output == long
