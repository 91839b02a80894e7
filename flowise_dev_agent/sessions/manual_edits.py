"""Manual edits in an answer: checked before the answer is accepted, and kept with the titles of nodes and fields.

A mistake leaves the question open. The titles are those at the time of the answer.
"""

import asyncio
from dataclasses import asdict
from typing import Any, Final

from flowise_dev_agent.approval.manual_edits import edit_findings, ops_findings
from flowise_dev_agent.errors import InvalidAnswerError, InvalidInputError, StaleBaseError
from flowise_dev_agent.patch import (
    EditView,
    Finding,
    GraphIR,
    PatchOp,
    RemoveNode,
    SetParam,
    edit_views,
    ops_from_list,
    payload_sha256,
)
from flowise_dev_agent.persistence import Blobs, SessionRow, Sessions
from flowise_dev_agent.planning.preview import planned_flow
from flowise_dev_agent.schemas.answers import ManualEdits
from flowise_dev_agent.schemas.base import JsonMapping
from flowise_dev_agent.schemas.interrupts import Interrupt, PlanApprovalInterrupt
from flowise_dev_agent.schemas.plan import Plan
from flowise_dev_agent.sessions.agent import Agent
from flowise_dev_agent.sessions.views import session_view
from flowise_dev_agent.texts import text

_MOST_TOLD = 3
#: Field of a stored answer that holds its edits with titles.
_TOLD: Final = "by_hand"


class OwnHand:
    """Checks manual edits (`edits` of a plan, `ops` of a result) against their flow."""

    def __init__(self, *, sessions: Sessions, blobs: Blobs, agent: Agent) -> None:
        self._sessions = sessions
        self._blobs = blobs
        self._agent = agent

    async def checked(self, row: SessionRow, interrupt: Interrupt, answer: JsonMapping) -> JsonMapping:
        """Check an answer and add its edits as text. Raises InvalidAnswerError with the findings in `details`."""
        ops = _ops(answer)
        if not ops:
            return answer
        change = await self._sessions.change(row.id) or {}
        sha256 = change.get("base") or change.get("after")
        base = GraphIR.from_flow_data(await self._blobs.get(sha256)) if sha256 else GraphIR.empty()
        schemas = await self._agent.lookups.schemas(row.instance_id)
        plan = self._plan(row, interrupt)
        found = await asyncio.to_thread(edit_findings, plan, answer, base, schemas)
        if found:
            raise InvalidAnswerError(
                text("error.edits_impossible", findings=_told(found)),
                hint=text("error.question_still_open"),
                details={"findings": [finding.model_dump(mode="json") for finding in found]},
            )
        if answer.get("edits") and plan:
            base = (await asyncio.to_thread(planned_flow, plan, base, schemas)).graph
        return {**answer, _TOLD: [asdict(one) for one in edit_views(ops, base, schemas)]}

    async def check_start(self, instance_id: str, ops: list[PatchOp], target: str | None, sha256: str | None) -> None:
        """Check the ops of a new session against the flow with the id `target`, or an empty one.

        Raises StaleBaseError if that has another hash, InvalidInputError with the findings in `details`.
        """
        base = GraphIR.empty()
        if target:
            row = await self._agent.instances.client(instance_id).get_chatflow(target)
            base = GraphIR.from_flow_data(row.flow_data)
            if sha256 not in (None, now := payload_sha256(row.flow_data)):
                raise StaleBaseError(
                    text("error.other_base", name=row.name),
                    hint=text("error.other_base_hint"),
                    details={"chatflow_id": row.id, "sha256": now, "written": "no"},
                )
        schemas = await self._agent.lookups.schemas(instance_id)
        found = await asyncio.to_thread(ops_findings, ops, base, schemas)
        if found:
            raise InvalidInputError(
                text("error.flow_not_written", problems=_told(found)),
                hint=text("error.flow_not_written_hint"),
                details={"findings": [finding.model_dump(mode="json") for finding in found]},
            )

    def _plan(self, row: SessionRow, interrupt: Interrupt) -> Plan | None:
        if isinstance(interrupt, PlanApprovalInterrupt):
            return interrupt.data.contract
        plan = session_view(row, self._agent.chatflow_link).plan
        return plan.contract if plan else None


def edits_of(answer: JsonMapping) -> list[EditView]:
    """Manual edits of a stored answer; with ids instead of titles if an older version stored it."""
    told: Any = answer.get(_TOLD)
    if told:
        return [EditView(**one) for one in told]
    return list(edit_views(_ops(answer), GraphIR.empty(), {}))


def _ops(answer: JsonMapping) -> list[PatchOp]:
    edits = ManualEdits.model_validate(answer.get("edits") or {})
    ops: Any = answer.get("ops")
    return [
        *(SetParam(node_id=one.node_id, param_name=one.param, value=one.value) for one in edits.values),
        *(RemoveNode(node_id=node_id) for node_id in edits.removals),
        *(ops_from_list(ops) if ops else ()),
    ]


def _told(found: list[Finding]) -> str:
    more = len(found) - _MOST_TOLD
    rest = f" (and {more} more)" if more > 0 else ""
    return " ".join(finding.text for finding in found[:_MOST_TOLD]) + rest
