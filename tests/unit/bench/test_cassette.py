"""Recorded answers of a model: kept by case, phase and call, and played back without a key."""

from pathlib import Path

import httpx2
import pytest

from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInFailure, StandInToolCall
from flowise_dev_agent.devkit.standin.protocol import RecordedRequest, StandInMessage
from scripts.bench.cassette import Cassette, RecordedCase, phase_of

KEY = "sk-very-secret-key-1234567890"
REQUIREMENT = "A bot that knows our\nreturn policy"
PATHS = {"openai": "/openai/v1/chat/completions", "anthropic": "/anthropic/v1/messages"}


def ask(
    cassette: Cassette,
    text: str = REQUIREMENT,
    *,
    phase: str = "Plan",
    provider: str = "openai",
    key: str = KEY,
    stream: bool = False,
) -> httpx2.Response:
    user = {"role": "user", "content": f"<requirement>\n{text}\n</requirement>"}
    system = f"Rules.\n\n# {phase}\nDo it."
    body = {"model": "m", "messages": [user], "stream": stream}
    if provider == "openai":
        body["messages"] = [{"role": "system", "content": system}, user]
    else:
        body |= {"system": system, "max_tokens": 100}
    headers = {"authorization": f"Bearer {key}", "x-api-key": key}
    return httpx2.post(f"{cassette.endpoint}{PATHS[provider]}", json=body, headers=headers, timeout=30)


def said(response: httpx2.Response) -> str:
    body = response.json()
    return body["choices"][0]["message"]["content"] if "choices" in body else body["content"][0]["text"]


def recorder(folder: Path, standin: ModelStandIn) -> Cassette:
    upstream = {"openai": standin.endpoint, "anthropic": standin.endpoint}
    return Cassette(folder, cases={"returns": REQUIREMENT}, upstream=upstream)


@pytest.mark.parametrize("provider", PATHS)
def test_a_recorded_answer_is_played_back_without_a_key(provider: str, tmp_path: Path, standin: ModelStandIn) -> None:
    standin.script("return policy", Reply("The plan."))
    with recorder(tmp_path, standin) as recording:
        assert said(ask(recording, provider=provider)) == "The plan."
    standin.reset()
    with Cassette(tmp_path) as player:
        assert said(ask(player, provider=provider, key="none")) == "The plan."
        streamed = ask(player, provider=provider, key="none", stream=True)
        assert (player.hits, player.misses, player.changed) == (2, 0, [])
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert "The" in streamed.text
    assert standin.requests == []
    assert KEY not in "".join(file.read_text() for file in tmp_path.iterdir())


def test_tool_calls_are_kept_with_their_arguments(tmp_path: Path, standin: ModelStandIn) -> None:
    standin.script("return policy", Reply("", (StandInToolCall("get_node", {"name": "toolAgent"}),)))
    with recorder(tmp_path, standin) as recording:
        ask(recording)
    with Cassette(tmp_path) as player:
        call = ask(player).json()["choices"][0]["message"]["tool_calls"][0]["function"]
    assert (call["name"], call["arguments"]) == ("get_node", '{"name": "toolAgent"}')


def test_answers_are_numbered_per_phase_of_a_case(tmp_path: Path, standin: ModelStandIn) -> None:
    with recorder(tmp_path, standin) as recording:
        ask(recording, phase="Classify")
        ask(recording)
        ask(recording, f"{REQUIREMENT}, in French")
    case = RecordedCase.model_validate_json((tmp_path / "returns.json").read_text())
    assert [(answer.phase, answer.number) for answer in case.answers] == [("classify", 1), ("plan", 1), ("plan", 2)]


def test_a_changed_prompt_gets_the_next_answer_of_its_phase_and_is_reported(
    tmp_path: Path, standin: ModelStandIn
) -> None:
    standin.script("the first words", Reply("one"))
    standin.script("the second words", Reply("two"))
    with recorder(tmp_path, standin) as recording:
        ask(recording, f"{REQUIREMENT} the first words")
        ask(recording, f"{REQUIREMENT} the second words")
    with Cassette(tmp_path) as player:
        assert said(ask(player, f"{REQUIREMENT} other words")) == "one"
        assert said(ask(player, f"{REQUIREMENT} the second words")) == "two"
        assert said(ask(player, f"{REQUIREMENT} and others")) == "two"
        assert player.changed == ["returns plan 1 session", "returns plan 2 session"]


def test_ids_that_differ_from_run_to_run_do_not_make_another_prompt(tmp_path: Path, standin: ModelStandIn) -> None:
    with recorder(tmp_path, standin) as recording:
        ask(recording, f"{REQUIREMENT} 12345678-1234-4234-8234-123456789abc")
    with Cassette(tmp_path) as player:
        ask(player, f"{REQUIREMENT} 87654321-1234-4234-8234-123456789abc")
        assert (player.hits, player.changed) == (1, [])


def test_what_is_not_on_the_cassette_is_said(tmp_path: Path) -> None:
    with Cassette(tmp_path) as player:
        answer = ask(player)
    assert answer.status_code == 404
    assert "the requirement of no case" in answer.json()["error"]["message"]


def test_a_failure_of_the_provider_is_not_kept(tmp_path: Path, standin: ModelStandIn) -> None:
    standin.script("return policy", StandInFailure.http(503), times=1)
    with recorder(tmp_path, standin) as recording:
        assert ask(recording).status_code == 503
        assert ask(recording).status_code == 200
    case = RecordedCase.model_validate_json((tmp_path / "returns.json").read_text())
    assert len(case.answers) == 1


def test_a_question_about_a_flow_belongs_to_the_plan_phase() -> None:
    said = StandInMessage(role="system", text="# Question\nAnswer.")
    request = RecordedRequest(provider="openai", kind="chat", path="", model="m", body={}, messages=(said,))
    assert phase_of(request) == "plan"
