"""`keys`, `notes` and `audit`, by a service."""

import csv
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.unit.cli.conftest import Run
from tests.writing_world import BOT, Servers


@pytest.fixture(autouse=True)
def _service(servers: Servers) -> None:
    """A service answers at the port that commands look at."""


def said(run: Run, *arguments: str, code: int = 0) -> tuple[str, str]:
    ended, out, err = run(*arguments)
    assert ended == code, out + err
    assert "Traceback" not in out + err
    return out, err


def rows(run: Run, *filters: str) -> list[dict[str, Any]]:
    return json.loads(said(run, "audit", "list", "--json", *filters)[0])["rows"]


def test_a_key_is_printed_once_listed_rotated_and_revoked_by_its_name(run: Run) -> None:
    out, err = said(run, "keys", "create", "Ada", "-s", "build", "-s", "approve", "--days", "30")
    key = out.strip()
    assert key.startswith("fda_")
    assert "The key 'Ada' of default (approve, build). It is shown only now." in err
    table = said(run, "keys", "list")[0]
    assert "approve, build" in table
    assert key not in table
    rotated = json.loads(said(run, "keys", "rotate", "Ada", "--json")[0])
    assert (rotated["name"], rotated["key"] == key) == ("Ada", False)
    assert "The key 'Ada' is revoked." in said(run, "keys", "revoke", rotated["id"])[0]
    assert "Ada" not in said(run, "keys", "list")[0]
    assert "revoked" in said(run, "keys", "list", "--all")[0]
    assert [row["action"] for row in rows(run)] == ["key.revoke", "key.rotate", "key.create"]
    assert {(row["actor"], row["door"]) for row in rows(run)} == {("local", "cli")}


def test_what_ends_or_erases_says_so_as_json(run: Run) -> None:
    made = json.loads(said(run, "keys", "create", "ci", "-s", "read", "--json")[0])
    gone = json.loads(said(run, "keys", "revoke", "ci", "--json")[0])
    assert gone == {"id": made["id"], "name": "ci", "revoked": True}
    assert json.loads(said(run, "audit", "erase", "--person", "nobody", "--json")[0]) == {"erased": 0}


def test_wrong_scopes_and_unknown_keys_are_sentences(run: Run) -> None:
    assert "There is no scope 'root'" in said(run, "keys", "create", "x", "-s", "root", code=2)[1]
    assert "No key in use has the name or id 'nobody'" in said(run, "keys", "revoke", "nobody", code=1)[1]
    said(run, "keys", "create", "twice", "-s", "read")
    assert "There is a key 'twice' already" in said(run, "keys", "create", "twice", "-s", "read", code=1)[1]
    assert rows(run, "--person", "nobody") == []


def test_what_was_written_is_listed_exported_and_verified(run: Run, database_dsn: str) -> None:
    ops = [{"op_type": "SetParam", "node_id": "chatOpenAI_0", "param_name": "temperature", "value": 0.2}]
    Path("ops.json").write_text(json.dumps(ops))
    said(run, "apply", "ops.json", BOT, "--yes")
    (write,) = rows(run, "--flow", BOT)
    assert (write["actor"], write["door"], write["action"]) == ("local", "cli", "write.update")
    assert write["version"] == "v2.0"
    assert "write.update" in said(run, "audit", "list", "--session", write["session_id"])[0]

    said(run, "audit", "export", "-o", "audit.jsonl")
    exported = [json.loads(line) for line in Path("audit.jsonl").read_text().splitlines()]
    assert [row["hash"] for row in exported] == [row["hash"] for row in rows(run)][::-1]
    table = said(run, "audit", "export", "--csv")[0]
    assert [row["action"] for row in csv.DictReader(table.splitlines())] == ["apply", "write.update"]
    assert "cannot be written" in said(run, "audit", "export", "-o", "nowhere/audit.jsonl", code=1)[1]

    assert "2 rows of 1 chains: nothing is missing or changed." in said(run, "audit", "verify")[0]
    assert "The words of 1 rows are erased." in said(run, "audit", "erase", "--session", write["session_id"])[0]
    assert said(run, "audit", "verify", "--session", write["session_id"])
    assert "Name a session or a person" in said(run, "audit", "erase", code=1)[1]
    with psycopg.connect(database_dsn) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE audit_log SET actor = 'somebody else' WHERE action = 'write.update'")
    out, err = said(run, "audit", "verify", code=3)
    assert f"{write['session_id']}: row 2: changed" in err
    assert ": 1 finding" in out


def test_a_key_of_the_environment_says_who_and_what_it_may(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    key = said(run, "keys", "create", "reader", "-s", "read")[0].strip()
    monkeypatch.setenv("AGENT_API_KEY", key)
    assert "needs the scope 'admin'" in said(run, "keys", "list", code=1)[1]
    assert "needs the scope 'admin'" in said(run, "audit", "erase", "--session", str(uuid4()), code=1)[1]
    assert "key.create" in said(run, "audit", "list")[0]


def test_notes_are_added_replaced_found_and_deleted(run: Run) -> None:
    made = json.loads(said(run, "notes", "add", "Support answers in German", "--json")[0])
    assert "Remembered as note" in said(run, "notes", "add", "Invoices are in the archive")[0]
    number = str(made["memory_id"])
    assert f"Remembered as note {number}." in said(run, "notes", "add", "In French", "--replace", number)[0]
    listed = said(run, "notes", "list")[0].splitlines()
    assert [line.split("  ")[-1] for line in listed] == ["Invoices are in the archive", "In French"]
    found = json.loads(said(run, "notes", "list", "invoices", "--json")[0])["notes"]
    assert [note["text"] for note in found] == ["Invoices are in the archive"]
    assert f"Note {number} is forgotten." in said(run, "notes", "delete", number)[0]
    err = said(run, "notes", "delete", number, code=1)[1]
    assert "There is no note" in err
    assert "`flowise-dev-agent notes list` lists them" in err
    assert (
        "holds a secret"
        in said(run, "notes", "add", "Our key is sk-proj-Abcdefghijklmnopqrstuvwxyz0123456789", code=1)[1]
    )
    assert said(run, "notes", "list", "nothing")[0].strip() == "There are no such notes."
