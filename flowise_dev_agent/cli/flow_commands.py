"""`export`, `import`, `diff`, `apply`, `promote`, `sync` and `flows`: flows as files, on servers and between them."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from flowise_dev_agent.cli import files
from flowise_dev_agent.cli.console import confirm, counted, say, show, show_table
from flowise_dev_agent.cli.options import AsJson, Instance, Output, Yes, asking
from flowise_dev_agent.cli.startup import Exit

if TYPE_CHECKING:
    from flowise_dev_agent.client import AgentClient
    from flowise_dev_agent.schemas.guards import GuardView

commands = typer.Typer(rich_markup_mode=None)

_RESULTS_SHOWN: Final = 10


FlowId = Annotated[str, typer.Argument(help="The flow: its id, the beginning of its id, or its name.")]
FlowPlace = Annotated[str, typer.Argument(help="A file, or a flow: its id, the beginning of its id, or its name.")]
flows_app = typer.Typer(help="Find, compare, check and test flows by a running service.", no_args_is_help=True)
commands.add_typer(flows_app, name="flows")


@asking(commands, "export")
async def export_flow(
    client: "AgentClient",
    flow: FlowId,
    file: Output = None,
    ops: Annotated[bool, typer.Option("--ops", help="Write the ops that build the flow, instead of the flow.")] = False,
    instance: Instance = None,
) -> None:
    """Write a flow to a file, for example for git. Needs a running service, like import, diff, apply and promote."""
    chatflow_id = await files.flow_id(client, flow, instance)
    if ops:
        made = await client.flow_ops(chatflow_id, instance=instance)
        rows = [op.model_dump(mode="json", exclude_none=True) for op in made.ops]
        text, title = files.json_file(rows), f"Flow {chatflow_id}"
    else:
        document = await client.export_flow(chatflow_id, instance=instance)
        text, title = files.flow_file(document), f"'{document.name}'"
    files.write_text(text, file)
    if file is not None:
        say(f"{title} is in {file}.")


@asking(commands, "import")
async def import_flows(
    client: "AgentClient",
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Files from `export` or from Flowise, a workspace's ExportData.json, folders of them, or build_flows: "
            "an agent that uses this service.",
        ),
    ],
    flows: Annotated[
        list[str] | None, typer.Option("--flow", help="Name of a flow in the files. May be repeated. [default: all]")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the new flow. [default: the one in the file]")] = None,
    kind: Annotated[str | None, typer.Option("--type", help="Flowise's type. [default: found from the nodes]")] = None,
    onto: Annotated[str | None, typer.Option(help="Id of a flow to replace, instead of creating one.")] = None,
    credential: Annotated[
        list[str] | None,
        typer.Option(
            help="TYPE=ID: a credential in Flowise for nodes that take this type; the id in the file or of a node may "
            "stand for TYPE. For build_flows the id alone. May be repeated. [default: the only one of its type]"
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check only; write nothing.")] = False,
    yes: Yes = False,
    instance: Instance = None,
    as_json: AsJson = False,
) -> bool:
    """Create flows from files, or replace one, each as a session that can be rolled back.

    Exit codes: 0 all taken, 1 failed, 3 some were refused.
    """
    from flowise_dev_agent.cli import imports

    options = imports.ImportOptions(
        names=flows or (),
        name=name,
        kind=kind,
        onto=onto,
        credentials=credential or (),
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )
    return await imports.import_flows(client, files, options, instance=instance)


@asking(commands, "diff")
@asking(flows_app, "diff")
async def show_diff(
    client: "AgentClient",
    before: FlowPlace,
    after: FlowPlace,
    instance: Instance = None,
    as_json: AsJson = False,
) -> bool:
    """Show the differences between two flows. Exit codes: 0 none, 1 could not be compared, 3 there are some."""
    from flowise_dev_agent.patch import GraphIR, diff, hunks

    old, new = [GraphIR.from_flow_data((await files.flow_of(client, one, instance))[1]) for one in (before, after)]
    found = diff(old, new)
    show({"differs": not found.is_empty, "text": found.text}, as_json, hunks(old, new))
    return found.is_empty


@asking(commands, "apply")
async def apply_ops(
    client: "AgentClient",
    file: Annotated[Path, typer.Argument(help="A JSON file of ops.")],
    flow: Annotated[str, typer.Argument(help="Id of the chatflow to change.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference and write nothing.")] = False,
    yes: Yes = False,
    instance: Instance = None,
    as_json: AsJson = False,
) -> None:
    """Apply ops to a flow, as a session that can be rolled back: compile, check, write, read back. For CI."""
    from flowise_dev_agent.patch import ops_from_list
    from flowise_dev_agent.schemas.flow_writes import ApplyToFlow

    change = ApplyToFlow(ops=ops_from_list(files.read_ops_file(files.read_text(file))), dry_run=dry_run)
    found = await client.flow_summary(await files.flow_id(client, flow, instance), instance=instance)
    confirm(f"Change '{found.flow.name}' ({found.flow.id})?", yes or dry_run)
    result = await client.apply_to_flow(
        found.flow.id, change, instance=instance, wait=files.WAIT_SECS, if_match=found.etag
    )
    if dry_run:
        files.say_checked(result, as_json=as_json)
    else:
        await files.say_result(client, result, "Changed", show_change=True, as_json=as_json)


@asking(flows_app, "check")
async def check_flow(
    client: "AgentClient",
    flow: FlowPlace,
    instance: Instance = None,
    as_json: AsJson = False,
) -> bool:
    """Check a flow against what the server has. Nothing is written.

    Exit codes: 0 valid, 1 could not be checked, 3 not valid.
    """
    from flowise_dev_agent.schemas.flow_tests import ValidateFlow

    kind, flow_data = await files.flow_of(client, flow, instance)
    text = files.valid(ValidateFlow, flow_data=flow_data, kind=kind)
    checked = await client.validate_flow(text, instance=instance)
    found = checked.validation
    lines = [f"  {finding.severity}: {finding.line}" for finding in (*found.errors, *found.warnings)]
    counts = f"{counted('errors', len(found.errors))}, {counted('warnings', len(found.warnings))}."
    show(checked, as_json, *lines, f"{'Valid' if found.valid else 'Not valid'}: {counts}")
    return found.valid


@asking(flows_app, "test")
async def hold_tests(
    client: "AgentClient",
    flow: Annotated[str, typer.Argument(help="A file, which is tested as a draft, or the id of a flow.")],
    question: Annotated[
        list[str] | None, typer.Option("--question", "-q", help="A question. May be repeated. [default: the test set]")
    ] = None,
    tests: Annotated[Path | None, typer.Option("--tests", help="A JSON, YAML or CSV file of tests.")] = None,
    trials: Annotated[int, typer.Option(min=1, max=10, help="How often each conversation has to pass.")] = 1,
    real: Annotated[
        list[str] | None,
        typer.Option(
            "--real",
            help="Address (such as https://hooks.example.com) that is really called, or `all`. May be repeated.",
        ),
    ] = None,
    ways: Annotated[bool, typer.Option("--ways", help="Take each branch, let each simulated call fail.")] = False,
    against: Annotated[
        str | None, typer.Option("--against", help="Another flow, or a version such as v4, that is asked the same.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="A model with which the flow is asked the same.")] = None,
    instance: Instance = None,
    as_json: AsJson = False,
) -> bool:
    """Ask a flow test questions, in conversations that are removed afterwards.

    What would change the world is simulated in a copy. With --real ADDRESS this address is called, and nothing else;
    with --real all the flow itself is asked.

    Exit codes: 0 all passed, 1 could not be tested, 3 not all passed.
    """
    from flowise_dev_agent.cli import flow_tests

    options = flow_tests.TestOptions(
        question or [], tests, trials, real=real or [], ways=ways, against=against, model=model
    )
    return await flow_tests.test_flow(client, flow, options, instance=instance, as_json=as_json)


tests_app = typer.Typer(help="The test set of a flow: what people marked, accepted or gave.", no_args_is_help=True)
flows_app.add_typer(tests_app, name="tests")


@asking(tests_app, "export")
async def export_tests(
    client: "AgentClient",
    flow: FlowId,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write: .yaml, .json or .csv. [default: YAML]")
    ] = None,
    instance: Instance = None,
) -> None:
    """Write the test set of a flow to a file, for git or a spreadsheet."""
    from flowise_dev_agent.cli.flow_tests import format_of

    form = format_of(file) if file else "yaml"
    found = await client.test_set(await files.flow_id(client, flow, instance), form=form, instance=instance)
    text = found.text if found.text is not None else found.model_dump_json(include={"tests"}, indent=2) + "\n"
    files.write_text(text, file)
    if file is not None:
        say(f"Written to {file}: {counted('tests', len(found.tests))}.")


@asking(tests_app, "import")
async def import_tests(
    client: "AgentClient",
    flow: FlowId,
    file: Annotated[Path, typer.Argument(help="A JSON, YAML or CSV file of tests.")],
    instance: Instance = None,
    as_json: AsJson = False,
) -> None:
    """Replace the test set of a flow by that of a file."""
    from flowise_dev_agent.cli.flow_tests import format_of
    from flowise_dev_agent.schemas.flow_tests import PutTestSet

    body = files.valid(PutTestSet, text=files.read_text(file), format=format_of(file))
    found = await client.put_test_set(await files.flow_id(client, flow, instance), body, instance=instance)
    show(found, as_json, f"The flow has {counted('tests', len(found.tests))}.")


guard_app = typer.Typer(help="Flows whose test sets are held on a schedule and after changes.", no_args_is_help=True)
flows_app.add_typer(guard_app, name="guard")


@asking(guard_app, "set")
async def set_guard(
    client: "AgentClient",
    flow: FlowId,
    every: Annotated[float, typer.Option(min=1, max=744, help="Hours between two runs.")] = 24,
    real: Annotated[bool, typer.Option("--real", help="Ask the flow itself: it really calls what it calls.")] = False,
    usd: Annotated[float, typer.Option(min=0, max=10_000, help="Ceiling of a month.")] = 5,
    webhook: Annotated[str | None, typer.Option(help="Gets the event flow.failing.")] = None,
    instance: Instance = None,
    as_json: AsJson = False,
) -> None:
    """Guard a flow, or change how."""
    from flowise_dev_agent.schemas.guards import GuardSettings

    settings = GuardSettings(every_hours=every, real=real, usd_per_month=usd, webhook_url=webhook)
    view = await client.put_guard(await files.flow_id(client, flow, instance), settings, instance=instance)
    show(view, as_json, *_guard_lines(view))


@asking(guard_app, "status")
async def show_guard(
    client: "AgentClient",
    flow: FlowId,
    instance: Instance = None,
    as_json: AsJson = False,
) -> bool:
    """Show a guarded flow with its last results. Exit codes: 0 no alarm, 1 not guarded, 3 its tests fail."""
    view = await client.guard(await files.flow_id(client, flow, instance), instance=instance)
    show(view, as_json, *_guard_lines(view))
    return view.alarm is None


def _guard_lines(view: "GuardView") -> Iterator[str]:
    yield f"{view.state}; next run {view.due_at:%Y-%m-%d %H:%M} UTC, ${view.usd_this_month:.4f} this month."
    if view.alarm:
        for test in view.alarm.tests:
            yield f"  fails ({test.failures} of {test.held}): {test.question}"
            yield f"    {test.error}"
        changed = ", ".join(view.alarm.changed) or "nothing that is known"
        yield f"  since {view.alarm.since:%Y-%m-%d %H:%M} UTC; changed since it passed: {changed}."
    for one in view.results[:_RESULTS_SHOWN]:
        yield f"  {one.at:%Y-%m-%d %H:%M} {one.state}: {one.passed} of {one.tests} ({one.cause}) {one.note}".rstrip()


@asking(guard_app, "remove")
async def remove_guard(client: "AgentClient", flow: FlowId, instance: Instance = None, as_json: AsJson = False) -> None:
    """Stop guarding a flow."""
    chatflow_id = await files.flow_id(client, flow, instance)
    await client.delete_guard(chatflow_id, instance=instance)
    show({"chatflow_id": chatflow_id, "removed": True}, as_json, "The flow is not guarded any more.")


@asking(commands, "promote")
async def promote_flow(
    client: "AgentClient",
    flow: FlowId,
    to: Annotated[str, typer.Option("--to", help="The target instance.")],
    source: Annotated[str | None, typer.Option("--from", help="The source instance. [default: the first one]")] = None,
    name: Annotated[str | None, typer.Option(help="Name there. [default: the same]")] = None,
    onto: Annotated[str | None, typer.Option(help="Id of a flow there to replace.")] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Copy a flow to another Flowise instance, as a session that can be rolled back.

    Its credentials are mapped by name and type.
    """
    from flowise_dev_agent.schemas.flow_writes import PromoteFlow

    replaced = None
    if onto is not None:
        confirm(f"Replace the flow {onto} on {to}?", yes)
        replaced = await files.flow_id(client, onto, to)
    promotion = files.valid(PromoteFlow, source=source, target=to, name=name, target_chatflow_id=replaced)
    result = await client.promote_flow(await files.flow_id(client, flow, source), promotion, wait=files.WAIT_SECS)
    for item in result.credentials if not as_json else ():
        say(f"  {item.type}: '{item.name}' -> '{item.target_name}' (by {item.by})")
    done = "Created" if result.created else "Replaced"
    await files.say_result(client, result, done, where=f" on {to}", as_json=as_json)


