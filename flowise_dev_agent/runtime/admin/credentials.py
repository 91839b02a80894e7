"""Credentials that people enter here: they go straight to Flowise, and nothing of them is kept."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from flowise_dev_agent.contracts.requests import Line, RequestBody
from flowise_dev_agent.errors import FlowiseNotFoundError, InvalidInputError
from flowise_dev_agent.flowise.instances import Instances

FieldName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,100}$")]
FieldValue = Annotated[SecretStr, Field(min_length=1, max_length=20_000)]


class NewCredential(RequestBody):
    """The body of `POST /credentials`."""

    name: Line = Field(description="How people will recognise it.")
    type: Line = Field(description="A credential type of the server, such as `openAIApi`.")
    fields: dict[FieldName, FieldValue] = Field(
        min_length=1, max_length=50, description="The type's fields, such as `openAIApiKey`, with their values."
    )
    instance: Line | None = Field(default=None, description="Flowise instance; the default one.")


class CreatedCredential(BaseModel):
    """What is known of the credential from now on."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    type: str
    instance: str


async def create_credential(instances: Instances, new: NewCredential) -> CreatedCredential:
    """Create it on the server, which encrypts it. Sent once; the server does not check the values.

    Raises:
        InvalidInputError: the instance, the type or a field is not known there. FlowiseError.
    """
    client = instances.client(new.instance)
    try:
        known = await client.credential_fields(new.type)
    except FlowiseNotFoundError:
        raise InvalidInputError(
            f"This Flowise server has no credential type '{new.type}'.",
            hint="GET /knowledge/search shows the types that a node takes (`credentials`).",
        ) from None
    _check(new.fields, known)
    row = await client.create_credential(
        name=new.name, type_=new.type, fields={name: value.get_secret_value() for name, value in new.fields.items()}
    )
    return CreatedCredential(
        id=row.id, name=row.name, type=row.credential_name, instance=new.instance or instances.default_id
    )


def _check(given: Mapping[str, SecretStr], known: Mapping[str, bool]) -> None:
    """`known`: the type's fields and whether each is required."""
    missing = sorted(name for name, required in known.items() if required and name not in given)
    if missing or not given.keys() <= known.keys():
        # Not the names that were given: somebody may have put the secret there.
        raise InvalidInputError(
            f"The fields do not fit: {', '.join(missing)} missing." if missing else "A field is not one of the type's.",
            hint=f"The fields of this type are: {', '.join(sorted(known))}.",
        )
