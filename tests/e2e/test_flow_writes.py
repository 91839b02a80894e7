"""Flows that are imported and changed without a plan, on a real Flowise: written, kept and rolled back."""

import json
from pathlib import Path

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.people import MakeService, http_of, make_flow, nodes_of, ok, run_command

COLDER = {"op_type": "SetParam", "node_id": "chatOpenAI_0", "param_name": "temperature", "value": 0.2}


async def test_p100_what_is_imported_and_applied_can_be_rolled_back(
    make_service: MakeService, flowise_client: FlowiseClient, tmp_path: Path
) -> None:
    row = await make_flow(flowise_client)
    service = make_service()
    await service.start()
    async with http_of(service) as http:
        export = await ok(await http.get(f"/flows/{row.id}/export"))
        assert export["flow_data"] == row.flow_data

        checked = await ok(await http.post(f"/flows/{row.id}/apply", json={"ops": [COLDER], "dry_run": True}))
        assert (checked["valid"], checked["session_id"]) == (True, None)
        assert checked["difference"]["summary"] == "1 field changed"
        assert await flowise_client.get_chatflow(row.id) == row

        body = {"ops": [COLDER], "base_sha256": export["sha256"]}
        applied = await ok(await http.post(f"/flows/{row.id}/apply?wait=60", json=body))
        changed = await flowise_client.get_chatflow(row.id)
        assert str(nodes_of(changed)["chatOpenAI_0"]["data"]["inputs"]["temperature"]) == "0.2"
        assert (changed.name, changed.category, changed.deployed) == (row.name, row.category, row.deployed)
        session = f"/sessions/{applied['session_id']}"
        versions = (await ok(await http.get(f"{session}/versions")))["versions"]
        assert [item["reason"] for item in versions] == ["before_apply", "apply"]
        assert "temperature" in (await ok(await http.get(f"{session}/diff")))["text"]
        stale = await http.post(f"/flows/{row.id}/apply", json=body)
        assert (stale.status_code, stale.json()["code"]) == (409, "stale_base")
        await ok(await http.post(f"{session}/rollback"))
        assert (await flowise_client.get_chatflow(row.id)).flow_data == row.flow_data

        imported = await ok(
            await http.post("/flows/import?wait=60", json={"flow_data": row.flow_data, "name": f"{row.name} again"})
        )
        there = await flowise_client.get_chatflow(imported["chatflow_id"])
        assert (there.flow_data, there.deployed, there.category or "") == (row.flow_data, False, "")
        assert (await flowise_client.predict(there.id, "Hello heron", session_id="p")).answer
        await flowise_client.update_chatflow(there.id, flow_data=row.flow_data.replace('"mine"', '"theirs"'))
        await ok(await http.post(f"/sessions/{imported['session_id']}/rollback"))
        assert (await flowise_client.get_chatflow(there.id)).flow_data == row.flow_data
        history = (await ok(await http.get(f"/flows/{there.id}/history")))["versions"]
        assert [item["reason"] for item in history] == ["rollback", "before_rollback", "create"]

        (tmp_path / "ops.json").write_text(json.dumps({"ops": [COLDER]}))
        said = await run_command(service, tmp_path, "apply", "ops.json", there.id, "--yes")
        assert "temperature" in said
        assert f"Changed '{there.name}'" in said
        await run_command(service, tmp_path, "export", there.id, "-o", "flow.json")
        await run_command(service, tmp_path, "import", "flow.json", "--onto", row.id, "--yes")
        assert json.loads((await flowise_client.get_chatflow(row.id)).flow_data) == json.loads(
            (await flowise_client.get_chatflow(there.id)).flow_data
        )
    await flowise_client.delete_chatflow(there.id)
