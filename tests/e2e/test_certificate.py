"""The certificate of an accepted version, from a real Flowise to a check without the service."""

import base64
import json
from pathlib import Path

import psycopg
import pytest

from flowise_dev_agent.cli.sessions import verify_certificate
from flowise_dev_agent.devkit.standin import ModelStandIn
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.patch import payload_sha256
from tests.e2e.people import SharedService, answer, http_of, make_flow, ok, run_command, start
from tests.e2e.scripted import COLDER, change, model_environment, script

SECRETS = base64.b64encode(bytes([5] * 32)).decode()


async def test_an_accepted_version_has_a_certificate_that_is_checked_without_the_service(
    shared_service: SharedService,
    standin: ModelStandIn,
    flowise_client: FlowiseClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script(standin, change("chatOpenAI_0", "temperature", 0.2), when=COLDER)
    service = await shared_service(SECRETS_KEY=SECRETS, **model_environment(standin))
    row = await make_flow(flowise_client)
    async with http_of(service) as http:
        view = await start(http, COLDER, target=row.id)
        path = f"/sessions/{view['thread_id']}/certificate"
        early = await http.get(path)
        assert (early.status_code, early.json()["code"]) == (409, "no_certificate")
        tested = await answer(http, view, action="approve")
        await answer(http, tested, action="accept")
        rows = (await ok(await http.get("/audit", params={"session": view["thread_id"]})))["rows"]
        signed = await ok(await http.get(path))
        await run_command(service, tmp_path, "export", row.id, "-o", "flow.json")
        live = (await flowise_client.get_chatflow(row.id)).flow_data

        certificate = signed["certificate"]
        assert certificate["sha256"] == payload_sha256(live)
        assert {link["action"] for link in certificate["audit"]} == {"result_review.accept", "write.update"}
        assert {(one["seq"], one["hash"]) for one in certificate["audit"]} <= {
            (one["seq"], one["hash"]) for one in rows
        }
        assert {one["level"] for one in certificate["tests"]} == {"verified"}
        assert certificate["flowise_version"]
        assert [one.partition(": ")[0] for one in certificate["models"]] == ["chatOpenAI"]

        await run_command(service, tmp_path, "certificate", view["thread_id"], "-o", "bot.certificate.json")
        await run_command(service, tmp_path, "certificate", "--keys", "-o", "keys.json")
        assert json.loads((tmp_path / "bot.certificate.json").read_text()) == signed
        public = json.loads((tmp_path / "keys.json").read_text())["keys"][0]["public_key"]
        exported, changed = tmp_path / "flow.json", tmp_path / "changed.json"
        changed.write_text(exported.read_text().replace("0.2", "0.3"))
        for flow, key, code in (
            (exported, str(tmp_path / "keys.json"), "certificate_valid"),
            (exported, public, "certificate_valid"),
            (exported, None, "certificate_key_unchecked"),
            (changed, public, "certificate_flow_changed"),
        ):
            valid = await verify_certificate(tmp_path / "bot.certificate.json", flow=flow, key=key, as_json=True)
            assert (json.loads(capsys.readouterr().out)["code"], valid) == (code, code == "certificate_valid")

        # Its tests are those of another iteration.
        with psycopg.connect(service.dsn) as connection:
            connection.execute(
                "UPDATE runs SET answer = answer || '{\"iteration\": 7}' WHERE answer ->> 'action' = 'accept'"
            )
        earlier = await http.get(path)
        assert (earlier.status_code, earlier.json()["code"]) == (409, "no_certificate")
