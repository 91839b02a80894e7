"""Servers that sessions work with: versions that tests run on, and the permissions that the API key needs."""

from typing import Final, NamedTuple

from flowise_dev_agent.errors import FlowiseAuthError, FlowiseError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.schemas.base import JsonObject

#: Minor versions of Flowise whose newest release the tests run on; the table in docs/operations.md says how far.
TESTED: Final = ("3.0", "3.1")


class Right(NamedTuple):
    """Permission of an API key, and a request that is refused without it and changes nothing with it."""

    name: str
    #: Part of the product that needs it; '' if every session does.
    purpose: str
    method: str
    path: str
    body: JsonObject | None = None


#: Id of no row.
_NONE: Final = "00000000-0000-4000-8000-000000000000"
RIGHTS: Final = (
    Right("chatflows:view", "", "GET", "/chatflows?page=1&limit=1"),
    Right("chatflows:update", "", "PUT", f"/chatflows/{_NONE}", {}),
    Right("chatflows:delete", "", "DELETE", f"/chatflows/{_NONE}"),
    Right("credentials:view", "", "GET", "/credentials"),
    Right("templates:marketplace", "templates", "GET", "/marketplaces/templates"),
    Right("tools:view", "flows with custom tools", "GET", "/tools"),
    Right("tools:create", "new tools", "POST", "/tools", {}),
    Right("tools:delete", "new tools", "DELETE", f"/tools/{_NONE}"),
    Right("variables:view", "flows with variables", "GET", "/variables"),
    Right("executions:view", "tests of AgentFlows", "GET", f"/executions/{_NONE}"),
    Right("credentials:update", "credentials made from here", "PUT", f"/credentials/{_NONE}", {}),
    Right("documentStores:view", "document stores", "GET", "/document-store/store"),
    Right("documentStores:update", "document stores", "PUT", f"/document-store/store/{_NONE}", {}),
    Right("documentStores:delete", "document stores", "DELETE", f"/document-store/store/{_NONE}"),
    Right("documentStores:add-loader", "document stores", "GET", "/document-store/components/loaders"),
    Right("documentStores:upsert-config", "document stores", "GET", "/document-store/components/embeddings"),
)


async def missing_rights(client: FlowiseClient) -> list[Right]:
    """Permissions that the key of `client` lacks, in the order of `RIGHTS`.

    Raises FlowiseError if the server cannot be asked, or takes no key like this.
    """
    return [right for right in RIGHTS if not await _has(client, right)]


async def _has(client: FlowiseClient, right: Right) -> bool:
    try:
        await client.request(right.method, right.path, right.body)
    except FlowiseAuthError as error:
        if error.details.get("status") != 403:
            raise
        return False
    except FlowiseError as error:
        # Refused for another reason, such as an id of no row: the key may ask.
        if "status" not in error.details:
            raise
    return True


def is_tested(version: str) -> bool:
    """True for a version of a line whose newest release the tests run on."""
    return ".".join(version.split(".")[:2]) in TESTED
