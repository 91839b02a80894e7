"""The tools that try something out: ops against the plan, code of the plan in Flowise's sandbox, a tested flow.

`run_function` and `ask_flow` run what the person has approved, and nothing else. None of them writes.
"""

import asyncio
import json
import re
from contextlib import suppress
from typing import Annotated, Final

from pydantic import Field, JsonValue

from flowise_dev_agent.agent.domain import ToolScope
from flowise_dev_agent.agent.tool_definition import AnyObject, AnyObjects
from flowise_dev_agent.agent.tools import ToolResult, shorten
from flowise_dev_agent.approval.ops import compiled, completed, decided, findings_of
from flowise_dev_agent.errors import FlowiseError, InvalidInputError, PatchError
from flowise_dev_agent.knowledge.flow_check import check_flow
from flowise_dev_agent.patch import BindCredential, Finding, PatchOp, errors, ops_from_list
from flowise_dev_agent.patch.model.addresses import addresses_in
from flowise_dev_agent.patch.validate.models import MODEL_END_CODES
from flowise_dev_agent.redaction import masked
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.verdict import Trace

CHECK_CHARS: Final = 4_000
RUN_CHARS: Final = 2_000
#: Characters of a function's result, which is JSON from the server.
GIVEN_CHARS: Final = 500
#: Questions that a judge may ask on top of the tests.
MAX_QUESTIONS: Final = 3
MAX_CODE_CHARS: Final = 20_000
_FINDINGS_SHOWN: Final = 20
_TRACED_CHARS: Final = 300
_SERVER_VARIABLES: Final = re.compile(r"\$vars\b")


class FlowiseChecks:
    """Tools of one attempt of a phase."""

    def __init__(self, scope: ToolScope) -> None:
        self._scope = scope
        self._asked = 0

    async def check_ops(self, ops: AnyObjects) -> ToolResult:
        """Compile and validate ops against the flow and the approved plan; nothing is written."""
        try:
            # Values of the plan are set by code: a change of nothing else needs no ops.
            values_only = not ops and self._scope.plan is not None and bool(self._scope.plan.values)
            findings = await self._findings([] if values_only else ops_from_list(ops))
        except PatchError as error:
            findings = findings_of(error)
        wrong = len(errors(findings))
        head = f"{wrong} errors, {len(findings) - wrong} warnings." if findings else "The ops are right."
        lines = [f"- {item.severity}: {shorten(item.text, 400)}" for item in findings[:_FINDINGS_SHOWN]]
        return ToolResult(True, "\n".join([head, *lines]), data=findings)

    async def run_function(
        self,
        node_id: Annotated[str, Field(max_length=120)],
        code: Annotated[str, Field(min_length=1, max_length=MAX_CODE_CHARS)],
        variables: AnyObject,
    ) -> ToolResult:
        """Run the JavaScript of a planned code node on sample variables (name to value) in Flowise's sandbox."""
        plan = self._scope.plan
        capability = plan.capability if plan else None
        if capability is None or node_id not in capability.code:
            raise InvalidInputError(f"The approved plan has no code in {shorten(node_id, 60)!r}; it is not run.")
        called = {one.origin for one in addresses_in(code) if not (one.clear and one.origin in capability.hosts)}
        if beyond := sorted(called):
            raise InvalidInputError(
                f"The code reaches addresses that the approved plan does not name: {', '.join(beyond)}."
            )
        if _SERVER_VARIABLES.search(code):
            raise InvalidInputError("Code that reads the server's variables ($vars) is not run here.")
        try:
            given = await self._scope.flowise.run_function(code, variables)
        except FlowiseError as error:
            text = shorten(masked(error.message), RUN_CHARS)
            return ToolResult(True, f"The function fails: {text}", data=error)
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        shown = shortened(masked(text), GIVEN_CHARS)
        return ToolResult(True, f"The function gives {type(given).__name__}: {shown}", data=given)

    async def ask_flow(self, question: Annotated[str, Field(min_length=1, max_length=2_000)]) -> ToolResult:
        """Ask the tested flow one more question, in a conversation of its own."""
        flow_id = self._scope.tested_id
        if flow_id is None:
            raise InvalidInputError("There is no tested flow to ask.")
        if self._asked >= MAX_QUESTIONS:
            raise InvalidInputError(f"{MAX_QUESTIONS} more questions have been asked; judge by what is known.")
        self._asked += 1
        session = f"fda-ask-{self._scope.session_id}-{self._asked}"
        try:
            answer = await self._scope.flowise.predict(flow_id, question, session_id=session)
        except FlowiseError as error:
            return ToolResult(True, f"The flow fails: {masked(error.message)}", data=error)
        finally:
            with suppress(FlowiseError):
                await asyncio.shield(self._scope.flowise.delete_messages(flow_id, session))
        tools = ", ".join(str(tool.get("tool", "?")) for tool in answer.used_tools)
        used = f"\nTools used: {tools}" if tools else ""
        return ToolResult(True, f"Answer: {shortened(masked(answer.answer), RUN_CHARS - 200)}{used}", data=answer)

    async def read_trace(self, trial: int) -> ToolResult:
        """Show what ran in a trial, by its number: steps with outputs, tools, sources."""
        scope = self._scope
        sha256 = scope.traces[trial - 1] if 0 < trial <= len(scope.traces) else None
        if sha256 is None or scope.blobs is None:
            raise InvalidInputError(f"Trial {trial} has no trace. There are {len(scope.traces)} trials.")
        trace = Trace.model_validate_json(await scope.blobs.get(sha256))
        lines = [f"- step {step.node_id} {step.status}: {_short(step.error or step.output)}" for step in trace.steps]
        lines += [
            f"- tool {one.tool}({_short(one.input)}): {_short(one.error or one.output)}" for one in trace.used_tools
        ]
        lines += [f"- source: {_short(source.text)}" for source in trace.sources]
        lines += ["Some texts were shortened, or steps left out."] if trace.cut else []
        return ToolResult(True, "\n".join(lines) or "The trial left nothing but its answer.", data=trace)

    async def _findings(self, ops: list[PatchOp]) -> list[Finding]:
        scope = self._scope
        if scope.plan is None:
            raise InvalidInputError("Ops are checked against an approved plan, and there is none.")
        store = await scope.knowledge.nodes()
        written = [op.model_copy(update={"credential_id": ""}) if isinstance(op, BindCredential) else op for op in ops]
        whole, found = completed(written, scope.plan, scope.base, store.schemas, scope=scope.limits)
        try:
            made = await compiled(
                whole, scope.plan, scope.base, store.schemas, credentials=scope.chosen, unbound=scope.seeded
            )
        except PatchError as error:
            return found + findings_of(error)
        kind = scope.plan.flow_kind
        credentials = (await scope.knowledge.credentials()).types()
        checked = [
            await check_flow(
                scope.flowise, text, kind=kind, schemas=store.schemas, credentials=credentials, base_flow_data=base
            )
            for text, base in ((made.result.flow_data, scope.original), (scope.original, None))
            if text is not None
        ]
        before = checked[1] if len(checked) > 1 else []
        severities = decided(
            checked[0],
            before,
            ops=made.ops,
            seeded=scope.seeded,
            kind=kind,
            without_credentials=scope.without_credentials,
        )
        # The plan decides on the models; the person knows of their ends.
        told = [finding for finding in severities if finding.code not in MODEL_END_CODES]
        return found + made.lacking + made.left_out + told


def _short(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shorten(masked(text), _TRACED_CHARS)
