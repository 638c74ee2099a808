from __future__ import annotations

import json
import re
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny import MIXED, random_model, tiny, tokenizer
from werkzeug.test import Client

import anaphora
from anaphora.api import OpenRun
from anaphora.api.live import questions
from anaphora.api.live.questions import FIRST_SENTENCES, FirstSentence, first_sentence
from anaphora.api.live.server import LiveApplication, open_server
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.commands.parts.shared import open_models
from anaphora.hf.reader import TransformersModel, open_model
from anaphora.report.page.explorer import unpack_map

TEXT = "Anna met Emma before she went to the park."
QUESTION: dict[str, Any] = {"model": "own", "text": TEXT, "pronoun": "she", "candidates": ["Anna", "Emma"]}


@pytest.fixture(scope="module")
def application(finished: Path) -> LiveApplication:
    models: dict[str, OpenRun | TransformersModel] = {
        "own": anaphora.load(finished),
        "bert": open_model(tiny("bert"), tokenizer()),
    }
    return LiveApplication(models, token="key", hosts=("127.0.0.1:8765",))


@pytest.fixture(scope="module")
def client(application: LiveApplication) -> Client:
    return Client(application)


def ask(client: Client, **changed: Any) -> tuple[int, dict[str, Any]]:
    reply = client.post(
        "/attention", json={**QUESTION, **changed}, headers={"X-Token": "key"}, base_url="http://127.0.0.1:8765"
    )
    return reply.status_code, json.loads(reply.data)


def test_a_question_gets_the_maps_and_the_answer_of_a_run(client: Client, application: LiveApplication) -> None:
    status, reply = ask(client)
    assert status == 200
    run = application.models["own"]
    assert isinstance(run, OpenRun)
    expected = run.attention(TEXT, "she", ["Anna", "Emma"])
    assert reply["sentence"]["words"] == list(expected.words)
    np.testing.assert_allclose(unpack_map(reply["sentence"]["maps"]["raw"]), expected.weights, atol=0.5 / 255 + 1e-6)
    shares = {one["candidate"]: one["share"] for one in reply["answers"]}
    assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
    assert max(shares, key=lambda name: shares[name]) == run.answer(TEXT, "she", ["Anna", "Emma"])
    assert reply["sentence"]["pronoun"] == [expected.words.index("she")]


def test_edges_are_cut_and_heads_switched_off_for_one_question_alone(client: Client) -> None:
    _, plain = ask(client)
    words = plain["sentence"]["words"]
    she, anna = words.index("she"), words.index("Anna")
    everywhere = [[layer, head, she, anna] for layer in range(2) for head in range(2)]
    _, cut = ask(client, cuts=everywhere)
    maps = unpack_map(cut["sentence"]["maps"]["raw"])
    assert (maps[:, :, she, anna] == 0).all() and unpack_map(plain["sentence"]["maps"]["raw"])[0, 0, she, anna] > 0
    assert cut["answers"] != plain["answers"]
    _, off = ask(client, off=[[0, 0], [0, 1]])
    assert off["answers"] != plain["answers"]
    _, again = ask(client)
    assert {**again, "seconds": 0} == {**plain, "seconds": 0}


def test_models_of_transformers_give_maps_and_no_answer(client: Client) -> None:
    _, reply = ask(client, model="bert")
    assert reply["answers"] is None and reply["chosen"] is None and not reply["is_decoder"]
    words = reply["sentence"]["words"]
    _, cut = ask(client, model="bert", cuts=[[1, 3, words.index("she"), words.index("Anna")]])
    maps = unpack_map(cut["sentence"]["maps"]["raw"])
    assert maps[1, 3, words.index("she"), words.index("Anna")] == 0


