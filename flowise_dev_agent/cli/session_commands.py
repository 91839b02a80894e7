"""`build`, `approve`, `certificate`, `verify` and `sessions`: sessions at the terminal and from CI jobs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

import typer

from flowise_dev_agent.cli.console import confirm, counted, say, show, show_table, warn
from flowise_dev_agent.cli.options import AsJson, Instance, Output, Url, Yes, asking
from flowise_dev_agent.cli.startup import Exit, run_async, with_client
from flowise_dev_agent.errors import AgentError

if TYPE_CHECKING:
    from flowise_dev_agent.client import AgentClient
    from flowise_dev_agent.schemas.versions import TakenBack

commands = typer.Typer(rich_markup_mode=None)

sessions_app = typer.Typer(help="The sessions of a running service.", no_args_is_help=True)
commands.add_typer(sessions_app, name="sessions")

SessionId = Annotated[UUID, typer.Argument(help="The session.")]
Wait = Annotated[float, typer.Option(min=0, max=86_400, help="Seconds to wait for the next question or the end.")]
#: Sessions that are asked for at once.
_PAGE: Final = 100


@asking(commands, "build")
async def build(
    client: "AgentClient",
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
) -> Exit:
    """Build or change a chatflow on a running service, showing progress.

    Exit codes: 0 accepted, 1 failed, 3 ended otherwise, 4 an answer is needed.
    """
    from flowise_dev_agent.cli import build as build_command
    from flowise_dev_agent.cli.guided import ask_form
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

    how = build_command.build_as_json if as_json else build_command.build
    return await how(client, request, assume_yes=yes, attach=attach or [])


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
    wait: Wait = 600,
    as_json: Annotated[bool, typer.Option("--json", help="Print the session as JSON.")] = False,
    url: Url = None,
) -> None:
    """Answer a session's question, at the terminal or from CI.

    Exit codes: 0 answered or shown, 1 failed, 3 no such question is open, 4 an answer is needed.
    """
    if (session_id is None) == (payload is None):
        raise typer.BadParameter("Give either a session or a --payload.")
    from flowise_dev_agent.cli import sessions

    asked = sessions.Question(session_id) if session_id is not None else sessions.from_payload(payload or "")
    question = sessions.Question(asked.session_id, interrupt or asked.interrupt_id, over=asked.over)

    async def run(client: "AgentClient") -> Exit:
        if show:
            await sessions.settle(client, await client.get(question.session_id), wait=wait, as_json=as_json)
            return Exit.DONE
        given = sessions.Given(answer, feedback, approach, real or None)
        return await sessions.approve(client, question, given, wait=wait, as_json=as_json)

    raise typer.Exit(with_client(url, run, door="webhook" if payload else "cli"))


@asking(commands, "certificate")
async def certificate(
    client: "AgentClient",
    session_id: Annotated[UUID | None, typer.Argument(help="The session; or use --keys.")] = None,
    file: Output = None,
    keys: Annotated[bool, typer.Option("--keys", help="The public keys that `verify` takes as --key.")] = False,
) -> None:
    """Write the signed certificate of the version that a session ended with, or the keys to check it with."""
    if keys == (session_id is not None):
        raise typer.BadParameter("Give either a session or --keys.")
    from flowise_dev_agent.cli.files import write_text

    made = await (client.certificate_keys() if session_id is None else client.certificate(session_id))
    write_text(made.model_dump_json(indent=2) + "\n", file)
    if file is not None:
        say(f"The {'keys are' if keys else 'certificate is'} in {file}.")


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
    from flowise_dev_agent.cli.sessions import verify_certificate

    if not run_async(verify_certificate(file, flow=flow, key=key, as_json=as_json)):
        raise typer.Exit(Exit.NO)


@asking(sessions_app, "list")
async def list_sessions(
    client: "AgentClient",
    status: Annotated[str | None, typer.Option(help="Only sessions in this state.")] = None,
    flow: Annotated[str | None, typer.Option(help="Only those of this chatflow id.")] = None,
    text: Annotated[str | None, typer.Option(help="Only those with these words in name or requirement.")] = None,
    instance: Annotated[str | None, typer.Option(help="Only those on this Flowise instance.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 20,
    as_json: AsJson = False,
) -> None:
    """List the sessions, newest first."""
    page = await client.list(status=status, chatflow=flow, text=text, instance=instance, limit=limit)
    rows = (
        (
            str(one.thread_id),
            one.outcome or one.status,
            one.interrupt.type if one.interrupt else "",
            one.session_name or "",
        )
        for one in page.sessions
    )
    older = ("There are older sessions: raise --limit, or see the page.",) if page.next_cursor else ()
    show_table(page, as_json, ("Session", "State", "Asks", "Name"), rows, *older, whole=("Session",))


@asking(sessions_app, "show")
async def show_session(
    client: "AgentClient",
    session_id: SessionId,
    full: Annotated[bool, typer.Option("--full", help="Show long texts of a plan as a whole.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a session with its open question, or how it ended."""
    from flowise_dev_agent.cli.sessions import settle

    await settle(client, await client.get(session_id), wait=0, as_json=as_json, full=full)


