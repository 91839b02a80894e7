"""`export`, `import`, `diff`, `apply` and `promote`: flows as files and between servers, by a running service."""

import asyncio
import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import UUID

import yaml
from pydantic import ValidationError
from pydantic.alias_generators import to_camel
from rich.table import Column, Table
from rich.text import Text

from flowise_dev_agent.cli.console import confirm, out, print_json, say
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.errors import AgentError, InvalidInputError, WriteFailedError
from flowise_dev_agent.patch import BindCredential, GraphIR, diff, ops_from_list
from flowise_dev_agent.schemas.base import Contract
from flowise_dev_agent.schemas.flow_exports import Export, ExportedFlow, import_of, read_export, things_of
from flowise_dev_agent.schemas.flow_files import LOCK_FILE
from flowise_dev_agent.schemas.flow_tests import FlowTestView, TestFlow, TestFlowText, ValidateFlow
from flowise_dev_agent.schemas.flow_writes import (
    ApplyToFlow,
    FlowDocument,
    FlowWriteResult,
    ImportFlow,
    PromoteFlow,
)

#: Flows that come with this package.
_SHIPPED: Final = Path(__file__).parents[1] / "flows"
#: For the answer to a write, and for one that takes longer.
_WAIT_SECS: Final = 60.0
_LONGEST_SECS: Final = 600.0
_LONGEST_TEST_SECS: Final = 1_900.0
_ANSWER_CHARS: Final = 300
_FINDINGS_SHOWN: Final = 3
_T = TypeVar("_T", bound=Contract)


