"""`export`, `import`, `diff`, `apply`, `promote`, `sync` and `flows`: flows as files, on servers and between them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flowise_dev_agent.cli.options import AsJson, Instance, Url, Yes
from flowise_dev_agent.cli.startup import Exit, with_client

if TYPE_CHECKING:
    from flowise_dev_agent.client import AgentClient

commands = typer.Typer(rich_markup_mode=None)


def _files():  # noqa: ANN202 - imported at the first use, so that `--help` need not wait
    from flowise_dev_agent.cli import files

    return files


def _flow_tests():  # noqa: ANN202 - as above
    from flowise_dev_agent.cli import flow_tests

    return flow_tests


FlowId = Annotated[str, typer.Argument(help="The flow: its id, the beginning of its id, or its name.")]
FlowPlace = Annotated[str, typer.Argument(help="A file, or a flow: its id, the beginning of its id, or its name.")]
flows_app = typer.Typer(help="Find, compare, check and test flows by a running service.", no_args_is_help=True)
commands.add_typer(flows_app, name="flows")


@commands.command("export")
def export_command(
    flow: FlowId,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. [default: standard output]")
    ] = None,
    ops: Annotated[bool, typer.Option("--ops", help="Write the ops that build the flow, instead of the flow.")] = False,
    instance: Instance = None,
    url: Url = None,
) -> None:
    """Write a flow to a file, for example for git. Needs a running service, like import, diff, apply and promote."""
    with_client(url, lambda client: _files().export_flow(client, flow, file, ops=ops, instance=instance))


@commands.command("import")
def import_command(
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
    url: Url = None,
) -> None:
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
    if not with_client(url, lambda client: imports.import_flows(client, files, options, instance=instance)):
        raise typer.Exit(Exit.NO)


@commands.command("diff")
@flows_app.command("diff")
def diff_command(
    before: FlowPlace,
    after: FlowPlace,
    instance: Instance = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Show the differences between two flows. Exit codes: 0 none, 1 could not be compared, 3 there are some."""
    if with_client(url, lambda client: _files().show_diff(client, before, after, instance=instance, as_json=as_json)):
        raise typer.Exit(Exit.NO)


@commands.command("apply")
def apply_command(
    file: Annotated[Path, typer.Argument(help="A JSON file of ops.")],
    flow: Annotated[str, typer.Argument(help="Id of the chatflow to change.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference and write nothing.")] = False,
    yes: Yes = False,
    instance: Instance = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Apply ops to a flow, as a session that can be rolled back: compile, check, write, read back. For CI."""
    with_client(
        url,
        lambda client: _files().apply_ops(
            client, file, flow, dry_run=dry_run, instance=instance, as_json=as_json, yes=yes
        ),
    )


@flows_app.command("check")
def flows_check_command(
    flow: FlowPlace,
    instance: Instance = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Check a flow against what the server has. Nothing is written.

    Exit codes: 0 valid, 1 could not be checked, 3 not valid.
    """
    if not with_client(url, lambda client: _files().check_flow(client, flow, instance=instance, as_json=as_json)):
        raise typer.Exit(Exit.NO)


@flows_app.command("test")
def flows_test_command(
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
    url: Url = None,
) -> None:
    """Ask a flow test questions, in conversations that are removed afterwards.

    What would change the world is simulated in a copy. With --real ADDRESS this address is called, and nothing else;
    with --real all the flow itself is asked.

    Exit codes: 0 all passed, 1 could not be tested, 3 not all passed.
    """
    flow_tests = _flow_tests()
    options = flow_tests.TestOptions(
        question or [], tests, trials, real=real or [], ways=ways, against=against, model=model
    )
    if not with_client(
        url, lambda client: flow_tests.test_flow(client, flow, options, instance=instance, as_json=as_json)
    ):
        raise typer.Exit(Exit.NO)


tests_app = typer.Typer(help="The test set of a flow: what people marked, accepted or gave.", no_args_is_help=True)
flows_app.add_typer(tests_app, name="tests")


@tests_app.command("export")
def export_tests_command(
    flow: FlowId,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write: .yaml, .json or .csv. [default: YAML]")
    ] = None,
    instance: Instance = None,
    url: Url = None,
) -> None:
    """Write the test set of a flow to a file, for git or a spreadsheet."""
    with_client(url, lambda client: _flow_tests().export_tests(client, flow, file, instance=instance))


