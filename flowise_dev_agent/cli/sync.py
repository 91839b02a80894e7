"""`sync`: bring the flows of a directory to a server, with a plan, approval and drift detection."""

import asyncio
import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal
from uuid import UUID

from pydantic import ValidationError

from flowise_dev_agent.cli.build import follow
from flowise_dev_agent.cli.console import confirm, first_problem, note, show_table
from flowise_dev_agent.cli.files import exported, read_text, write_text
from flowise_dev_agent.cli.startup import Exit
from flowise_dev_agent.client import AgentClient, ServiceError
from flowise_dev_agent.errors import AgentError, InvalidInputError
from flowise_dev_agent.patch import GraphIR
from flowise_dev_agent.patch.model.json_text import dump_json
from flowise_dev_agent.sanitize import shortened
from flowise_dev_agent.schemas.flow_files import (
    LOCK_FILE,
    OPEN,
    AppliedFlow,
    AppliedFlows,
    FlowFile,
    SyncAction,
    SyncItem,
    SyncReport,
)
from flowise_dev_agent.schemas.flow_tests import TestFlow, TestFlowText
from flowise_dev_agent.schemas.flow_writes import ApplyToFlow, FlowDocument, FlowWriteResult, ImportFlow
from flowise_dev_agent.schemas.requests import RequestBody, StartSession
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.testing.test_files import plain_yaml

_LABEL_CHARS: Final = 60


def read_files(folder: Path) -> dict[str, FlowFile]:
    """The flows of a directory by file name, in order. Raises InvalidInputError that names the file.

    A flow of a JSON file with several, such as a workspace's export, is called ``file.json:its name``.
    """
    if not folder.is_dir():
        raise InvalidInputError(f"{folder} is not a directory.", hint="It holds a YAML or JSON file for each flow.")
    paths = sorted(path for path in folder.iterdir() if path.suffix in {".yaml", ".yml", ".json"})
    found: dict[str, FlowFile] = {}
    for path in paths:
        if path.suffix != ".json":
            found[path.name] = _read_flow(path, plain_yaml(read_text(path), str(path)))
        elif path.name != LOCK_FILE:
            found |= flows_of_file(path)
    if not found:
        hint = "Each flow is a file such as support.yaml, or support.json as Flowise exports it."
        raise InvalidInputError(f"{folder} holds no flow.", hint=hint)
    return found


def flows_of_file(path: Path) -> dict[str, FlowFile]:
    """Read the flows of a file in a form in which Flowise or `export` writes it."""
    export = exported(path)
    names = [flow.name or path.stem for flow in export.flows]
    if len({*names}) < len(names):
        raise InvalidInputError(f"{path} holds several flows of the same name.", hint="Give each a name of its own.")
    files: dict[str, FlowFile] = {}
    for name, flow in zip(names, export.flows, strict=True):
        content = {"name": name, "type": flow.type, "flow_data": json.loads(flow.flow_data), "settings": flow.settings}
        made = _read_flow(path, content)
        files[path.name if len(names) == 1 else f"{path.name}:{name}"] = made
    return files


def _read_flow(path: Path, content: object) -> FlowFile:
    try:
        return FlowFile.model_validate(content)
    except ValidationError as error:
        raise InvalidInputError(f"{path}: {first_problem(error)}") from None


def read_lock(folder: Path) -> AppliedFlows:
    """Read the state applied from a directory; empty if there is no lock file."""
    path = folder / LOCK_FILE
    try:
        return AppliedFlows.model_validate_json(path.read_bytes()) if path.exists() else AppliedFlows()
    except (OSError, ValueError):
        raise InvalidInputError(
            f"{path} is not a lock file of `sync`.", hint="Restore it from git; without it, all flows are new."
        ) from None