@asking(commands, "rehearse")
async def rehearse_upgrade(
    client: "AgentClient",
    source: Annotated[
        str | None, typer.Option("--from", help="The instance of today. [default: the first one]")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", help="An instance of the new version, empty or not.")] = None,
    catalogue: Annotated[
        Path | None, typer.Option(help="In place of --to: a file with the answer of its GET /api/v1/nodes.")
    ] = None,
    tests: Annotated[bool, typer.Option("--tests", help="Ask the test set of each flow on both, simulated.")] = False,
    draft: Annotated[bool, typer.Option("--draft", help="Ask flows without tests a plain question on both.")] = False,
    report: Annotated[Path | None, typer.Option(help="File for a report in Markdown.")] = None,
    as_json: AsJson = False,
) -> bool:
    """Try all flows of an instance on one of another version of Flowise: findings, versions of nodes, answers.

    What is asked there is a draft, which is removed. Exit codes: 0 none breaks, 1 failed, 3 some would break.
    """
    from flowise_dev_agent.cli.rehearse import RehearseOptions, rehearse

    return await rehearse(client, RehearseOptions(source, to, catalogue, tests, draft, report, as_json))


@asking(commands, "sync")
async def sync_flows(
    client: "AgentClient",
    folder: Annotated[Path, typer.Argument(help="Directory with a YAML file for each flow.")] = Path("flows"),
    plan: Annotated[bool, typer.Option("--plan", help="Only show what would be done.")] = False,
    test: Annotated[bool, typer.Option("--test", help="Only test the flows of the files, as drafts.")] = False,
    pull: Annotated[
        bool, typer.Option("--pull", help="The other way: write the server's flows to files, in git a commit a change.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Write files over flows that were changed on the server.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Accept what was changed on the server.")] = False,
    wait: Annotated[float, typer.Option(min=0, max=86_400, help="Seconds to wait for a session or a test.")] = 1_900,
    report: Annotated[
        Path | None, typer.Option(help="File for a report in Markdown, with pictures of the flows.")
    ] = None,
    yes: Yes = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Approve the plans of sessions, and accept results whose tests pass.")
    ] = False,
    instance: Instance = None,
    as_json: AsJson = False,
) -> Exit:
    """Bring the flows of a directory to a server: plan, approval, tests, writes. Nothing is deleted.

    Exit codes: 0 as the files say, 1 failed, 3 something would be done, was left alone or failed its tests, 4 a session
    waits for an answer.
    """
    if plan + test + pull > 1 or overwrite + keep > 1:
        raise typer.BadParameter("Give one of --plan, --test and --pull, and one of --overwrite and --keep.")
    if pull:
        from flowise_dev_agent.cli.pull import pull as pull_flows

        await pull_flows(client, folder, instance)
        return Exit.DONE
    from flowise_dev_agent.cli.sync import OnDrift, Sync, SyncOptions, run_sync

    on_drift: OnDrift = "overwrite" if overwrite else "keep" if keep else "leave"
    made = Sync(client, folder, instance, on_drift, accept=accept, wait=wait)
    return await run_sync(made, SyncOptions(plan_only=plan, test_only=test, yes=yes, report=report, as_json=as_json))