@tests_app.command("import")
def import_tests_command(
    flow: FlowId,
    file: Annotated[Path, typer.Argument(help="A JSON, YAML or CSV file of tests.")],
    instance: Instance = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Replace the test set of a flow by that of a file."""
    with_client(url, lambda client: _flow_tests().import_tests(client, flow, file, instance=instance, as_json=as_json))


guard_app = typer.Typer(help="Flows whose test sets are held on a schedule and after changes.", no_args_is_help=True)
flows_app.add_typer(guard_app, name="guard")


@guard_app.command("set")
def guard_set_command(
    flow: FlowId,
    every: Annotated[float, typer.Option(min=1, max=744, help="Hours between two runs.")] = 24,
    real: Annotated[bool, typer.Option("--real", help="Ask the flow itself: it really calls what it calls.")] = False,
    usd: Annotated[float, typer.Option(min=0, max=10_000, help="Ceiling of a month.")] = 5,
    webhook: Annotated[str | None, typer.Option(help="Gets the event flow.failing.")] = None,
    instance: Instance = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Guard a flow, or change how."""
    from flowise_dev_agent.schemas.guards import GuardSettings

    settings = GuardSettings(every_hours=every, real=real, usd_per_month=usd, webhook_url=webhook)
    with_client(url, lambda client: _flow_tests().set_guard(client, flow, settings, instance=instance, as_json=as_json))


@guard_app.command("status")
def guard_status_command(
    flow: FlowId,
    instance: Instance = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Show a guarded flow with its last results. Exit codes: 0 no alarm, 1 not guarded, 3 its tests fail."""
    if not with_client(url, lambda client: _flow_tests().show_guard(client, flow, instance=instance, as_json=as_json)):
        raise typer.Exit(Exit.NO)


@guard_app.command("remove")
def guard_remove_command(flow: FlowId, instance: Instance = None, as_json: AsJson = False, url: Url = None) -> None:
    """Stop guarding a flow."""
    with_client(url, lambda client: _flow_tests().remove_guard(client, flow, instance=instance, as_json=as_json))


@commands.command("promote")
def promote_command(
    flow: FlowId,
    to: Annotated[str, typer.Option("--to", help="The target instance.")],
    source: Annotated[str | None, typer.Option("--from", help="The source instance. [default: the first one]")] = None,
    name: Annotated[str | None, typer.Option(help="Name there. [default: the same]")] = None,
    onto: Annotated[str | None, typer.Option(help="Id of a flow there to replace.")] = None,
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Copy a flow to another Flowise instance, as a session that can be rolled back.

    Its credentials are mapped by name and type.
    """
    from flowise_dev_agent.cli.console import confirm

    if onto is not None:
        confirm(f"Replace the flow {onto} on {to}?", yes)
    with_client(
        url,
        lambda client: _files().promote_flow(
            client, flow, source=source, target=to, name=name, onto=onto, as_json=as_json
        ),
    )


@commands.command("rehearse")
def rehearse_command(
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
    url: Url = None,
) -> None:
    """Try all flows of an instance on one of another version of Flowise: findings, versions of nodes, answers.

    What is asked there is a draft, which is removed. Exit codes: 0 none breaks, 1 failed, 3 some would break.
    """
    from flowise_dev_agent.cli import rehearse

    options = rehearse.RehearseOptions(source, to, catalogue, tests, draft, report, as_json)
    if not with_client(url, lambda client: rehearse.rehearse(client, options)):
        raise typer.Exit(Exit.NO)


@commands.command("sync")
def sync_command(
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
    url: Url = None,
) -> None:
    """Bring the flows of a directory to a server: plan, approval, tests, writes. Nothing is deleted.

    Exit codes: 0 as the files say, 1 failed, 3 something would be done, was left alone or failed its tests, 4 a session
    waits for an answer.
    """
    from flowise_dev_agent.cli import sync as sync_command

    if plan + test + pull > 1 or overwrite + keep > 1:
        raise typer.BadParameter("Give one of --plan, --test and --pull, and one of --overwrite and --keep.")
    if pull:
        from flowise_dev_agent.cli.pull import pull as pull_flows

        with_client(url, lambda client: pull_flows(client, folder, instance))
        return

    async def run(client: "AgentClient") -> Exit:
        on_drift: sync_command.OnDrift = "overwrite" if overwrite else "keep" if keep else "leave"
        made = sync_command.Sync(client, folder, instance, on_drift, accept=accept, wait=wait)
        options = sync_command.SyncOptions(plan_only=plan, test_only=test, yes=yes, report=report, as_json=as_json)
        return await sync_command.run_sync(made, options)

    raise typer.Exit(with_client(url, run))


@flows_app.command("list")
def flows_list_command(
    words: Annotated[str, typer.Argument(help="Each must begin a word of the flow. [default: all flows]")] = "",
    limit: Annotated[int, typer.Option(min=1, max=100)] = 20,
    instance: Instance = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List chatflows and agentflows, those changed last first."""
    with_client(url, lambda client: _files().list_flows(client, words, limit=limit, instance=instance, as_json=as_json))


@flows_app.command("ending")
def flows_ending_command(
    days: Annotated[int, typer.Option(min=0, max=180, help="Models that end within so many days.")] = 90,
    tests: Annotated[bool, typer.Option("--tests", help="Ask the test set of each with the replacement.")] = False,
    model: Annotated[
        str | None, typer.Option("--try", help="Model to try. [default: the newest one like it that the server offers]")
    ] = None,
    instance: Instance = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List flows on models whose end is announced, with the date and a replacement. Exit codes: 0 none, 3 there are."""
    from flowise_dev_agent.cli import model_ends

    if not with_client(
        url,
        lambda client: model_ends.list_ending(
            client, days=days, tests=tests, model=model, instance=instance, as_json=as_json
        ),
    ):
        raise typer.Exit(Exit.NO)


@flows_app.command("show")
def flows_show_command(
    flow: FlowId,
    instance: Instance = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Describe a flow: its nodes with their settings, and how they are connected."""
    with_client(url, lambda client: _files().show_flow(client, flow, instance=instance, as_json=as_json))


@flows_app.command("fleet")
def flows_fleet_command(
    state: Annotated[str | None, typer.Option(help="Only flows in this state, such as changed_outside.")] = None,
    instance: Instance = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List all flows with their states: changed outside, failing, broken, outdated, never tested, ..."""
    with_client(url, lambda client: _files().show_fleet(client, instance=instance, state=state, as_json=as_json))


@flows_app.command("restore")
def flows_restore_command(
    flow: FlowId,
    version: Annotated[str, typer.Argument(help="Such as v4, see `flows history`.", metavar="VERSION")],
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Write a version of a flow back, also one that somebody saved in Flowise, or a flow that was deleted."""
    with_client(url, lambda client: _files().restore_version(client, flow, version, as_json=as_json))


@flows_app.command("history")
def flows_history_command(
    flow: FlowId,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 20,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List the versions of a flow, newest first."""
    with_client(url, lambda client: _files().show_history(client, flow, limit=limit, as_json=as_json))
