"""`sessions` prints what a person goes on with."""

from uuid import UUID

import pytest

from flowise_dev_agent.cli.sessions import show_sessions
from flowise_dev_agent.contracts.session import SessionPage
from tests.unit.api.service_double import listed, view

IDS = [UUID(int=n) for n in (1, 2)]


class ClientDouble:
    async def list(self, **_: object) -> SessionPage:
        name = "[bold]A very long name of a session[/bold] " * 4
        rows = [listed(view(id_, "pending_interrupt", session_name=name)) for id_ in IDS]
        return SessionPage(sessions=rows, next_cursor="c")

    async def get(self, session_id: UUID) -> object:
        return view(session_id, "pending_interrupt")


async def test_the_list_keeps_ids_whole_and_takes_no_markup_from_names(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    await show_sessions(ClientDouble(), None, status=None, limit=2)  # type: ignore[arg-type]
    out = capsys.readouterr().out
    assert all(str(id_) in out for id_ in IDS)
    assert "plan_approval" in out
    assert "[bold]" in out
    assert "older sessions" in out


async def test_one_session_is_json_with_its_question(capsys: pytest.CaptureFixture[str]) -> None:
    await show_sessions(ClientDouble(), IDS[0], status=None, limit=1)  # type: ignore[arg-type]
    out = capsys.readouterr().out
    assert '"plan_approval"' in out
    assert "response_schema" not in out
