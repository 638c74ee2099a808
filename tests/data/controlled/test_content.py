from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from controlled_content import check_compositions, check_cue_type, check_file, check_lexicon, check_texts

from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES
from anaphora.data.controlled import compositions, lexicon, templates
from anaphora.data.controlled.lexicon import CONTENT_FOLDER, FOLDERS
from anaphora.settings.cue_types import cue_types_of

FILES = [
    (language, path.stem) for language in LANGUAGES for path in (CONTENT_FOLDER / FOLDERS[language]).glob("*.toml")
]


@pytest.mark.parametrize(("language", "name"), sorted(FILES))
def test_every_file_of_the_content_is_right(language: str, name: str) -> None:
    check_file(language, name, CONTENT_FOLDER)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_lexicon_and_each_type_of_cue_have_a_file(language: str) -> None:
    assert {name for of, name in FILES if of == language} == {"lexicon", *cue_types_of(language)}


@pytest.fixture
def content(tmp_path: Path) -> Path:
    for folder in FOLDERS.values():
        shutil.copytree(CONTENT_FOLDER / folder, tmp_path / folder)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "written", "message"),
    [
        ("lexicon", "[classes]\n", "lexicon.toml: intro: the key is missing"),
        ("gender", '[[template]]\ntext = "{list} {he} left ."\n', "gender.toml: split: the key is missing"),
        ("composition", "class = []\nstate = []\n", "composition.toml: frame: the key is missing"),
        ("short_text", "train = []\n", "short_text.toml: dev: the key is missing"),
        ("lexicon", "intro = [\n", "lexicon.toml: not TOML: "),
    ],
)
def test_a_broken_file_is_named_when_it_is_loaded(content: Path, name: str, written: str, message: str) -> None:
    loaded = {"lexicon": lexicon.load, "composition": compositions.load, "short_text": compositions.load_texts}
    (content / "english" / f"{name}.toml").write_text(written, encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(message)):
        loaded[name]("en", content) if name in loaded else templates.load("en", name, content)