def test_an_edge_is_that_of_the_page_where_a_sink_precedes_the_words() -> None:
    opened = open_model(random_model("gpt_oss", **MIXED, num_local_experts=4, num_experts_per_tok=2), tokenizer())
    plain = questions.reply(opened, questions.parse({"text": TEXT}))["sentence"]
    words = plain["words"]
    she, anna = words.index("she"), words.index("Anna")
    cut = questions.reply(opened, questions.parse({"text": TEXT, "cuts": [[1, 3, she, anna]]}))["sentence"]
    before, after = unpack_map(plain["maps"]["raw"])[1, 3], unpack_map(cut["maps"]["raw"])[1, 3]
    assert words[0] == "[sink]" and before[she, anna] > 0
    np.testing.assert_array_equal(np.argwhere((before > 0) & (after == 0)), [[she, anna]])
    with pytest.raises(UserError, match=r"word \(0\) is the attention sink"):
        questions.reply(opened, questions.parse({"text": TEXT, "cuts": [[1, 3, she, 0]]}))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": "none"}, "model ('none') is not on this page, which has own, bert"),
        ({"text": " "}, "Type a sentence first."),
        ({"text": "a" * 5000}, "at most 4000"),
        ({"pronoun": "they"}, "pronoun ('they') is not in the text"),
        ({"pronoun": 3}, "pronoun (3) must be a text"),
        ({"candidates": "Anna"}, "must be a list of texts"),
        ({"cuts": [[0, 0, 1]]}, "cuts: [0, 0, 1] must be 4 whole numbers"),
        ({"cuts": [[0, 0, 1, 99]]}, "word (99) must be a position from 0 to"),
        ({"cuts": [[0, True, 1, 1]]}, "must be 4 whole numbers"),
        ({"off": [[9, 0]]}, "layer (9) must be from 0 to 1"),
        ({"off": [[0, 0]] * 300}, "off must be a list of at most 200"),
    ],
)
def test_a_wrong_question_is_answered_in_one_line(client: Client, changed: dict[str, Any], message: str) -> None:
    status, reply = ask(client, **changed)
    assert status == 400
    assert message in reply["error"] and "\n" not in reply["error"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"text": " "}, "请先输入一句话。"),
        ({"model": "none"}, "model（'none'）不在本页，本页有：own, bert"),
        ({"pronoun": "they"}, "pronoun（'they'）不在文本 'Anna met Emma before she went to the park.' 里"),
        ({"candidates": ["she"]}, "candidates：'she'（21:24）和代词 'she'（21:24）在文本里有共同的字符"),
        ({"cuts": [[0, 0, 1]]}, "cuts：[0, 0, 1] 必须是 4 个整数"),
        ({"off": [[9, 0]]}, "layer（9）必须在 0 到 1 之间"),
        ({"model": "bert", "text": "a " * 1500, "pronoun": None, "candidates": []}, "而 BertModel 最多容纳 64 个"),
    ],
)
def test_a_chinese_page_gets_its_errors_in_chinese(client: Client, changed: dict[str, Any], message: str) -> None:
    reply = client.post(
        "/attention?language=zh",
        json={**QUESTION, **changed},
        headers={"X-Token": "key"},
        base_url="http://127.0.0.1:8765",
    )
    assert reply.status_code == 400
    assert message in json.loads(reply.data)["error"]


