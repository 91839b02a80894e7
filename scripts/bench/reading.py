"""What did a person get for a wish? Plays cases against a service and writes a page for each, to be judged by reading.

    python scripts/bench/reading.py CASES.yaml OUT_DIR [--engine NAME] [--cassette DIR [--record]] [--parallel N]
                                    [--wait SECS] [--case ID ...]

A case says what a person wants and what would be right, in words: `id`, `requirement`, `right`, and where they apply
`base` (`name`, `kind`, `ops` of the flow that exists), `opened` (the wish is typed on that flow's page), `answers` (to
questions, in order), `feedback` (to the plan, in order) and `ask` (messages to the finished flow). OUT_DIR gets one
page per case: the wish, what is right, everything that was shown, and the flow as ops, or what changed in it. Nothing
is graded: whoever reads the pages does that. `flowbench.py` grades by structure.
"""

import argparse
import asyncio
import difflib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.contracts.base import JsonObject
from flowise_dev_agent.contracts.interrupts import (
    ClarificationInterrupt,
    Interrupt,
    PlanApprovalInterrupt,
    SelectTargetInterrupt,
)
from flowise_dev_agent.contracts.requests import ResumeSession, StartSession
from flowise_dev_agent.contracts.session import SessionView
from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.models import ChatflowCreate
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.patch import GraphIR, compile_ops, decompile, ops_from_list
from flowise_dev_agent.settings import load_settings
from scripts.bench.flowbench import credentials_api, own_service, recorder
from scripts.bench.playing import MAX_INTERRUPTS, CaseFailedError, answer_plainly, clean_up

#: Where the ops say how nodes lie on the canvas, which nobody reads.
_NOT_SHOWN = {"SetPosition"}


class Reading:
    """Plays cases and writes their pages."""

    def __init__(
        self, agent: AgentClient, flowise: FlowiseClient, credentials: httpx2.AsyncClient, out: Path, wait_secs: float
    ) -> None:
        self._agent = agent
        self._flowise = flowise
        self._credentials = credentials
        self._out = out
        self._wait_secs = wait_secs
        self._schemas = NodeStore.from_snapshot().schemas

    async def case(self, case: Mapping[str, Any]) -> None:
        """Play a case to its end; its page is written whatever happens, and its flows are deleted."""
        page = [f"# {case['id']}", f"**Wish:** {case['requirement']}", f"**Right:** {case['right']}"]
        view: SessionView | None = None
        base = await self._base(case["base"]) if "base" in case else None
        before = await self._ops(base) if base else []
        if base:
            page.append(f"**Flow that exists:** {case['base']['name']}\n" + _lines(before))
        request = StartSession(requirement=case["requirement"], target=base if case.get("opened") else None)
        try:
            view = await self._play(case, await self._agent.start(request), base, page)
            page.append(await self._end(view))
            page += await self._flow(view, base, before)
            page += await self._answers(case, view)
        except (CaseFailedError, AgentError) as error:
            page.append(f"**Broken off:** {error}")
        finally:
            if base:
                await self._flowise.delete_chatflow(base)
            await clean_up(self._flowise, None, view)
        (self._out / f"{case['id']}.md").write_text("\n\n".join(page) + "\n", "utf-8")
        print(f"{case['id']:28} {_state(view)}", flush=True)

    async def _base(self, base: Mapping[str, Any]) -> str:
        found = {item.credential_name: item.id for item in await self._flowise.list_credentials()}
        flow = compile_ops(GraphIR.empty(), ops_from_list(base["ops"]), self._schemas, credentials=found)
        row = ChatflowCreate(name=base["name"], flow_data=flow.flow_data, type=base["kind"])
        return (await self._flowise.create_chatflow(row)).id

    async def _ops(self, chatflow_id: str) -> list[str]:
        row = await self._flowise.get_chatflow(chatflow_id)
        ops = decompile(row.flow_data, self._schemas)
        shown = [op.model_dump(mode="json", exclude_defaults=True) for op in ops if op.op_type not in _NOT_SHOWN]
        return [json.dumps(op, ensure_ascii=False) for op in shown]

    async def _play(self, case: Mapping[str, Any], view: SessionView, base: str | None, page: list[str]) -> SessionView:
        answers, feedback = list(case.get("answers", ())), list(case.get("feedback", ()))
        for _ in range(MAX_INTERRUPTS):
            view = await self._agent.wait(view.thread_id, self._wait_secs)
            if view.interrupt is None:
                return view
            page.append(_shown(view.interrupt))
            answer = await self._answer(view.interrupt, base, answers, feedback)
            page.append(f"**The person answers:** {json.dumps(answer, ensure_ascii=False)}")
            if answer == {"action": "cancel"}:
                return await self._agent.cancel(view.thread_id)
            view = await self._agent.resume(
                view.thread_id, ResumeSession(interrupt_id=view.interrupt.id, answer=answer)
            )
        raise CaseFailedError(f"more than {MAX_INTERRUPTS} questions")

    async def _answer(
        self, interrupt: Interrupt, base: str | None, answers: list[str], feedback: list[str]
    ) -> JsonObject:
        if isinstance(interrupt, ClarificationInterrupt) and answers:
            more = [""] * (len(interrupt.data.questions) - 1)
            return {"action": "answer", "answers": [answers.pop(0), *more]}
        if isinstance(interrupt, SelectTargetInterrupt):
            offered = {item.id for item in interrupt.data.candidates}
            # The person knows which flow is meant, if it is offered.
            return {"action": "select", "chatflow_id": base} if base in offered else {"action": "cancel"}
        if isinstance(interrupt, PlanApprovalInterrupt):
            if interrupt.reason == "question" and answers:
                return {"action": "request_changes", "feedback": answers.pop(0)}
            if interrupt.reason in ("question", "declined"):
                return {"action": "cancel"}
            if feedback:
                return {"action": "request_changes", "feedback": feedback.pop(0)}
        return await answer_plainly(self._credentials, interrupt)

    async def _end(self, view: SessionView) -> str:
        verdict = view.result.verdict if view.result else None
        lines = [f"**Ended:** {view.status} {view.outcome or ''} {view.error.detail if view.error else ''}"]
        if verdict:
            lines.append(f"Headline: {verdict.headline}. {verdict.reason}")
            lines += [f"- part {part.state}: {part.quote} {part.reason}" for part in verdict.parts]
            lines += [f"- criterion {item.state}: {item.text} {item.reason}" for item in verdict.criteria]
        total = view.totals
        lines.append(f"{total.model_calls} model calls, {total.input_tokens} in, {total.cached_tokens} cached")
        return "\n".join(lines)

    async def _flow(self, view: SessionView, base: str | None, before: list[str]) -> list[str]:
        pages = []
        if base and (changed := _difference(before, await self._ops(base))):
            pages.append(f"**Changed in the flow that exists:**\n{changed}")
        if view.chatflow_id and view.chatflow_id != base:
            row = await self._flowise.get_chatflow(view.chatflow_id)
            made = await self._ops(row.id)
            copied = _difference(before, made) if before else ""
            text = f"differs from it by:\n{copied}" if copied and len(copied) < len(_lines(made)) else _lines(made)
            pages.append(f"**New flow “{row.name}” ({row.type}):**\n{text}")
        return pages or ["**No flow was made or changed.**"]

    async def _answers(self, case: Mapping[str, Any], view: SessionView) -> list[str]:
        if not view.chatflow_id or view.status != "completed":
            return []
        pages, session = [], uuid4().hex
        for message in case.get("ask", ()):
            try:
                said = (await self._flowise.predict(view.chatflow_id, message, session_id=session)).answer
            except AgentError as error:
                said = f"(error) {error}"
            pages.append(f"**Asked:** {message}\n**Flow:** {said[:600]}")
        return pages


