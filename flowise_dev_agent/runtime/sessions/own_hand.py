"""What a person changes by hand in an answer: looked at before the answer is taken, so that a mistake leaves the
question open."""

import asyncio
from collections.abc import Mapping
from typing import Any

from flowise_dev_agent.contracts.interrupts import Interrupt, PlanApprovalInterrupt
from flowise_dev_agent.contracts.plan import PlanContract
from flowise_dev_agent.errors import InvalidAnswerError
from flowise_dev_agent.patch import Finding, GraphIR
from flowise_dev_agent.persistence import Blobs, SessionRow, Sessions
from flowise_dev_agent.runtime.agent import Agent
from flowise_dev_agent.runtime.sessions.views import session_view

_MOST_TOLD = 3


class OwnHand:
    """Checks `edits` of a plan and `ops` for a result against the flow that they are for."""

    def __init__(self, *, sessions: Sessions, blobs: Blobs, agent: Agent) -> None:
        self._sessions = sessions
        self._blobs = blobs
        self._agent = agent

    async def check(self, row: SessionRow, interrupt: Interrupt, answer: Mapping[str, Any]) -> None:
        """Nothing for an answer without changes by hand. Raises InvalidAnswerError with the findings in `details`."""
        if not (answer.get("edits") or answer.get("ops")):
            return
        change = await self._sessions.change(row.id) or {}
        sha256 = change.get("base") or change.get("after")
        base = GraphIR.from_flow_data(await self._blobs.get(sha256)) if sha256 else GraphIR.empty()
        schemas = await self._agent.schemas(row.instance_id)
        found = await asyncio.to_thread(self._agent.wrong_by_hand, self._plan(row, interrupt), answer, base, schemas)
        if found:
            raise InvalidAnswerError(
                f"Your changes cannot be made. {_told(found)}",
                hint="Nothing was changed, and the question is still open: correct what is named and send it again.",
                details={"findings": [finding.model_dump(mode="json") for finding in found]},
            )

    def _plan(self, row: SessionRow, interrupt: Interrupt) -> PlanContract | None:
        if isinstance(interrupt, PlanApprovalInterrupt):
            return interrupt.data.contract
        plan = session_view(row, self._agent.chatflow_link).plan
        return plan.contract if plan else None


def _told(found: list[Finding]) -> str:
    more = len(found) - _MOST_TOLD
    rest = f" (and {more} more)" if more > 0 else ""
    return " ".join(finding.text for finding in found[:_MOST_TOLD]) + rest
