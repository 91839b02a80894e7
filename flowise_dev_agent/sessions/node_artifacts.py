"""Artifacts of steps as clients see them.

Those of plans and memories are stored. Decisions and milestones are read off the event log: a fork of the graph is a
`decision`; a phase that a step leaves, an iteration that begins and the session's end are a `milestone` each.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID, uuid5

from flowise_dev_agent.agent.emit import NODE_PHASES
from flowise_dev_agent.agent.node_artifacts import ASKING
from flowise_dev_agent.agent.routing import EDGES, END
from flowise_dev_agent.caller import current_request, from_stored
from flowise_dev_agent.errors import ArtifactNotFoundError
from flowise_dev_agent.persistence import ArtifactFilter, ArtifactRow, LoggedStep, NodeArtifacts, Sessions
from flowise_dev_agent.schemas.base import read, view_of
from flowise_dev_agent.schemas.event_data import DecisionData, DoneData
from flowise_dev_agent.schemas.node_artifacts import (
    ArtifactDetail,
    ArtifactPage,
    ArtifactView,
    DecisionPayload,
    Evaluation,
    MilestonePayload,
    MilestoneState,
    RoutingState,
    read_payload,
)

_STORED: Final = frozenset({"plan", "memory"})
_FIXED: Final = dict(EDGES)


class ArtifactService:
    """Artifacts for REST, MCP and the client. Raises SessionNotFoundError for an unknown session."""

    def __init__(self, artifacts: NodeArtifacts, sessions: Sessions) -> None:
        self._artifacts = artifacts
        self._sessions = sessions

    async def page(self, which: ArtifactFilter, *, limit: int, offset: int, **scope: Any) -> ArtifactPage:
        """A page of artifacts, newest first. `scope` are the ids in the caller's request."""
        if which.session_id is not None:
            await self._sessions.get(which.session_id)
        if which.kind in _STORED or which.session_id is None:
            rows, count = await self._artifacts.page(which, limit=limit, offset=offset)
            items = [_view(row) for row in rows]
        else:
            every = await self._of_session(which.session_id, which)
            items, count = every[offset : offset + limit], len(every)
        return ArtifactPage(**scope, **ids_of_request(), count=count, limit=limit, offset=offset, items=items)

    async def get(self, artifact_id: UUID, which: ArtifactFilter, **scope: Any) -> ArtifactDetail:
        """One artifact. Raises ArtifactNotFoundError."""
        if which.session_id is not None:
            await self._sessions.get(which.session_id)
        try:
            item = _view(await self._artifacts.get(artifact_id, which))
        except ArtifactNotFoundError:
            made = await self._of_session(which.session_id, which) if which.session_id is not None else []
            found = next((one for one in made if one.id == artifact_id), None)
            if found is None:
                raise
            item = found
        return ArtifactDetail(**scope, **ids_of_request(), item=item)

    async def _of_session(self, session_id: UUID, which: ArtifactFilter) -> list[ArtifactView]:
        """All artifacts of a session that the filter lets through, newest first."""
        stored = [_view(row) for row in await self._artifacts.of_session(session_id)] if which.kind is None else []
        made = read_off(session_id, await self._artifacts.steps(session_id))
        every = sorted([*made, *reversed(stored)], key=lambda one: one.created_at)
        return [
            one
            for one in reversed(every)
            if which.kind in (None, one.artifact_type)
            and which.node in (None, one.flowchart_node_id)
            and which.run_id in (None, one.flowchart_run_id)
        ]


