"""Sessions on a real llama.cpp server, whose model of random weights says nothing that makes sense, but in form."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from flowise_dev_agent.errors import PatchError
from flowise_dev_agent.models.answer_schemas import answer_schema
from flowise_dev_agent.ops import Runtime
from flowise_dev_agent.patch import ops_from_json
from flowise_dev_agent.schemas.requests import StartSession
from tests.chaos.fake_flowise import FakeFlowise
from tests.doors.model import Script, fitted, is_look_up
from tests.doors.recorder import Recorder, Recording
from tests.doors.sessions import FLOWISE_KEY, run, service
from tests.doors.tools import llama_server, xgrammar_accepts
from tests.e2e.scripted import CHOSEN, REQUIREMENT, SUPPORT
from tests.fixtures.llama import StartLlama

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]
_CANCELLED_SECS = 30
#: Answers of random words are long, and the machine may be busy.
_PATIENCE_SECS = 300
_ANSWERS = 20


@asynccontextmanager
async def recorded(
    address: str, dsn: str, key: str = "", script: Script | None = None
) -> AsyncIterator[tuple[Runtime, list[Recording]]]:
    """A service whose model is at the address, except for the phases of the script, and what it said there."""
    variables = {
        "REASONING_ENGINE": "openai",
        "REASONING_MODEL": "tiny",
        # Random words decide what a sentence is: a session may become a question.
        "REASONING_MODE_CLASSIFY": "deterministic",
        **({"OPENAI_API_KEY": key} if key else {}),
    }
    with Recorder(address, script) as recorder, FakeFlowise(api_key=FLOWISE_KEY, latency=0) as flowise:
        variables["OPENAI_BASE_URL"] = f"{recorder.endpoint}/v1"
        async with service(dsn, flowise, variables) as runtime:
            yield runtime, recorder.log


#: A plan that makes sense: without it the plan comes from a form, and no model is asked for ops.
PLANNED = Script({REQUIREMENT: {"plan": CHOSEN["plan"]}})


@pytest.mark.parametrize("window", [32_768, 8_192])
async def test_whole_sessions_end_and_each_request_is_accepted(
    window: int, start_llama: StartLlama, database_dsn: str, record_property: Callable[[str, object], None]
) -> None:
    address, phases, statuses = start_llama(window=window), set[str](), list[tuple[str, int, str]]()
    for script in (None, PLANNED):
        async with recorded(address, database_dsn, script=script) as (runtime, log):
            view = await run(runtime, REQUIREMENT, patience=_PATIENCE_SECS)
        assert view.status == "completed", view.error
        phases |= {one.phase for one in log}
        statuses += [(one.phase, one.status, one.said[:300]) for one in log]
    record_property("requests", len(statuses))
    assert phases >= {"plan", "patch", "judge"}
    assert [one for one in statuses if one[1] != 200] == []


async def test_calls_are_made_and_their_results_are_read(start_llama: StartLlama, database_dsn: str) -> None:
    async with recorded(start_llama(calls_tools=True), database_dsn) as (runtime, log):
        view = await run(runtime, REQUIREMENT, patience=_PATIENCE_SECS)
    assert view.status == "completed"
    called = [one for one in log if any(is_look_up(call.name) for call in one.reply.tool_calls)]
    answered = [one for one in log if any(message.role == "tool" for message in one.asked.messages)]
    assert called
    assert answered
    assert {one.status for one in log} == {200}


async def test_ops_that_the_grammar_lets_through_are_read(
    start_llama: StartLlama, database_dsn: str, record_property: Callable[[str, object], None]
) -> None:
    address = start_llama()
    async with recorded(address, database_dsn, script=PLANNED) as (runtime, log):
        await run(runtime, REQUIREMENT, patience=_PATIENCE_SECS)
    (request, *_) = [one.asked.body for one in log if one.phase == "patch" and one.asked.json_schema]
    async with httpx2.AsyncClient(trust_env=False, timeout=_PATIENCE_SECS) as client:
        answers = [await answer_of(client, address, request, seed) for seed in range(_ANSWERS)]
    # One that reached the output limit is no whole object.
    written = [text for text, reason in answers if reason == "stop" and json.loads(text)["ops"]]
    unread = [text for text in written if not is_read(text)]
    record_property("answers with ops", len(written))
    record_property("of them unread", len(unread))
    # Random numbers lie outside of every canvas at times.
    assert written
    assert len(unread) <= len(written) / 4


async def answer_of(client: httpx2.AsyncClient, address: str, request: Any, seed: int) -> tuple[str, str]:
    """The answer to a request that a session has made, by another draw, and why it ends."""
    body = {**request, "seed": seed, "stream": False, "max_tokens": 1_500}
    body.pop("stream_options", None)
    response = await client.post(f"{address}/v1/chat/completions", json=body)
    choice = response.raise_for_status().json()["choices"][0]
    return choice["message"]["content"], choice["finish_reason"]


def is_read(text: str) -> bool:
    try:
        return bool(ops_from_json(text))
    except PatchError:
        return False


async def test_a_wrong_key_is_told(start_llama: StartLlama, database_dsn: str) -> None:
    async with recorded(start_llama(key="sk-right"), database_dsn, key="sk-wrong") as (runtime, log):
        view = await run(runtime, REQUIREMENT, patience=_PATIENCE_SECS)
    assert view.error is not None
    assert view.error.code == "model_auth"
    assert {one.status for one in log} == {401}


async def test_a_cancelled_session_frees_the_server_in_mid_stream(start_llama: StartLlama, database_dsn: str) -> None:
    address = start_llama()
    async with recorded(address, database_dsn) as (runtime, _), httpx2.AsyncClient(trust_env=False) as client:

        async def busy() -> bool:
            slots = (await client.get(f"{address}/slots")).json()
            return any(slot["is_processing"] for slot in slots)

        view = await runtime.service.start(StartSession(requirement=REQUIREMENT))
        async with asyncio.timeout(_CANCELLED_SECS):
            while not await busy():  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.01)
            cancelled = await runtime.service.cancel(view.thread_id)
            while await busy():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert cancelled.status == "cancelled"


# --- grammars --------------------------------------------------------------------------------------------------------

BARE = {"op_type": "AddNode"}


def forms(phase: Any) -> tuple[Any, dict[str, Any]]:
    """The schema of a phase, and a whole answer in its form."""
    schema = answer_schema(phase)
    given = {"kind": "ops", **SUPPORT["patch"]} if phase == "patch" else SUPPORT[phase]
    return schema, fitted(given, schema, closed=True)


def bare_patch(whole: dict[str, Any]) -> dict[str, Any]:
    return {**whole, "ops": [BARE]}


def test_xgrammar_accepts_whole_ops_and_plans_and_no_bare_op(llama_tools: None) -> None:
    schema, patch = forms("patch")
    assert {"node_id", "node_name"} <= patch["ops"][0].keys()
    assert xgrammar_accepts(schema, [json.dumps(patch), json.dumps(bare_patch(patch))]) == [True, False]
    schema, plan = forms("plan")
    assert xgrammar_accepts(schema, [json.dumps(plan)]) == [True]


async def test_llama_cpp_accepts_whole_ops_and_plans_and_no_bare_op(start_llama: StartLlama, tmp_path: Path) -> None:
    address = start_llama()
    for phase in ("patch", "plan"):
        schema, whole = forms(phase)
        grammar = await grammar_of(address, schema)
        assert await accepts(grammar, whole, tmp_path), phase
        if phase == "patch":
            assert not await accepts(grammar, bare_patch(whole), tmp_path)


async def grammar_of(address: str, schema: Any) -> str:
    """The grammar that the server makes of a schema."""
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1, "response_format": form}
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
        answer = (await client.post(f"{address}/v1/chat/completions", json=body)).json()
    return answer["__verbose"]["generation_settings"]["grammar"]


async def accepts(grammar: str, value: Any, folder: Path) -> bool:
    """Ask llama.cpp's own validator; it is built with the tests of llama.cpp."""
    validator = llama_server().parent / "test-gbnf-validator"
    if not validator.exists():
        pytest.skip("This llama.cpp was built without its tests, and so without its validator of grammars.")
    files = folder / "grammar.gbnf", folder / "text.txt"
    files[0].write_text(grammar)
    files[1].write_text(f"<|im_start|>assistant\n{json.dumps(value)}")
    process = await asyncio.create_subprocess_exec(validator, *files, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    return b"Input string is valid" in said
