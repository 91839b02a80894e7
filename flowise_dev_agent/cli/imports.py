"""`import`: flows from files of this service, of Flowise and of this package."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic.alias_generators import to_camel
from rich.table import Column, Table
from rich.text import Text

from flowise_dev_agent.cli.console import confirm, out, print_json, say
from flowise_dev_agent.cli.files import (
    LONGEST_SECS,
    WAIT_SECS,
    exported,
    flow_id,
    read_text,
    say_checked,
    say_result,
    valid,
)
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.errors import AgentError, InvalidInputError
from flowise_dev_agent.patch import BindCredential
from flowise_dev_agent.schemas.flow_exports import Export, ExportedFlow, import_of, things_of
from flowise_dev_agent.schemas.flow_files import LOCK_FILE
from flowise_dev_agent.schemas.flow_writes import ApplyToFlow, FlowWriteResult, ImportFlow
from flowise_dev_agent.texts import counted

#: Flows that come with this package.
_SHIPPED: Final = Path(__file__).parents[1] / "flows"
_FINDINGS_SHOWN: Final = 3


@dataclass(frozen=True)
class ImportOptions:
    """Options of `import` for its files."""

    names: Sequence[str] = ()
    name: str | None = None
    kind: str | None = None
    onto: str | None = None
    credentials: Sequence[str] = ()
    dry_run: bool = False
    yes: bool = False
    as_json: bool = False


async def import_flows(
    client: AgentClient, places: Sequence[Path], options: ImportOptions, *, instance: str | None
) -> bool:
    """Create the flows of files and folders, a flow by the name of a shipped one, or replace one, which is asked about.

    True if all were taken.
    """
    if options.name is not None and options.onto is not None:
        raise InvalidInputError("--name is for a new flow; a flow that is replaced keeps its own.")
    first = places[0]
    shipped = _SHIPPED / f"{first}.json"
    if options.onto is None and shipped.is_file() and not first.exists():
        flow = _shipped(read_text(shipped), options.name, options.credentials[0] if options.credentials else None)
        result = await client.import_flow(flow, instance=instance, wait=WAIT_SECS)
        await say_result(client, result, "Created", as_json=options.as_json)
        return True
    found = [(file, exported(file)) for file in _json_files(places)]
    chosen = [
        (file, export, flow)
        for file, export in found
        for flow in export.flows
        if not options.names or flow.name in options.names
    ]
    if lacking := {*options.names} - {flow.name for _, _, flow in chosen}:
        there = ", ".join(repr(flow.name or file.stem) for file, export in found for flow in export.flows)
        raise InvalidInputError(f"No flow is called {', '.join(map(repr, sorted(lacking)))}.", hint=f"There: {there}")
    if (options.onto is not None or options.name is not None) and len(chosen) != 1:
        raise InvalidInputError(
            f"There are {len(chosen)} flows; --onto and --name are for one.", hint="Choose one with --flow."
        )
    if options.onto is not None:
        await _replace(client, chosen[0][2], options.onto, options, instance)
        return True
    made = dict.fromkeys(f"{one.kind} '{one.name}'" for _, export, flow in chosen for one in things_of(export, flow))
    also = f" What they name is made where it is missing: {', '.join(made)}." if made else ""
    if len(chosen) == 1 and not options.dry_run:
        ((file, export, flow),) = chosen
        body = _to_import(file, export, flow, options)
        confirm(f"Import '{body.name}'?{also}", options.yes or not made)
        result = await client.import_flow(body, instance=instance, wait=WAIT_SECS)
        await say_result(client, result, "Created", as_json=options.as_json)
        if not options.as_json:
            _say_bound(result, flow, export)
        return True
    confirm(f"Import {counted('flows', len(chosen))}?{also}", options.yes or options.dry_run)
    return await _import_all(client, chosen, options, instance)


async def _import_all(
    client: AgentClient,
    chosen: Sequence[tuple[Path, Export, ExportedFlow]],
    options: ImportOptions,
    instance: str | None,
) -> bool:
    """Import flow by flow and print a table; one that is refused stops no other."""
    table = Table("File", "Flow", "Type", "Result", Column("", overflow="fold"), box=None, pad_edge=False)
    told: list[dict[str, Any]] = []
    taken = True
    for file, export, flow in chosen:
        title = flow.name or file.stem
        body, result, note = None, None, ""
        try:
            body = _to_import(file, export, flow, options)
            result = await client.import_flow(body, instance=instance, wait=WAIT_SECS)
            if result.status == "in_progress" and result.session_id:
                view = await client.wait(result.session_id, LONGEST_SECS)
                result = result.model_copy(update={"status": view.status, "chatflow_id": view.chatflow_id})
            wrong = [finding.line for finding in result.findings if finding.severity == "error"]
            note = "; ".join([*wrong[:_FINDINGS_SHOWN], *_notes(result, flow)]) or (result.chatflow_id or "")
        except AgentError as error:
            note = error.message
        fine = result is not None and result.valid and result.status in {"checked", "completed"}
        taken = taken and fine
        word = "refused" if not fine else "valid" if options.dry_run else "created"
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
    if options.as_json:
        print_json({"flows": told})
        return taken
    out().print(table)
    for file, export in {file: export for file, export, _ in chosen}.items():
        if export.others:
            say(f"{file.name}: not imported: {', '.join(f'{n} {kind}' for kind, n in export.others.items())}.")
    return taken


def _to_import(file: Path, export: Export, flow: ExportedFlow, options: ImportOptions) -> ImportFlow:
    given = [item.partition("=") for item in options.credentials]
    if wrong := next((key for key, sign, _ in given if not sign), ""):
        raise InvalidInputError(f"--credential {wrong}: write TYPE=ID, or the id in the file for TYPE.")
    return valid(
        import_of,
        export=export,
        flow=flow,
        name=options.name or flow.name or file.stem,
        type=options.kind or flow.type,
        credentials={key.strip(): id_.strip() for key, _, id_ in given},
        dry_run=options.dry_run,
    )


async def _replace(
    client: AgentClient, flow: ExportedFlow, onto: str, options: ImportOptions, instance: str | None
) -> None:
    change = valid(ApplyToFlow, flow_data=flow.flow_data, dry_run=options.dry_run)
    # Read before the question: what the person agrees to is a change of this state.
    found = await client.flow_summary(await flow_id(client, onto, instance), instance=instance)
    confirm(f"Replace '{found.flow.name}' ({found.flow.id})?", options.yes or options.dry_run)
    result = await client.apply_to_flow(found.flow.id, change, instance=instance, wait=WAIT_SECS, if_match=found.etag)
    if options.dry_run:
        say_checked(result, as_json=options.as_json)
    else:
        await say_result(client, result, "Replaced", as_json=options.as_json)
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
