"""Complete, compile and check ops before a flow is written; shared by the graph's nodes and the tool `check_ops`."""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from flowise_dev_agent.approval.lines import rerouted
from flowise_dev_agent.approval.ops_in_plan import outside_plan
from flowise_dev_agent.approval.promises import not_met, untouched
from flowise_dev_agent.errors import ModelOutputError, PatchError
from flowise_dev_agent.knowledge.flow_check import excused
from flowise_dev_agent.patch import (
    AddNode,
    CompileResult,
    Finding,
    GraphIR,
    PatchOp,
    RemoveNode,
    ReplaceNode,
    Schemas,
    compile_ops,
)
from flowise_dev_agent.patch.model.agentflow import START
from flowise_dev_agent.patch.model.findings import warning
from flowise_dev_agent.patch.model.references import reads_files
from flowise_dev_agent.patch.model.suggest import fold
from flowise_dev_agent.planning.made_with_flow import plan_with_ids, stand_ins, with_ids
from flowise_dev_agent.planning.passes.attached import with_content
from flowise_dev_agent.planning.passes.feasibility import is_settled
from flowise_dev_agent.planning.remarks import CREDENTIAL_CODES, FILES_NOT_TAKEN, is_remark
from flowise_dev_agent.planning.values import with_planned_lines, with_planned_values
from flowise_dev_agent.schemas.base import Contract
from flowise_dev_agent.schemas.plan import Plan

#: Maximum characters of a value that may be left out; a longer one may be a requirement.
_SHORT: Final = 40
#: Similarity (difflib ratio) from which a name counts as a misspelling of another.
_LIKE: Final = 0.7
_WORD: Final = re.compile(r"\w+")
#: Findings allowed in a person's unfinished flow; where the agent's change causes them, they are errors.
_LOOSE_CODES = frozenset({"ISOLATED_NODE", "DEAD_END", "NOT_ON_SERVER", "ONLY_INDEXES", "UNKNOWN_VARIABLE"})


#: Finding code of an answer without ops.
UNUSABLE: Final = "OPS_UNUSABLE"


class PatchScope(Contract):
    """The limits of the op writer: ids of the planned nodes, and the ceilings of the settings."""

    nodes: list[str]
    max_ops: int
    max_new_nodes: int


@dataclass(frozen=True)
class Compiled:
    """Compiled flow and the ops that made it. `lacking`: findings on missing parts of the plan and on lines outside of
    it; `left_out`: warnings for fields of the ops that were dropped, and for planned nodes that nothing changes.
    """

    result: CompileResult
    ops: list[PatchOp]
    lacking: list[Finding]
    left_out: list[Finding]


def completed(
    ops: Sequence[PatchOp],
    plan: Plan,
    base: GraphIR,
    schemas: Schemas,
    *,
    scope: PatchScope | None = None,
    by_model: bool = True,
) -> tuple[list[PatchOp], list[Finding]]:
    """Fill in the plan's values and lines; return the ops, and a finding for each that limits or the plan forbid."""
    found = _out_of_scope(ops, scope) if scope else []
    whole = with_planned_lines(with_planned_values(ops, plan, base), plan, base)
    if by_model and plan.capability is not None:
        found += outside_plan(whole, plan, plan.capability, schemas, base)
    return whole, found + _unplanned_removals(whole, plan, base)


