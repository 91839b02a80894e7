"""`rehearse`: the flows of one server on another one, or against its node types, before an upgrade."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from flowise_dev_agent.cli.console import print_json, say, warn
from flowise_dev_agent.cli.files import json_value, read_text, valid, write_text
from flowise_dev_agent.cli.flow_tests import held
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.errors import AgentError, InvalidInputError
from flowise_dev_agent.knowledge.snapshot import by_name
from flowise_dev_agent.patch import Finding, GraphIR, OtherVersion, Schemas, other_versions, validate_flow
from flowise_dev_agent.schemas.flow_tests import FlowTestView, TestFlow, TestFlowText, ValidateFlow
from flowise_dev_agent.schemas.flow_writes import FlowDocument, PromoteFlow

_PAGE: Final = 100
_ANSWER_CHARS: Final = 200


@dataclass(frozen=True)
class RehearseOptions:
    """Servers by their names in the service, and how far to go."""

    source: str | None
    target: str | None = None
    #: File of node types, in place of `target`.
    catalogue: Path | None = None
    #: Ask the test set of each flow on both servers.
    tests: bool = False
    #: Ask flows without one a plain question on both.
    draft: bool = False
    report: Path | None = None
    as_json: bool = False


@dataclass(frozen=True)
class OtherAnswer:
    """A question that is not answered the same on both servers."""

    question: str
    before: str
    after: str
    passed: tuple[bool, bool]


@dataclass
class Rehearsed:
    """A flow, and what is not the same on the other server."""

    id: str
    name: str
    type: str
    #: Findings that only the other server has.
    findings: list[Finding] = field(default_factory=list[Finding])
    versions: list[OtherVersion] = field(default_factory=list[OtherVersion])
    answers: list[OtherAnswer] = field(default_factory=list[OtherAnswer])
    asked: int = 0
    #: Reason why it could not be checked, written or asked.
    problem: str = ""

    @property
    def breaks(self) -> bool:
        """True if it would no longer work, as far as this shows."""
        forbidding = any(one.severity == "error" for one in self.findings)
        return bool(self.problem) or forbidding or any(before and not after for before, after in self._passed)

    @property
    def _passed(self) -> list[tuple[bool, bool]]:
        return [one.passed for one in self.answers]


async def rehearse(client: AgentClient, options: RehearseOptions) -> bool:
    """Check, and ask where wanted, each flow of the source; print and write the report. True if none breaks."""
    if (options.target is None) == (options.catalogue is None):
        raise InvalidInputError("Give one of --to and --catalogue.")
    if options.catalogue and (options.tests or options.draft):
        raise InvalidInputError("--tests and --draft need a server: --to.")
    schemas = await _catalogue(options.catalogue) if options.catalogue else None
    rehearsed: list[Rehearsed] = []
    async for id_, name, type_ in flows_of(client, options.source):
        one = Rehearsed(id_, name, type_)
        rehearsed.append(one)
        try:
            document = await client.export_flow(id_, instance=options.source)
            await (
                _against(client, one, document, schemas, options) if schemas else _on(client, one, document, options)
            )
        except AgentError as error:
            one.problem = error.message
        if not options.as_json:
            _show(one)
    counts = _counts(rehearsed)
    if options.report:
        write_text(markdown(rehearsed, counts, options), options.report)
    if options.as_json:
        print_json({"counts": counts, "flows": [_as_json(one) for one in rehearsed]})
    else:
        say(_told(counts))
    return not counts["break"]


async def flows_of(client: AgentClient, instance: str | None) -> AsyncIterator[tuple[str, str, str]]:
    """(id, name, type) of each flow of an instance."""
    cursor: str | None = None
    while True:
        page = await client.find_flows(instance=instance, limit=_PAGE, cursor=cursor)
        for flow in page.flows:
            yield flow.id, flow.name, flow.type
        cursor = page.next_cursor
        if cursor is None:
            return


async def _catalogue(file: Path) -> Schemas:
    raw: Any = json_value(read_text(file), str(file))
    rows: list[Any] = [one for one in raw if isinstance(one, dict)] if isinstance(raw, list) else []
    schemas = by_name(rows)
    if not schemas:
        raise InvalidInputError(f"{file} holds no node types.", hint="Save the answer of Flowise's GET /api/v1/nodes.")
    return schemas


async def _against(
    client: AgentClient, one: Rehearsed, document: FlowDocument, schemas: Schemas, options: RehearseOptions
) -> None:
    """Compare with node types alone: credentials, tools and models of that server are not known."""
    before = await client.validate_flow(_validation(document), instance=options.source)

    def check() -> tuple[list[Finding], list[OtherVersion]]:
        after = validate_flow(document.flow_data, schemas=schemas, credentials=None, kind=document.type)
        return after, other_versions(GraphIR.from_flow_data(document.flow_data), schemas)

    after, one.versions = await asyncio.to_thread(check)
    one.findings = _new(after, [*before.validation.errors, *before.validation.warnings])


async def _on(client: AgentClient, one: Rehearsed, document: FlowDocument, options: RehearseOptions) -> None:
    """Compare with a server: check there what a promotion would write, and ask it as a draft where wanted."""
    body = _validation(document)
    before = await client.validate_flow(body, instance=options.source)
    one.versions = (await client.validate_flow(body, instance=options.target)).versions
    promotion = valid(PromoteFlow, source=options.source, target=options.target, dry_run=True)
    after = await client.promote_flow(one.id, promotion)
    one.findings = _new(after.findings, [*before.validation.errors, *before.validation.warnings])
    tests = await tests_of(client, one.id, options.source) if options.tests else []
    if not (after.valid and after.flow_data and (tests or options.draft)):
        return
    given: dict[str, Any] = {"tests": tests}
    there = valid(TestFlowText, **given, flow_data=after.flow_data, kind=document.type)
    answered = await held(client, valid(TestFlow, **given), one.id, options.source)
    _compare(one, answered, await held(client, there, None, options.target))


def _compare(one: Rehearsed, before: FlowTestView, after: FlowTestView) -> None:
    one.asked = len(after.trials)
    for old, new in zip(before.trials, after.trials, strict=False):
        said = [" ".join((trial.error or trial.answer).split()) for trial in (old, new)]
        if said[0] != said[1] or old.passed != new.passed:
            texts = [text[:_ANSWER_CHARS] for text in said]
            one.answers.append(OtherAnswer(old.question, *texts, passed=(bool(old.passed), bool(new.passed))))


async def tests_of(client: AgentClient, id_: str, instance: str | None) -> list[Any]:
    """The test set of a flow, for a request."""
    found = await client.test_set(id_, instance=instance)
    return [test.model_dump(mode="json", exclude_defaults=True) for test in found.tests]


def _validation(document: FlowDocument) -> ValidateFlow:
    return valid(ValidateFlow, flow_data=document.flow_data, kind=document.type)


def _new(after: Sequence[Finding], before: Sequence[Finding]) -> list[Finding]:
    known = {(one.key, one.severity) for one in before}
    return [one for one in after if (one.key, one.severity) not in known]


# --- the report ------------------------------------------------------------------------------------------------------


def _counts(rehearsed: Sequence[Rehearsed]) -> dict[str, int]:
    severities = Counter(one.severity for flow in rehearsed for one in flow.findings)
    return {
        "flows": len(rehearsed),
        "break": sum(flow.breaks for flow in rehearsed),
        "errors": severities["error"],
        "warnings": severities["warning"],
        "problems": sum(bool(flow.problem) for flow in rehearsed),
        "other_versions": sum(len(flow.versions) for flow in rehearsed),
        "asked": sum(flow.asked for flow in rehearsed),
        "other_answers": sum(len(flow.answers) for flow in rehearsed),
    }


def _told(counts: dict[str, int]) -> str:
    asked = f", {counts['other_answers']} of {counts['asked']} answers differ" if counts["asked"] else ""
    return (
        f"{counts['break']} of {counts['flows']} flows would break: {counts['errors']} errors and {counts['warnings']} "
        f"warnings that are new, {counts['problems']} that could not be checked or asked; {counts['other_versions']} "
        f"nodes have another version there{asked}."
    )


def _lines(one: Rehearsed) -> list[str]:
    lines = [f"problem: {one.problem}"] if one.problem else []
    lines += [f"{finding.severity}: {finding.line}" for finding in one.findings]
    for node in one.versions:
        changes = "; ".join(node.changes) or "changes no field"
        lines.append(f"version: {node.node_id} {node.stored:g} -> {node.offered:g}: {changes}")
    for answer in one.answers:
        ends = ["passed" if passed else "failed" for passed in answer.passed]
        lines.append(f"answer: {answer.question}: {answer.before} ({ends[0]}) -> {answer.after} ({ends[1]})")
    return lines


def _show(one: Rehearsed) -> None:
    (warn if one.breaks else say)(f"{'breaks' if one.breaks else 'goes on'}: {one.name} ({one.id})")
    for line in _lines(one):
        say(f"  {line}")


def _as_json(one: Rehearsed) -> dict[str, Any]:
    models = {name: [item.model_dump(mode="json") for item in getattr(one, name)] for name in ("findings", "versions")}
    answers = [vars(answer) for answer in one.answers]
    plain = {name: getattr(one, name) for name in ("id", "name", "type", "breaks", "problem", "asked")}
    return plain | models | {"answers": answers}


def markdown(rehearsed: Sequence[Rehearsed], counts: dict[str, int], options: RehearseOptions) -> str:
    """The report for people: those that break first."""
    lines = [f"# Rehearsal on {options.target or options.catalogue}", "", _told(counts)]
    for one in sorted(rehearsed, key=lambda one: not one.breaks):
        title = json.dumps(one.name, ensure_ascii=False)
        lines += ["", f"## {title} {'breaks' if one.breaks else 'goes on'}", "", f"`{one.id}`", ""]
        lines += [f"- {' '.join(line.split())}".replace("<", "&lt;") for line in _lines(one)] or ["Nothing differs."]
    return "\n".join(lines) + "\n"
