"""Approval rules: another person than the one who started the session has to approve, or two persons have to."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

from flowise_dev_agent.caller import current_caller, require
from flowise_dev_agent.errors import ApprovalNeededError
from flowise_dev_agent.persistence import SessionRow, Sessions
from flowise_dev_agent.persistence.sessions import Answer
from flowise_dev_agent.schemas.answers import decides
from flowise_dev_agent.schemas.interrupts import Approval, Interrupt
from flowise_dev_agent.settings import ServerSettings
from flowise_dev_agent.texts import text

_ALL: Final = "*"


@dataclass(frozen=True)
class ApprovalRules:
    """Approval rules of the settings.

    `separate`: the person who started a session may not approve in it. `two`: ids and names of the flows (lower case;
    `*`: all) that need two approvals.
    """

    separate: bool = False
    two: frozenset[str] = frozenset()

    @classmethod
    def from_settings(cls, server: ServerSettings) -> Self:
        """Read the rules from the settings."""
        return cls(separate=server.separate_approval, two=server.two_approval_flows)

    def needs_two(self, *flow: str | None) -> bool:
        """True if a flow with this id and this name needs two approvals."""
        return _ALL in self.two or any(name and name.strip().casefold() in self.two for name in flow)

    def check_direct(self, *flow: str | None) -> None:
        """Raise ApprovalNeededError if a rule forbids a write without a plan, in which only one person takes part."""
        if self.separate or self.needs_two(*flow):
            raise ApprovalNeededError(
                text("error.not_by_one_person" if self.separate else "error.two_approvals"),
                hint=text("error.start_a_session"),
            )


class Approvals:
    """Applies the approval rules to answers."""

    def __init__(self, rules: ApprovalRules, sessions: Sessions) -> None:
        self._rules = rules
        self._sessions = sessions

    async def first_of_two(self, row: SessionRow, interrupt: Interrupt, given: Answer) -> SessionRow | None:
        """Store the first of two required approvals and return the session; None if the answer takes effect now.

        Raises:
            ScopeMissingError, ApprovalNeededError: the caller may not decide here.
            SessionConflictError: the caller has given this answer before, or the question is no longer open.
        """
        action = str(given.value.get("action"))
        if not decides(interrupt.type, action):
            return None
        require("approve")
        if _is_free(given.value):
            return None
        if self._rules.separate:
            await self._check_separate(row)
        if not self._rules.needs_two(row.chatflow_id, _planned_name(row, interrupt)):
            return None
        approval = Approval(
            by=current_caller().name, at=datetime.now(UTC), action=action, answer_sha256=_fingerprint(given.value)
        )
        return await self._sessions.approve(row.id, given, approval)

    async def _check_separate(self, row: SessionRow) -> None:
        starter, caller = await self._sessions.started_by(row.id), current_caller()
        if starter is None:
            return
        same = starter.key_id == caller.key_id if starter.key_id or caller.key_id else starter.name == caller.name
        if same:
            raise ApprovalNeededError(
                text("error.own_session"),
                hint=text("error.ask_an_approver"),
                details={"started_by": starter.name},
            )


def _is_free(answer: Mapping[str, Any]) -> bool:
    """True if the rules do not apply: the answer undoes a write, or requests changes without its own ops."""
    return answer.get("action") == "rollback" or (answer.get("action") == "iterate" and not answer.get("ops"))


def _planned_name(row: SessionRow, interrupt: Interrupt) -> str | None:
    if interrupt.type == "plan_approval":
        return interrupt.data.contract.flow_name
    contract: Any = (row.plan or {}).get("contract") or {}
    return contract.get("flow_name")


def _fingerprint(answer: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(answer, sort_keys=True, default=str).encode()).hexdigest()