def _shown(interrupt: Interrupt) -> str:
    """What the person sees of a question."""
    lines = [f"**Shown ({interrupt.type}):** {interrupt.message}"]
    if isinstance(interrupt, PlanApprovalInterrupt):
        data = interrupt.data
        lines.append(data.plan)
        lines += [f"- assumed: {item.quote!r} ({item.reason})" for item in data.assumed]
        lines += [f"- not done: {item.model_dump_json()}" for item in data.not_done]
    elif isinstance(interrupt, ClarificationInterrupt):
        lines += [f"- {question}" for question in interrupt.data.questions]
    elif isinstance(interrupt, SelectTargetInterrupt):
        lines += [f"- {item.name}: {item.about}" for item in interrupt.data.candidates]
    return "\n".join(lines)


def _state(view: SessionView | None) -> str:
    verdict = view.result.verdict if view and view.result else None
    return f"{view.status} {view.outcome or ''} {verdict.headline if verdict else ''}" if view else "broken off"


def _lines(ops: list[str]) -> str:
    return "```\n" + "\n".join(ops) + "\n```"


def _difference(before: list[str], after: list[str]) -> str:
    lines = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
    return _lines([line for line in lines if not line.startswith("@@")]) if lines else ""


async def read_all(arguments: argparse.Namespace, cases: list[dict[str, Any]], url: str) -> None:
    """Play the cases against the service at `url`."""
    settings = load_settings()
    instance = settings.flowise.instances[0]
    slots = asyncio.Semaphore(arguments.parallel)
    async with (
        AgentClient(url, settings.server.api_key) as agent,
        FlowiseClient(str(instance.endpoint), instance.api_key) as flowise,
        credentials_api(settings) as credentials,
    ):
        reading = Reading(agent, flowise, credentials, arguments.out, arguments.wait)

        async def one(case: Mapping[str, Any]) -> None:
            async with slots:
                await reading.case(case)

        await asyncio.gather(*(one(case) for case in cases))


def _run(arguments: argparse.Namespace) -> None:
    everything: list[dict[str, Any]] = yaml.safe_load(arguments.cases.read_text("utf-8"))
    cases = [case for case in everything if not arguments.case or case["id"] in arguments.case]
    arguments.out.mkdir(parents=True, exist_ok=True)
    settings = load_settings()
    cassette = recorder(arguments.cassette, settings, cases, record=arguments.record) if arguments.cassette else None
    try:
        with own_service(settings, arguments.engine, cassette) as url:
            asyncio.run(read_all(arguments, cases, url))
    finally:
        if cassette:
            cassette.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("--engine", default="deterministic", choices=("deterministic", "claude", "openai"))
    parser.add_argument("--cassette", type=Path, help="folder of recorded answers")
    parser.add_argument("--record", action="store_true", help="ask the provider for what the cassette lacks")
    parser.add_argument("--parallel", type=int, default=2, help="cases at a time")
    parser.add_argument("--wait", type=float, default=300, help="seconds to wait for each question of a session")
    parser.add_argument("--case", action="append", help="only this id; may be given several times")
    try:
        _run(parser.parse_args())
    except AgentError as problem:
        sys.exit(str(problem))