async def compiled(
    ops: Sequence[PatchOp],
    plan: Plan,
    base: GraphIR,
    schemas: Schemas,
    *,
    credentials: Mapping[str, str],
    unbound: Sequence[str],
    files: Mapping[str, str] | None = None,
    made: Mapping[str, str] | None = None,
    original: GraphIR | None = None,
    by_model: bool = True,
) -> Compiled:
    """Compile the ops, and compare the flow with the plan. Raises PatchError if the ops cannot be compiled.

    `files` maps the placeholders of attached files to field values, `made` the marks of the plan's document stores
    and tools to their ids; the ops keep the placeholders. `original` is the flow before the session, by default `base`.
    Unknown fields of new nodes are left out if nothing else is wrong.
    """

    ids = stand_ins(plan) | {**(made or {})}

    async def compile_(ops: Sequence[PatchOp]) -> CompileResult:
        whole = [with_ids(with_content(op, files or {}), ids) for op in ops] if files or ids else ops
        return await asyncio.to_thread(compile_ops, base, whole, schemas, credentials=credentials, unbound=unbound)

    kept, left_out = list(ops), list[Finding]()
    try:
        result = await compile_(kept)
    except PatchError as error:
        left_out = _superfluous(findings_of(error), kept, plan, schemas)
        kept = _without(left_out, kept)
        if not left_out:
            raise
        result = await compile_(kept)
    left_out += untouched(plan, original or base, result.graph)
    lacking = not_met(plan_with_ids(plan, ids), base, result.graph)
    has_steps = plan.flow_kind == "AGENTFLOW"
    # Steps of a pattern bring their lines along.
    if by_model and plan.capability is not None and not (has_steps and unbound):
        before = base if has_steps else original or base
        lacking += await asyncio.to_thread(rerouted, plan, plan.capability, before, result.graph, schemas)
    return Compiled(result, kept, lacking, left_out)


def _superfluous(found: Sequence[Finding], ops: Sequence[PatchOp], plan: Plan, schemas: Schemas) -> list[Finding]:
    """Warnings for unknown fields that can be left out; empty if any finding needs an answer.

    A finding needs an answer if the plan names the field, it resembles a known field, or its value is long.
    """
    words = set(_WORD.findall(plan.model_dump_json(include={"goal", "nodes", "values", "steps", "criteria", "parts"})))
    warnings: list[Finding] = []
    for finding in found:
        op = ops[finding.op_index] if finding.op_index is not None else None
        schema = schemas.get(op.node_name) if isinstance(op, AddNode) else None
        if finding.code != "UNKNOWN_PARAM" or schema is None or not isinstance(op, AddNode):
            return []
        name = finding.field
        known = [entry["name"] for entry in schema.input_definitions]
        value = op.params.get(name)
        if name not in op.params or name in words or _is_like(name, known) or len(str(value)) > _SHORT:
            return []
        text = f"{schema.name} has no field {name!r}: it is left out."
        warnings.append(finding.model_copy(update={"severity": "warning", "message": text, "hint": "", "allowed": ()}))
    return warnings


def _is_like(name: str, known: Sequence[str]) -> bool:
    """True if `name` resembles one of the known names."""
    own, others = fold(name), [fold(other) for other in known]
    return any(own in other or other in own for other in others) or bool(get_close_matches(own, others, 1, _LIKE))


def _without(left_out: Sequence[Finding], ops: Sequence[PatchOp]) -> list[PatchOp]:
    names = {(finding.op_index, finding.field) for finding in left_out}
    return [
        op.model_copy(update={"params": {key: one for key, one in op.params.items() if (index, key) not in names}})
        if isinstance(op, AddNode)
        else op
        for index, op in enumerate(ops)
    ]


def decided(
    found: Sequence[Finding],
    before: Sequence[Finding],
    *,
    ops: Sequence[PatchOp],
    seeded: Collection[str] = (),
    kind: str,
    without_credentials: bool = False,
    by_hand: bool = False,
) -> list[Finding]:
    """Findings on a compiled flow, with the severity that applies in this session.

    `before`: findings on the flow before the session. `seeded`: ids of the nodes that come from a pattern. `by_hand`:
    the person made the change.
    """
    added = {op.node_id for op in ops if isinstance(op, AddNode)} | {*seeded}
    findings = [
        finding.model_copy(update={"severity": "warning"})
        if without_credentials and finding.code in CREDENTIAL_CODES
        else finding.model_copy(update={"severity": "error"})
        if finding.code in _LOOSE_CODES and (finding.where in added or (finding.origin == "new" and not by_hand))
        else finding
        for finding in excused(found, before)
    ]
    return [*findings, *untitled(ops)] if kind == "AGENTFLOW" else findings


