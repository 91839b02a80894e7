"""Plays one case of FlowBench as a person would, and grades what came of it on the server."""

import json
import re
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import httpx2

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.flowise import Chatflow, FlowiseClient
from flowise_dev_agent.flowise.models import ChatflowCreate
from flowise_dev_agent.schemas.base import JsonObject
from flowise_dev_agent.schemas.interrupts import (
    ClarificationInterrupt,
    CredentialCheckInterrupt,
    Interrupt,
    PatchReviewInterrupt,
    PlanApprovalInterrupt,
    ResultReviewInterrupt,
    SelectTargetInterrupt,
)
from flowise_dev_agent.schemas.requests import ResumeSession, StartSession
from flowise_dev_agent.schemas.session import SessionView
from scripts.bench.grading import problems_of

MAX_INTERRUPTS = 12


class CaseFailedError(Exception):
    """The step at which a case failed."""


async def clean_up(flowise: FlowiseClient, request: StartSession | None, view: SessionView | None) -> None:
    """Delete the base, the session's flow and whatever carries the session's tag."""
    own = {id_ for id_ in (request and request.target, view and view.chatflow_id) if id_}
    mark = f"fda:{view.thread_id}:" if view else "\0"
    async for row in flowise.iter_chatflows():
        if row.id in own or any(tag.startswith(mark) for tag in row.tags):
            await flowise.delete_chatflow(row.id)


async def request_of(flowise: FlowiseClient, case: Mapping[str, Any]) -> StartSession:
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
        for key, value in case.get("setup", {}).items():
            name, _, param = key.partition(".")
            if node["data"]["name"] == name:
                node["data"]["inputs"][param] = value
    kind = "AGENTFLOW" if any(node["data"]["name"] == "startAgentflow" for node in flow["nodes"]) else "CHATFLOW"
    # The same name in every run: it stands in prompts, and a cassette knows them by every word.
    name = f"{case['base']} for {case['id']}"
    base = await flowise.create_chatflow(ChatflowCreate(name=name, flow_data=json.dumps(flow), type=kind))
    operation = "copy" if case["mode"] == "copy" else None if case["expect"].get("no_write") else "update"
    chosen: dict[str, Any] = {"operation": operation} if operation else {}
    return StartSession(requirement=case["requirement"], target=base.id, **chosen)


async def play(
    agent: AgentClient,
    credentials: httpx2.AsyncClient,
    view: SessionView,
    case: Mapping[str, Any],
    told: list[str],
    wait_secs: float,
) -> SessionView:
    """Answer every question plainly, or as the case's dialogue says, until the session ends. `told` gets what the
    person was shown."""
    expect: Mapping[str, Any] = case["expect"]
    lines: list[Mapping[str, str]] = list(case.get("dialogue", []))
    for _ in range(MAX_INTERRUPTS):
        view = await agent.wait(view.thread_id, wait_secs)
        if view.interrupt is None:
            return view
        told.append(view.interrupt.model_dump_json())
        if expect.get("clarification"):
            return view
        if expect.get("no_write") and view.interrupt.type == "plan_approval":
            return await agent.cancel(view.thread_id)
        place = {"clarification": "clarification", "plan_approval": "plan", "result_review": "review"}
        at = place.get(view.interrupt.type, "")
        due = next((number for number, line in enumerate(lines) if line["at"] == at), None)
        if due is not None:
            # What was to be said at a question that did not come is left out.
            answer = _said(at, lines[due]["say"], view.interrupt)
            del lines[: due + 1]
        else:
            answer = await answer_plainly(credentials, view.interrupt)
        view = await agent.resume(view.thread_id, ResumeSession(interrupt_id=view.interrupt.id, answer=answer))
    raise CaseFailedError(f"session: more than {MAX_INTERRUPTS} questions")


def _said(at: str, words: str, interrupt: Interrupt) -> JsonObject:
    if isinstance(interrupt, ClarificationInterrupt):
        more = [""] * (len(interrupt.data.questions) - 1)
        return {"action": "answer", "answers": [words, *more]}
    return {"action": "request_changes" if at == "plan" else "iterate", "feedback": words}


