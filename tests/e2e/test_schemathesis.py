"""Schemathesis, with all of its checks, on the running service: what OpenAPI says is what the routes do."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import KEY, LOCKED, MakeService, http_of, make_flow, nodes_of, ok

SEED: Final = 18
#: A request that fits its schema is refused with 422 where the schema cannot know what is wrong.
REFUSALS: Final = {
    "cursors are opaque": [
        *("list_sessions", "list_deliveries", "find_flows", "get_flow_conversation", "list_nodes", "get_fleet")
    ],
    "names of an instance or model, fields of a credential, a webhook secret that a stream has no place for": [
        *("start_session", "start_session_stream", "post_credential", "promote_flow", "add_memory")
    ],
    "a text that is to be a flow, or ops that are to make one": [
        *("validate_flow", "start_flow_text_test", "import_flow", "apply_to_flow"),
        *("read_flows_of_a_file", "preview_flow"),
    ],
    "a text that is to be a file of tests": ["put_test_set"],
    "an address that webhooks may not be sent to": ["put_guard"],
    "a flow that has no history here": ["create_share"],
    "one of two parameters, which OpenAPI cannot say": ["erase_audit_words", "rollback_session"],
    "an answer that the open question does not take": ["resume_session", "resume_session_stream"],
    "params and credentials that the node type has on the server": ["list_options"],
    "what a file of any bytes holds": ["add_attachment"],
    "the time now: a key that ends in the past": ["create_key"],
    "expectations that only a judge can check, and a chat without a turn": ["start_flow_test"],
}


def config(flow: str, session: str) -> str:
    """A flow and a session that exist take part, and the instance's name."""
    # 412: `If-Match` names another state.
    usual = ["2xx", "3xx", "401", "403", "404", "409", "412", "429"]
    accepted = json.dumps([*usual, "400", "422"])
    operations = [
        f"""
[[operations]]  # {why}
include-operation-id = {json.dumps(names)}
checks.positive_data_acceptance.expected-statuses = {accepted}
"""
        for why, names in REFUSALS.items()
    ]
    return "\n".join(
        [
            # A body over the limit may be any.
            'checks.negative_data_rejection.expected-statuses = ["4xx"]',
            f"checks.positive_data_acceptance.expected-statuses = {json.dumps(usual)}",
            "[dictionaries.flows]",
            f'values = ["{flow}"]',
            "[dictionaries.sessions]",
            f'values = ["{session}"]',
            "[parameters]",
            '"query.instance" = "default"',
            # Nobody works on the sessions that come of it.
            '"query.wait" = 0',
            '"path.instance_id" = "default"',
            '"path.chatflow_id" = { dictionary = "flows", probability = 0.5 }',
            '"path.session_id" = { dictionary = "sessions", probability = 0.5 }',
            *operations,
            # The stream of a session that waits for a person ends when he answers.
            "[[operations]]",
            'include-operation-id = "stream_session"',
            f'parameters = {{ "path.session_id" = "{session}" }}',
        ]
    )


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    ("phases", "examples", "left_out"),
    [
        # One request of each operation. Each wrong key is answered after two seconds, and another test of all routes
        # has them asked without a key.
        pytest.param("fuzzing", 1, ["--exclude-checks=ignored_auth"], id="some"),
        # Walks from operation to operation along the links, and thousands of requests: minutes.
        pytest.param("examples,coverage,fuzzing,stateful", 4, list[str](), id="many", marks=pytest.mark.nightly),
    ],
)
async def test_schemathesis_finds_nothing(
    make_service: MakeService,
    flowise_client: FlowiseClient,
    tmp_path: Path,
    phases: str,
    examples: int,
    left_out: list[str],
) -> None:
    row = await make_flow(flowise_client)
    service = make_service(**LOCKED, RATE_LIMIT_SESSIONS_PER_MIN="0", RATE_LIMIT_CHAT_PER_MIN="0", AGENT_WAIT_SECS="0")
    await service.start()
    model = next(name for name in nodes_of(row) if name.startswith("chatOpenAI"))
    op: dict[str, Any] = {"op_type": "SetParam", "node_id": model, "param_name": "temperature", "value": "0.1"}
    async with http_of(service, KEY) as http:
        applied = await ok(await http.post(f"/flows/{row.id}/apply?wait=60", json={"ops": [op]}))
        # Schemathesis itself would wait 10 s for it, and a busy machine takes longer.
        (tmp_path / "openapi.json").write_bytes((await http.get("/openapi.json")).content)
    (tmp_path / "schemathesis.toml").write_text(config(row.id, applied["session_id"]))
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("st"),
        f"--config-file={tmp_path / 'schemathesis.toml'}",
        "run",
        "openapi.json",
        f"--url={service.url}",
        "--checks=all",
        *left_out,
        f"--phases={phases}",
        f"--max-examples={examples}",
        f"--seed={SEED}",
        f"--header=Authorization: Bearer {KEY}",
        "--request-timeout=60",
        "--continue-on-failure",
        "--no-shrink",
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
