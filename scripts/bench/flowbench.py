"""Does a requirement become a flow that really runs? Grades a running service by a file of cases.

    python scripts/bench/flowbench.py CASES.yaml [--case ID ...] [--json FILE]

Reads the service's address and key and those of Flowise from the same settings as the service. A case passes when its
session ends under nothing but plain approvals, the flow read back holds what the case expects, and every question of
`ask` is answered by it. The project's own verdict plays no part.

The engine is the one that the service runs with. To compare engines, run it against a service of each and lay the
JSON files side by side; a scripted model says nothing about an engine, so figures of `claude` and `openai` need a real
one.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.flowise import Chatflow, FlowiseClient
from flowise_dev_agent.flowise.models import ChatflowCreate
from flowise_dev_agent.runtime.requests import ResumeSession, StartSession
from flowise_dev_agent.runtime.views import InterruptView, SessionView
from flowise_dev_agent.settings import load_settings

SESSION_SECS = 300
MAX_INTERRUPTS = 12


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


async def main(cases: list[dict[str, Any]], report: Path | None = None) -> int:
    """Run the cases one after the other; the number that failed. `report` gets the table as JSON ("-": stdout)."""
    settings = load_settings()
    instance = settings.flowise.instances[0]
    url = f"http://localhost:{settings.server.port}"
    results: list[Result] = []
    async with (
        AgentClient(url, settings.server.api_key) as agent,
        FlowiseClient(str(instance.endpoint), instance.api_key) as flowise,
    ):
        engine = (await agent.health())["reasoning"]["engine"]
        for case in cases:
            results.append(await run_case(agent, flowise, case))
            print(_line(results[-1]), flush=True)
    passed = sum(not result.failed_at for result in results)
    tokens, calls = sum(result.tokens for result in results), sum(result.model_calls for result in results)
    seconds = sum(result.seconds for result in results)
    table = {
        "engine": engine,
        "passed": passed,
        "total": len(results),
        "prompt_tokens": sum(result.prompt_tokens for result in results),
        "cached_tokens": sum(result.cached_tokens for result in results),
        "model_calls": calls,
        "usd": round(sum(result.usd for result in results), 6),
        "seconds": round(seconds, 1),
        "cases": [asdict(result) | {"passed": not result.failed_at} for result in results],
    }
    if report:
        _write(report, json.dumps(table, ensure_ascii=False, indent=1))
    print(f"{engine}: {passed}/{len(results)} passed, {tokens} tokens, {calls} model calls, {seconds:.0f} s")
    return len(results) - passed


async def run_case(agent: AgentClient, flowise: FlowiseClient, case: Mapping[str, Any]) -> Result:
    """Play one case to its end and grade it; what it created is deleted."""
    started = time.monotonic()
    before = {row.id: row async for row in flowise.iter_chatflows()}
    view: SessionView | None = None
    failed_at = ""
    try:
        request = await _request(flowise, case)
        view = await _play(agent, await agent.start(request), case["expect"])
        await _grade(flowise, case, view, before, request.target)
    except (CaseFailedError, AgentError) as error:
        failed_at = str(error)
    finally:
        async for row in flowise.iter_chatflows():
            if row.id not in before:
                await flowise.delete_chatflow(row.id)
    result = Result(case["id"], failed_at, time.monotonic() - started)
    if view:
        result.model_calls = view.totals.model_calls
        result.prompt_tokens, result.cached_tokens = view.totals.input_tokens, view.totals.cached_tokens
        result.usd = view.totals.usd
        result.tokens = view.totals.input_tokens + view.totals.output_tokens
    return result


async def _request(flowise: FlowiseClient, case: Mapping[str, Any]) -> StartSession:
    if case["mode"] == "create":
        return StartSession(requirement=case["requirement"])
    templates = await flowise.list_templates()
    template = next((item for item in templates if item.get("templateName") == case["base"]), None)
    if template is None:
        raise CaseFailedError(f"base: no template {case['base']!r}")
    ids = {item.credential_name: item.id for item in await flowise.list_credentials()}
    flow: dict[str, Any] = json.loads(template["flowData"])
    for node in flow["nodes"]:
        params: list[dict[str, Any]] = node["data"].get("inputParams", [])
        names = next((param["credentialNames"] for param in params if param.get("credentialNames")), [])
        found = next((ids[name] for name in names if name in ids), None)
        if found:
            node["data"]["credential"] = found
    base = await flowise.create_chatflow(
        ChatflowCreate(name=f"{case['base']} {uuid4().hex[:6]}", flow_data=json.dumps(flow), type="CHATFLOW")
    )
    return StartSession(requirement=case["requirement"], operation="update", target=base.id)


async def _play(agent: AgentClient, view: SessionView, expect: Mapping[str, Any]) -> SessionView:
    """Answer every question plainly, as the benchmark's rules say, until the session ends."""
    for _ in range(MAX_INTERRUPTS):
        view = await agent.wait(view.thread_id, SESSION_SECS)
        if view.interrupt is None:
            return view
        if expect.get("clarification"):
            return view
        if expect.get("no_write") and view.interrupt.type == "plan_approval":
            return await agent.cancel(view.thread_id)
        answer = ResumeSession(interrupt_id=view.interrupt.id, answer=_answer(view.interrupt))
        view = await agent.resume(view.thread_id, answer)
    raise CaseFailedError(f"session: more than {MAX_INTERRUPTS} questions")


