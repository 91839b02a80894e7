"""Rules on branches, loops and starts of agentflows: steps that run against the intention, and steps that never run."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from flowise_dev_agent.patch.model import agentflow as v2
from flowise_dev_agent.patch.model.findings import Finding, error, warning
from flowise_dev_agent.patch.model.node import FlowNode
from flowise_dev_agent.patch.model.references import has_variable
from flowise_dev_agent.patch.model.values import is_empty
from flowise_dev_agent.patch.model.visibility import js_truthy
from flowise_dev_agent.patch.validate.context import AGENTFLOW, Connection, FlowContext, rule
from flowise_dev_agent.patch.validate.order import RunOrder

_TIME = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d")


@rule("BRANCH_HAS_TWO_TARGETS", kinds=(AGENTFLOW,))
def split(flow: FlowContext) -> Iterator[Finding]:
    """One target per branch. Its second target would run whichever branch is taken."""
    for node in flow.nodes:
        for handle, connections in _by_handle(flow, node).items():
            targets = list(dict.fromkeys(one.target.id for one in connections))
            if node.name in v2.BRANCHING and len(targets) > 1:
                yield error(
                    "BRANCH_HAS_TWO_TARGETS",
                    f"Branch {handle.rpartition('-')[2]} of {node.id} leads to {', '.join(targets)}; "
                    f"{', '.join(targets[1:])} would run even when the branch is not taken.",
                    where=node.id,
                    field=handle.rpartition("-")[2],
                    hint=f"Let the branch lead to {targets[0]} only, and Connect the next step to that one.",
                )


@rule("STEP_NEVER_RUNS", "STEP_RUNS_TWICE", kinds=(AGENTFLOW,))
def joins(flow: FlowContext) -> Iterator[Finding]:
    """Steps with several sources run exactly once.

    A step waits for each plain source and for one source behind each branching step before it. If no run reaches two of
    these, it never runs, and the flow ends without its answer. The same holds for a step to which two branches of one
    step lead directly: the branch not taken skips it. Each further source behind the same branching step makes it run
    again.
    """
    order = RunOrder(flow)
    for node in flow.nodes:
        for fork, handles in _branches_into(flow, node).items():
            if len(handles) > 1:
                yield error(
                    "STEP_NEVER_RUNS",
                    f"Branches {', '.join(handles)} of {fork} lead to {node.id}: whichever is taken, the others leave "
                    "it out, and it never runs.",
                    where=node.id,
                    field=fork,
                    hint=f"Let each branch lead to a step of its own; a copy of {node.id} is enough.",
                )
        groups: dict[str, list[Connection]] = {}
        for one in flow.connections_into.get(node.id, ()):
            groups.setdefault(order.group_of(one), []).append(one)
        for (first, ones), (second, others) in combinations(groups.items(), 2):
            if all(order.exclusive(one, other) for one in ones for other in others):
                sources = sorted({one.source.id for one in [*ones, *others]})
                yield error(
                    "STEP_NEVER_RUNS",
                    f"{node.id} waits for {first.strip()} and for {second.strip()}, and no run comes by both: "
                    "it never runs.",
                    where=node.id,
                    hint=f"Give each of {', '.join(sources)} a following step of its own instead of {node.id}.",
                )
                break
        else:
            yield from _repeated(node, groups, order)


def _repeated(node: FlowNode, groups: Mapping[str, Sequence[Connection]], order: RunOrder) -> Iterator[Finding]:
    for fork, connections in groups.items():
        for one, other in combinations(connections, 2):
            first, second = one.source.id, other.source.id
            if fork.startswith(" ") or first == second or order.exclusive(one, other):
                continue
            yield error(
                "STEP_RUNS_TWICE",
                f"{node.id} follows {first} and {second}, which both run on a branch of {fork}: it runs after each.",
                where=node.id,
                hint=f"Put the steps in a row, {first} before {second}, and Connect only {second} to {node.id}.",
            )
            return


def _branches_into(flow: FlowContext, node: FlowNode) -> dict[str, list[str]]:
    """Id of a branching step -> numbers of its branches that lead directly to the node."""
    found: dict[str, list[str]] = {}
    for one in flow.connections_into.get(node.id, ()):
        number = one.edge.source_handle.rpartition("-")[2]
        numbers = found.setdefault(one.source.id, []) if one.source.name in v2.BRANCHING else []
        if number not in numbers:
            numbers.append(number)
    return found


@rule("STEP_NEVER_RUNS", kinds=(AGENTFLOW,))
def stops(flow: FlowContext) -> Iterator[Finding]:
    """Nothing runs beside a step that waits for a person: when the flow goes on, the server has forgotten what else was
    to run, and what has run beside it.
    """
    order = RunOrder(flow)
    for stop in flow.nodes:
        kind = _waits(stop)
        if stop.parent or not kind or stop.id not in order.places:
            continue
        make = error if kind == v2.HUMAN_INPUT else warning
        hint = f"Put the steps in a row: first what runs beside {stop.id}, then {stop.id}, then what follows both."
        for node in flow.nodes:
            if node.parent or node is stop or order.before(node.id, node.id):
                continue
            if order.before(stop.id, node.id):
                if (source := _forgotten(flow, node, order, stop.id)) is not None:
                    why = f"{node.id} waits for {source}, which runs beside {stop.id}: once a person has answered, it "
                    yield make("STEP_NEVER_RUNS", f"{why}never runs.", where=node.id, field=stop.id, hint=hint)
            elif (
                order.places.get(node.id, 0) > order.places[stop.id]
                and not order.before(node.id, stop.id)
                and not order.apart(node.id, stop.id)
            ):
                why = f"{node.id} is still to run when {stop.id} stops for a person: it never runs."
                yield make("STEP_NEVER_RUNS", why, where=node.id, field=stop.id, hint=hint)


def _waits(node: FlowNode) -> str:
    """Kind of step that waits for a person: a human input, or an agent with such a tool; '' for other steps."""
    rows = node.inputs.get("agentTools")
    asks = isinstance(rows, list) and any(
        isinstance(row, dict) and js_truthy(row.get("agentSelectedToolRequiresHumanInput")) for row in rows
    )
    return node.name if node.name == v2.HUMAN_INPUT or asks else ""


def _forgotten(flow: FlowContext, node: FlowNode, order: RunOrder, again: str) -> str | None:
    """Source of a step that runs before ``again`` goes on, and not after; the step waits for it in vain."""
    into = flow.connections_into.get(node.id, ())
    new = [one for one in into if one.source.id == again or order.before(again, one.source.id)]
    for one in into:
        if one in new or any(order.exclusive(one, other) for other in new):
            continue
        if order.group_of(one) not in {order.group_of(other) for other in new}:
            return one.source.id
    return None


@rule("STEP_NEVER_RUNS", kinds=(AGENTFLOW,))
def rounds(flow: FlowContext) -> Iterator[Finding]:
    """Steps of a loop wait for steps of the loop only: the others do not run again in its second round."""
    order = RunOrder(flow)
    for loop in flow.nodes:
        target = loop.inputs.get(v2.LOOP_TARGET)
        back = v2.loop_target_id(target) if loop.name == v2.LOOP and isinstance(target, str) else ""
        for node in flow.nodes if back else ():
            if not (order.before(back, node.id) and order.before(node.id, loop.id)) or order.before(node.id, node.id):
                continue
            if (source := _forgotten(flow, node, order, back)) is not None:
                yield error(
                    "STEP_NEVER_RUNS",
                    f"{node.id} waits for {source}, outside the loop from {back}: it runs in the first round only.",
                    where=node.id,
                    field=loop.id,
                    hint=f"Put {source} before {back}, in a row, and Connect only steps of the loop to {node.id}.",
                )


@rule("BRANCH_LEADS_NOWHERE", kinds=(AGENTFLOW,))
def ends(flow: FlowContext) -> Iterator[Finding]:
    """Branches lead to a step. A branch without one answers with the output of the branching step itself.

    Nobody reads the answer of a flow that a schedule starts: a condition may end it.
    """
    shown = {
        v2.CONDITION: "the answer is empty then",
        v2.CONDITION_AGENT: "people are shown raw JSON then",
        v2.HUMAN_INPUT: "the answer is only the word 'proceed' or 'reject' then",
    }
    starts = {node.inputs.get("startInputType") for node in flow.nodes if node.name == v2.START}
    for node in flow.nodes:
        if node.name == v2.CONDITION and starts == {"scheduleInput"}:
            continue
        taken = _by_handle(flow, node)
        wanted = v2.branch_count(node.name, node.inputs)
        for number, output in enumerate(node.outputs[:wanted]):
            if node.name in v2.BRANCHING and output.handle not in taken:
                yield warning(
                    "BRANCH_LEADS_NOWHERE",
                    f"Branch {number} ({output.label}) of {node.id} leads nowhere; {shown[node.name]}.",
                    where=node.id,
                    field=str(number),
                    hint=f'Connect {node.id} with source_anchor "{number}" to a step that answers.',
                )


def _by_handle(flow: FlowContext, node: FlowNode) -> dict[str, list[Connection]]:
    grouped: dict[str, list[Connection]] = {}
    for one in flow.connections_out_of.get(node.id, ()):
        grouped.setdefault(one.edge.source_handle, []).append(one)
    return grouped


@rule("LOOP_WITHOUT_EXIT", "LOOP_LIMIT", kinds=(AGENTFLOW,))
def loops(flow: FlowContext) -> Iterator[Finding]:
    """Loops have an exit branch and a valid limit; otherwise they run to the limit at each question."""
    runs = RunOrder(flow)
    for node in flow.nodes:
        target = node.inputs.get(v2.LOOP_TARGET)
        if node.name != v2.LOOP or not isinstance(target, str) or not target:
            continue
        back = flow.graph.node(v2.loop_target_id(target))
        limit = node.inputs.get("maxLoopCount")
        if not is_empty(limit) and not has_variable(limit) and not _is_limit(limit):
            yield error(
                "LOOP_LIMIT",
                f"`maxLoopCount` must be a whole number from 1 on; {limit} ends the loop at once or at a default.",
                where=node.id,
                field="maxLoopCount",
                hint="It counts all runs of the step that the loop goes back to: 3 is the first and two more.",
            )
        if back is None:
            continue
        if not runs.before(back.id, node.id):
            yield warning(
                "LOOP_WITHOUT_EXIT",
                f"The loop goes to {back.id}, which does not lead to the loop: it is no repetition.",
                where=node.id,
                field=v2.LOOP_TARGET,
                hint="Go back to a step that runs before the loop, or use Connect.",
            )
        elif not any(
            fork.name in v2.BRANCHING
            and (fork is back or runs.before(back.id, fork.id))
            and runs.before(fork.id, node.id)
            for fork in flow.nodes
        ):
            yield warning(
                "LOOP_WITHOUT_EXIT",
                f"No branch leads out of the loop from {back.id} to {node.id}: it always runs to its limit.",
                where=node.id,
                field=v2.LOOP_TARGET,
                hint="Put a condition before the loop, one branch of which leads to it and another one to the answer.",
            )


def _is_limit(value: Any) -> bool:
    text = str(value).strip()
    return text.isascii() and text.isdigit() and int(text[:9]) > 0


@rule("BAD_SCHEDULE", kinds=(AGENTFLOW,))
def schedules(flow: FlowContext) -> Iterator[Finding]:
    """Valid schedules. The server stores a schedule that it cannot read, and never runs it."""
    for node in flow.nodes:
        inputs = node.inputs
        if node.name != v2.START or inputs.get("startInputType") != "scheduleInput":
            continue
        if inputs.get("scheduleType") != "visualPicker":
            continue
        frequency = inputs.get("scheduleFrequency")
        if frequency in ("daily", "weekly", "monthly") and not _TIME.fullmatch(str(inputs.get("scheduleOnTime") or "")):
            text = "`scheduleOnTime` must be HH:mm, from 00:00 to 23:59; the flow would never start."
            yield error("BAD_SCHEDULE", text, where=node.id, field="scheduleOnTime", hint='For example "09:05".')
        if frequency == "weekly" and not _days(inputs.get("scheduleOnDayOfWeek"), 7):
            text = "`scheduleOnDayOfWeek` must be days from 1 to 7; the flow would never start."
            hint = 'For example "2,5": 1 is Monday, 7 Sunday.'
            yield error("BAD_SCHEDULE", text, where=node.id, field="scheduleOnDayOfWeek", hint=hint)
        if frequency == "monthly" and not _days(inputs.get("scheduleOnDayOfMonth"), 31, last="L"):
            text = "`scheduleOnDayOfMonth` must be days from 1 to 31, or L for the last; the flow would never start."
            yield error("BAD_SCHEDULE", text, where=node.id, field="scheduleOnDayOfMonth", hint='For example "1,15".')


def _days(value: Any, most: int, *, last: str = "") -> bool:
    """True if the value is a list of days that the server reads."""
    days = [day for day in (part.strip() for part in str(value or "").split(",")) if day]
    return bool(days) and all(
        day == last or (day.isascii() and day.isdigit() and 1 <= int(day[:9]) <= most) for day in days
    )
