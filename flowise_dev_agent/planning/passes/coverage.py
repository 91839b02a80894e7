"""Coverage of a requirement: the plan must contain its addresses, and account for its quoted texts.

Words and numbers are the model's to read; these facts are the same in every language. A part without missing facts may
still not be covered: the person sees the plan, and the tests show the rest.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from flowise_dev_agent.patch import Finding, GraphIR
from flowise_dev_agent.planning.context import PlanContext
from flowise_dev_agent.planning.prompt_writing import steps_without_instructions
from flowise_dev_agent.planning.requests import PlanRequest
from flowise_dev_agent.planning.wording import one_line
from flowise_dev_agent.redaction import MASK, masked
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.plan import Part, Plan
from flowise_dev_agent.texts import text


def missing_resources(context: PlanContext) -> PlanContext:
    """Mark parts as not possible if they need something that the server lacks."""
    return context.having(without_missing_resources(context.plan))


def uncovered_parts(context: PlanContext) -> PlanContext:
    """Find parts that the plan marks as covered without containing their facts."""
    plan, problems = with_uncovered_parts(context.plan, context.request)
    return replace(context, plan=plan, problems=(*context.problems, *problems))


#: The code of a finding on a document store, flow or tool that the plan uses and the server lacks.
NOT_ON_THE_SERVER: Final = "NOT_ON_THE_SERVER"
#: The code of a finding on a variable that callers are to fill, which Flowise does not let them.
VARIABLE_NOT_BY_CALLER: Final = "VARIABLE_NOT_BY_CALLER"
#: Characters that are written in more than one way.
_ALIKE: Final = str.maketrans("\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014\u2011", '\'\'"""""---')
#: Empty quotes are read too, so that what stands between two pairs is no quotation.
_QUOTED: Final = re.compile(r"\"([^\"]{0,300})\"")
_ADDRESS: Final = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,19}://[^\s\"'<>]{1,2000}|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}", re.IGNORECASE
)
_SHOWN: Final = 80
#: Parts of an address that are kept elsewhere: user and password in a credential, values of a query in a tool.
_KEPT_ELSEWHERE: Final = re.compile(r"(?<=://)[^\s/@]{0,300}(?=@)|(?<==)[^&#\s]{1,300}")
#: Variables that people write in an address or in a text to send.
_FILLED_IN: Final = re.compile(r"\{{1,2}[^{}]{0,60}(?:\}{1,2}|$)|<[^<>]{1,60}>|(?<=/):\w{1,60}")


class _Fact(NamedTuple):
    """Fact in a requirement: an address or a quoted text."""

    kind: Literal["address", "quotation"]
    text: str


def without_missing_resources(plan: Plan) -> Plan:
    """Mark parts as not possible if a finding names something that they need and the server does not give."""
    lacking = [one for one in plan.findings if one.code in (NOT_ON_THE_SERVER, VARIABLE_NOT_BY_CALLER)]
    parts = [
        part.model_copy(update={"state": "not_possible", "reason": why.words})
        if part.state == "covered" and (why := next((one for one in lacking if _needs(part, one)), None))
        else part
        for part in plan.parts
    ]
    return plan.model_copy(update={"parts": parts})


def _needs(part: Part, finding: Finding) -> bool:
    """True if the part is covered by the finding's field, or by its node without naming a field of it."""
    root = re.split(r"[.\[]", finding.field, maxsplit=1)[0]
    own = [value for value in part.values if value.startswith(f"{finding.where}.")]
    if own:
        return any(re.split(r"[.\[]", value[len(finding.where) + 1 :], maxsplit=1)[0] == root for value in own)
    return finding.where in part.nodes


def with_uncovered_parts(plan: Plan, request: PlanRequest) -> tuple[Plan, list[str]]:
    """Downgrade parts that are marked as covered and are not: (plan, problems for the model)."""
    if request.pattern or plan.declined or plan.answer is not None:
        return plan, []
    missing = _not_held(plan, request.flow.graph)
    parts: list[Part] = []
    problems: list[str] = []
    for part in plan.parts:
        named = ", ".join(map(repr, missing.get(part.id, ())))
        if named:
            problems.append(
                f"`parts`: {part.id} is covered, but {named} is in no value, prompt, label, criterion, test or reason "
                "of the plan. Put it there, or say what is not done."
            )
            reason = text("plan.reason.not_contained", names=named)
            part = part.model_copy(update={"state": "not_understood", "reason": reason})
        parts.append(part)
    return plan.model_copy(update={"parts": parts}), problems


def _not_held(plan: Plan, base: GraphIR) -> dict[str, list[str]]:
    """Map the id of each part marked as covered to its facts that neither plan nor flow contains.

    One fact of each kind is enough: "from a@b.c to d@e.f" names one that is replaced. A later part may replace a fact
    of the same kind in an earlier part: then only the later part is checked. A quotation may be an example of what
    must not happen: the reason of its part, or a criterion, accounts for it in other words.
    """
    judged = {one.part for one in plan.criteria}
    held = _folded(" ".join(_texts(plan, base)))
    named = [(part, list(_facts(part.quote))) for part in plan.parts]
    missing: dict[str, list[str]] = {}
    for index, (part, facts) in enumerate(named):
        later = {fact.kind for other, more in named[index + 1 :] if other.source != part.source for fact in more}
        there = {fact.kind for fact in facts if _is_held(fact, f"{held} {_folded(part.reason)}")}
        if part.reason or part.id in judged:
            there.add("quotation")
        for fact in facts if part.state in ("covered", "background") else ():
            if fact.kind not in there | later:
                missing.setdefault(part.id, []).append(shortened(fact.text, _SHOWN))
    return missing


def _is_held(fact: _Fact, folded: str) -> bool:
    """True if the text has the fact; variables in it (`/orders/{number}`, `:id`, `<id>`) are ignored."""
    text = _KEPT_ELSEWHERE.sub("{}", fact.text) if fact.kind == "address" else fact.text
    return all(_folded(piece) in folded for piece in re.split(r"[?&]", _FILLED_IN.sub("?", text)) if piece)


def _texts(plan: Plan, base: GraphIR) -> Iterator[str]:
    """Yield the values and criteria of a plan and the texts of the flow, without the plan's own description."""
    unwritten = {node.node_id for node in steps_without_instructions(plan)}
    yield from (plan.flow_name, *plan.placeholders, *plan.credential_requirements)
    for node in plan.nodes:
        yield from (node.node_id, node.node_name, node.label, node.purpose if node.node_id in unwritten else "")
    yield from _texts_in([{one.param: one.value} for one in plan.values])
    yield from (one.text for one in plan.criteria)
    yield from _texts_in([one.model_dump(mode="json") for one in plan.tests])
    for node in base.nodes if base else ():
        yield from (node.name, node.label)
        yield from _texts_in(node.inputs)


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    elif value is not None:
        yield str(value)


def _facts(quote: str) -> Iterator[_Fact]:
    text = _plain(masked(quote).replace(MASK, "{}"))  # a pasted key is in no plan
    for match in _ADDRESS.finditer(text):
        yield _Fact("address", match[0].strip(" .,;:!?)"))
    for match in _QUOTED.finditer(text):
        if match[1].strip() and not _ADDRESS.fullmatch(match[1].strip()):
            yield _Fact("quotation", match[1])


def _plain(text: str) -> str:
    return one_line(text.translate(_ALIKE)).casefold()


def _folded(text: str) -> str:
    return re.sub(r"[\W_]", "", _plain(text))
