"""`build`, `approve` and `sessions`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from flowise_dev_agent.cli.options import AsJson, Instance, Url, Yes
from flowise_dev_agent.cli.startup import Exit, run_async, with_client

if TYPE_CHECKING:
    from flowise_dev_agent.client import AgentClient
    from flowise_dev_agent.schemas.versions import TakenBack

commands = typer.Typer(rich_markup_mode=None)


def _sessions():  # noqa: ANN202 - imported at the first use, so that `--help` need not wait
    from flowise_dev_agent.cli import sessions

    return sessions


sessions_app = typer.Typer(help="The sessions of a running service.", no_args_is_help=True)
commands.add_typer(sessions_app, name="sessions")

SessionId = Annotated[UUID, typer.Argument(help="The session.")]
Wait = Annotated[float, typer.Option(min=0, max=86_400, help="Seconds to wait for the next question or the end.")]


@commands.command("build")
def build(
    requirement: Annotated[
        str | None, typer.Argument(help="What to build or change, in plain words; none with --guided.")
    ] = None,
    guided: Annotated[bool, typer.Option("--guided", help="Ask for each part of a new flow instead.")] = False,
    attach: Annotated[
        list[Path] | None,
        typer.Option(
            help="A file for the flow: PDF, DOCX, text, CSV, OpenAPI, image. May be repeated.",
            dir_okay=False,
            exists=True,
        ),
    ] = None,
    target: Annotated[str | None, typer.Option(help="Id or exact name of the flow to change or copy.")] = None,
    operation: Annotated[
        str | None, typer.Option(help="auto, create, update or copy. [default: as the requirement says]")
    ] = None,
    new_name: Annotated[
        str | None, typer.Option(help="Instead of a requirement: copy or rename the target, with --operation.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model for the agent's reasoning. [default: the service's]")] = None,
    trials: Annotated[int, typer.Option(min=1, max=10, help="How often each test question must pass.")] = 1,
    budget: Annotated[float | None, typer.Option(help="The most USD to spend. [default: the service's]")] = None,
    review_patch: Annotated[bool, typer.Option("--review-patch", help="Ask before a write, with the change.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Approve the plan, and accept the result if its tests pass.")
    ] = False,
    instance: Instance = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the session as JSON at its end, or at its first question.")
    ] = False,
    url: Url = None,
) -> None:
    """Build or change a chatflow on a running service, showing progress.

    Exit codes: 0 accepted, 1 failed, 3 ended otherwise, 4 an answer is needed.
    """
    from flowise_dev_agent.cli import build as build_command
    from flowise_dev_agent.cli.build import ask_form
    from flowise_dev_agent.schemas.requests import StartSession

    if [guided, requirement is not None, new_name is not None].count(True) != 1:
        raise typer.BadParameter("Name a requirement, or use --guided or --new-name.")
    if new_name is not None and (operation not in ("copy", "update") or target is None):
        raise typer.BadParameter("--new-name needs --target and --operation copy or update.")
    given = {
        "design": ask_form() if guided else None,
        "requirement": requirement,
        "target": target,
        "new_name": new_name,
        "operation": operation,
        "flowise_instance_id": instance,
        "model": model,
        "test_trials": trials,
        "budget": {"usd": budget} if budget is not None else None,
        "review_patch": review_patch,
    }
    request = StartSession.model_validate({name: value for name, value in given.items() if value is not None})

    async def run(client: "AgentClient") -> Exit:
        how = build_command.build_as_json if as_json else build_command.build
        return await how(client, request, assume_yes=yes, attach=attach or [])

    raise typer.Exit(with_client(url, run))


@commands.command("approve")
@sessions_app.command("answer")
def approve(
    session_id: Annotated[UUID | None, typer.Argument(help="The session; or use --payload.")] = None,
    payload: Annotated[
        str | None,
        typer.Option(help="File with a webhook payload, or a GitHub event that contains one; - is standard input."),
    ] = None,
    answer: Annotated[
        str | None,
        typer.Option(help="An offered action: approve, accept, request_changes, iterate, rollback, cancel, ..."),
    ] = None,
    feedback: Annotated[str | None, typer.Option(help="What to change.")] = None,
    approach: Annotated[str | None, typer.Option(help="Which of the plan's approaches to approve.")] = None,
    real: Annotated[
        list[str] | None,
        typer.Option("--real", help="Address of the plan that its tests really call. May be repeated."),
    ] = None,
    interrupt: Annotated[
        str | None, typer.Option(help="Answer only if this interrupt is still open. [default: the payload's]")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Only show the question.")] = False,
    wait: Annotated[
        float, typer.Option(min=0, max=86_400, help="Seconds to wait for the next question or the end.")
    ] = 600,
    as_json: Annotated[bool, typer.Option("--json", help="Print the session as JSON.")] = False,
    url: Url = None,
) -> None:
    """Answer a session's question, at the terminal or from CI.

    Exit codes: 0 answered or shown, 1 failed, 3 no such question is open, 4 an answer is needed.
    """
    if (session_id is None) == (payload is None):
        raise typer.BadParameter("Give either a session or a --payload.")
    if session_id is not None:
        question = _sessions().Question(session_id, interrupt)
    else:
        asked = _sessions().from_payload(payload or "")
        question = _sessions().Question(asked.session_id, interrupt or asked.interrupt_id, over=asked.over)

    async def run(client: "AgentClient") -> Exit:
        if show:
            return await _sessions().show_question(client, question, wait=wait, as_json=as_json)
        given = _sessions().Given(answer, feedback, approach, real or None)
        return await _sessions().approve(client, question, given, wait=wait, as_json=as_json)

    raise typer.Exit(with_client(url, run, door="webhook" if payload else "cli"))


@commands.command("certificate")
def certificate_command(
    session_id: Annotated[UUID | None, typer.Argument(help="The session; or use --keys.")] = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. [default: standard output]")
    ] = None,
    keys: Annotated[bool, typer.Option("--keys", help="The public keys that `verify` takes as --key.")] = False,
    url: Url = None,
) -> None:
    """Write the signed certificate of the version that a session ended with, or the keys to check it with."""
    if keys == (session_id is not None):
        raise typer.BadParameter("Give either a session or --keys.")
    with_client(url, lambda client: _sessions().write_certificate(client, session_id, file))


@commands.command("verify")
def verify_command(
    file: Annotated[Path, typer.Argument(help="A certificate.")],
    flow: Annotated[Path | None, typer.Option("--flow", help="An export of the flow that has to be the one.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="A public key in base64, or the file of `certificate --keys`.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a certificate, without a service.

    Exit codes: 0 valid, 1 not a certificate, 3 changed, or its key is revoked, unknown or not checked.
    """
    if not run_async(_sessions().verify_certificate(file, flow=flow, key=key, as_json=as_json)):
        raise typer.Exit(Exit.NO)


