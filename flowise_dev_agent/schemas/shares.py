"""Share links: views of a session or of a flow's history for people without a key."""

from datetime import date, datetime
from typing import Literal, TypeAlias
from uuid import UUID

from pydantic import Field

from flowise_dev_agent.schemas.base import Contract
from flowise_dev_agent.schemas.flows import Preview
from flowise_dev_agent.schemas.requests import RequestBody, Whole
from flowise_dev_agent.schemas.turns import ConversationSession

#: Longest life of a link in days.
LONGEST_SHARE = 90
ShareSubject: TypeAlias = Literal["session", "flow"]


class NewShare(RequestBody):
    """The body of `POST /shares`."""

    subject: ShareSubject
    id: UUID = Field(description="Of the session (`thread_id`), or of the chatflow.")
    days: Whole = Field(default=7, ge=1, le=LONGEST_SHARE, description="Days until the link expires.")


class ShareView(Contract):
    """A link, without the link itself."""

    id: UUID
    subject: ShareSubject
    subject_id: str
    title: str = Field(description="Of the session or flow when the link was made.")
    made_by: str
    made_at: datetime
    ends_at: datetime
    revoked_at: datetime | None
    opened_on: date | None = Field(description="The last day on which somebody opened it.")
    active: bool = Field(description="It opens now.")


class ShareList(Contract):
    """Links, newest first, including ended ones."""

    shares: list[ShareView]


class MadeShare(ShareView):
    """A new link."""

    link: str = Field(
        description="The link itself, shown only here. Without PUBLIC_BASE_URL it begins with `/`: put the address "
        "before it at which people reach the service."
    )


class SharedVersion(Contract):
    """A version of the flow that a link shows."""

    name: str = Field(description="`v1`, `v2`, ... over all sessions of the flow.")
    title: str
    restores: str | None = Field(default=None, description="The earlier version with the same text.")
    created_at: datetime
    current: bool


class SharedView(Contract):
    """Content of a share link: conversation without names, plan, picture, versions.

    Secrets, e-mail addresses and telephone numbers are masked.
    """

    subject: ShareSubject
    title: str
    ends_at: datetime
    sessions: list[ConversationSession] = Field(description="Newest last; of a flow the newest 50.")
    plan: str = Field(default="", description="Markdown; of a session.")
    preview: Preview | None = Field(default=None, description="The picture; of a session.")
    versions: list[SharedVersion] = Field(default_factory=list, description="Newest first, 100 at most.")
