"""Does a requirement become a flow that really runs? Grades a running service by a file of cases.

    python scripts/bench/flowbench.py CASES.yaml [--engine NAME ...] [--cassette DIR [--record]] [--parallel N]
                                      [--case ID ...] [--json FILE]

Reads the addresses and keys of the service and of Flowise from the same settings as the service. A case passes when
its session ends under nothing but plain approvals, the flow read back holds what the case expects, and every question
of `ask` is answered by it. The project's own verdict plays no part. Credential types that a case needs and the server
lacks get a dummy.

Without `--engine` the service that listens on AGENT_API_PORT is graded. With it the runner starts a service of its own
for each engine named, on the same database and Flowise. `--cassette` stands between that service and the model
provider: it answers from DIR, and with `--record` asks the provider for what is missing and keeps it, so that a run
with a real model can be repeated without a key. A scripted model says nothing about an engine.
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import yaml

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.contracts.base import JsonObject
from flowise_dev_agent.contracts.interrupts import (
    ClarificationInterrupt,
    CredentialCheckInterrupt,
    Interrupt,
    PatchReviewInterrupt,
    PlanApprovalInterrupt,
    ResultReviewInterrupt,
    SelectTargetInterrupt,
)
from flowise_dev_agent.contracts.requests import ResumeSession, StartSession
from flowise_dev_agent.contracts.session import SessionView
from flowise_dev_agent.devkit.cassette import PROVIDERS, Cassette
from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.flowise import Chatflow, FlowiseClient
from flowise_dev_agent.flowise.models import ChatflowCreate
from flowise_dev_agent.settings import Settings, load_settings

SESSION_SECS = 300
MAX_INTERRUPTS = 12
START_SECS = 60
#: A key that opens nothing, for an engine whose provider is a cassette.
NO_KEY = "cassette"


class CaseFailedError(Exception):
    """The step at which a case failed."""


@dataclass
class Result:
    """One graded case; `failed_at` is empty when it passed."""

    case: str
    failed_at: str
    seconds: float
    model_calls: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    usd: float = 0.0


async def main(cases: list[dict[str, Any]], settings: Settings, url: str, parallel: int) -> dict[str, Any]:
    """Run the cases against the service at `url`; the table of one engine."""
    instance = settings.flowise.instances[0]
    slots = asyncio.Semaphore(parallel)
    async with (
        AgentClient(url, settings.server.api_key) as agent,
        FlowiseClient(str(instance.endpoint), instance.api_key) as flowise,
        _credentials_api(settings) as credentials,
    ):
        engine = (await agent.health())["reasoning"]["engine"]

        async def one(case: Mapping[str, Any]) -> Result:
            async with slots:
                result = await run_case(agent, flowise, credentials, case)
            print(_line(result), flush=True)
            return result

        started = time.monotonic()
        # Whoever looks at the whole server must be alone on it.
        alone = [case for case in cases if {"no_write", "others_untouched"} & set(case["expect"])]
        results = list(await asyncio.gather(*(one(case) for case in cases if case not in alone)))
        results += [await one(case) for case in alone]
        elapsed = time.monotonic() - started
    passed = sum(not result.failed_at for result in results)
    tokens, calls = sum(result.tokens for result in results), sum(result.model_calls for result in results)
    print(f"{engine}: {passed}/{len(results)} passed, {tokens} tokens, {calls} model calls, {elapsed:.0f} s")
    return {
        "engine": engine,
        "passed": passed,
        "total": len(results),
        "prompt_tokens": sum(result.prompt_tokens for result in results),
        "cached_tokens": sum(result.cached_tokens for result in results),
        "model_calls": calls,
        "usd": round(sum(result.usd for result in results), 6),
        "seconds": round(elapsed, 1),
        "slowest_seconds": round(max((result.seconds for result in results), default=0.0), 1),
        "cases": [asdict(result) | {"passed": not result.failed_at} for result in results],
    }


def recorder(folder: Path, settings: Settings, *, record: bool) -> Cassette:
    """A running cassette in front of the providers that the settings name (OpenAI's address ends in /v1)."""
    chosen = settings.reasoning
    upstream = dict(PROVIDERS)
    if chosen.anthropic_base_url:
        upstream["anthropic"] = chosen.anthropic_base_url.rstrip("/")
    if chosen.openai_base_url:
        upstream["openai"] = chosen.openai_base_url.rstrip("/").removesuffix("/v1")
    return Cassette(folder, record=record, upstream=upstream).start()


@contextmanager
def own_service(settings: Settings, engine: str, cassette: Cassette | None) -> Generator[str]:
    """A service with this engine on a free port, for as long as the context; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "REASONING_ENGINE": engine, "AGENT_API_PORT": str(port)}
    environment["RATE_LIMIT_SESSIONS_PER_MIN"] = "0"
    if cassette:
        environment |= cassette.environment
        for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
            environment.setdefault(name, NO_KEY)
    process = subprocess.Popen(
        [sys.executable, "-m", "flowise_dev_agent", "serve"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _until_it_answers(process, url)
        yield url
    finally:
        process.terminate()
        process.wait()


def _until_it_answers(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + START_SECS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"The service ended with code {process.returncode}; start it by hand to see why.")
        try:
            httpx2.get(f"{url}/live")
        except httpx2.TransportError:
            time.sleep(0.2)
        else:
            return
    raise SystemExit(f"The service did not answer within {START_SECS} s.")


def _credentials_api(settings: Settings) -> httpx2.AsyncClient:
    """For the dummies alone: the product itself never makes a credential."""
    instance = settings.flowise.instances[0]
    key = instance.api_key.get_secret_value() if instance.api_key else ""
    base = f"{str(instance.endpoint).rstrip('/')}/api/v1"
    return httpx2.AsyncClient(base_url=base, headers={"Authorization": f"Bearer {key}"})


async def run_case(
    agent: AgentClient, flowise: FlowiseClient, credentials: httpx2.AsyncClient, case: Mapping[str, Any]
) -> Result:
    """Play one case to its end and grade it; what it created is deleted."""
    started = time.monotonic()
    before = {row.id: row async for row in flowise.iter_chatflows()}
    view: SessionView | None = None
    request: StartSession | None = None
    failed_at = ""
    seconds = 0.0
    try:
        request = await _request(flowise, case)
        if request.target:
            before[request.target] = await flowise.get_chatflow(request.target)
        started = time.monotonic()
        view = await _play(agent, credentials, await agent.start(request), case["expect"])
        seconds = time.monotonic() - started
        await _grade(flowise, case, view, before, request.target)
    except (CaseFailedError, AgentError) as error:
        failed_at = str(error)
    finally:
        await _clean_up(flowise, request, view)
    result = Result(case["id"], failed_at, seconds or time.monotonic() - started)
    if view:
        result.model_calls = view.totals.model_calls
        result.prompt_tokens, result.cached_tokens = view.totals.input_tokens, view.totals.cached_tokens
        result.usd = view.totals.usd
        result.tokens = view.totals.input_tokens + view.totals.output_tokens
    return result


async def _clean_up(flowise: FlowiseClient, request: StartSession | None, view: SessionView | None) -> None:
    """Delete the base, the session's flow and whatever carries the session's tag."""
    own = {id_ for id_ in (request and request.target, view and view.chatflow_id) if id_}
    mark = f"fda:{view.thread_id}:" if view else "\0"
    async for row in flowise.iter_chatflows():
        if row.id in own or any(tag.startswith(mark) for tag in row.tags):
            await flowise.delete_chatflow(row.id)


async def _request(flowise: FlowiseClient, case: Mapping[str, Any]) -> StartSession:
    if case["mode"] == "create":
        return StartSession(requirement=case["requirement"])
    templates = await flowise.list_templates()
    template = next((item for item in templates if item.get("templateName") == case["base"]), None)
    if template is None:
        raise CaseFailedError(f"base: no template {case['base']!r}")
    ids = {item.credential_name: item.id for item in await flowise.list_credentials()}
    flow: dict[str, Any] = json.loads(template.get("flowData", ""))
    for node in flow["nodes"]:
        params: list[dict[str, Any]] = node["data"].get("inputParams", [])
        names = next((param["credentialNames"] for param in params if param.get("credentialNames")), [])
        found = next((ids[name] for name in names if name in ids), None)
        if found:
            node["data"]["credential"] = found
    kind = "AGENTFLOW" if any(node["data"]["name"] == "startAgentflow" for node in flow["nodes"]) else "CHATFLOW"
    # The same name in every run: it stands in prompts, and a cassette knows them by every word.
    name = f"{case['base']} for {case['id']}"
    base = await flowise.create_chatflow(ChatflowCreate(name=name, flow_data=json.dumps(flow), type=kind))
    operation = "copy" if case["mode"] == "copy" else None if case["expect"].get("no_write") else "update"
    chosen: dict[str, Any] = {"operation": operation} if operation else {}
    return StartSession(requirement=case["requirement"], target=base.id, **chosen)


async def _play(
    agent: AgentClient, credentials: httpx2.AsyncClient, view: SessionView, expect: Mapping[str, Any]
) -> SessionView:
    """Answer every question plainly, as the benchmark's rules say, until the session ends."""
    for _ in range(MAX_INTERRUPTS):
        view = await agent.wait(view.thread_id, SESSION_SECS)
        if view.interrupt is None:
            return view
        if expect.get("clarification"):
            return view
        if expect.get("no_write") and view.interrupt.type == "plan_approval":
            return await agent.cancel(view.thread_id)
        answer = await _answer(credentials, view.interrupt)
        view = await agent.resume(view.thread_id, ResumeSession(interrupt_id=view.interrupt.id, answer=answer))
    raise CaseFailedError(f"session: more than {MAX_INTERRUPTS} questions")


async def _answer(credentials: httpx2.AsyncClient, interrupt: Interrupt) -> JsonObject:
    offered = {option.value for option in interrupt.options}
    match interrupt:
        case ClarificationInterrupt():
            return {"action": "go_on"}
        case SelectTargetInterrupt(data=data):
            if "select" in offered and data.candidates:
                return {"action": "select", "chatflow_id": data.candidates[0].id}
            raise CaseFailedError(f"target: {interrupt.message}")
        case PlanApprovalInterrupt():
            if interrupt.reason == "declined":
                raise CaseFailedError(f"plan: declined: {interrupt.message}")
            return {"action": "approve"}
        case CredentialCheckInterrupt(data=data):
            absent = [item.type for item in data.credentials if not item.candidates]
            for type_ in absent:
                await _make_dummy(credentials, type_)
            if absent:
                return {"action": "retry"}
            return {"action": "choose", "choose": {item.type: item.candidates[0].id for item in data.credentials}}
        case PatchReviewInterrupt(data=data):
            if "continue" not in offered:
                codes = sorted({finding.code for finding in data.findings})
                raise CaseFailedError(f"patch: {interrupt.reason} {codes}")
            return {"action": "continue"}
        case ResultReviewInterrupt():
            return {"action": "accept"}


async def _make_dummy(credentials: httpx2.AsyncClient, type_: str) -> None:
    """A credential of this type whose secrets open nothing."""
    form = (await credentials.get(f"/components-credentials/{type_}")).json()
    values = {field["name"]: "dummy" for field in form.get("inputs", [])}
    body = {"name": f"benchmark {type_}", "credentialName": type_, "plainDataObj": values}
    answer = await credentials.post("/credentials", json=body)
    if not answer.is_success:
        raise CaseFailedError(f"credentials: Flowise takes no dummy of type {type_} (HTTP {answer.status_code})")


async def _grade(
    flowise: FlowiseClient,
    case: Mapping[str, Any],
    view: SessionView,
    before: Mapping[str, Chatflow],
    target: str | None,
) -> None:
    expect: Mapping[str, Any] = case["expect"]
    after = {row.id: row async for row in flowise.iter_chatflows()}
    made = [id_ for id_ in after if id_ not in before and id_ != target]
    changed = [id_ for id_, row in before.items() if id_ in after and after[id_].flow_data != row.flow_data]
    touched = [id_ for id_ in changed if expect.get("no_write") or id_ != target]
    if expect.get("clarification"):
        _check("clarification", view.interrupt is not None and view.interrupt.type == "clarification", "not asked")
        return
    if expect.get("no_write"):
        _check("no_write", not made and not touched, f"{len(made)} flows made, {len(touched)} changed")
        return
    _check("session", view.status == "completed", f"{view.status} {view.outcome} {view.error or ''}")
    flow_id = view.chatflow_id if case["mode"] == "copy" else target or view.chatflow_id
    _check("flow", flow_id is not None and flow_id in after, "the session names no flow")
    if expect.get("others_untouched"):
        _check("others_untouched", not touched, f"{len(touched)} other flows changed")
    row = after[str(flow_id)]
    _check_flow(json.loads(row.flow_data), expect)
    session = uuid4().hex
    for question in case.get("ask", []):
        prediction = await flowise.predict(row.id, question, session_id=session)
        _check("ask", bool(prediction.answer.strip()), f"no answer to {question!r}")


def _check_flow(flow: Mapping[str, Any], expect: Mapping[str, Any]) -> None:
    nodes: list[dict[str, Any]] = flow["nodes"]
    names = Counter(str(node["data"]["name"]) for node in nodes)
    for group in expect.get("nodes", []):
        _check("nodes", any(name in names for name in group), f"none of {group} in {sorted(names)}")
    for name in expect.get("not_nodes", []):
        _check("not_nodes", name not in names, f"{name} is there")
    for name, least in expect.get("counts", {}).items():
        _check("counts", names[name] >= least, f"{names[name]} of {name}")
    ids = {node["id"] for node in nodes}
    for id_ in expect.get("keep", []):
        _check("keep", id_ in ids, f"{id_} is gone")
    for key, wanted in expect.get("params", {}).items():
        name, _, param = key.partition(".")
        values = [str(node["data"]["inputs"].get(param)) for node in nodes if node["data"]["name"] == name]
        same = [value for value in values if value.casefold() == str(wanted).casefold()]
        _check("params", bool(same), f"{key} is {values}, not {wanted}")


def _check(step: str, holds: bool, text: str) -> None:
    if not holds:
        raise CaseFailedError(f"{step}: {text}")


def _write(report: Path, text: str) -> None:
    if str(report) == "-":
        print(text)
    else:
        report.write_text(f"{text}\n", "utf-8")


def _line(result: Result) -> str:
    return f"{'FAIL' if result.failed_at else 'ok':4} {result.case:24} {result.seconds:5.1f} s  {result.failed_at}"


def _run(arguments: argparse.Namespace) -> int:
    """All engines asked for, one after the other; the number of failed cases."""
    everything: list[dict[str, Any]] = yaml.safe_load(arguments.cases.read_text("utf-8"))
    cases = [case for case in everything if not arguments.case or case["id"] in arguments.case]
    settings = load_settings()
    tables: list[dict[str, Any]] = []
    if not arguments.engine:
        url = f"http://localhost:{settings.server.port}"
        tables.append(asyncio.run(main(cases, settings, url, arguments.parallel)))
    for engine in arguments.engine or ():
        cassette = recorder(arguments.cassette, settings, record=arguments.record) if arguments.cassette else None
        try:
            with own_service(settings, engine, cassette) as url:
                tables.append(asyncio.run(main(cases, settings, url, arguments.parallel)))
            if cassette:
                tables[-1] |= {"cassette_hits": cassette.hits, "cassette_misses": cassette.misses}
                print(f"{engine}: {cassette.hits} answers from the cassette, {cassette.misses} not on it")
        finally:
            if cassette:
                cassette.stop()
    if arguments.json:
        _write(arguments.json, json.dumps(tables, ensure_ascii=False, indent=1))
    return sum(table["total"] - table["passed"] for table in tables)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--engine", action="append", choices=("deterministic", "claude", "openai"))
    parser.add_argument("--cassette", type=Path, help="folder of recorded answers; only with --engine")
    parser.add_argument("--record", action="store_true", help="ask the provider for what the cassette lacks")
    parser.add_argument("--parallel", type=int, default=2, help="cases at a time")
    parser.add_argument("--case", action="append", help="only this id; may be given several times")
    parser.add_argument("--json", type=Path, help="write the tables to this file, or to stdout with -")
    try:
        sys.exit(1 if _run(parser.parse_args()) else 0)
    except AgentError as problem:
        sys.exit(str(problem))
