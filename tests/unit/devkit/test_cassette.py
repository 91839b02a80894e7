"""Recorded answers of providers: played back for the same request, without a key."""

from pathlib import Path

import httpx2

from flowise_dev_agent.devkit.cassette import Cassette
from flowise_dev_agent.devkit.standin import ModelStandIn

KEY = "sk-very-secret-key-1234567890"
BODY = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}
PATH = "/openai/v1/chat/completions"


def ask(cassette: Cassette, body: dict[str, object] = BODY, key: str = KEY) -> httpx2.Response:
    headers = {"authorization": f"Bearer {key}"}
    return httpx2.post(f"{cassette.endpoint}{PATH}", json=body, headers=headers, timeout=30)


def test_a_recorded_answer_is_played_back_without_a_key(tmp_path: Path, standin: ModelStandIn) -> None:
    upstream = {"openai": standin.endpoint}
    with Cassette(tmp_path, record=True, upstream=upstream) as recorder:
        first = ask(recorder)
        streamed = ask(recorder, {**BODY, "stream": True})
    asked = len(standin.requests)
    with Cassette(tmp_path) as player:
        again = ask(player, dict(reversed(list(BODY.items()))), key="none")
        stream_again = ask(player, {**BODY, "stream": True}, key="none")
        assert (player.hits, player.misses) == (2, 0)
    assert first.status_code == 200
    assert again.json() == first.json()
    assert (stream_again.text, stream_again.headers["content-type"]) == (
        streamed.text,
        streamed.headers["content-type"],
    )
    assert len(standin.requests) == asked
    assert all(KEY not in file.read_text() for file in tmp_path.iterdir())


def test_what_is_not_on_the_cassette_is_said(tmp_path: Path) -> None:
    with Cassette(tmp_path) as player:
        answer = ask(player)
    assert answer.status_code == 404
    assert "no answer for this request" in answer.json()["error"]["message"]
    assert player.misses == 1
