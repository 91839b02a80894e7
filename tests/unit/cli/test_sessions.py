"""`sessions` prints what a person goes on with."""

import json
from uuid import UUID

import pytest

from flowise_dev_agent.cli.session_commands import list_sessions, retry_failed
from flowise_dev_agent.cli.sessions import settle
from flowise_dev_agent.cli.startup import Exit
from flowise_dev_agent.errors import SessionConflictError
from flowise_dev_agent.schemas.base import Failure
from flowise_dev_agent.schemas.session import SessionPage
from tests.unit.api.service_double import listed, view

IDS = [UUID(int=n) for n in (1, 2)]


class ClientDouble:
    base_url = "http://service"

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
    await list_sessions(ClientDouble(), limit=2, as_json=False)  # type: ignore[arg-type]
    out = capsys.readouterr().out
    assert all(str(id_) in out for id_ in IDS)
    assert "plan_approval" in out
    assert "[bold]" in out
    assert "older sessions" in out


async def test_one_session_is_shown_with_its_question_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    client = ClientDouble()
    shown = await client.get(IDS[0])
    assert await settle(client, shown, wait=0, as_json=False) is Exit.DONE  # type: ignore[arg-type]
    assert "possible answers: approve" in capsys.readouterr().out
    assert await settle(client, shown, wait=0, as_json=True) is Exit.DONE  # type: ignore[arg-type]
    assert json.loads(capsys.readouterr().out)["interrupt"]["type"] == "plan_approval"


async def test_a_list_is_json_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    await list_sessions(ClientDouble(), limit=2, as_json=True)  # type: ignore[arg-type]
    assert [one["thread_id"] for one in json.loads(capsys.readouterr().out)["sessions"]] == [str(one) for one in IDS]


async def test_a_failed_session_gives_the_exit_code_of_failures() -> None:
    failed = view(IDS[0], "error")
    assert await settle(ClientDouble(), failed, wait=0, as_json=True) is Exit.FAILED  # type: ignore[arg-type]


class FailedSessions:
    """Two pages of failed sessions, of which the last one cannot go on."""

    def __init__(self) -> None:
        self.retried: list[int] = []

    async def list(self, *, status: str, limit: int, cursor: str | None = None) -> SessionPage:
        assert (status, limit > 0) == ("error", True)
        numbers = (1, 2) if cursor is None else (3, 4)
        codes = {3: "internal_error"}
        rows = [
            listed(view(UUID(int=n), "error", error=Failure(code=codes.get(n, "flowise_unreachable"), detail="-")))
            for n in numbers
        ]
        return SessionPage(sessions=rows, next_cursor=None if cursor else "c")

    async def retry(self, session_id: UUID) -> None:
        if session_id.int == 4:
            raise SessionConflictError("It was deleted meanwhile.")
        self.retried.append(session_id.int)


@pytest.mark.parametrize(("code", "retried"), [("flowise_unreachable", [1, 2]), (None, [1, 2, 3])])
async def test_all_failed_sessions_go_on_or_those_with_one_error(
    capsys: pytest.CaptureFixture[str], code: str | None, retried: list[int]
) -> None:
    client = FailedSessions()
    assert await retry_failed(client, code, as_json=True) is Exit.FAILED  # type: ignore[arg-type]
    assert client.retried == retried
    said = json.loads(capsys.readouterr().out)
    assert said["retried"] == [str(UUID(int=n)) for n in retried]
    assert said["refused"] == {str(UUID(int=4)): "It was deleted meanwhile."}