@sessions_app.command("list")
def list_command(
    status: Annotated[str | None, typer.Option(help="Only sessions in this state.")] = None,
    flow: Annotated[str | None, typer.Option(help="Only those of this chatflow id.")] = None,
    text: Annotated[str | None, typer.Option(help="Only those with these words in name or requirement.")] = None,
    instance: Annotated[str | None, typer.Option(help="Only those on this Flowise instance.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 20,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List the sessions, newest first."""
    which = {"status": status, "chatflow": flow, "text": text, "instance": instance}
    with_client(url, lambda client: _sessions().list_sessions(client, limit=limit, as_json=as_json, **which))


@sessions_app.command("show")
def show_command(session_id: SessionId, as_json: AsJson = False, url: Url = None) -> None:
    """Show a session with its open question, or how it ended."""

    async def run(client: "AgentClient") -> None:
        await _sessions().settle(client, await client.get(session_id), wait=0, as_json=as_json)

    with_client(url, run)


@sessions_app.command("watch")
def watch_command(session_id: SessionId, as_json: AsJson = False, url: Url = None) -> None:
    """Show what a session does until it asks or ends. Exit codes: 0 it asks or has ended, 1 it failed."""
    raise typer.Exit(with_client(url, lambda client: _sessions().watch(client, session_id, as_json=as_json)))


@sessions_app.command("cancel")
def cancel_command(session_id: SessionId, as_json: AsJson = False, url: Url = None) -> None:
    """Stop a session. What it has written to Flowise stays."""

    async def run(client: "AgentClient") -> Exit:
        return await _sessions().settle(client, await client.cancel(session_id), wait=0, as_json=as_json)

    raise typer.Exit(with_client(url, run))


@sessions_app.command("retry")
def retry_command(
    session_id: Annotated[UUID | None, typer.Argument(help="The session; or use --all.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All sessions that ended in an error.")] = False,
    code: Annotated[str | None, typer.Option(help="With --all: only those with this error.")] = None,
    wait: Wait = 600,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Go on with a session that failed, or with all of them. Exit codes: 0 it asks, runs or has ended, 1 it failed
    again.
    """
    if everything == (session_id is not None) or (code is not None and not everything):
        raise typer.BadParameter("Name a session, or use --all (and --code).")

    async def run(client: "AgentClient") -> Exit:
        if session_id is None:
            return await _sessions().retry_failed(client, code, as_json=as_json)
        return await _sessions().settle(client, await client.retry(session_id), wait=wait, as_json=as_json)

    raise typer.Exit(with_client(url, run))


@sessions_app.command("rollback")
def rollback_command(
    session_id: SessionId,
    version: Annotated[str | None, typer.Option(help="Label, such as v2.0. [default: the first version]")] = None,
    delete: Annotated[bool, typer.Option("--delete-created", help="Delete the flow that the session made.")] = False,
    undeploy: Annotated[
        bool, typer.Option("--undeploy-created", help="Undeploy the flow that the session made.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Write a version of a session back to its flow, or take back the flow that it made if nobody has changed it."""
    from flowise_dev_agent.cli.console import confirm

    if delete + undeploy + (version is not None) > 1:
        raise typer.BadParameter("Give one of --version, --delete-created and --undeploy-created.")
    created: TakenBack | None = "delete" if delete else "undeploy" if undeploy else None
    asked = f"Write version {version or 'v1.0'} back to the flow of session {session_id}?"
    confirm(f"{'Delete' if delete else 'Undeploy'} the flow that session {session_id} made?" if created else asked, yes)
    with_client(
        url,
        lambda client: _sessions().roll_back(client, session_id, version=version, created=created, as_json=as_json),
    )


@sessions_app.command("delete")
def delete_command(session_id: SessionId, yes: Yes = False, as_json: AsJson = False, url: Url = None) -> None:
    """Remove a session. Its flow in Flowise stays."""
    from flowise_dev_agent.cli.console import confirm, print_json, say

    confirm(f"Remove session {session_id} for good?", yes)
    with_client(url, lambda client: client.delete(session_id))
    if as_json:
        print_json({"session_id": str(session_id), "removed": True})
    else:
        say("Removed.")