@pytest.mark.parametrize("name", ["own", "bert"])
def test_a_text_whose_maps_would_be_too_large_is_refused(
    client: Client, application: LiveApplication, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    model = application.models[name]
    asked: dict[str, Any] = {"model": name, "pronoun": None, "candidates": []}
    heads = len(model.attending_layers) * model.heads
    count = len(model.run.tokenizer.encode(TEXT).ids if isinstance(model, OpenRun) else model.tokenize(TEXT).ids)
    monkeypatch.setattr(questions, "MOST_WEIGHTS", heads * count**2)
    assert ask(client, **asked)[0] == 200
    monkeypatch.setattr(questions, "MOST_WEIGHTS", heads * count**2 - 1)
    status, reply = ask(client, **asked)
    assert status == 400
    assert f"{count} tokens; the maps of all {heads} heads are shown for at most {count - 1}" in reply["error"]


def test_a_chinese_page_is_refused_in_chinese(client: Client) -> None:
    assert client.get("/?language=zh", base_url="http://127.0.0.1:8765").json == {
        "error": "请打开终端里显示的地址，它以令牌结尾"
    }
    page = client.get("/?token=key&language=zh", base_url="http://127.0.0.1:8765").get_data(as_text=True)
    assert FIRST_SENTENCES["zh"][1].text in page
    assert '<html lang="zh">' in page and '"/attention?language=" + document.documentElement.lang' in page


@pytest.mark.parametrize("path", ["/", "/side_by_side", "/font", "/?token=wrong"])
def test_nobody_gets_in_without_the_token(client: Client, path: str) -> None:
    reply = client.get(path, base_url="http://127.0.0.1:8765")
    assert reply.status_code == 403
    assert b"key" not in reply.data


def test_another_host_and_a_form_of_another_page_are_refused(client: Client) -> None:
    assert client.get("/?token=key", base_url="http://evil.example").status_code == 403
    body = json.dumps(QUESTION)
    form = client.post("/attention?token=key", data=body, content_type="text/plain", base_url="http://127.0.0.1:8765")
    assert form.status_code == 400
    simple = client.post(
        "/attention?token=key", data=body, content_type="application/json", base_url="http://127.0.0.1:8765"
    )
    assert simple.status_code == 400  # the token in the address alone is no leave to ask
    plain = client.post(
        "/attention", data=body, content_type="text/plain", headers={"X-Token": "key"}, base_url="http://127.0.0.1:8765"
    )
    assert plain.status_code == 400
    large = client.post(
        "/attention", data=b"[" * 200_000, headers={"X-Token": "key", "Content-Type": "application/json"},
        base_url="http://127.0.0.1:8765",
    )  # fmt: skip
    assert large.status_code == 413
    deep = client.post(
        "/attention", data=b"[" * 90_000, headers={"X-Token": "key", "Content-Type": "application/json"},
        base_url="http://127.0.0.1:8765",
    )  # fmt: skip
    assert deep.status_code == 400
    other = client.get("/?token=key&language=fr", base_url="http://127.0.0.1:8765")
    assert (other.status_code, other.json) == (400, {"error": "language must be one of en, zh"})


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_asks_its_own_server_alone_and_escapes_text(
    finished: Path, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "Anna met <script>alert(1)</script> Emma because she was weak."
    monkeypatch.setitem(FIRST_SENTENCES, language, (FirstSentence(hostile, "she", ["Anna", "Emma"]),) * 2)
    application = LiveApplication({"</script><b>": anaphora.load(finished)}, token="key")
    reply = Client(application).get(f"/?token=key&language={language}")
    page = reply.get_data(as_text=True)
    assert "<script>alert" not in page and "</script><b>" not in page
    assert "https://" not in page and "http://" not in page
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy
    assert {"en": "Type a sentence and see its attention", "zh": "输入一句话，看注意力"}[language] in page


def test_a_chinese_page_speaks_no_english(client: Client) -> None:
    page = client.get("/?token=key&language=zh", base_url="http://127.0.0.1:8765").get_data(as_text=True)
    shown = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    texts = re.findall(r">([^<>]+)<", shown) + re.findall(r'(?:aria-label|placeholder|title)="([^"]*)"', shown)
    known = {"English", "own", "bert", "Anna was rescued by Emma because she was weak."}
    english = [text for one in texts if re.search("[A-Za-z]{3,}", text := one.strip()) and text not in known]
    assert [text for text in english if not re.search("JavaScript|Enter", text)] == []
    data = json.loads(page.partition('id="explorer-data">')[2].partition("</script>")[0])
    assert (data["phrases"]["other"], data["maps"]["raw"], data["languages"]["en"]) == ("其他候选", "原始权重", "英语")


@pytest.fixture
def address(application: LiveApplication) -> Iterator[str]:
    before = application.hosts
    server, address = open_server(application, 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield address
    server.shutdown()
    server.server_close()
    application.hosts = before


def test_it_listens_on_this_machines_own_address(
    address: str, application: LiveApplication, capfd: pytest.CaptureFixture[str]
) -> None:
    assert address.startswith("http://127.0.0.1:") and address.endswith("token=key")
    with urllib.request.urlopen(address) as reply:
        assert reply.status == 200
    taken = int(address.split(":")[2].split("/")[0])
    with pytest.raises(UserError, match=rf"port \({taken}\) cannot be used \(Address already in use\); choose another"):
        open_server(application, taken)
    assert capfd.readouterr().err == ""


def test_models_of_one_name_are_distinguished(finished: Path, own_run: Path) -> None:
    assert list(open_models([str(finished)], Device())) == [finished.name]
    with pytest.raises(UserError, match="must name each run once"):
        open_models([str(finished), str(finished)], Device())


@pytest.mark.parametrize("pronoun", [None, "", "she"])
def test_the_pronoun_of_a_typed_sentence_is_found_by_itself(client: Client, pronoun: str | None) -> None:
    _, reply = ask(client, pronoun=pronoun)
    assert reply["pronoun"] == [TEXT.index("she"), TEXT.index("she") + 3] and len(reply["answers"]) == 2
    _, bare = ask(client, pronoun=None, text="Anna left.", candidates=[])
    assert bare["pronoun"] is None and bare["sentence"]["pronoun"] == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_page_opens_with_an_everyday_sentence_only_if_the_run_knows_all_its_words(
    finished: Path, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = anaphora.load(finished)
    _, of_corpus = FIRST_SENTENCES[language]
    assert first_sentence(run, language) == of_corpus
    monkeypatch.setitem(FIRST_SENTENCES, language, (FirstSentence("Anna met Tom .", "Tom", []), of_corpus))
    assert first_sentence(run, language).text == "Anna met Tom ."
    assert first_sentence(open_model(tiny("bert"), tokenizer()), language).text == "Anna met Tom ."
