"""Capabilities of a model: learned once for all processes, checked by small calls."""

from datetime import UTC, datetime
from typing import Any

from flowise_dev_agent.devkit.standin import ModelStandIn, Reply, StandInFailure, StandInToolCall
from flowise_dev_agent.models import StoredCapabilities
from flowise_dev_agent.models.capabilities import Capabilities
from flowise_dev_agent.models.check import check_model
from flowise_dev_agent.models.engine import ModelEngine
from flowise_dev_agent.models.messages import Message
from flowise_dev_agent.ops.models import model_views
from flowise_dev_agent.persistence import Database, ModelCapabilityRows
from flowise_dev_agent.schemas.service import ModelCheck
from flowise_dev_agent.settings import ReasoningSettings

HELLO = [Message(role="user", content="Hello")]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}


def _settings(standin: ModelStandIn) -> ReasoningSettings:
    own: dict[str, Any] = {
        "REASONING_ENGINE": "openai",
        "OPENAI_API_KEY": "sk-very-secret-key-1234",
        "OPENAI_BASE_URL": standin.base_url_openai,
        "REASONING_MAX_RETRIES": 0,
        # It takes a temperature.
        "REASONING_MODEL": "gpt-4.1",
    }
    return ReasoningSettings(**own)


async def _ask(engine: ModelEngine) -> None:
    try:
        await engine.complete(HELLO, "s", temperature=0.2, output_schema=SCHEMA, phase="plan")
    finally:
        await engine.aclose()


async def test_p107_a_refusal_costs_one_request_for_all_processes(standin: ModelStandIn, database: Database) -> None:
    standin.script(lambda r: "temperature" in r.body, StandInFailure.http(400, "temperature is not supported"))
    standin.script("Hello", Reply(json={"name": "x"}))
    for _ in range(2):
        await _ask(ModelEngine(_settings(standin), StoredCapabilities(ModelCapabilityRows(database))))
    assert ["temperature" in request.body for request in standin.requests] == [True, False, False]


async def test_a_database_that_is_away_costs_nothing_but_the_memory(standin: ModelStandIn, database: Database) -> None:
    standin.script("Hello", Reply(json={"name": "x"}))
    away = Database("postgresql://nobody@127.0.0.1:1/none", min_size=1, max_size=1)
    await _ask(ModelEngine(_settings(standin), StoredCapabilities(ModelCapabilityRows(away))))
    assert len(standin.requests) == 1


async def test_p105_the_check_finds_tools_that_a_schema_silences(standin: ModelStandIn, database: Database) -> None:
    store = StoredCapabilities(ModelCapabilityRows(database))
    call = Reply(tool_calls=(StandInToolCall("check__word", {}, "c1"),))
    standin.script(lambda r: bool(r.tools) and not r.json_schema, call)
    standin.script("The first word is", Reply(json={"first": "larch", "last": "heron"}))
    standin.script(lambda r: bool(r.json_schema), Reply(json={"first": "a", "last": "z"}))
    engine = ModelEngine(_settings(standin), store)
    before = datetime.now(UTC)
    found = await check_model(engine)
    await engine.aclose()
    assert len(standin.requests) <= 5
    assert (found.schema_held, found.tools, found.tools_with_schema, found.reads_whole_prompt) == (
        True,
        True,
        False,
        True,
    )
    again = ModelEngine(_settings(standin), store)
    known = await again.capabilities()
    await again.aclose()
    assert known.checked is not None
    assert (known.together, known.checked["tools"]) == (False, True)
    assert before <= datetime.fromisoformat(known.checked["checked_at"]) <= datetime.now(UTC)