async def export_flow(client: AgentClient, flow: str, file: Path | None, *, ops: bool, instance: str | None) -> None:
    """Write a flow, or the ops that make it, to a file or to standard output."""
    chatflow_id = _id(flow)
    if ops:
        made = await client.flow_ops(chatflow_id, instance=instance)
        text, title = _text([op.model_dump(mode="json", exclude_none=True) for op in made.ops]), f"Flow {chatflow_id}"
    else:
        document = await client.export_flow(chatflow_id, instance=instance)
        text, title = flow_file(document), f"'{document.name}'"
    if file is None:
        out.print(text, markup=False, highlight=False, soft_wrap=True, end="")
        return
    try:
        await asyncio.to_thread(file.write_text, text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be written: {error.strerror or error}.") from None
    say(f"{title} is in {file}.")


@dataclass(frozen=True)
class ImportWish:
    """Options of `import` for its files."""

    names: Sequence[str] = ()
    name: str | None = None
    kind: str | None = None
    onto: str | None = None
    credentials: Sequence[str] = ()
    dry_run: bool = False
    yes: bool = False
    as_json: bool = False


async def import_flows(client: AgentClient, places: Sequence[Path], wish: ImportWish, *, instance: str | None) -> bool:
    """Create the flows of files and folders, a flow by the name of a shipped one, or replace one, which is asked about.

    True if all were taken.
    """
    if wish.name is not None and wish.onto is not None:
        raise InvalidInputError("--name is for a new flow; a flow that is replaced keeps its own.")
    first = places[0]
    shipped = _SHIPPED / f"{first}.json"
    if wish.onto is None and await _is_file(str(shipped)) and not await asyncio.to_thread(first.exists):
        flow = _shipped(await _read(shipped), wish.name, wish.credentials[0] if wish.credentials else None)
        result = await client.import_flow(flow, instance=instance, wait=_WAIT_SECS)
        await _say_result(client, result, "Created", as_json=wish.as_json)
        return True
    found = [(file, await _export(file)) for file in await asyncio.to_thread(_json_files, places)]
    chosen = [
        (file, export, flow)
        for file, export in found
        for flow in export.flows
        if not wish.names or flow.name in wish.names
    ]
    if lacking := {*wish.names} - {flow.name for _, _, flow in chosen}:
        there = ", ".join(repr(flow.name or file.stem) for file, export in found for flow in export.flows)
        raise InvalidInputError(f"No flow is called {', '.join(map(repr, sorted(lacking)))}.", hint=f"There: {there}")
    if (wish.onto is not None or wish.name is not None) and len(chosen) != 1:
        raise InvalidInputError(
            f"There are {len(chosen)} flows; --onto and --name are for one.", hint="Choose one with --flow."
        )
    if wish.onto is not None:
        await _replace(client, chosen[0][2], wish.onto, wish, instance)
        return True
    made = dict.fromkeys(f"{one.kind} '{one.name}'" for _, export, flow in chosen for one in things_of(export, flow))
    also = f" What they name is made where it is missing: {', '.join(made)}." if made else ""
    if len(chosen) == 1 and not wish.dry_run:
        ((file, export, flow),) = chosen
        body = _to_import(file, export, flow, wish)
        confirm(f"Import '{body.name}'?{also}", wish.yes or not made)
        result = await client.import_flow(body, instance=instance, wait=_WAIT_SECS)
        await _say_result(client, result, "Created", as_json=wish.as_json)
        if not wish.as_json:
            _say_bound(result, flow, export)
        return True
    confirm(f"Import {len(chosen)} flows?{also}", wish.yes or wish.dry_run)
    return await _import_all(client, chosen, wish, instance)


async def _import_all(
    client: AgentClient, chosen: Sequence[tuple[Path, Export, ExportedFlow]], wish: ImportWish, instance: str | None
) -> bool:
    """Import flow by flow and print a table; one that is refused stops no other."""
    table = Table("File", "Flow", "Type", "Result", Column("", overflow="fold"), box=None, pad_edge=False)
    told: list[dict[str, Any]] = []
    taken = True
    for file, export, flow in chosen:
        title = flow.name or file.stem
        body, result, note = None, None, ""
        try:
            body = _to_import(file, export, flow, wish)
            result = await client.import_flow(body, instance=instance, wait=_WAIT_SECS)
            if result.status == "in_progress" and result.session_id:
                view = await client.wait(result.session_id, _LONGEST_SECS)
                result = result.model_copy(update={"status": view.status, "chatflow_id": view.chatflow_id})
            wrong = [finding.line for finding in result.findings if finding.severity == "error"]
            note = "; ".join([*wrong[:_FINDINGS_SHOWN], *_notes(result, flow)]) or (result.chatflow_id or "")
        except AgentError as error:
            note = error.message
        fine = result is not None and result.valid and result.status in {"checked", "completed"}
        taken = taken and fine
        word = "refused" if not fine else "valid" if wish.dry_run else "created"
        table.add_row(file.name, Text(title), body.type if body else flow.type, word, Text(note))
        told.append(
            {
                "file": str(file),
                "name": title,
                "result": word,
                "note": note,
                "write": result.model_dump(mode="json") if result else None,
            }
        )
    if wish.as_json:
        print_json({"flows": told})
        return taken
    out.print(table)
    for file, export in {file: export for file, export, _ in chosen}.items():
        if export.others:
            say(f"{file.name}: not imported: {', '.join(f'{n} {kind}' for kind, n in export.others.items())}.")
    return taken


def _to_import(file: Path, export: Export, flow: ExportedFlow, wish: ImportWish) -> ImportFlow:
    given = [item.partition("=") for item in wish.credentials]
    if wrong := next((key for key, sign, _ in given if not sign), ""):
        raise InvalidInputError(f"--credential {wrong}: write TYPE=ID, or the id in the file for TYPE.")
    return _valid(
        import_of,
        export=export,
        flow=flow,
        name=wish.name or flow.name or file.stem,
        type=wish.kind or flow.type,
        credentials={key.strip(): id_.strip() for key, _, id_ in given},
        dry_run=wish.dry_run,
    )


async def _replace(client: AgentClient, flow: ExportedFlow, onto: str, wish: ImportWish, instance: str | None) -> None:
    change = _valid(ApplyToFlow, flow_data=flow.flow_data, dry_run=wish.dry_run)
    # Read before the question: what the person agrees to is a change of this state.
    found = await client.flow_summary(_id(onto), instance=instance)
    confirm(f"Replace '{found.flow.name}' ({onto})?", wish.yes or wish.dry_run)
    result = await client.apply_to_flow(found.flow.id, change, instance=instance, wait=_WAIT_SECS, if_match=found.etag)
    if wish.dry_run:
        _say_checked(result, as_json=wish.as_json)
    else:
        await _say_result(client, result, "Replaced", as_json=wish.as_json)
    if left_out := [to_camel(name) for name in flow.settings.columns]:
        say(f"  left out: {', '.join(left_out)}: the flow keeps its own")


def _say_bound(result: FlowWriteResult, flow: ExportedFlow, export: Export) -> None:
    for note in _notes(result, flow):
        say(f"  {note}")
    if export.others:
        say(f"  not imported: {', '.join(f'{count} {kind}' for kind, count in export.others.items())}")


def _notes(result: FlowWriteResult, flow: ExportedFlow) -> list[str]:
    """Credentials and things that took the place of others, and columns that were left out."""
    left_out = [f"left out: {', '.join(flow.left_out)}"] if flow.left_out else []
    return [
        *(f"{', '.join(one.nodes)}: credential '{one.target_name}' (by {one.by})" for one in result.credentials),
        *(f"{one.kind} '{one.name}': {one.target_id or 'is made'}" for one in result.references),
        *left_out,
    ]


def _json_files(places: Sequence[Path]) -> list[Path]:
    """The files, and the JSON files of the folders, in order."""
    found = [
        file
        for place in places
        for file in (sorted(place.glob("*.json")) if place.is_dir() else [place])
        if file.name != LOCK_FILE
    ]
    if not found:
        raise InvalidInputError(f"{', '.join(map(str, places))} holds no JSON file.")
    return found


async def _export(file: Path) -> Export:
    text = await _read(file)
    try:
        return await asyncio.to_thread(read_export, text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{file}: {error.message}", hint=error.hint) from None


def _shipped(text: str, name: str | None, credential: str | None) -> ImportFlow:
    """A flow of this package, with the credential that its model uses."""
    if credential is None:
        raise InvalidInputError(
            "The flow's model needs a credential.", hint="Give the id of an OpenAI credential in Flowise: --credential."
        )
    made = ImportFlow.model_validate_json(text)
    bound = BindCredential(
        node_id="agentAgentflow_0", credential_id=credential, credential_type="openAIApi", path="agentModelConfig"
    )
    return made.model_copy(update={"name": name or made.name, "ops": [*(made.ops or []), bound]})


async def show_diff(client: AgentClient, before: str, after: str, *, instance: str | None, as_json: bool) -> bool:
    """Print what differs between two flows, each a file or an id; True when something does."""
    old, new = [GraphIR.from_flow_data((await _flow(client, place, instance))[1]) for place in (before, after)]
    found = diff(old, new)
    if as_json:
        print_json({"differs": not found.is_empty, "text": found.text})
    else:
        say(found.text)
    return not found.is_empty


async def apply_ops(
    client: AgentClient,
    file: Path,
    flow: str,
    *,
    dry_run: bool,
    instance: str | None,
    as_json: bool,
    yes: bool = False,
) -> None:
    """Apply a file of ops to a flow: compiled, checked, shown, asked about and written unless `dry_run`, read back."""
    change = ApplyToFlow(ops=ops_from_list(read_ops_file(await _read(file))), dry_run=dry_run)
    found = await client.flow_summary(_id(flow), instance=instance)
    confirm(f"Change '{found.flow.name}' ({flow})?", yes or dry_run)
    result = await client.apply_to_flow(found.flow.id, change, instance=instance, wait=_WAIT_SECS, if_match=found.etag)
    if dry_run:
        _say_checked(result, as_json=as_json)
    else:
        await _say_result(client, result, "Changed", show_change=True, as_json=as_json)


def _say_checked(result: FlowWriteResult, *, as_json: bool) -> None:
    """Print what a dry run of a change found. Raises InvalidInputError if the write would be refused."""
    if as_json:
        print_json(result)
    else:
        say(result.difference.text if result.difference else "no difference")
        for finding in result.findings:
            say(f"  {finding.severity}: {finding.line}")
    if not result.valid:
        raise InvalidInputError("The flow would be refused: see the errors above.", hint="Nothing was written.")
    if not as_json:
        say("Nothing was written.")


async def check_flow(client: AgentClient, place: str, *, instance: str | None, as_json: bool) -> bool:
    """Print the findings of a flow, from a file or on the server; True if it is valid."""
    kind, flow_data = await _flow(client, place, instance)
    flow = _valid(ValidateFlow, flow_data=flow_data, kind=kind)
    checked = await client.validate_flow(flow, instance=instance)
    said = checked.validation
    if as_json:
        print_json(checked)
        return said.valid
    for finding in (*said.errors, *said.warnings):
        say(f"  {finding.severity}: {finding.line}")
    say(f"{'Valid' if said.valid else 'Not valid'}: {len(said.errors)} errors, {len(said.warnings)} warnings.")
    return said.valid


@dataclass(frozen=True)
class TestWish:
    """Conversations with a flow: questions, a file of tests, how often, and how."""

    __test__ = False  # not a pytest class

    questions: list[str]
    file: Path | None = None
    trials: int = 1
    real: bool = False
    ways: bool = False
    #: Another flow to compare with, a file or an id, or the model to compare with.
    against: str | None = None
    model: str | None = None


async def test_flow(client: AgentClient, place: str, wish: TestWish, *, instance: str | None, as_json: bool) -> bool:
    """Hold conversations with a flow, a file or on the server, and print the results; True when all have passed. A flow
    or model to compare with is asked the same.
    """
    tests: list[Any] = [{"turns": [question]} for question in wish.questions]
    if wish.file is not None:
        tests += read_tests_file(await _read(wish.file), wish.file.suffix)
    views = {place: await _tested(client, place, tests, wish, instance=instance)}
    if wish.against:
        views[wish.against] = await _tested(client, wish.against, tests, wish, instance=instance)
    if wish.model:
        views[wish.model] = await _tested(client, place, tests, wish, instance=instance, model=wish.model)
    passed = views[place].passed is True
    if as_json:
        dumped = {name: view.model_dump(mode="json") for name, view in views.items()}
        print_json(views[place] if len(views) == 1 else dumped)
        return passed
    for name, view in views.items():
        if len(views) > 1:
            say(f"{name}:")
        for trial in view.trials:
            mark = "passed" if trial.passed else "failed" if trial.category else "not held"
            say(f"  {mark}: {' '.join(trial.question.split())}")
            say(f"    {' '.join((trial.error or trial.answer).split())[:_ANSWER_CHARS]}")
            if trial.simulated:
                say(f"    simulated: {'; '.join(trial.simulated)}")
        for line in view.ways:
            say(f"  {line}")
        if found := view.summary:
            each = f" in each of {found.k} trials" if found.k > 1 else ""
            took = f"{found.duration_ms / 1000:.1f} s" + (f", {found.tokens} tokens" if found.tokens else "")
            say(f"{found.passed} of {found.questions} passed{each}, {took}.")
    return passed


async def _tested(
    client: AgentClient,
    place: str,
    tests: list[Any],
    wish: TestWish,
    *,
    instance: str | None,
    model: str | None = None,
) -> FlowTestView:
    given: dict[str, Any] = {"tests": tests, "trials": wish.trials, "real": wish.real, "ways": wish.ways}
    chatflow_id: str | None = None
    if model or await _is_file(place):
        kind, flow_data = await _flow(client, place, instance)
        flow_data = with_model(flow_data, model) if model else flow_data
        test: TestFlow = _valid(TestFlowText, **given, flow_data=flow_data, kind=kind)
    else:
        test, chatflow_id = _valid(TestFlow, **given), _id(place)
    view = await client.test_flow(test, chatflow_id, instance=instance, wait=_LONGEST_TEST_SECS)
    if view.error:
        raise InvalidInputError(f"The flow could not be tested: {view.error.detail}", hint=view.error.hint)
    if not view.is_over:
        raise InvalidInputError(f"Test {view.id} is not done after {_LONGEST_TEST_SECS:.0f} s.")
    return view


def with_model(flow_data: str, model: str) -> str:
    """Flow whose chat models are all this one, of the provider that they have."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: model if name == "modelName" and isinstance(inner, str) and inner else changed(inner)
                for name, inner in value.items()
            }
        return [changed(one) for one in value] if isinstance(value, list) else value

    flow = _json(flow_data, "The flow")
    for node in flow.get("nodes") or ():
        data = node.get("data") if isinstance(node, dict) else None
        if isinstance(data, dict) and "Embedding" not in str(data.get("category")):
            data["inputs"] = changed(data.get("inputs"))
    return json.dumps(flow, ensure_ascii=False)


async def promote_flow(
    client: AgentClient,
    flow: str,
    *,
    source: str | None,
    target: str,
    name: str | None,
    onto: str | None,
    as_json: bool,
) -> None:
    """Copy a flow to another instance."""
    promotion = _valid(
        PromoteFlow, source=source, target=target, name=name, target_chatflow_id=_id(onto) if onto is not None else None
    )
    result = await client.promote_flow(_id(flow), promotion, wait=_WAIT_SECS)
    for item in result.credentials if not as_json else ():
        say(f"  {item.type}: '{item.name}' -> '{item.target_name}' (by {item.by})")
    done = "Created" if result.created else "Replaced"
    await _say_result(client, result, done, where=f" on {target}", as_json=as_json)


async def list_flows(client: AgentClient, words: str, *, limit: int, instance: str | None, as_json: bool) -> None:
    """A table of flows."""
    page = await client.find_flows(words, instance=instance, limit=limit)
    if as_json:
        print_json(page)
        return
    table = Table(Column("Flow", no_wrap=True), "Type", "Nodes", "Name", box=None, pad_edge=False)
    for flow in page.flows:
        table.add_row(flow.id, flow.type, str(flow.nodes), Text(flow.name))
    out.print(table)
    say(f"{len(page.flows)} of {page.total} flows.")


async def show_flow(client: AgentClient, flow: str, *, instance: str | None, as_json: bool) -> None:
    """A flow in words."""
    found = await client.flow_summary(_id(flow), instance=instance)
    if as_json:
        print_json(found)
    else:
        say(f"{found.flow.name} ({found.flow.type}) {found.flow.url or ''}".rstrip())
        say(found.summary)


async def show_history(client: AgentClient, flow: str, *, limit: int, as_json: bool) -> None:
    """A table of the versions of a flow."""
    page = await client.flow_versions(_id(flow), limit=limit)
    if as_json:
        print_json(page)
        return
    table = Table("Version", Column("Session", no_wrap=True), "Label", "What", box=None, pad_edge=False)
    for one in page.versions:
        table.add_row(one.name, str(one.session_id), one.label, Text(one.title))
    out.print(table)


async def _say_result(
    client: AgentClient,
    result: FlowWriteResult,
    done: str,
    *,
    where: str = "",
    show_change: bool = False,
    as_json: bool,
) -> None:
    session_id = result.session_id
    if session_id is None:
        return
    chatflow_id = result.chatflow_id
    if result.status == "in_progress":
        view = await client.wait(session_id, _LONGEST_SECS)
        if view.status != "completed":
            raise WriteFailedError(
                f"The flow is not written: session {session_id} has the status {view.status}.",
                hint=f"Show it with `flowise-dev-agent sessions show {session_id}`.",
            )
        chatflow_id = view.chatflow_id
    if as_json:
        print_json(result.model_copy(update={"status": "completed", "chatflow_id": chatflow_id}))
        return
    if show_change and (change := await client.change(session_id)):
        say(change.diff.text)
    say(f"{done} '{result.name}' ({chatflow_id}){where}.")
    say(f"Session: {session_id}" if result.created else f"Session: {session_id}; its version v1.0 is the former flow.")


def _valid(model: Callable[..., _T], **values: Any) -> _T:
    """A request. Raises InvalidInputError that names the first field that does not fit."""
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = str(first["msg"]).removeprefix("Value error, ")
        raise InvalidInputError(f"{where}: {message}." if where else f"{message}.") from None


# --- files -----------------------------------------------------------------------------------------------------------


def flow_file(document: FlowDocument) -> str:
    """A flow as a file: `{name, type, flowData}` and Flowise's columns beside it, under the names of its API.

    `flowData` is an object so that it can be compared line by line.
    """
    columns = {to_camel(name): value for name, value in document.settings.columns.items()}
    flow_data = _json(document.flow_data, "The flow")
    return _text({"name": document.name, "type": document.type, **columns, "flowData": flow_data})


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases: a few lines of them can stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not read")
        return super().compose_node(parent, index)


def plain_yaml(text: str, what: str) -> Any:
    """Value of a YAML text without aliases. Raises InvalidInputError, which names `what` it is."""
    try:
        return yaml.load(text, _PlainLoader)  # noqa: S506 - a safe loader
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise InvalidInputError(f"{what} cannot be read as YAML: {' '.join(str(error).split())[:300]}") from None


def read_tests_file(text: str, suffix: str = ".json") -> list[Any]:
    """The tests of a file, JSON, YAML or CSV by its `suffix`: a list, or `{"tests": [...]}`. Raises InvalidInputError.

    A row of CSV has a `question` (turns with ` / ` between them), and what the answer `contains` and `excludes` (texts
    with ` | ` between them).
    """
    if suffix == ".csv":
        return [_row_test(row) for row in csv.DictReader(io.StringIO(text))]
    document = plain_yaml(text, "The file") if suffix in (".yaml", ".yml") else _json(text, "The file")
    tests = document.get("tests") if isinstance(document, dict) else document
    if not isinstance(tests, list):
        raise InvalidInputError(
            "The file does not hold tests.",
            hint='It must be a list such as [{"turns": ["Hello"], "expect": {"contains": ["Hello"]}}].',
        )
    return tests


def _row_test(row: Mapping[str, str | None]) -> dict[str, Any]:
    if not (question := (row.get("question") or "").strip()):
        raise InvalidInputError("A row of the file has no question.", hint="Columns: question, contains, excludes.")
    expect = {name: [one.strip() for one in (row.get(name) or "").split(" | ")] for name in ("contains", "excludes")}
    return {"turns": question.split(" / "), "expect": expect}


def read_ops_file(text: str) -> list[Any]:
    """The ops of a file: a list, or `{"ops": [...]}`. Raises InvalidInputError."""
    document = _json(text, "The file")
    ops = document.get("ops") if isinstance(document, dict) else document
    if not isinstance(ops, list):
        raise InvalidInputError(
            "The file does not hold ops.", hint='It must be a list, or {"ops": [...]}, as `export --ops` writes it.'
        )
    return ops


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{what} is not valid JSON ({error}).") from None


def _text(document: object) -> str:
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can hold and UTF-8 cannot
        return json.dumps(document, indent=2) + "\n"
    return text


async def _flow(client: AgentClient, place: str, instance: str | None) -> tuple[str | None, str]:
    """(type, flowData) of a file, or of a flow on the server; the type of a file may be missing."""
    if await _is_file(place):
        export = await _export(Path(place))
        if len(export.flows) != 1:
            names = ", ".join(repr(flow.name) for flow in export.flows)
            raise InvalidInputError(f"{place} holds {len(export.flows)} flows: {names}.", hint="Use a file with one.")
        return export.flows[0].type, export.flows[0].flow_data
    found = await client.export_flow(_id(place), instance=instance)
    return found.type, found.flow_data


async def _is_file(place: str) -> bool:
    try:
        return await asyncio.to_thread(Path(place).is_file)
    except OSError:  # too long for a path
        return False


async def _read(file: Path) -> str:
    try:
        return await asyncio.to_thread(file.read_text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{file} cannot be read: {error}.") from None


def _id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise InvalidInputError(
            f"'{text[:80]}' is neither a file nor the id of a chatflow.",
            hint="An id is a UUID; `GET /flows` and the page list them.",
        ) from None