def read_off(session_id: UUID, steps: Sequence[LoggedStep]) -> Iterator[ArtifactView]:
    """The decisions and milestones of a session, in the order of its events."""
    iteration, node = 0, ""
    for step in steps:
        name = step.node or node
        payloads: list[DecisionPayload | MilestonePayload] = []
        if step.type == "decision" and (decision := read(DecisionData, step.data)).taken is not None:
            if decision.iteration > iteration:
                payloads.append(_milestone(name, "iteration", decision.iteration, before=iteration))
            iteration, node = decision.iteration, name
            payloads += [_decision(name, decision), *_phase_end(name, decision.taken, decision.why, iteration)]
        elif step.type == "node_end" and name in _FIXED:
            payloads += _phase_end(name, _FIXED[name], "", iteration)
        elif step.type == "done" and (outcome := read(DoneData, step.data).outcome) is not None:
            payloads.append(_milestone(node, "acceptance", iteration, detail=outcome))
        _, request = from_stored(step.caller)
        for payload in payloads:
            kind = payload.artifact_type
            yield ArtifactView(
                id=uuid5(session_id, f"{step.seq} {kind} {getattr(payload, 'action', '')}"),
                artifact_type=kind,
                flowchart_id=session_id,
                flowchart_run_id=step.run_id,
                flowchart_node_id=name,
                payload=payload,
                request_id=request.id,
                correlation_id=request.trace_id,
                audit_seq=step.audit_seq if kind == "milestone" and name in ASKING else None,
                created_at=step.ts,
            )


def ids_of_request() -> dict[str, Any]:
    """Ids of the current request, which every envelope carries."""
    request = current_request()
    return {"request_id": request.id, "correlation_id": request.trace_id}


def _decision(node: str, decision: DecisionData) -> DecisionPayload:
    taken, candidates = str(decision.taken), decision.candidates
    return DecisionPayload(
        matched_connector_ids=[_connector(node, taken)],
        evaluations=[
            Evaluation(
                connector_id=_connector(node, candidate.to),
                condition_text=candidate.why,
                matched=candidate.fits,
                reason="taken" if candidate.to == taken and candidate.why == decision.why else _reason(candidate.fits),
            )
            for candidate in candidates
        ],
        # The last candidate is the default, taken if no condition holds.
        no_match=not any(candidate.fits for candidate in candidates[:-1]),
        resolved_route_key=taken,
        resolved_route_path=_connector(node, taken),
        routing_state=_routing(node, decision.iteration, taken),
    )


def _phase_end(node: str, following: str, why: str, iteration: int) -> list[MilestonePayload]:
    """Milestone of the phase that a step leaves, if it leaves one."""
    phase = NODE_PHASES.get(node)
    if phase is None or NODE_PHASES.get(following) == phase:
        return []
    return [_milestone(node, phase, iteration, detail=why, following=following)]


def _milestone(
    node: str, key: str, iteration: int, *, before: int | None = None, detail: str = "", following: str | None = None
) -> MilestonePayload:
    """Milestone that is completed, or the iteration that follows the one `before`."""
    done = before is None
    now = MilestoneState(
        milestone_key=key, status="completed" if done else "in_progress", iteration=iteration, detail=detail
    )
    return MilestonePayload(
        action="mark_complete" if done else "create_or_update",
        action_results=[f"{key}: {now.status}"],
        checkpoint_hit=done,
        before_milestone=MilestoneState(
            milestone_key=key, status="in_progress", iteration=iteration if before is None else before
        ),
        milestone=now,
        routing_state=_routing(node, iteration, following),
    )


def _routing(node: str, iteration: int, to: str | None) -> RoutingState:
    return RoutingState(node=node, phase=NODE_PHASES.get(node, ""), iteration=iteration, route_key=to)


def _connector(source: str, to: str) -> str:
    return f"{source}->{to if to != END else 'END'}"


def _reason(fits: bool) -> str:
    return "fits, but another came first" if fits else "its condition does not hold"


def _view(row: ArtifactRow) -> ArtifactView:
    payload = read_payload({**row.payload, "artifact_type": row.kind})
    ids = {"flowchart_id": row.session_id, "flowchart_run_id": row.run_id, "flowchart_node_id": row.node}
    return view_of(ArtifactView, row, **ids, artifact_type=payload.artifact_type, payload=payload)
