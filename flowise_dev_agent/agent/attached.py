"""Files that go with the requirement become the files of the flow: named in plan and ops, put in at compilation."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from flowise_dev_agent.agent.context import SessionFiles
from flowise_dev_agent.contracts.attachments import AttachmentFacts
from flowise_dev_agent.contracts.plan import PlanContract, PlannedValue
from flowise_dev_agent.patch import AddNode, Finding, PatchOp, Schemas, SetParam
from flowise_dev_agent.patch.model.attached_files import file_names, file_value, is_mark, mark, with_files
from flowise_dev_agent.patch.model.ops import patch_error
from flowise_dev_agent.patch.model.placeholders import stands_in

#: Code of a finding on a file that the session has and the plan does not use.
ATTACHMENT_UNUSED: Final = "ATTACHMENT_UNUSED"
_MISSING: Final = "ATTACHMENT_MISSING"


def with_attached(plan: PlanContract, schemas: Schemas, attachments: Sequence[AttachmentFacts]) -> PlanContract:
    """The plan with the session's files in the file fields of its new nodes that take their kind; what a plan has there
    of its own, and placeholders for such files, go. A file that no field takes is a warning for the person."""
    if not attachments:
        return plan
    values = list(plan.values)
    used: set[str] = set()
    asked_for: set[str] = set()
    for node in plan.nodes:
        schema = schemas.get(node.node_name)
        for entry in schema.input_definitions if schema and not node.existing else ():
            if entry["type"] != "file":
                continue
            endings = {part.strip().lower() for part in str(entry.get("fileType") or "*").split(",")}
            fitting = [one.name for one in attachments if endings & {"*", f".{one.name.rpartition('.')[2]}"}]
            if not fitting:
                continue
            place = (node.node_id, entry["name"])
            asked_for |= {str(one.value) for one in values if (one.node_id, one.param) == place}
            values = [one for one in values if (one.node_id, one.param) != place]
            values.append(PlannedValue(node_id=place[0], param=place[1], value=mark(fitting)))
            used |= {*fitting}
    placeholders = plan.placeholders
    if used and not any(stands_in(one.value) for one in values):
        placeholders = []
    used |= {name for one in values for name in file_names(one.value)}
    unused = [one for one in attachments if one.name not in used and one.kind != "openapi"]
    findings = [
        Finding(
            code=ATTACHMENT_UNUSED,
            severity="warning",
            message=f"The plan does not use the file {one.name}.",
            hint="Say what it is for, or approve the plan without it.",
        )
        for one in unused
    ]
    kept = [one for one in plan.findings if one.code != ATTACHMENT_UNUSED]
    return plan.model_copy(update={"values": values, "placeholders": placeholders, "findings": [*kept, *findings]})


async def contents(ops: Sequence[PatchOp], files: SessionFiles | None) -> dict[str, str]:
    """Mark -> what the field holds instead, for each mark in the ops. Raises PatchError for an unknown file."""
    found: dict[str, str] = {}
    for index, op, value in _marks(ops):
        if value in found:
            continue
        read: list[tuple[str, str, bytes]] = []
        for name in file_names(value):
            content = await files.content(name) if files else None
            if content is None:
                finding = Finding(
                    code=_MISSING,
                    severity="error",
                    message=f"The session has no file {name!r}.",
                    where=op.node_id,
                    hint="Leave the field out, or start again with the file attached.",
                    op_index=index,
                    op_type=op.op_type,
                )
                raise patch_error([finding])
            read.append((name, content[0], content[1]))
        found[value] = file_value(read)
    return found


def with_content(op: PatchOp, files: Mapping[str, str]) -> PatchOp:
    """The op with the content of files in place of their marks."""
    if isinstance(op, AddNode):
        return op.model_copy(update={"params": with_files(op.params, files)})
    if isinstance(op, SetParam) and isinstance(op.value, str):
        return op.model_copy(update={"value": files.get(op.value, op.value)})
    return op


def _marks(ops: Sequence[PatchOp]) -> Iterator[tuple[int, AddNode | SetParam, str]]:
    for index, op in enumerate(ops):
        values = op.params.values() if isinstance(op, AddNode) else [op.value] if isinstance(op, SetParam) else ()
        for value in values:
            if isinstance(value, str) and is_mark(value) and isinstance(op, AddNode | SetParam):
                yield index, op, value