async def answer_plainly(credentials: httpx2.AsyncClient, interrupt: Interrupt) -> JsonObject:
    offered = {option.value for option in interrupt.options}
    match interrupt:
        case ClarificationInterrupt():
            return {"action": "go_on"}
        case SelectTargetInterrupt(data=data):
            if "select" in offered and data.candidates:
                return {"action": "select", "chatflow_id": data.candidates[0].id}
            raise CaseFailedError(f"target: {interrupt.message}")
        case PlanApprovalInterrupt():
            if interrupt.reason in ("question", "declined"):
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


async def grade(
    flowise: FlowiseClient,
    credentials: httpx2.AsyncClient,
    case: Mapping[str, Any],
    view: SessionView,
    before: Mapping[str, Chatflow],
    target: str | None,
    told: list[str],
) -> None:
    expect: Mapping[str, Any] = case["expect"]
    after = {row.id: row async for row in flowise.iter_chatflows()}
    made = [id_ for id_ in after if id_ not in before and id_ != target]
    changed = [id_ for id_, row in before.items() if id_ in after and after[id_].flow_data != row.flow_data]
    touched = [id_ for id_ in changed if expect.get("no_write") or id_ != target]
    if expect.get("clarification"):
        _check("clarification", view.interrupt is not None and view.interrupt.type == "clarification", "not asked")
        return
    shown = " ".join(told).casefold()
    untold = [word for word in expect.get("declines", []) if word.casefold() not in shown]
    _check("declines", not untold, f"nobody was told of {untold}")
    if expect.get("no_write"):
        _check("no_write", not made and not touched, f"{len(made)} flows made, {len(touched)} changed")
        return
    _check("session", view.status == "completed", f"{view.status} {view.outcome} {view.error or ''}")
    verdict = view.result.verdict if view.result else None
    headline = verdict.headline if verdict else None
    wanted = expect.get("headline_in")
    _check("headline_in", not wanted or headline in wanted, f"the session says {headline}")
    flow_id = view.chatflow_id if case["mode"] == "copy" else target or view.chatflow_id
    _check("flow", flow_id is not None and flow_id in after, "the session names no flow")
    if expect.get("others_untouched"):
        _check("others_untouched", not touched, f"{len(touched)} other flows changed")
    row = after[str(flow_id)]
    base = json.loads(before[target].flow_data) if target else None
    problems = problems_of(json.loads(row.flow_data), expect, base, row.type or "CHATFLOW")
    _check("flow", not problems, "; ".join(problems))
    session = uuid4().hex
    for question in case.get("ask", []):
        if "formInput" in row.flow_data:
            continue
        prediction = await flowise.predict(row.id, question, session_id=session)
        _check("ask", bool(prediction.answer.strip()), f"no answer to {question!r}")
        if expect.get("no_literal_variables"):
            for answer in [prediction.answer, *await _both_outcomes(credentials, row.id, question)]:
                _check("no_literal_variables", "{{" not in answer, f"{answer[:200]!r} answers {question!r}")
    for question in expect.get("refuses", []):
        answer = (await credentials.post(f"/prediction/{row.id}", json={"question": question})).json()
        said = str(answer.get("text") or answer.get("message") or "")
        messages = re.findall(r'"moderationErrorMessage": ?"([^"]+)"', row.flow_data)
        _check("refuses", any(message in said for message in messages), f"{question!r} is answered by {said[:200]!r}")


async def _both_outcomes(api: httpx2.AsyncClient, flow_id: str, question: str) -> list[str]:
    """Answers of the flow after a person proceeds and after one rejects; nothing where nobody is asked."""
    answers: list[str] = []
    for type_ in ("proceed", "reject"):
        chat = uuid4().hex
        said = (await api.post(f"/prediction/{flow_id}", json={"question": question, "chatId": chat})).json()
        for _ in range(MAX_INTERRUPTS):
            action = said.get("action")
            if not action:
                break
            node = action.get("data", {}).get("nodeId")
            human = {"type": type_, "startNodeId": node, "feedback": "Please change it."}
            body = {"chatId": chat, "humanInput": human}
            said = (await api.post(f"/prediction/{flow_id}", json=body)).json()
            answers.append(str(said.get("text", said)))
            # One rejection; what is drafted next is accepted.
            type_ = "proceed"
    return answers


def _check(step: str, holds: bool, text: str) -> None:
    if not holds:
        raise CaseFailedError(f"{step}: {text}")
