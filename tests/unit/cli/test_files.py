"""`export`, `import`, `diff`, `apply`, `promote` without a service: what they refuse, in words."""

import json
from pathlib import Path

import pytest

from flowise_dev_agent.cli.files import flow_file
from flowise_dev_agent.schemas.flow_exports import read_export
from flowise_dev_agent.schemas.flow_writes import FlowDocument, FlowSettings
from tests.unit.cli.conftest import Run

FLOW = "aaaaaaaa-0000-4000-8000-000000000001"
NOWHERE = ("--url", "http://127.0.0.1:1")
EMPTY = '{"nodes": [], "edges": []}'
OPS = '[{"op_type": "SetLabel", "node_id": "a", "label": "b"}]'


def refused(run: Run, *arguments: str) -> str:
    """What a command says that ends with exit code 1."""
    code, out, err = run(*arguments, *NOWHERE)
    assert code == 1, out + err
    assert "Traceback" not in out + err
    return err


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", FLOW),
        ("export", FLOW, "--ops"),
        ("import", "flow.json"),
        ("import", "flow.json", "--onto", FLOW, "--yes"),
        ("diff", "flow.json", FLOW),
        ("apply", "ops.json", FLOW, "--yes"),
        ("apply", "ops.json", FLOW, "--dry-run"),
        ("promote", FLOW, "--to", "prod"),
    ],
)
def test_p100_without_a_service_it_refuses_and_says_what_to_do(run: Run, arguments: tuple[str, ...]) -> None:
    Path("flow.json").write_text(EMPTY)
    Path("ops.json").write_text(OPS)
    said = refused(run, *arguments)
    assert "No service answers at http://127.0.0.1:1" in said
    assert "flowise-dev-agent serve" in said


def test_files_are_compared_without_a_service(run: Run) -> None:
    Path("a.json").write_text(EMPTY)
    Path("b.json").write_text(json.dumps({"name": "B", "flowData": json.loads(EMPTY)}))
    code, out, _ = run("diff", "a.json", "b.json", *NOWHERE)
    assert (code, out.strip()) == (0, "no difference")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"1" * 5_000, "not valid JSON"),
        (b"\xff\xfe", "cannot be read"),
        (b"[]", "does not hold a flow"),
        (b'{"nodes": 1}', "does not hold a flow"),
        (b'{"flowData": "nonsense"}', "does not hold a flow"),
        (b'{"flowData": null}', "does not hold a flow"),
        (b'{"nodes": [], "edges": [], "type": "CHATBOT"}', "type: "),
        (b'{"nodes": [], "edges": [], "name": "a\\u0000b"}', "name: "),
        (b'{"nodes": [], "edges": [], "note": "\\ud800"}', "flow_data: "),
    ],
)
def test_a_file_that_does_not_hold_a_flow_is_refused(run: Run, text: bytes, said: str) -> None:
    Path("flow.json").write_bytes(text)
    assert said in refused(run, "import", "flow.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{}", "does not hold ops"),
        (b"3", "does not hold ops"),
        (b'{"ops": {}}', "does not hold ops"),
        (b"[]", "The list of ops is empty"),
        (b"[1]", "has no `op_type`"),
        (b'[{"op_type": "Rename"}]', "There is no op 'Rename'"),
        (b'[{"op_type": "SetLabel", "node_id": "a"}]', "The field `label` is missing"),
        (b'[{"op_type": "SetLabel", "node_id": "a", "label": "\\ud800"}]', "label"),
        (b'[{"op_type": "SetParam", "node_id": "a", "param_name": "b", "value": NaN}]', "finite number"),
    ],
)
def test_a_file_that_does_not_hold_ops_is_refused(run: Run, text: bytes, said: str) -> None:
    Path("ops.json").write_bytes(text)
    assert said in refused(run, "apply", "ops.json", FLOW, "--yes")


@pytest.mark.parametrize("id_", ["", " ", "x" * 5_000])
def test_p68_what_is_no_name_is_refused_before_anything_is_asked(run: Run, id_: str) -> None:
    Path("flow.json").write_text(EMPTY)
    Path("ops.json").write_text(OPS)
    for arguments in (
        ("export", id_),
        ("import", "flow.json", "--onto", id_, "--yes"),
        ("diff", "flow.json", id_),
        ("apply", "ops.json", id_, "--yes"),
        ("promote", id_, "--to", "prod"),
        ("promote", FLOW, "--to", "prod", "--onto", id_, "--yes"),
    ):
        assert "neither a file nor a flow" in refused(run, *arguments)


def test_a_flow_survives_a_file_whoever_wrote_it() -> None:
    flow_data = '{"nodes":[],"edges":[],"viewport":{"x":1}}'
    settings = FlowSettings(category="a;b", chatbot_config='{"starterPrompts": {}}')
    document = FlowDocument(
        id="1", name="Bot", type="AGENTFLOW", flow_data=flow_data, sha256="a", updated="u", settings=settings
    )
    (flow,) = read_export(flow_file(document)).flows
    assert (flow.name, flow.type, flow.flow_data, flow.settings) == ("Bot", "AGENTFLOW", flow_data, settings)
    (flow,) = read_export('{"nodes": [], "edges": []}').flows
    assert (flow.name, flow.type, flow.flow_data) == (None, "CHATFLOW", '{"nodes":[],"edges":[]}')


def test_files_that_cannot_be_read_are_named(run: Run) -> None:
    assert "missing.json cannot be read" in refused(run, "import", "missing.json")
    assert "cannot be read" in refused(run, "apply", ".", FLOW, "--yes")


def test_a_name_for_a_flow_that_is_replaced_is_refused(run: Run) -> None:
    Path("flow.json").write_text(EMPTY)
    assert "--name is for a new flow" in refused(run, "import", "flow.json", "--name", "B", "--onto", FLOW, "--yes")
    assert "`name` is for a new flow" in refused(
        run, "promote", FLOW, "--to", "p", "--name", "B", "--onto", FLOW, "--yes"
    )