def for_the_model(findings: Sequence[Finding], told: Collection[str], plan: Plan, schemas: Schemas) -> list[Finding]:
    """Findings with the new warnings as errors, so that they go back once; `told`: keys of those that did.

    What the approved plan settles does not go back.
    """
    return [
        finding.model_copy(update={"severity": "error"})
        if is_remark(finding) and finding.key not in told and not is_settled(finding, plan, schemas)
        else finding
        for finding in findings
    ]


def untitled(ops: Sequence[PatchOp]) -> list[Finding]:
    """Warnings for steps added to an agentflow without a title of their own: people cannot tell them apart."""
    return [
        Finding(
            code="STEP_WITHOUT_TITLE",
            severity="warning",
            detail=f"The step {op.node_id} has no title of its own.",
            where=op.node_id,
            field="label",
            hint="Give its AddNode a `label` of two to four words that says what the step does.",
            op_index=index,
            op_type=op.op_type,
        )
        for index, op in enumerate(ops)
        if isinstance(op, AddNode) and op.label is None and op.node_name != START
    ]


def findings_of(error: PatchError | ModelOutputError) -> list[Finding]:
    """Findings that an error carries; an error without findings becomes one, worded for the op writer."""
    if raw := error.details.get("findings"):
        return [Finding(**item) for item in raw]
    message, hint = error.message, error.hint or ""
    if isinstance(error, ModelOutputError):
        message = "The last answer could not be used."
        hint = "\n".join(error.details.get("problems") or ["Answer with one JSON object, of one of the three kinds."])
    return [Finding(code=UNUSABLE, severity="error", detail=message, hint=hint)]


def _out_of_scope(ops: Sequence[PatchOp], scope: PatchScope) -> list[Finding]:
    """Findings for ops beyond the limits of the settings, which a model cannot raise."""
    problems: list[Finding] = []
    if len(ops) > scope.max_ops:
        text = f"{len(ops)} ops are more than the {scope.max_ops} that one iteration may have."
        problems.append(Finding(code="TOO_MANY_OPS", severity="error", detail=text, hint="Write fewer ops."))
    added = sum(isinstance(op, AddNode) for op in ops)
    if added > scope.max_new_nodes:
        text = f"{added} new nodes are more than the {scope.max_new_nodes} that a session may add."
        problems.append(Finding(code="TOO_MANY_NODES", severity="error", detail=text, hint="Build a smaller flow."))
    return problems


def _unplanned_removals(ops: Sequence[PatchOp], plan: Plan, base: GraphIR) -> list[Finding]:
    """Findings for removals of existing nodes that the approved plan does not contain."""
    existing = {node.id for node in base.nodes}
    return [
        Finding(
            code="REMOVAL_NOT_PLANNED",
            severity="error",
            detail=f"The approved plan does not remove or replace {op.node_id}.",
            where=op.node_id,
            hint="Leave the node in the flow.",
            op_index=index,
            op_type=op.op_type,
        )
        for index, op in enumerate(ops)
        if isinstance(op, RemoveNode | ReplaceNode) and op.node_id in existing and op.node_id not in plan.removals
    ]


def files_not_taken(graph: GraphIR) -> list[Finding]:
    """Warnings for texts that read uploaded files, in a flow whose settings take none."""
    return [
        warning(
            FILES_NOT_TAKEN,
            f"`{name}` reads {{{{ file_attachment }}}}, but the settings of the flow let nobody upload files.",
            where=node.id,
            field=name,
            hint="Ask for the kinds of files that people are to upload, or switch on file upload in Flowise.",
        )
        for node in graph.nodes
        for name, value in node.inputs.items()
        if reads_files(value)
    ]