async def test_a_process_that_learns_something_keeps_the_check_of_another(
    standin: ModelStandIn, database: Database
) -> None:
    store = StoredCapabilities(ModelCapabilityRows(database))
    working = ModelEngine(_settings(standin), store)
    standin.script(lambda r: "temperature" in r.body, StandInFailure.http(400, "temperature is not supported"))
    standin.script(lambda r: bool(r.json_schema), Reply(json={"first": "a", "last": "z"}))
    await store.save(standin.base_url_openai, "gpt-4.1", Capabilities(checked={"of": "an earlier check"}))
    await working.capabilities()
    other = ModelEngine(_settings(standin), store)
    found = await check_model(other)
    await other.aclose()
    await _ask(working)
    known = await store.load(standin.base_url_openai, "gpt-4.1")
    assert known
    assert known.checked == found.model_dump(mode="json")
    assert not known.temperature


async def test_a_running_process_uses_what_a_check_of_another_found(standin: ModelStandIn, database: Database) -> None:
    store, now = StoredCapabilities(ModelCapabilityRows(database)), 0.0
    running = ModelEngine(_settings(standin), store, clock=lambda: now)
    before = await running.capabilities()
    assert before.together is None
    checking = ModelEngine(_settings(standin), store)
    call = Reply(tool_calls=(StandInToolCall("check__word", {}, "c1"),))
    standin.script(lambda r: bool(r.tools) and not r.json_schema, call)
    standin.script(lambda r: bool(r.json_schema), Reply(json={"first": "a", "last": "z"}))
    found = await check_model(checking)
    await checking.aclose()
    now = 59.0
    assert (await running.capabilities()).checked is None
    now = 60.0
    known = await running.capabilities()
    await running.aclose()
    assert (known.together, known.checked) == (False, found.model_dump(mode="json"))
    # A request that is under way sees it, too.
    assert known is before


async def test_what_is_lost_with_each_model_is_told_without_asking_its_provider(
    standin: ModelStandIn, database: Database
) -> None:
    store = StoredCapabilities(ModelCapabilityRows(database))
    own: dict[str, Any] = {
        "REASONING_ENGINE": "openai",
        "OPENAI_BASE_URL": standin.base_url_openai,
        "REASONING_MODEL": "a-model-of-our-own",
        "REASONING_ALLOWED_MODELS": "claude:claude-sonnet-5-5,gpt-4.1",
        "ANTHROPIC_API_KEY": "sk-very-secret-key-1234",
        "REASONING_EFFORT": "high",
    }
    settings = ReasoningSettings(**own)
    checked = ModelCheck(
        checked_at=datetime(2026, 3, 5, tzinfo=UTC),
        answers=True,
        schema_held=False,
        prompt_only=True,
        tools=True,
        tools_with_schema=False,
        reads_whole_prompt=False,
        window=4_096,
        output_tokens=512,
    )
    known = Capabilities(effort=False, checked=checked.model_dump(mode="json"))
    await store.save(standin.base_url_openai, "a-model-of-our-own", known)
    await store.save(standin.base_url_openai, "gpt-4.1", Capabilities(tools=False, checked={"of": "an older version"}))
    shown = {view.model: view for view in await model_views(settings, store)}
    assert {
        name: [view.texts[f"lacks.{index}"].code for index in range(len(view.lacks))] for name, view in shown.items()
    } == {
        "a-model-of-our-own": [
            "model.separate",
            "interrupt.lost_prompt_only",
            "model.cuts_prompts",
            "interrupt.lost_thinking",
            "model.unpriced",
        ],
        "claude:claude-sonnet-5-5": [],
        "gpt-4.1": ["interrupt.lost_tools"],
    }
    assert [view.checked for view in shown.values()] == [checked, None, None]
    assert standin.requests == []


async def test_p108_a_prompt_that_the_server_cut_is_no_answer(standin: ModelStandIn) -> None:
    standin.script("The first word is", Reply(json={"first": "x", "last": "heron"}, tokens=(200, 5)))
    standin.script(lambda r: bool(r.json_schema), Reply(json={"first": "a", "last": "z"}))
    engine = ModelEngine(_settings(standin))
    assert not (await check_model(engine)).reads_whole_prompt
    await engine.aclose()
