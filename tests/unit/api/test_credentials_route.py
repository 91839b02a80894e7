"""`POST /credentials`: the secret goes to Flowise and is in no answer, whatever goes wrong."""

from typing import Any

import pytest

from flowise_dev_agent.errors import FlowiseServerError
from flowise_dev_agent.flowise.models import Credential, CredentialType
from tests.unit.api.conftest import MakeApp, client_of
from tests.unit.api.service_double import EngineDouble

SECRET = "Zx9Kq2LmP4vT7wRb1NcY5sHd8JfG"
BODY: dict[str, Any] = {"name": "Main", "type": "openAIApi", "fields": {"openAIApiKey": SECRET}}

OPEN_AI = CredentialType.model_validate(
    {
        "name": "openAIApi",
        "label": "OpenAI API",
        "inputs": [
            {"name": "openAIApiKey", "label": "OpenAI Api Key", "type": "password", "rows": 4},
            {"name": "organization", "optional": True, "type": "options", "options": [{"name": "a", "label": "A"}]},
        ],
    }
)


class Flowise:
    """Stands for the client and for `Instances`."""

    default_id = "dev"

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []
        self.types = [OPEN_AI, CredentialType(name="awsApi", label="AWS" * 100)]

    def client(self, _: str | None) -> "Flowise":
        return self

    async def list_credential_types(self) -> list[CredentialType]:
        return self.types

    async def list_credentials(self) -> list[Credential]:
        rows = [
            {"id": f"c-{name}", "name": name, "credentialName": "openAIApi", "encryptedData": SECRET} for name in "ba"
        ]
        return [Credential.model_validate(row) for row in rows]

    async def create_credential(self, *, name: str, type_: str, fields: dict[str, str]) -> Credential:
        if name == "broken":
            raise FlowiseServerError("Flowise answered POST /credentials with 500.")
        self.made.append({"name": name, "type": type_, "fields": fields})
        return Credential(id="c-1", name=name, credential_name=type_)


@pytest.fixture
def flowise(engine: EngineDouble) -> Flowise:
    double: Any = Flowise()
    engine.instances = double
    return double


async def test_p102_a_credential_goes_to_flowise_and_its_id_comes_back(make_app: MakeApp, flowise: Flowise) -> None:
    async with client_of(make_app()) as http:
        response = await http.post("/credentials", json=BODY)
    assert response.status_code == 201
    assert response.json() == {"id": "c-1", "name": "Main", "type": "openAIApi", "instance": "dev"}
    assert flowise.made == [{"name": "Main", "type": "openAIApi", "fields": {"openAIApiKey": SECRET}}]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"type": "unheardOf"}, 422),
        ({"fields": {"openAIApiKey": SECRET, "other": SECRET}}, 422),
        ({"fields": {"organization": SECRET}}, 422),
        ({"fields": {SECRET: "x"}}, 422),
        ({"fields": {f"{SECRET}!": SECRET}}, 422),
        ({"fields": {"openAIApiKey": [SECRET]}}, 422),
        ({"fields": SECRET}, 422),
        ({SECRET: SECRET}, 422),
        ({"name": {"a": SECRET}}, 422),
        ({"name": "broken"}, 502),
    ],
)
async def test_p102_a_refused_credential_is_in_no_answer(
    make_app: MakeApp, flowise: Flowise, change: dict[str, Any], status: int
) -> None:
    async with client_of(make_app()) as http:
        response = await http.post("/credentials", json=BODY | change)
    assert response.status_code == status
    assert SECRET not in response.text
    assert flowise.made == []


async def test_the_types_of_a_server_say_what_is_typed_unseen_and_what_is_required(
    make_app: MakeApp, flowise: Flowise
) -> None:
    async with client_of(make_app()) as http:
        body = (await http.get("/credentials/types")).json()
    aws, open_ai = body["types"]
    assert (body["instance"], aws["label"]) == ("dev", ("AWS" * 100)[:200])
    key, organization = open_ai["fields"]
    assert key == {
        "name": "openAIApiKey",
        "label": "OpenAI Api Key",
        "secret": True,
        "required": True,
        "multiline": True,
        "default": "",
        "choices": [],
    }
    assert (organization["required"], organization["choices"]) == (False, ["a"])


async def test_of_a_server_with_endless_types_and_fields_a_bounded_list_is_shown(
    make_app: MakeApp, flowise: Flowise
) -> None:
    flowise.types = [OPEN_AI.model_copy(update={"inputs": [OPEN_AI.inputs[0]] * 200})] * 5_000
    async with client_of(make_app()) as http:
        body = (await http.get("/credentials/types")).json()
    assert (len(body["types"]), {len(one["fields"]) for one in body["types"]}) == (1_000, {50})


async def test_credentials_are_listed_by_name_and_without_their_values(make_app: MakeApp, flowise: Flowise) -> None:
    async with client_of(make_app()) as http:
        response = await http.get("/credentials")
    assert SECRET not in response.text
    assert response.json() == {
        "instance": "dev",
        "credentials": [{"id": f"c-{name}", "name": name, "type": "openAIApi"} for name in "ab"],
    }
