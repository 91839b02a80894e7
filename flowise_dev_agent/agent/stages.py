"""Write stages of `apply_patch`, and the transitions between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Stage(StrEnum):
    """Next write."""

    #: Write the draft as an exact copy, to test it before the change; nothing in direct mode.
    BASELINE = "baseline"
    #: Write the validated flow: to the draft, to the live flow (direct mode), or as a new flow.
    APPLY = "apply"
    #: Replace the live flow by the tested draft.
    PROMOTE = "promote"
    #: Accept a new flow: remove its session tag, and deploy it if the person says so.
    ACCEPT = "accept"
    #: Undo the session's writes.
    ROLLBACK = "rollback"


class StageEvent(StrEnum):
    """Event that changes the stage."""

    PLANNED = "planned"
    #: A change was planned, and the flow was not tested before the change yet.
    PLANNED_WITHOUT_BASELINE = "planned_without_baseline"
    BASELINE_TESTED = "baseline_tested"
    NEW_FLOW_ACCEPTED = "new_flow_accepted"
    DRAFT_ACCEPTED = "draft_accepted"
    ROLLED_BACK = "rolled_back"
    #: Someone else changed the flow; the session goes on with it as it is now.
    BASE_REPLACED = "base_replaced"


@dataclass(frozen=True)
class StageRow:
    """Row of the transition table: first node, if the write is tested, stages that may follow."""

    entry: str
    tested: bool = False
    events: Mapping[StageEvent, Stage] = field(default_factory=dict[StageEvent, Stage])


STAGES: Final[Mapping[Stage, StageRow]] = {
    Stage.BASELINE: StageRow(
        entry="preflight_validate_patch",
        tested=True,
        events={
            StageEvent.PLANNED_WITHOUT_BASELINE: Stage.BASELINE,
            StageEvent.BASELINE_TESTED: Stage.APPLY,
            StageEvent.BASE_REPLACED: Stage.BASELINE,
        },
    ),
    Stage.APPLY: StageRow(
        entry="preflight_validate_patch",
        tested=True,
        events={
            StageEvent.PLANNED: Stage.APPLY,
            StageEvent.PLANNED_WITHOUT_BASELINE: Stage.BASELINE,
            StageEvent.NEW_FLOW_ACCEPTED: Stage.ACCEPT,
            StageEvent.DRAFT_ACCEPTED: Stage.PROMOTE,
            StageEvent.ROLLED_BACK: Stage.ROLLBACK,
            StageEvent.BASE_REPLACED: Stage.APPLY,
        },
    ),
    Stage.PROMOTE: StageRow(
        entry="preflight_validate_patch",
        events={StageEvent.BASE_REPLACED: Stage.APPLY},
    ),
    Stage.ACCEPT: StageRow(entry="apply_patch"),
    Stage.ROLLBACK: StageRow(entry="apply_patch"),
}


def next_stage(stage: Stage, event: StageEvent) -> Stage:
    """Stage that follows an event.

    Raises:
        LookupError: the table has no such transition, which is a mistake in the graph.
    """
    try:
        return STAGES[stage].events[event]
    except KeyError:
        raise LookupError(f"'{event}' cannot happen in the stage '{stage}'.") from None
