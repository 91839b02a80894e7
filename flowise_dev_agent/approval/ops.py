"""What ops go through before a flow is written; the same for the graph's nodes and for the tool `check_ops`."""

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from flowise_dev_agent.approval.binding import not_met, outside_plan
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
from flowise_dev_agent.patch.model.suggest import fold
from flowise_dev_agent.planning.passes.attached import with_content
from flowise_dev_agent.planning.passes.document_stores import plan_with_ids, stand_ins, with_ids
from flowise_dev_agent.planning.values import with_planned_values
from flowise_dev_agent.schemas.base import Contract
from flowise_dev_agent.schemas.plan import PlanContract

#: Characters of a value; a longer one may be something that the person asked for.
_SHORT: Final = 40
#: Similarity (difflib ratio) from which a name may be another one misspelt.
_LIKE: Final = 0.7
_WORD: Final = re.compile(r"\w+")
#: The person decided to go on without a credential: what follows from that is not an error any more.
_CREDENTIAL_CODES = frozenset({"CREDENTIAL_UNBOUND", "NESTED_CREDENTIAL_UNBOUND"})
#: Legal in a flow that a person keeps half-built; in what the agent itself adds, a connection was forgotten.
_LOOSE_CODES = frozenset({"ISOLATED_NODE", "DEAD_END"})


#: The code of an answer that holds no ops.
UNUSABLE: Final = "OPS_UNUSABLE"


class PatchScope(Contract):
    """The limits of the op writer: ids of the planned nodes, and the ceilings of the settings."""

    nodes: list[str]
    max_ops: int
    max_new_nodes: int


@dataclass(frozen=True)
class Compiled:
    """A flow and the ops that made it. `lacking` is what of the plan it does not hold, `left_out` which fields of the
    ops were left out."""

    result: CompileResult
    ops: list[PatchOp]
    lacking: list[Finding]
    left_out: list[Finding]


def completed(
    ops: Sequence[PatchOp],
    plan: PlanContract,
    base: GraphIR,
    schemas: Schemas,
    *,
    scope: PatchScope | None = None,
    by_model: bool = True,
) -> tuple[list[PatchOp], list[Finding]]:
    """The ops with the values of the plan, and a finding for each that the ceilings or the plan do not allow."""
    found = _out_of_scope(ops, scope) if scope else []
    whole = with_planned_values(ops, plan, base)
    if by_model and plan.capability is not None:
        found += outside_plan(whole, plan, plan.capability, schemas, base)
    return whole, found + _unplanned_removals(whole, plan, base)


async def compiled(
    ops: Sequence[PatchOp],
    plan: PlanContract,
    base: GraphIR,
    schemas: Schemas,
    *,
    credentials: Mapping[str, str],
    unbound: Sequence[str],
    files: Mapping[str, str] | None = None,
    stores: Mapping[str, str] | None = None,
) -> Compiled:
    """The flow, and what of the plan it does not hold. Raises PatchError for ops that cannot be compiled.

    `files` is what stands in fields in place of the marks of attached files, `stores` the ids of the document stores
    that were made for the plan; the ops keep the marks.
    Fields of new nodes that their types do not have are left out when nothing else is wrong.
    """

    ids = stand_ins(plan) | {**(stores or {})}

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
    return Compiled(result, kept, not_met(plan_with_ids(plan, ids), base, result.graph), left_out)


def _superfluous(
    found: Sequence[Finding], ops: Sequence[PatchOp], plan: PlanContract, schemas: Schemas
) -> list[Finding]:
    """A warning for each field that can be left out; none when one of the findings needs an answer.

    That is so for a field that the plan speaks of, that may be another one misspelt, or that holds a longer text.
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
    """Whether one of the names may be meant."""
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
) -> list[Finding]:
    """The findings on a compiled flow with the severity that they have in this session.

    `before` are those of the flow before the session, `seeded` the ids of nodes that a pattern brought.
    """
    added = {op.node_id for op in ops if isinstance(op, AddNode)} | {*seeded}
    findings = [
        finding.model_copy(update={"severity": "warning"})
        if without_credentials and finding.code in _CREDENTIAL_CODES
        else finding.model_copy(update={"severity": "error"})
        if finding.code in _LOOSE_CODES and finding.where in added
        else finding
        for finding in excused(found, before)
    ]
    return [*findings, *untitled(ops)] if kind == "AGENTFLOW" else findings


def untitled(ops: Sequence[PatchOp]) -> list[Finding]:
    """The steps that are added to an agentflow under the name of their type: a person cannot tell them apart."""
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
    """The findings that an error carries; an error without any becomes one, in words for the op writer."""
    if raw := error.details.get("findings"):
        return [Finding(**item) for item in raw]
    message, hint = error.message, error.hint or ""
    if isinstance(error, ModelOutputError):
        message = "The last answer could not be used."
        hint = "\n".join(error.details.get("problems") or ["Answer with one JSON object, of one of the three kinds."])
    return [Finding(code=UNUSABLE, severity="error", detail=message, hint=hint)]


def _out_of_scope(ops: Sequence[PatchOp], scope: PatchScope) -> list[Finding]:
    """The ceilings are settings; a model cannot widen them."""
    problems: list[Finding] = []
    if len(ops) > scope.max_ops:
        text = f"{len(ops)} ops are more than the {scope.max_ops} that one iteration may have."
        problems.append(Finding(code="TOO_MANY_OPS", severity="error", detail=text, hint="Write fewer ops."))
    added = sum(isinstance(op, AddNode) for op in ops)
    if added > scope.max_new_nodes:
        text = f"{added} new nodes are more than the {scope.max_new_nodes} that a session may add."
        problems.append(Finding(code="TOO_MANY_NODES", severity="error", detail=text, hint="Build a smaller flow."))
    return problems


def _unplanned_removals(ops: Sequence[PatchOp], plan: PlanContract, base: GraphIR) -> list[Finding]:
    """What the person has in the flow goes only when the approved plan says so."""
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
