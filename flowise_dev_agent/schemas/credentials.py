"""Credentials that people create here, and the credential types of a server."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from flowise_dev_agent.schemas.requests import Line, RequestBody

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
    """A created credential, without its values."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    type: str
    instance: str


class CredentialView(BaseModel):
    """A credential of a server, without its values."""

    id: str
    name: str
    type: str


class CredentialList(BaseModel):
    """The credentials of a server, by name."""

    instance: str
    credentials: list[CredentialView]


class CredentialFieldView(BaseModel):
    """A field of a credential type."""

    name: str
    label: str
    secret: bool = Field(description="It is typed unseen.")
    required: bool
    multiline: bool
    default: str
    choices: list[str] = Field(description="The values that it may have; any when empty.")


class CredentialTypeView(BaseModel):
    """A credential type with its fields."""

    name: str
    label: str
    fields: list[CredentialFieldView]


class CredentialTypeList(BaseModel):
    """The credential types of a server, by label."""

    instance: str
    types: list[CredentialTypeView]
