"""Flows as files and on servers, for the commands: reading, writing, naming them, and telling the result of a write."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from flowise_dev_agent.cli.console import first_problem, out, print_json, say, show
from flowise_dev_agent.errors import InvalidInputError, WriteFailedError

if TYPE_CHECKING:
    from flowise_dev_agent.client import AgentClient
    from flowise_dev_agent.schemas.base import Contract
    from flowise_dev_agent.schemas.flow_exports import Export, ExportedFlow
    from flowise_dev_agent.schemas.flow_writes import FlowDocument, FlowWriteResult

#: For the answer to a write, and for one that takes longer.
WAIT_SECS: Final = 60.0
LONGEST_SECS: Final = 600.0
#: Characters of a name that is looked for, and of the beginning of an id.
_LONGEST_NAME: Final = 200
_SHORTEST_ID: Final = 4
#: Of a file.
_MOST_CHARS: Final = 50_000_000
#: Flows of one name that are listed.
_NAMED: Final = 5
_T = TypeVar("_T", bound="Contract")


def write_text(text: str, file: Path | None) -> None:
    """Write a text to a file, or to standard output without one. Raises InvalidInputError."""
    if file is None:
        out().print(text, markup=False, highlight=False, soft_wrap=True, end="")
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be written: {error.strerror or error}.") from None


def exported(file: Path) -> "Export":
    """The flows of a file. Raises InvalidInputError that names the file."""
    from flowise_dev_agent.schemas.flow_exports import read_export

    try:
        return read_export(read_text(file))
    except InvalidInputError as error:
        raise InvalidInputError(f"{file}: {error.message}", hint=error.hint) from None


def say_checked(result: "FlowWriteResult", *, as_json: bool) -> None:
    """Print what a dry run of a change found. Raises InvalidInputError if the write would be refused."""
    found = (f"  {finding.severity}: {finding.line}" for finding in result.findings)
    show(result, as_json, result.difference.text if result.difference else "no difference", *found)
    if not result.valid:
        raise InvalidInputError("The flow would be refused: see the errors above.", hint="Nothing was written.")
    if not as_json:
        say("Nothing was written.")


async def say_result(
    client: "AgentClient",
    result: "FlowWriteResult",
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
        view = await client.wait(session_id, LONGEST_SECS)
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
    if result.left_out:
        stay = "" if result.created else " The flow keeps its own."
        say(f"Not written: {', '.join(result.left_out)}.{stay}")
    say(f"Session: {session_id}" if result.created else f"Session: {session_id}; its version v1.0 is the former flow.")


def valid(model: Callable[..., _T], **values: Any) -> _T:
    """A request. Raises InvalidInputError that names the first field that does not fit."""
    from pydantic import ValidationError

    try:
        return model(**values)
    except ValidationError as error:
        raise InvalidInputError(first_problem(error)) from None


# --- files -----------------------------------------------------------------------------------------------------------


def flow_file(document: "FlowDocument") -> str:
    """A flow as a file: `{name, type, flowData}` and Flowise's columns beside it, under the names of its API.

    `flowData` is an object so that it can be compared line by line.
    """
    from pydantic.alias_generators import to_camel

    columns = {to_camel(name): value for name, value in document.settings.columns.items()}
    flow_data = json_value(document.flow_data, "The flow")
    return json_file({"name": document.name, "type": document.type, **columns, "flowData": flow_data})


def read_ops_file(text: str) -> list[Any]:
    """The ops of a file: a list, or `{"ops": [...]}`. Raises InvalidInputError."""
    document = json_value(text, "The file")
    ops = document.get("ops") if isinstance(document, dict) else document
    if not isinstance(ops, list):
        raise InvalidInputError(
            "The file does not hold ops.", hint='It must be a list, or {"ops": [...]}, as `export --ops` writes it.'
        )
    return ops


def json_value(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{what} is not valid JSON ({error}).") from None


def json_file(document: object) -> str:
    """The content of a JSON file."""
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can hold and UTF-8 cannot
        return json.dumps(document, indent=2) + "\n"
    return text


async def flow_of(client: "AgentClient", place: str, instance: str | None) -> tuple[str | None, str]:
    """(type, flowData) of a file, or of a flow on the server; the type of a file may be missing."""
    if is_file(place):
        flow = one_flow(exported(Path(place)), place)
        return flow.type, flow.flow_data
    found = await client.export_flow(await flow_id(client, place, instance), instance=instance)
    return found.type, found.flow_data


def one_flow(export: "Export", place: str) -> "ExportedFlow":
    """The flow of a file that has to hold one. Raises InvalidInputError."""
    if len(export.flows) != 1:
        names = ", ".join(repr(flow.name) for flow in export.flows)
        raise InvalidInputError(f"{place} holds {len(export.flows)} flows: {names}.", hint="Use a file with one.")
    return export.flows[0]


def is_file(place: str) -> bool:
    """True if there is a file at this place."""
    try:
        return Path(place).is_file()
    except OSError:  # too long for a path
        return False


def read_text(file: Path) -> str:
    """The text of a file. Raises InvalidInputError that names the file."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{file} cannot be read: {' '.join(str(error).split())[:300]}.") from None
    if len(text) > _MOST_CHARS:
        raise InvalidInputError(f"{file} is longer than {_MOST_CHARS} characters.")
    return text


async def flow_id(client: "AgentClient", text: str, instance: str | None = None) -> str:
    """Id of the flow that a person names by its id, the beginning of its id, or its name. Raises InvalidInputError."""
    with suppress(ValueError):
        return str(UUID(text))
    wanted = text.strip().casefold()
    askable = 0 < len(wanted) <= _LONGEST_NAME
    rows = (await client.find_flows(wanted, instance=instance, limit=100)).flows if askable else []
    found = [row for row in rows if row.name.strip().casefold() == wanted]
    found = found or [row for row in rows if len(wanted) >= _SHORTEST_ID and row.id.startswith(wanted)]
    if len(found) > 1:
        raise InvalidInputError(
            f"'{text[:80]}' may be one of {len(found)} flows: {', '.join(row.id for row in found[:_NAMED])}.",
            hint="Give the id.",
        )
    if not found:
        raise InvalidInputError(
            f"'{text[:80]}' is neither a file nor a flow of this server.",
            hint="Name a flow by its id, the beginning of its id, or its name: see `flowise-dev-agent flows list`.",
        )
    return found[0].id