@asking(flows_app, "list")
async def list_flows(
    client: "AgentClient",
    words: Annotated[str, typer.Argument(help="Each must begin a word of the flow. [default: all flows]")] = "",
    limit: Annotated[int, typer.Option(min=1, max=100)] = 20,
    instance: Instance = None,
    as_json: AsJson = False,
) -> None:
    """List chatflows and agentflows, those changed last first."""
    page = await client.find_flows(words, instance=instance, limit=limit)
    rows = ((flow.id, flow.type, str(flow.nodes), flow.name) for flow in page.flows)
    total = f"{len(page.flows)} of {counted('flows', page.total)}."
    show_table(page, as_json, ("Flow", "Type", "Nodes", "Name"), rows, total, whole=("Flow",))


@asking(flows_app, "ending")
async def list_ending_models(
    client: "AgentClient",
    days: Annotated[int, typer.Option(min=0, max=180, help="Models that end within so many days.")] = 90,
    tests: Annotated[bool, typer.Option("--tests", help="Ask the test set of each with the replacement.")] = False,
    model: Annotated[
        str | None, typer.Option("--try", help="Model to try. [default: the newest one like it that the server offers]")
    ] = None,
    instance: Instance = None,
    as_json: AsJson = False,
) -> bool:
    """List flows on models whose end is announced, with the date and a replacement. Exit codes: 0 none, 3 there are."""
    from flowise_dev_agent.cli.model_ends import list_ending

    return await list_ending(client, days=days, tests=tests, model=model, instance=instance, as_json=as_json)