def write_lock(folder: Path, lock: AppliedFlows) -> None:
    """Keep what was applied; belongs into git, beside the files."""
    path = folder / LOCK_FILE
    text = json.dumps(lock.model_dump(mode="json"), indent=2, sort_keys=True) + "\n"
    # Whole or not at all: without it the next run would not know which flows are its own.
    beside = path.with_name(f".{LOCK_FILE}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise InvalidInputError(f"{path} cannot be written: {error.strerror or error}.") from None


def mermaid(flow_data: str) -> str:
    """A flow as a Mermaid diagram, which GitHub and GitLab draw."""
    graph = GraphIR.from_flow_data(flow_data)
    number = {node.id: index for index, node in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    lines += [f'    n{number[node.id]}["{_label(node.label or node.name)}"]' for node in graph.nodes]
    ends = [(edge.source, edge.target) for edge in graph.edges]
    lines += [f"    n{number[a]} --> n{number[b]}" for a, b in ends if a in number and b in number]
    return "\n".join(lines)


def _label(text: str) -> str:
    """A label of which nothing is read as Mermaid, Markdown or HTML."""
    plain = " ".join(text.split())[:_LABEL_CHARS]
    return "".join(char if char.isalnum() or char in " -_.,:" else f"#{ord(char)};" for char in plain)


def markdown(report: SyncReport, pictures: dict[str, str]) -> str:
    """A report for people, with the pictures of flows by file."""
    lines = ["| file | flow | state | action | result | tests |", "|---|---|---|---|---|---|"]
    for item in report.items:
        tests = f"{item.tests_passed} of {item.tests}" if item.tests is not None else ""
        cells = (item.file, item.name, item.state, item.action, item.result.replace("_", " "), tests)
        lines.append("| " + " | ".join(_cell(text) for text in cells) + " |")
    lines += ["", *(f"- **{_cell(item.file)}**: {_cell(item.note)}" for item in report.items if item.note)]
    for file, picture in pictures.items():
        lines += ["", f"<details open><summary>{_cell(file)}</summary>", "", "```mermaid", picture, "```", "</details>"]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """A text of which nothing is read as Markdown or HTML."""
    return "".join(f"&#{ord(char)};" if char in "|<>&`*_[]@#\\" else char for char in " ".join(text.split()))


_WAIT_SECS: Final = 60.0
_LONGEST_SECS: Final = 1_900.0
#: At a file with one content, as long as each ends without a flow.
_MOST_ATTEMPTS: Final = 50
#: The default instance in lock files of earlier versions.
_UNNAMED: Final = "default"
#: What is done with a flow that was changed on the server.
OnDrift = Literal["leave", "overwrite", "keep"]


@dataclass
class Sync:
    """A directory and a server. `instance` is its name in the service, None for the default one."""

    client: AgentClient
    folder: Path
    instance: str | None
    on_drift: OnDrift = "leave"
    #: Answer the questions of sessions as `build --yes` does, instead of waiting for people.
    accept: bool = False
    #: Seconds to wait for a session, with the people who answer it.
    wait: float = _LONGEST_SECS
    pictures: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._files = read_files(self.folder)
        self._lock = read_lock(self.folder)
        self._live: dict[str, FlowDocument] = {}
        self._instance = ""
        self._applied: dict[str, AppliedFlow] = {}

    async def plan(self) -> SyncReport:
        """Plan the actions, file by file; nothing is written."""
        self._applied = await self._part_of_lock()
        items = [await self._planned(file, flow) for file, flow in self._files.items()]
        items += [
            SyncItem(
                file=file,
                name="",
                state="removed",
                action="none",
                chatflow_id=applied.chatflow_id,
                note=f"The file is gone, the flow {applied.chatflow_id} stays: nothing is deleted.",
            )
            for file, applied in self._applied.items()
            if file not in self._files
        ]
        return self._report(items)

    async def apply(self, plan: SyncReport) -> SyncReport:
        """Do what a plan says; the lock file is written after each flow."""
        return await self._each(plan, self._done)

    async def test(self) -> SyncReport:
        """Test every flow; nothing is written.

        Ops and data are tested as drafts, requirements by their existing flow.
        """
        return await self._each(await self.plan(), self._tried)

    async def _part_of_lock(self) -> dict[str, AppliedFlow]:
        """The part of the lock for this server, by its id: the same one with and without `--instance`."""
        parts = self._lock.instances
        self._instance = self.instance or ""
        if not self.instance or _UNNAMED in parts:
            ids = {one.id: one.default for one in (await self.client.instances()).instances}
            default = next(id_ for id_, is_default in ids.items() if is_default)
            self._instance = self.instance or default
            if _UNNAMED not in ids and self._instance == default:
                # Written by a version that had no name for it.
                parts[default] = parts.pop(_UNNAMED, {}) | parts.get(default, {})
        return parts.setdefault(self._instance, {})

    def _report(self, items: list[SyncItem]) -> SyncReport:
        return SyncReport(instance=self._instance, items=items)

    async def _each(self, plan: SyncReport, do: Callable[[SyncItem, FlowFile], Awaitable[SyncItem]]) -> SyncReport:
        """The report with what `do` makes of each file; what goes wrong with one does not stop the others."""
        items: list[SyncItem] = []
        for item in plan.items:
            try:
                items.append(await do(item, self._files[item.file]) if item.file in self._files else item)
            except AgentError as error:
                note = f"{error.message} {error.hint or ''}".strip()
                items.append(item.model_copy(update={"result": "failed", "note": note}))
        return self._report(items)

    # --- plan --------------------------------------------------------------------------------------------------------

    async def _planned(self, file: str, flow: FlowFile) -> SyncItem:
        named = str(flow.flow) if flow.flow else None
        applied = self._applied.get(file)
        if applied and named and named != applied.chatflow_id:
            # The file takes over another flow than the one that it was applied to.
            applied = None
        chatflow_id = applied.chatflow_id if applied else named
        item = SyncItem(file=file, name=flow.name, state="new", action="create", chatflow_id=chatflow_id)
        if chatflow_id is None:
            return await self._unless_there(item, flow)
        live = await self._found(chatflow_id)
        if live is None:
            note = f"The flow {chatflow_id} is gone from the server."
            if named:
                note += " To have it made again, remove `flow` from the file."
            item = item.model_copy(update={"state": "missing", "chatflow_id": None, "note": note})
            return item.model_copy(update={"action": "none"}) if named else await self._unless_there(item, flow)
        self._live[file] = live
        if applied is None:
            return item.model_copy(update={"state": "changed", "action": "update"})
        changed, drifted = applied.content_sha256 != flow.sha256, applied.flow_sha256 != live.sha256
        if not drifted:
            state, action = ("changed", "update") if changed else ("same", "none")
            return item.model_copy(update={"state": state, "action": action})
        if changed and (accepted := await self._accepted(flow, live)):
            return item.model_copy(update={"state": "changed", **accepted})
        return item.model_copy(update=self._drift(flow, changed=changed))

    async def _accepted(self, flow: FlowFile, live: FlowDocument) -> dict[str, Any]:
        """For the item of a flow that is the result of a session of the file's words: people accepted it when a run had
        stopped waiting. Empty for any other."""
        if flow.requirement is None:
            return {}
        for session in reversed((await self.client.flow_conversation(live.id, instance=self._instance)).sessions):
            if session.outcome == "accepted" and session.turns and session.turns[0].words == flow.requirement:
                versions = (await self.client.versions(session.thread_id)).versions
                if any(one.current and one.sha256 == live.sha256 for one in versions):
                    note = f"Session {session.thread_id} was accepted after the last run."
                    return {"action": "keep", "session_id": session.thread_id, "note": note}
        return {}

    def _drift(self, flow: FlowFile, *, changed: bool) -> dict[str, str]:
        note = "It was changed on the server since the last run."
        action: SyncAction = "none"
        match self.on_drift:
            case "overwrite" if flow.requirement is None or changed:
                action = "update"
            case "overwrite":
                note += " Words cannot write it back: roll the change back, or use --keep."
            case "keep" if flow.requirement is not None and changed:
                # A session changes the flow as it is.
                action = "update"
            case "keep":
                action = "keep"
                if changed:
                    note += " That is kept; the change of the file is not written."
            case "leave":
                note += " Use --overwrite to write the file, or --keep to accept the change."
        return {"state": "conflict" if changed else "drifted", "action": action, "note": note}

    async def _unless_there(self, item: SyncItem, flow: FlowFile) -> SyncItem:
        """A flow to create, or a conflict when another one has its name."""
        page = await self.client.find_flows(item.name[:200], instance=self._instance, limit=100)
        other = next((flow.id for flow in page.flows if flow.name == item.name), None)
        live = await self._found(other) if other else None
        if live is None:
            return item
        if accepted := await self._accepted(flow, live):
            self._live[item.file] = live
            return item.model_copy(update={"chatflow_id": live.id, **accepted})
        note = f"{item.note} A flow with this name is there already. To take it over, add `flow: {other}` to the file."
        return item.model_copy(update={"state": "conflict", "action": "none", "note": note.strip()})

    async def _found(self, chatflow_id: str) -> FlowDocument | None:
        try:
            return await self.client.export_flow(chatflow_id, instance=self._instance)
        except ServiceError as error:
            if error.status != 404:
                raise
            return None

    # --- apply -------------------------------------------------------------------------------------------------------

    async def _done(self, item: SyncItem, flow: FlowFile) -> SyncItem:
        match item.action:
            case "none":
                return item.model_copy(update={"result": "left" if item.state in OPEN else "done"})
            case "keep":
                item = self._remembered(item, flow, self._live[item.file], item.session_id)
                return await self._tested_live(item, flow) if item.session_id and flow.tests else item
            case _:
                return await (self._built(item, flow) if flow.requirement else self._written(item, flow))

    async def _written(self, item: SyncItem, flow: FlowFile) -> SyncItem:
        """Write ops or data, after their tests have passed on a draft."""
        item, flow_data = await self._tested_draft(item, flow)
        if item.result == "tests_failed":
            return item.model_copy(update={"note": "Not written: its tests fail."})
        if item.chatflow_id is None:
            return await self._imported(item, flow, flow_data)
        change = ApplyToFlow(flow_data=flow_data, base_sha256=self._live[item.file].sha256)
        result = await self.client.apply_to_flow(item.chatflow_id, change, instance=self._instance, wait=_WAIT_SECS)
        live = await self.client.export_flow(await self._ended(result), instance=self._instance)
        return self._remembered(item, flow, live, result.session_id)

    async def _imported(self, item: SyncItem, flow: FlowFile, flow_data: str) -> SyncItem:
        """Make a new flow. After a lost answer the same request gets the flow that was made then."""
        made = ImportFlow(name=flow.name, type=flow.type, flow_data=flow_data, settings=flow.settings)
        for key in self._keys(item, made):
            result = await self.client.import_flow(made, instance=self._instance, wait=_WAIT_SECS, idempotency_key=key)
            if result.status != "cancelled" and (live := await self._found(await self._ended(result))):
                return self._remembered(item, flow, live, result.session_id)
        raise _given_up(item)

    def _keys(self, item: SyncItem, body: RequestBody) -> Iterator[str]:
        """The Idempotency-Keys of the attempts at what `body` asks for: a run joins the first one that has not ended
        without a flow."""
        before = self._applied.get(item.file)
        base = self._live[item.file].sha256 if item.chatflow_id else before.chatflow_id if before else ""
        for number in range(_MOST_ATTEMPTS):
            what = json.dumps([self._instance, item.file, base, body.fingerprint(), number])
            yield f"sync-{hashlib.sha256(what.encode()).hexdigest()[:48]}"

    async def _ended(self, result: FlowWriteResult) -> str:
        """The id of the flow of a write that has ended."""
        chatflow_id = result.chatflow_id
        if result.status == "in_progress" and result.session_id:
            view = await self.client.wait(result.session_id, self.wait)
            chatflow_id = view.chatflow_id if view.status == "completed" else None
        if chatflow_id is None:
            raise InvalidInputError(f"'{result.name}' is not written: see session {result.session_id}.")
        return chatflow_id

    def _remembered(self, item: SyncItem, flow: FlowFile, live: FlowDocument, session_id: UUID | None) -> SyncItem:
        self._applied[item.file] = AppliedFlow(chatflow_id=live.id, content_sha256=flow.sha256, flow_sha256=live.sha256)
        write_lock(self.folder, self._lock)
        return item.model_copy(update={"result": "done", "chatflow_id": live.id, "session_id": session_id})

    async def _built(self, item: SyncItem, flow: FlowFile) -> SyncItem:
        """Have a session build or change the flow. The same words join the session of an earlier run."""
        request = StartSession(
            requirement=flow.requirement or "",
            session_name=flow.name[:120],
            operation="update" if item.chatflow_id else "create",
            target=item.chatflow_id,
            flowise_instance_id=self._instance,
            test_trials=flow.trials,
        )
        view = await self._started(item, request)
        item = item.model_copy(update={"session_id": view.thread_id})
        if self.accept:
            ended = await follow(self.client, view, assume_yes=True, wait=self.wait)
        else:
            ended = await self._answered_by_people(item, view)
        if ended.interrupt or ended.in_progress:
            note = f"Session {view.thread_id} waits: answer at {self._page(view)}, then run again."
            return item.model_copy(update={"result": "waiting", "note": note})
        if ended.outcome != "accepted" or ended.chatflow_id is None:
            note = f"Session {view.thread_id} ended: {ended.outcome or ended.status}."
            return item.model_copy(update={"result": "failed", "note": note})
        live = self._live[item.file] = await self.client.export_flow(ended.chatflow_id, instance=self._instance)
        item = self._remembered(item, flow, live, view.thread_id)
        return await self._tested_live(item, flow) if flow.tests else item

    async def _started(self, item: SyncItem, request: StartSession) -> SessionView:
        """A session of an earlier run with the same request that goes on or has made the flow, else a new one."""
        for key in self._keys(item, request):
            view = await self.client.start(request, idempotency_key=key)
            if view.interrupt or view.in_progress:
                return view
            made = view.chatflow_id if view.outcome == "accepted" and item.chatflow_id is None else None
            if made and await self._found(made):
                return view
        raise _given_up(item)

    async def _answered_by_people(self, item: SyncItem, view: SessionView) -> SessionView:
        """The session at its end, or as it is when nobody has answered in time."""
        note(f"{item.file}: people are asked at {self._page(view)}")
        with suppress(TimeoutError):
            async with asyncio.timeout(self.wait), aclosing(self.client.events(view.thread_id)) as events:
                async for event in events:
                    if event.type in {"done", "error"}:
                        break
        return await self.client.get(view.thread_id)

    def _page(self, view: SessionView) -> str:
        return f"{self.client.base_url}/#/s/{view.thread_id}"

    # --- tests -------------------------------------------------------------------------------------------------------

    async def _tried(self, item: SyncItem, flow: FlowFile) -> SyncItem:
        if flow.requirement is None:
            return (await self._tested_draft(item, flow, always=True))[0]
        if item.chatflow_id is None:
            return item.model_copy(update={"note": "Not built yet: a session makes it from its words."})
        return await self._tested_live(item, flow)

    async def _tested_draft(self, item: SyncItem, flow: FlowFile, *, always: bool = False) -> tuple[SyncItem, str]:
        """The item with the tests of its content, and the content as text. Raises InvalidInputError: it cannot run."""
        asked = {"flow_data": dump_json(flow.flow_data)} if flow.flow_data else {"ops": flow.ops}
        body = ImportFlow.model_validate({"name": flow.name, "type": flow.type, "dry_run": True, **asked})
        checked = await self.client.import_flow(body, instance=self._instance)
        if not checked.valid or checked.flow_data is None:
            errors = "; ".join(finding.line for finding in checked.findings if finding.severity == "error")
            raise InvalidInputError(f"The server could not run it: {errors}")
        self.pictures[item.file] = mermaid(checked.flow_data)
        if flow.tests or always:
            test = TestFlowText(tests=flow.tests, trials=flow.trials, flow_data=checked.flow_data, kind=flow.type)
            item = await self._tested(item, test, None)
        return item, checked.flow_data

    async def _tested_live(self, item: SyncItem, flow: FlowFile) -> SyncItem:
        self.pictures[item.file] = mermaid(self._live[item.file].flow_data)
        return await self._tested(item, TestFlow(tests=flow.tests, trials=flow.trials), item.chatflow_id)

    async def _tested(self, item: SyncItem, test: TestFlow, chatflow_id: str | None) -> SyncItem:
        view = await self.client.test_flow(test, chatflow_id, instance=self._instance, wait=self.wait)
        if view.error or not view.is_over:
            raise InvalidInputError(f"Not tested: {view.error.detail if view.error else 'the test is not done'}")
        failed = [trial for trial in view.trials if not trial.passed]
        update: dict[str, object] = {"tests": len(view.trials), "tests_passed": len(view.trials) - len(failed)}
        if not view.passed:
            said = "; ".join(f"{trial.question}: {trial.error or trial.answer}" for trial in failed[:3])
            update |= {"result": "tests_failed", "note": shortened(f"Failed: {said}", 600)}
        elif item.result == "planned":
            update |= {"result": "done"}
        return item.model_copy(update=update)


def _given_up(item: SyncItem) -> InvalidInputError:
    return InvalidInputError(
        f"{_MOST_ATTEMPTS} attempts at {item.file} have ended without a flow.", hint="Change the words or the name."
    )


# --- the command -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SyncOptions:
    """Options of the command line."""

    plan_only: bool = False
    test_only: bool = False
    yes: bool = False
    report: Path | None = None
    as_json: bool = False


async def run_sync(sync: Sync, options: SyncOptions) -> Exit:
    """Plan, ask, apply; or only plan, or only test."""
    if options.test_only:
        done = await sync.test()
    else:
        done = plan = await sync.plan()
        if not options.plan_only and any(item.action != "none" for item in plan.items):
            if not options.yes:
                _show(plan)
                confirm("Apply this plan?", assume_yes=False)
            done = await sync.apply(plan)
    if options.report:
        write_text(markdown(done, sync.pictures), options.report)
    _show(done, options.as_json)
    return _exit_of(done, tests_only=options.test_only)


def _show(report: SyncReport, as_json: bool = False) -> None:
    rows = (
        (
            item.file,
            item.state,
            item.action,
            item.result.replace("_", " "),
            f"{item.tests_passed} of {item.tests}" if item.tests is not None else "",
        )
        for item in report.items
    )
    notes = (f"{item.file}: {item.note}" for item in report.items if item.note)
    show_table(report, as_json, ("File", "State", "Action", "Result", "Tests"), rows, *notes, whole=("File",))


def _exit_of(report: SyncReport, *, tests_only: bool) -> Exit:
    results = {item.result for item in report.items}
    if "failed" in results:
        return Exit.FAILED
    if "waiting" in results:
        return Exit.NEEDS_ANSWER
    differs = not tests_only and any(
        (item.state in OPEN and item.action == "none") or (item.result == "planned" and item.action != "none")
        for item in report.items
    )
    return Exit.NO if differs or "tests_failed" in results else Exit.DONE
