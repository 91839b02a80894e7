"""`flows guard` and `flows tests`, by a service."""

import json
from pathlib import Path

import psycopg

from flowise_dev_agent.cli.startup import Exit
from flowise_dev_agent.schemas.guards import FailingTest, GuardAlarm
from tests.integration.cli.test_files import made_by
from tests.unit.cli.conftest import Run
from tests.writing_world import BOT, Servers

ALARM = GuardAlarm.model_validate(
    {
        "since": "2026-01-02T03:04:00Z",
        "tests": [
            FailingTest(test="t1", question="Who are you?", failures=3, held=3, category="LOGIC", error="nothing came")
        ],
        "changed": ["nodes"],
        "last_passed_at": None,
        "repair": {},
    }
)


def test_a_flow_is_guarded_looked_at_and_let_go(run: Run, servers: Servers, database_dsn: str) -> None:
    assert "not guarded" in made_by(run, "flows", "guard", "status", "Bot", code=1)
    Path("tests.yaml").write_text("- turns: [Who are you]\n")
    assert "1" in made_by(run, "flows", "tests", "import", "Bot", "tests.yaml")
    assert "Who are you" in made_by(run, "flows", "tests", "export", "bot")
    said = made_by(run, "flows", "guard", "set", "Bot", "--every", "48", "--usd", "2")
    assert "next run" in said
    shown = json.loads(made_by(run, "flows", "guard", "status", BOT, "--json"))
    assert shown["settings"] | {"every_hours": 48, "usd_per_month": 2, "real": False} == shown["settings"]
    assert shown["chatflow_id"] == BOT
    with psycopg.connect(database_dsn) as connection:
        connection.execute("UPDATE guards SET alarm = %s", (ALARM.model_dump_json(),))
    said = made_by(run, "flows", "guard", "status", "bot", code=Exit.NO)
    for words in ("failing;", "fails (3 of 3): Who are you?", "nothing came", "changed since it passed: nodes"):
        assert words in said
    assert json.loads(made_by(run, "flows", "guard", "remove", "Bot", "--json")) == {
        "chatflow_id": BOT,
        "removed": True,
    }
    assert "not guarded" in made_by(run, "flows", "guard", "status", "Bot", code=1)
    assert "private" in made_by(run, "flows", "guard", "set", "Bot", "--webhook", "http://10.0.0.1/x", code=1)