def _answer(interrupt: InterruptView) -> dict[str, Any]:
    data: Mapping[str, Any] = interrupt.data
    match interrupt.type:
        case "clarification":
            return {"action": "go_on"}
        case "select_target":
            candidates: list[dict[str, str]] = data.get("candidates", [])
            offered = {option["value"] for option in interrupt.options}
            if "select" in offered and candidates:
                return {"action": "select", "chatflow_id": candidates[0]["id"]}
            raise CaseFailedError(f"target: {interrupt.message}")
        case "plan_approval":
            if interrupt.reason == "declined":
                raise CaseFailedError(f"plan: declined: {interrupt.message}")
            return {"action": "approve"}
        case "credential_check":
            missing = {item["type"]: item["candidates"] for item in data["credentials"]}
            if not all(missing.values()):
                raise CaseFailedError(f"credentials: none of type {sorted(t for t, c in missing.items() if not c)}")
            return {"action": "choose", "choose": {type_: items[0]["id"] for type_, items in missing.items()}}
        case "patch_review":
            if not any(option["value"] == "continue" for option in interrupt.options):
                codes = sorted({finding["code"] for finding in data["findings"]})
                raise CaseFailedError(f"patch: {interrupt.reason} {codes}")
            return {"action": "continue"}
        case _:
            return {"action": "accept"}


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
    touched = [id_ for id_, row in before.items() if id_ in after and after[id_].flow_data != row.flow_data]
    if expect.get("clarification"):
        _check("clarification", view.interrupt is not None and view.interrupt.type == "clarification", "not asked")
        return
    if expect.get("no_write"):
        _check("no_write", not made and not touched, f"{len(made)} flows made, {len(touched)} changed")
        return
    _check("session", view.status == "completed", f"{view.status} {view.outcome} {view.error or ''}")
    flow_id = target or view.chatflow_id
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--case", action="append", help="only this id; may be given several times")
    parser.add_argument("--json", type=Path, help="write the table to this file, or to stdout with -")
    arguments = parser.parse_args()
    everything: list[dict[str, Any]] = yaml.safe_load(arguments.cases.read_text())
    chosen = [case for case in everything if not arguments.case or case["id"] in arguments.case]
    try:
        sys.exit(1 if asyncio.run(main(chosen, arguments.json)) else 0)
    except AgentError as problem:
        sys.exit(str(problem))
