"""What `apply_patch` writes next, and what leads from one write to another."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Stage(StrEnum):
    """The write that comes next."""

    #: A draft that is an exact copy, to ask it the test questions before the change; nothing in direct mode.
    BASELINE = "baseline"
    #: The validated flow: to the draft, to the flow in use (direct mode), or as a new flow.
    APPLY = "apply"
    #: The tested draft replaces the flow in use.
    PROMOTE = "promote"
    #: A new flow is taken: its session tag goes, and it is deployed if the person says so.
    ACCEPT = "accept"
    #: What the session wrote is undone.
    ROLLBACK = "rollback"


class StageEvent(StrEnum):
    """What changes the stage."""

    PLANNED = "planned"
    #: A change of a flow was planned whose answers before the change are not known yet.
    PLANNED_WITHOUT_BASELINE = "planned_without_baseline"
    BASELINE_TESTED = "baseline_tested"
    NEW_FLOW_ACCEPTED = "new_flow_accepted"
    DRAFT_ACCEPTED = "draft_accepted"
    ROLLED_BACK = "rolled_back"
    #: Someone else changed the flow; the session goes on with it as it is now.
    BASE_REPLACED = "base_replaced"


@dataclass(frozen=True)
class StageRow:
    """One row of the table: where the way to the write begins, whether the write is tested, what may follow."""

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
    """The stage that follows.

    Raises:
        LookupError: the table has no such transition, which is a mistake in the graph.
    """
    try:
        return STAGES[stage].events[event]
    except KeyError:
        raise LookupError(f"'{event}' cannot happen in the stage '{stage}'.") from None
