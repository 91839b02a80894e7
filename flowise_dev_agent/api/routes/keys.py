"""Keys of people and programs."""

from typing import Annotated
from uuid import UUID

from fastapi import Path, Request

from flowise_dev_agent.api.deps import IfMatch, engine
from flowise_dev_agent.api.once import ONCE_WITH_SECRET, OnceRoute
from flowise_dev_agent.api.responses import REPEATED, declared
from flowise_dev_agent.api.routing import Routes
from flowise_dev_agent.caller import current_caller
from flowise_dev_agent.schemas.keys import CallerView, KeyList, MadeKey, NewKey, OwnerList, RotateKey

owners_router = Routes(prefix="/owners", tags=["keys"])
router = Routes(prefix="/keys", tags=["keys"], route_class=OnceRoute)

KeyId = Annotated[UUID, Path(description="The key's id.")]


@router.get("", responses=declared())
async def list_keys(request: Request) -> KeyList:
    """All keys with their last use, newest first. The keys themselves are not kept."""
    return await engine(request).keys.all()


@router.post(
    "",
    dependencies=[ONCE_WITH_SECRET],
    status_code=201,
    responses=declared("key_conflict", "answer_not_kept", *REPEATED),
)
async def create_key(request: Request, body: NewKey) -> MadeKey:
    """Make a key for a person or program. It is in this answer and in no later one."""
    return await engine(request).keys.make(body)


@router.get("/current", responses=declared())
async def get_current_key() -> CallerView:
    """The owner and the scopes of the key of this request."""
    caller = current_caller()
    return CallerView(
        name=caller.name,
        key_id=caller.key_id,
        owner=caller.owner,
        scopes=sorted(caller.scopes),
        signed_in=caller.signed_in,
    )


@router.post(
    "/{key_id}/rotate",
    dependencies=[ONCE_WITH_SECRET],
    responses=declared("key_not_found", "key_conflict", "answer_not_kept", *REPEATED),
)
async def rotate_key(request: Request, key_id: KeyId, body: RotateKey, if_match: IfMatch) -> MadeKey:
    """Make another key in the place of this one, with the same name, scopes and end."""
    return await engine(request).keys.rotate(key_id, keep_old_secs=body.keep_old_secs, expected=if_match)


@router.delete("/{key_id}", status_code=204, responses=declared("key_not_found"))
async def revoke_key(request: Request, key_id: KeyId, if_match: IfMatch) -> None:
    """End a key at once. It stays in the list."""
    await engine(request).keys.revoke(key_id, expected=if_match)


@owners_router.get("", responses=declared())
async def list_owners(request: Request) -> OwnerList:
    """The teams and persons that keys act for, by id. An owner is added with its first key."""
    return await engine(request).keys.owners()
