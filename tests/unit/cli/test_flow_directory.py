"""Flows as code: what a directory may hold, and how a flow is drawn."""

import json
from pathlib import Path

import pytest

from flowise_dev_agent.cli.sync import markdown, mermaid, read_files, read_lock, write_lock
from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.schemas.flow_files import LOCK_FILE, AppliedFlow, AppliedFlows, SyncItem, SyncReport
from tests.unit.patch.test_cases import case

OPS = "ops: [{op_type: AddNode, node_name: chatOpenAI, node_id: chatOpenAI_0}]"


def test_files_are_read_in_order_and_tests_are_numbered(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("name: B\nrequirement: A bot\ntests: [{turns: [Hello]}]\n")
    (tmp_path / "a.yml").write_text(f"name: A\n{OPS}\n")
    (tmp_path / "notes.txt").write_text("not a flow")
    files = read_files(tmp_path)
    assert list(files) == ["a.yml", "b.yaml"]
    assert [test.id for test in files["b.yaml"].tests] == ["t1"]


def test_only_what_makes_the_flow_counts_as_a_change(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    hashes: list[str] = []
    for text in (f"name: A\n{OPS}\n", f"name: B\n{OPS}\ntests: [{{turns: [Hi]}}]\n", f"name: A\n{OPS[:-3]}1}}]\n"):
        path.write_text(text)
        hashes.append(read_files(tmp_path)["a.yaml"].sha256)
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: A\n", "one of `requirement`, `ops` and `flow_data`"),
        (f"name: A\nrequirement: x\n{OPS}\n", "one of `requirement`, `ops` and `flow_data`"),
        ("name: A\nrequirement: x\nunknown: 1\n", "unknown"),
        ("- a\n", "a.yaml"),
        ("", "a.yaml"),
        ("name: [", "cannot be read as YAML"),
        ("a: &x [1]\nb: *x\n", "aliases"),
        ("!!python/object/apply:os.system [ls]", "cannot be read as YAML"),
        ("name: " + "[" * 5_000, "a.yaml"),
    ],
    ids=["no content", "two contents", "unknown key", "a list", "empty", "broken", "aliases", "code", "deep"],
)
def test_a_file_that_cannot_be_used_is_a_sentence_with_its_name(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(InvalidInputError) as caught:
        read_files(tmp_path)
    assert said in caught.value.message
    assert "a.yaml" in caught.value.message


def test_a_lock_file_is_kept_and_one_of_something_else_is_refused(tmp_path: Path) -> None:
    assert read_lock(tmp_path) == AppliedFlows()
    lock = AppliedFlows(
        instances={"dev": {"a.yaml": AppliedFlow(chatflow_id="c", content_sha256="1", flow_sha256="2")}}
    )
    write_lock(tmp_path, lock)
    assert read_lock(tmp_path) == lock
    (tmp_path / "flows.lock.json").write_text("[]")
    with pytest.raises(InvalidInputError, match="lock file"):
        read_lock(tmp_path)


def test_a_picture_and_a_report_read_nothing_of_the_flow_as_markup() -> None:
    nodes = [
        {"id": "a", "data": {"name": "x", "label": '"] --> evil["<img src=x>`'}},
        {"id": "b", "data": {"name": "llm", "label": "Model"}},
    ]
    flow = json.dumps({"nodes": nodes, "edges": [{"source": "b", "target": "a"}]})
    picture = mermaid(flow)
    assert '    n1["Model"]' in picture
    assert picture.endswith("    n1 --> n0")
    assert not set('<>`"') & set(picture.splitlines()[1].removeprefix('    n0["').removesuffix('"]'))
    item = SyncItem(file="a.yaml", name="x | <b>", state="new", action="create", note="@team [x](http://x)\n# y")
    text = markdown(SyncReport(instance="dev", items=[item]), {"a.yaml": picture})
    assert "<b>" not in text
    assert "@team" not in text
    assert "\n# y" not in text
    assert text.count("|") == 6 * 2 + 1 + 8


def test_flows_are_read_as_flowise_exports_them(tmp_path: Path) -> None:
    canvas = case("I4-sequential-flow-read-as-chatflow")["flow_data"]
    (tmp_path / "canvas.json").write_text(json.dumps(canvas))
    empty = json.dumps({"nodes": [], "edges": []})
    rows = [{"id": "1", "name": "Sales", "flowData": empty, "category": "a"}, {"name": "Help", "flowData": empty}]
    (tmp_path / "ExportData.json").write_text(json.dumps({"ChatFlow": rows, "AgentFlowV2": []}))
    (tmp_path / LOCK_FILE).write_text("{}")
    (tmp_path / "words.yaml").write_text("name: W\nrequirement: A bot")

    files = read_files(tmp_path)

    assert [*files] == ["ExportData.json:Sales", "ExportData.json:Help", "canvas.json", "words.yaml"]
    assert (files["canvas.json"].name, files["canvas.json"].type) == ("canvas", "MULTIAGENT")
    assert files["canvas.json"].flow_data == canvas
    assert files["ExportData.json:Sales"].settings.category == "a"
    (tmp_path / "broken.json").write_text('{"nodes": 1}')
    with pytest.raises(InvalidInputError, match=r"broken\.json"):
        read_files(tmp_path)