@pytest.mark.parametrize(
    ("name", "added", "message"),
    [
        ("gender", 'split = "test"\ntext = "{list} left {and} ."', "unknown slot {and}; allowed:"),
        ("gender", 'split = "valid"\ntext = "{list} {he} left ."', "split is 'valid'; allowed: train, dev, test"),
        ("gender", 'split = "train"\ntext = "{list} met , {he}left ."', "'{he}left' is neither a word nor a slot"),
        ("gender", 'split = "train"\ntext = "{A} met , {he} left ."', "must be one {list}, or {A} and {B}"),
        ("gender", 'split = "train"\ntext = "{list} met ."', "one pronoun, or two"),
        ("gender", 'split = "train"\ntext = "{list} met  and {he} left ."', "tokens separated by single spaces"),
        ("gender", 'split = "train"\ntext = "{list} {aside} {he} left ."', "{aside} must come after a full stop"),
        ("gender", 'split = "train"\ntext = "since {he} left , {list} met ."', "cataphora is false, but the pronoun"),
        ("gender", 'split = "test"\ntext = "{list} : {he:1} left , {his:2} hat fell ."', "must have the same form"),
        ("gender", 'split = "test"\ntext = "{list} {he} left ."\nhard = 1', "unknown entry 'hard'"),
        ("selection", 'split = "train"\ntext = "{list} : {he} was old ."', "exactly one {cue} is needed"),
        ("causality", 'split = "train"\ntext = "{event} as {he} {verb} ."', "with scenario 0: unknown slot {verb}"),
    ],
)
def test_a_wrong_template_is_named(content: Path, name: str, added: str, message: str) -> None:
    path = content / "english" / f"{name}.toml"
    count = len(templates.load("en", name, content).templates)
    # Before the scenarios, if there are any, so that the last template is the wrong one.
    path.write_text(path.read_text(encoding="utf-8") + f"\n[[template]]\n{added}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        check_cue_type("en", name, content)
    assert f"english/{name}.toml, template {count} (" in str(caught.value)


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ('first.event = ["{A} left {B}"]', "both need the same slots"),
        ('state = ["ill"]\nfirst.event = ["{A} {B}", "{C}"]\nsecond.event = ["{A} {B}"]', "unknown slot {C}"),
        ('state = ["ill"]\nfirst.event = ["{A} {B}", "{A}"]\nsecond.event = ["{A} {B}"]', "{A} and {B} are needed"),
        ('state = ["a", "a"]\nfirst.event = ["{A} {B}"]\nsecond.event = ["{B} {A}"]', "'a' appears twice"),
    ],
)
def test_a_wrong_scenario_is_named(content: Path, added: str, message: str) -> None:
    path = content / "english" / "causality.toml"
    count = len(templates.load("en", "causality", content).scenarios)
    path.write_text(path.read_text(encoding="utf-8") + f"\n[[scenario]]\n{added}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        check_cue_type("en", "causality", content)
    assert f"scenario {count}" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"king/kings"', '"king"', "classes.male.nouns: 'king' must be written singular/plural"),
        ('"king/kings"', '"queen/queens"', "'queen' is also in classes.male"),
        ("[classes.thing]", "[classes.things]", "unknown entry 'things'"),
        ("intro = [", "intro = [3, ", "must be a list of texts"),
        ("intro = [", "intro = ", "not TOML"),
    ],
)
def test_a_wrong_lexicon_entry_is_named(content: Path, old: str, new: str, message: str) -> None:
    path = content / "english" / "lexicon.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=r"english/lexicon\.toml") as caught:
        check_lexicon("en", content)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'agent = ["rescue", "beat"]',
            'agent = ["rescue", "bet"]',
            r"state 'was strong'.*unknown class 'bet'; allowed",
        ),
        (
            'agent = ["rescue", "beat"]',
            'agent = ["rescue"]',
            r"'was strong', agent: it has 1, and at least 2 are needed",
        ),
        ('patient = ["cling", "fear"]', 'patient = ["cling", "beat"]', r"of beat it picks both participants"),
        ('frames = ["past", ', 'frames = ["passed", ', r"class 'rescue': unknown frame 'passed'; allowed: past"),
        ("{agent} {inside} {finite} {patient}", "{agent} {inside} {finite}", r"must hold \{agent\} and \{patient\}"),
        ("{agent} {inside} {finite} {patient}", "{patient} {finite} {agent}", r"is not agent_first"),
        ('"next door to {x}"', '"next door (to|of) us"', r"\[train\], between: 'next door to us' must hold \{x\}"),
        ('"carried / carried"', '"rescued / rescued"', r"'rescued / rescued' appears twice"),
        ("[dev]\nprefix", "[dev]\nprefixes", r"\[dev\]: unknown entry 'prefixes'; allowed: after"),
        ("[[state]]", "[[states]]", r"unknown entry 'states'; allowed: class"),
    ],
)
def test_a_wrong_entry_of_compositions_is_named(old: str, new: str, message: str, content: Path) -> None:
    path = content / "english" / "composition.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1 if old != "[[state]]" else -1), encoding="utf-8")
    with pytest.raises(ValueError, match=message) as error:
        check_compositions("en", content)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ("{he} {state} .", "must hold {event}, {he} and {state} once"),
        ("{event} . {event} because {he} {state} .", "must hold {event}, {he} and {state} once"),
        (
            "{A} met {second} . {event} because {he} {state} .",
            "no slots beside them but {first}, {second}, {x} and pools",
        ),
        ("{first}'s friend . {event} because {he} {state} .", "blanks around each"),
        ("{event} because {he} {state} , {third} .", "no slots beside them but {first}, {second}, {x} and pools"),
    ],
)
def test_a_wrong_text_is_named(tmp_path: Path, old: str, message: str) -> None:
    path = tmp_path / "english" / "short_text.toml"
    path.parent.mkdir()
    right = "{first} met {second} . {event} because {he} {state} ."
    path.write_text(f'train = ["{right}"]\ndev = ["{right}"]\ntest = ["{old}"]\n', encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        check_texts("en", tmp_path)
    assert str(path) in str(error.value)
