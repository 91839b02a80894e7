"""Attached files become files of the flow: named in plan and ops, inserted at compilation."""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Final

from flowise_dev_agent.knowledge.pattern_library import terms_of
from flowise_dev_agent.patch import AddNode, Finding, PatchOp, Schemas, SetParam
from flowise_dev_agent.patch.model.attached_files import file_names, file_value, is_mark, mark, with_files
from flowise_dev_agent.patch.model.ops import patch_error
from flowise_dev_agent.patch.model.placeholders import stands_in
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.session_files import SessionFiles
from flowise_dev_agent.schemas.attachments import AttachmentFacts
from flowise_dev_agent.schemas.plan import MOST_TESTS, Criterion, Expectation, Plan, PlannedValue, TestCase
from flowise_dev_agent.texts import say_in

#: Code of a finding on a file that the session has and the plan does not use.
ATTACHMENT_UNUSED: Final = "ATTACHMENT_UNUSED"
_MISSING: Final = "ATTACHMENT_MISSING"
#: Longest expected answer (characters) that code compares verbatim; a judge reads longer ones.
_EXACT: Final = 40
#: Bytes from which a file is searched, characters of a passage, and number of passages shown.
_LONG: Final = 2_000
_PASSAGE: Final = 400
_MOST_PASSAGES: Final = 3


def attached_files(context: PlanContext) -> PlanContext:
    """Put the session's files into the fields that take them, and its rows of questions into the tests."""
    if not context.is_open:
        return context
    return context.having(
        with_attached(context.plan, context.schemas, context.request.attachments, context.request.intent.language)
    )


def with_attached(plan: Plan, schemas: Schemas, attachments: Sequence[AttachmentFacts], language: str = "en") -> Plan:
    """Assign the session's files to the file fields of new nodes that accept their type, replacing planned values and
    placeholders there. An unused file is a warning for the person.
    """
    if not attachments:
        return plan
    plan = _with_test_set(plan, attachments, language)
    # Images are sent with questions, examples are in prompts: see `images` and `examples`.
    attachments = [one for one in attachments if not (one.tests or one.examples) and one.kind != "image"]
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
    used |= {name for store in plan.document_stores for name in store.files}
    unused = [one for one in attachments if one.name not in used and one.kind != "openapi"]
    findings = [
        Finding(
            code=ATTACHMENT_UNUSED,
            severity="warning",
            detail=f"The plan does not use the file {one.name}.",
            params={"file": one.name},
            hint="Say what it is for, or approve the plan without it.",
        )
        for one in unused
    ]
    kept = [one for one in plan.findings if one.code != ATTACHMENT_UNUSED]
    return plan.model_copy(update={"values": values, "placeholders": placeholders, "findings": [*kept, *findings]})


def _with_test_set(plan: Plan, attachments: Sequence[AttachmentFacts], language: str) -> Plan:
    """Replace the plan's tests by the rows of files that hold questions and expected answers."""
    rows = [row for one in attachments for row in one.tests][:MOST_TESTS]
    if not rows:
        return plan
    tests: list[TestCase] = []
    criteria: list[Criterion] = []
    for number, (question, expected) in enumerate(rows, start=1):
        exact = [expected] if 0 < len(expected) <= _EXACT else []
        tests.append(TestCase(id=f"t{number}", turns=[question], expect=Expectation(contains=exact)))
        if expected:
            text = say_in(language, "plan.criterion.says", question=question, expected=expected)
            criteria.append(Criterion(id=f"c{number}", text=text, tests=[f"t{number}"]))
    return plan.model_copy(update={"tests": tests, "criteria": criteria or plan.criteria}).linked()


async def passages_of(
    files: SessionFiles | None, attachments: Sequence[AttachmentFacts], requirement: str
) -> dict[str, tuple[str, ...]]:
    """Passages of each long file (by name) that share most words with the requirement. A planner sees only these and
    the first lines; the flow gets the whole text.
    """
    found: dict[str, tuple[str, ...]] = {}
    for one in attachments:
        content = await files.content(one.name) if files and one.size > _LONG and one.kind != "openapi" else None
        if content is not None and (passages := _passages(content[2], set(terms_of(requirement)))):
            found[one.name] = passages
    return found


def _passages(text: str, wanted: Set[str]) -> tuple[str, ...]:
    parts = [text[start : start + _PASSAGE] for start in range(0, len(text), _PASSAGE)]
    scored = [(len(wanted & {*terms_of(part)}), -number, part) for number, part in enumerate(parts)]
    best = sorted((one for one in scored if one[0]), reverse=True)[:_MOST_PASSAGES]
    return tuple(" ".join(part.split()) for _, _, part in best)


async def contents(ops: Sequence[PatchOp], files: SessionFiles | None) -> dict[str, str]:
    """Map each file placeholder in the ops to the field's value. Raises PatchError for an unknown file."""
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
                    detail=f"The session has no file {name!r}.",
                    where=op.node_id,
                    params={"file": name},
                    hint="Leave the field out, or start again with the file attached.",
                    op_index=index,
                    op_type=op.op_type,
                )
                raise patch_error([finding])
            read.append((name, content[0], content[1]))
        found[value] = file_value(read)
    return found


def with_content(op: PatchOp, files: Mapping[str, str]) -> PatchOp:
    """Replace the file placeholders in an op by the files' content."""
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