@asking(flows_app, "show")
async def show_flow(
    client: "AgentClient",
    flow: FlowId,
    instance: Instance = None,
    as_json: AsJson = False,
) -> None:
    """Describe a flow: its nodes with their settings, and how they are connected."""
    found = await client.flow_summary(await files.flow_id(client, flow, instance), instance=instance)
    show(found, as_json, f"{found.flow.name} ({found.flow.type}) {found.flow.url or ''}".rstrip(), found.summary)


@asking(flows_app, "fleet")
async def show_fleet(
    client: "AgentClient",
    state: Annotated[str | None, typer.Option(help="Only flows in this state, such as changed_outside.")] = None,
    owner: Annotated[str | None, typer.Option(help="Only flows that this person's sessions wrote last.")] = None,
    query: Annotated[str | None, typer.Option(help="Only flows with this in their name.")] = None,
    instance: Instance = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, of all flows.")] = False,
    as_json: AsJson = False,
) -> None:
    """List all flows with their states: changed outside, failing, broken, outdated, never tested, ..."""
    wanted: dict[str, Any] = {"instance": instance, "state": state, "owner": owner, "query": query}
    if as_csv:
        files.write_text(await client.fleet_export(**wanted), None)
        return
    page = await client.fleet(**wanted, limit=500)
    rows = (
        (
            flow.id,
            ", ".join(flow.states).replace("_", " "),
            flow.owner or "",
            f"{flow.tested_at:%Y-%m-%d}" if flow.tested_at else "",
            flow.name,
        )
        for flow in page.flows
    )
    gone = (
        f"Deleted in Flowise on {one.noticed_at:%Y-%m-%d}: {one.name} ({one.id}); see `flows restore`."
        for one in (page.deleted if not (state or owner or query) else ())
    )
    more = " More by GET /fleet with `next_cursor`." if page.next_cursor else ""
    columns = ("Flow", "State", "Owner", "Tested", "Name")
    told = (*gone, f"{counted('flows', len(page.flows))}.{more}")
    show_table(page, as_json, columns, rows, *told, whole=("Flow", "Tested"))


@asking(flows_app, "restore")
async def restore_version(
    client: "AgentClient",
    flow: FlowId,
    version: Annotated[str, typer.Argument(help="Such as v4, see `flows history`.", metavar="VERSION")],
    as_json: AsJson = False,
) -> None:
    """Write a version of a flow back, also one that somebody saved in Flowise, or a flow that was deleted."""
    result = await client.restore_version(await files.flow_id(client, flow), version, wait=files.WAIT_SECS)
    done = f"Made {version} again as a new flow" if result.created else f"Restored {version} of"
    await files.say_result(client, result, done, show_change=not result.created, as_json=as_json)


@asking(flows_app, "history")
async def show_history(
    client: "AgentClient",
    flow: FlowId,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 20,
    as_json: AsJson = False,
) -> None:
    """List the versions of a flow, newest first."""
    page = await client.flow_versions(await files.flow_id(client, flow), limit=limit)
    rows = ((one.name, str(one.session_id or ""), one.label, one.title) for one in page.versions)
    show_table(page, as_json, ("Version", "Session", "Label", "What"), rows, whole=("Session",))
