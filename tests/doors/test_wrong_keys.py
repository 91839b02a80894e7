"""A key that Google refuses, with the status of a malformed request: as a session, doctor and the page tell it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from flowise_dev_agent.cli.doctor import examine
from flowise_dev_agent.persistence import Database
from flowise_dev_agent.settings import DatabaseSettings, FlowiseSettings, ReasoningSettings, Settings
from tests.chaos.fake_flowise import FakeFlowise
from tests.doors.peer import Peer
from tests.doors.peers import DOORS
from tests.doors.sessions import FLOWISE_KEY, SCRIPT, own_variables, run
from tests.doors.sessions import service as runtime_of
from tests.e2e.scripted import REQUIREMENT
from tests.integration.api.test_connections import service as api_of

WRONG = "sk-doors-9876543210"


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    for variable in own_variables():
        monkeypatch.delenv(variable)
    with Peer(DOORS["gemini"], SCRIPT) as running:
        yield running


async def test_a_session_says_which_key_to_check(database_dsn: str, peer: Peer) -> None:
    variables = DOORS["gemini"].settings(peer.endpoint) | {"GOOGLE_API_KEY": WRONG}
    with FakeFlowise(api_key=FLOWISE_KEY, latency=0) as flowise:
        async with runtime_of(database_dsn, flowise, variables) as runtime:
            view = await run(runtime, REQUIREMENT)
    assert view.error
    assert (view.error.code, view.error.hint) == ("model_auth", "Check GOOGLE_API_KEY.")


async def test_doctor_says_which_key_to_check(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    named: dict[str, Any] = {**DOORS["gemini"].settings(peer.endpoint), "GOOGLE_API_KEY": WRONG}
    nowhere: dict[str, Any] = {"FLOWISE_API_ENDPOINT": "http://127.0.0.1:9", "FLOWISE_CONNECT_TIMEOUT": 0.2}
    settings = Settings(
        reasoning=ReasoningSettings(**named), flowise=FlowiseSettings(**nowhere), database=DatabaseSettings()
    )
    await examine(settings, as_json=True)
    told = {one["name"]: one for one in json.loads(capsys.readouterr().out)["checks"]}["Reasoning"]
    assert (told["code"], told["hint"]) == ("model_auth", "Check GOOGLE_API_KEY.")
    assert WRONG not in json.dumps(told)


async def test_the_page_says_that_the_key_is_wrong_and_not_the_model(
    database_dsn: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in own_variables():
        monkeypatch.delenv(variable)
    with Peer(DOORS["gemini compatible"], SCRIPT) as peer:
        async with api_of(database_dsn, database) as http:
            body = {"engine": "openai", "base_url": f"{peer.endpoint}/v1beta/openai", "api_key": WRONG}
            refused = await http.put("/connections/model", json=body)
    assert (refused.status_code, refused.json()["code"]) == (502, "model_auth")
    assert refused.json()["texts"]["hint"]["code"] == "error.wrong_model_key"
    assert WRONG not in refused.text
