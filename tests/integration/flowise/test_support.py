"""Permissions of an API key, asked of a real Flowise without a change."""

import httpx2
import pytest
from pydantic import SecretStr

from flowise_dev_agent.cli.doctor import examine
from flowise_dev_agent.devkit.flowise import FlowiseAccess
from flowise_dev_agent.devkit.flowise.account import PERMISSIONS, create_key
from flowise_dev_agent.errors import FlowiseAuthError
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.flowise.support import RIGHTS, is_tested, missing_rights
from flowise_dev_agent.settings import FlowiseSettings, Settings


def key_with(access: FlowiseAccess, *permissions: str) -> SecretStr:
    with httpx2.Client(base_url=f"{access.endpoint}/api/v1", trust_env=False) as http:
        return SecretStr(create_key(http, access.email, access.password.get_secret_value(), permissions))


async def everything(client: FlowiseClient) -> list[object]:
    flows = [row.id async for row in client.iter_chatflows()]
    return [flows, await client.list_credentials(), await client.list_document_stores(), await client.list_tools()]


async def test_each_permission_that_a_key_lacks_is_named_and_nothing_changes(
    flowise: FlowiseAccess, flowise_client: FlowiseClient
) -> None:
    before = await everything(flowise_client)
    assert await missing_rights(flowise_client) == []
    for lacks, has in (("documentStores", PERMISSIONS), ("", ("chatflows:view",)), ("", ("tools:view",))):
        given = [one for one in has if not (lacks and one.startswith(lacks))]
        async with FlowiseClient(flowise.endpoint, key_with(flowise, *given)) as client:
            found = {right.name for right in await missing_rights(client)}
        assert found == {right.name for right in RIGHTS} - {*given}
    async with FlowiseClient(flowise.endpoint, SecretStr("no-key")) as client:
        with pytest.raises(FlowiseAuthError):
            await missing_rights(client)
    assert await everything(flowise_client) == before


@pytest.mark.parametrize(
    ("permissions", "says"),
    [
        (("chatflows:view",), "lacks what every session needs: chatflows:update, chatflows:delete, credentials:view"),
        ([one for one in PERMISSIONS if one != "variables:view"], "without variables:view: no flows with variables"),
    ],
)
async def test_doctor_names_what_the_key_may_not_do(
    flowise: FlowiseAccess, permissions: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = {"FLOWISE_API_ENDPOINT": flowise.endpoint, "FLOWISE_API_KEY": key_with(flowise, *permissions)}
    await examine(Settings(flowise=FlowiseSettings.model_validate(server)))
    line = next(line for line in capsys.readouterr().out.splitlines() if "Flowise" in line)
    assert says in " ".join(line.split())
    assert line.startswith("✗" if "lacks" in says else "✓")


def test_versions_of_other_lines_are_not_tested() -> None:
    assert [is_tested(one) for one in ("3.0.13", "3.1.4", "3.2.0", "2.2.7", "")] == [True, True, False, False, False]
