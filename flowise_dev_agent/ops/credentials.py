"""Creation of credentials: values go straight to Flowise, and this service stores none of them."""

from typing import Final

from pydantic import SecretStr

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.flowise.models import CredentialField, CredentialType
from flowise_dev_agent.persistence import AuditLog, Fact
from flowise_dev_agent.schemas.credentials import (
    CreatedCredential,
    CredentialFieldView,
    CredentialList,
    CredentialTypeList,
    CredentialTypeView,
    CredentialView,
    NewCredential,
)
from flowise_dev_agent.texts import text

_MAX_CREDENTIALS: Final = 2_000
_MAX_TYPES: Final = 1_000
_MAX_FIELDS: Final = 50
_MAX_TEXT: Final = 200


async def credential_list(instances: Instances, instance: str | None) -> CredentialList:
    """Credentials of a server by name, without their values. Raises FlowiseError."""
    rows = (await instances.client(instance).list_credentials())[:_MAX_CREDENTIALS]
    views = [CredentialView(id=row.id, name=row.name[:_MAX_TEXT], type=row.credential_name[:_MAX_TEXT]) for row in rows]
    return CredentialList(
        instance=instance or instances.default_id, credentials=sorted(views, key=lambda one: one.name.casefold())
    )


async def credential_types(instances: Instances, instance: str | None) -> CredentialTypeList:
    """Credential types of a server, with their fields. Raises FlowiseError."""
    types = (await instances.client(instance).list_credential_types())[:_MAX_TYPES]
    views = [
        CredentialTypeView(
            name=one.name[:_MAX_TEXT],
            label=(one.label or one.name)[:_MAX_TEXT],
            fields=[_field_view(field) for field in one.inputs[:_MAX_FIELDS]],
        )
        for one in types
    ]
    return CredentialTypeList(
        instance=instance or instances.default_id, types=sorted(views, key=lambda one: one.label.casefold())
    )


def _field_view(field: CredentialField) -> CredentialFieldView:
    return CredentialFieldView(
        name=field.name[:_MAX_TEXT],
        label=(field.label or field.name)[:_MAX_TEXT],
        secret=field.type == "password",
        required=field.required,
        multiline=field.rows > 1,
        default="" if field.default is None else str(field.default)[:_MAX_TEXT],
        choices=[choice.name[:_MAX_TEXT] for choice in field.options[:_MAX_TYPES]],
    )


async def create_credential(instances: Instances, audit_log: AuditLog, new: NewCredential) -> CreatedCredential:
    """Create a credential on the server, which encrypts it. Sent once; the server does not check the values.

    Raises:
        InvalidInputError: the instance, the type or a field is not known there. FlowiseError.
    """
    client = instances.client(new.instance)
    # Flowise answers 500 to a request for an unknown type.
    known = next((one for one in await client.list_credential_types() if one.name == new.type), None)
    if known is None:
        raise InvalidInputError(
            text("error.no_credential_type", type=new.type),
            hint=text("error.credential_types_hint"),
        )
    _check(new.fields, known)
    row = await client.create_credential(
        name=new.name, type_=new.type, fields={name: value.get_secret_value() for name, value in new.fields.items()}
    )
    await audit_log.add(
        Fact("credential.create", instance_id=new.instance or instances.default_id, words=f"{new.name} ({new.type})")
    )
    return CreatedCredential(
        id=row.id, name=row.name, type=row.credential_name, instance=new.instance or instances.default_id
    )


def _check(given: dict[str, SecretStr], type_: CredentialType) -> None:
    known = {field.name for field in type_.inputs}
    missing = sorted(field.name for field in type_.inputs if field.required and field.name not in given)
    if missing or not given.keys() <= known:
        # Not the names that were given: somebody may have put the secret there.
        raise InvalidInputError(
            text("error.fields_missing", names=missing) if missing else text("error.field_not_of_type"),
            hint=text("error.fields_of_type", names=sorted(known)),
        )
