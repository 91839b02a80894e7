"""`audit`: who answered what, and what was written."""

import sys
from pathlib import Path
from typing import Any
from uuid import UUID

from rich.table import Column, Table
from rich.text import Text

from flowise_dev_agent.cli.console import err, out, print_json, say
from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.sanitize import shortened

_WORDS = 60


async def list_rows(client: AgentClient, which: dict[str, Any], *, limit: int, as_json: bool) -> None:
    """The newest rows."""
    page = await client.audit(limit=limit, **which)
    if as_json:
        print_json(page, indent=2)
        return
    table = Table(Column("When", no_wrap=True), "Who", "Door", "What", "Flow", "Words", box=None, pad_edge=False)
    for row in page.rows:
        words = "(erased)" if row.words is None and row.words_sha256 else " ".join((row.words or "").split())
        flow = f"{row.chatflow_id or ''} {row.version or ''}".strip()
        table.add_row(
            f"{row.ts:%Y-%m-%d %H:%M:%S}",
            Text(row.actor),
            row.door,
            row.action,
            Text(flow),
            Text(shortened(words, _WORDS)),
        )
    out.print(table)
    if page.next_cursor:
        say("There are older rows: raise --limit, or use `audit export`.")


async def export_rows(client: AgentClient, which: dict[str, Any], *, file: Path | None, format_: str) -> None:
    """All rows, to a file or to standard output."""
    try:
        target = file.open("w", encoding="utf-8", newline="") if file else sys.stdout
        try:
            async for text in client.audit_export(format_, **which):
                target.write(text)
        finally:
            if file:
                target.close()
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be written: {error.strerror}.") from None


async def verify(client: AgentClient, session_id: UUID | None, *, as_json: bool) -> bool:
    """Check the ledger; True when nothing is missing or changed."""
    report = await client.audit_verify(session_id)
    if as_json:
        print_json(report, indent=2)
        return not report.findings
    for finding in report.findings:
        where = f"row {finding.seq}" if finding.seq is not None else "all rows"
        err.print(f"{finding.chain}: {where}: {finding.problem.replace('_', ' ')}", style="bold red", markup=False)
    state = f"{len(report.findings)} findings" if report.findings else "nothing is missing or changed"
    say(f"{report.rows} rows of {report.chains} chains: {state}.")
    return not report.findings


async def erase(client: AgentClient, *, session_id: UUID | None, person: str | None, as_json: bool) -> None:
    """Erase words."""
    gone = await client.erase_audit_words(session_id=session_id, person=person)
    if as_json:
        print_json(gone)
    else:
        say(f"The words of {gone.erased} rows are erased.")