@asking(sessions_app, "watch")
async def watch_session(client: "AgentClient", session_id: SessionId, as_json: AsJson = False) -> Exit:
    """Show what a session does until it asks or ends. Exit codes: 0 it asks or has ended, 1 it failed."""
    from flowise_dev_agent.cli.sessions import watch

    return await watch(client, session_id, as_json=as_json)


@asking(sessions_app, "cancel")
async def cancel_session(client: "AgentClient", session_id: SessionId, as_json: AsJson = False) -> Exit:
    """Stop a session. What it has written to Flowise stays."""
    from flowise_dev_agent.cli.sessions import settle

    return await settle(client, await client.cancel(session_id), wait=0, as_json=as_json)


@asking(sessions_app, "retry")
async def retry_session(
    client: "AgentClient",
    session_id: Annotated[UUID | None, typer.Argument(help="The session; or use --all.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All sessions that ended in an error.")] = False,
    code: Annotated[str | None, typer.Option(help="With --all: only those with this error.")] = None,
    wait: Wait = 600,
    as_json: AsJson = False,
) -> Exit:
    """Go on with a session that failed, or with all of them. Exit codes: 0 it asks, runs or has ended, 1 it failed
    again.
    """
    if everything == (session_id is not None) or (code is not None and not everything):
        raise typer.BadParameter("Name a session, or use --all (and --code).")
    if session_id is None:
        return await retry_failed(client, code, as_json=as_json)
    from flowise_dev_agent.cli.sessions import settle

    return await settle(client, await client.retry(session_id), wait=wait, as_json=as_json)


async def retry_failed(client: "AgentClient", code: str | None, *, as_json: bool) -> Exit:
    """Go on with all sessions that ended in an error, or in the error `code`; one that cannot go on stops no other."""
    page = await client.list(status="error", limit=_PAGE)
    found = list(page.sessions)
    while page.next_cursor:
        page = await client.list(status="error", limit=_PAGE, cursor=page.next_cursor)
        found += page.sessions
    refused: dict[str, str] = {}
    retried: list[str] = []
    for one in found:
        if code is not None and (one.error is None or one.error.code != code):
            continue
        try:
            await client.retry(one.thread_id)
        except AgentError as error:
            refused[str(one.thread_id)] = error.message
        else:
            retried.append(str(one.thread_id))
    show({"retried": retried, "refused": refused}, as_json, f"Going on: {counted('sessions', len(retried))}.")
    for id_, reason in refused.items() if not as_json else ():
        warn(f"{id_}: {reason}")
    return Exit.FAILED if refused else Exit.DONE


@asking(sessions_app, "rollback")
async def roll_back(
    client: "AgentClient",
    session_id: SessionId,
    version: Annotated[str | None, typer.Option(help="Label, such as v2.0. [default: the first version]")] = None,
    delete: Annotated[bool, typer.Option("--delete-created", help="Delete the flow that the session made.")] = False,
    undeploy: Annotated[
        bool, typer.Option("--undeploy-created", help="Undeploy the flow that the session made.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Write a version of a session back to its flow, or take back the flow that it made if nobody has changed it."""
    if delete + undeploy + (version is not None) > 1:
        raise typer.BadParameter("Give one of --version, --delete-created and --undeploy-created.")
    created: TakenBack | None = "delete" if delete else "undeploy" if undeploy else None
    asked = f"Write version {version or 'v1.0'} back to the flow of session {session_id}?"
    confirm(f"{'Delete' if delete else 'Undeploy'} the flow that session {session_id} made?" if created else asked, yes)
    done = await client.rollback(session_id, version=version, created=created)
    state = {"delete": "deleted", "undeploy": "not deployed"}.get(
        done.created or "", f"as it was in version {done.label}"
    )
    show(done, as_json, f"Flow {done.chatflow_id} is {state}.")


@asking(sessions_app, "delete")
async def delete_session(
    client: "AgentClient", session_id: SessionId, yes: Yes = False, as_json: AsJson = False
) -> None:
    """Remove a session. Its flow in Flowise stays."""
    confirm(f"Remove session {session_id} for good?", yes)
    await client.delete(session_id)
    show({"session_id": str(session_id), "removed": True}, as_json, "Removed.")
