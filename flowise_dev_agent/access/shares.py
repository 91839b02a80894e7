"""Share links: create, list, revoke, and show their content to people without a key.

A link is a JSON Web Token with an id and an expiry, signed with a key that is derived from SECRETS_KEY: a forged link
costs no query, and a link works as long as the key that signed it is one of SECRETS_KEY.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self, TypeVar
from uuid import UUID, uuid4

from pydantic import TypeAdapter

from flowise_dev_agent.caller import Caller, Door, current_caller
from flowise_dev_agent.errors import (
    FlowiseError,
    InvalidInputError,
    NoPlanError,
    ShareEndedError,
    ShareNotSignableError,
    VersionNotFoundError,
)
from flowise_dev_agent.flows.service import FlowService
from flowise_dev_agent.patch import CanvasView
from flowise_dev_agent.persistence import Database, SessionFilter, SessionRow, Sessions, ShareRow, Shares, Versions
from flowise_dev_agent.planning.plan_text import without_section
from flowise_dev_agent.redaction import masked, without_contacts
from flowise_dev_agent.schemas.base import view_of
from flowise_dev_agent.schemas.flows import Preview
from flowise_dev_agent.schemas.interrupts import PlanApprovalInterrupt
from flowise_dev_agent.schemas.shares import MadeShare, NewShare, SharedVersion, SharedView, ShareList, ShareView
from flowise_dev_agent.schemas.turns import ConversationSession, Turn
from flowise_dev_agent.sessions.conversation import Conversations
from flowise_dev_agent.sessions.preview import Previews
from flowise_dev_agent.sessions.version_history import FlowVersions
from flowise_dev_agent.sessions.views import open_interrupt
from flowise_dev_agent.settings import Settings
from flowise_dev_agent.texts import text

T = TypeVar("T")
_AUDIENCE: Final = "flowise-dev-agent share links"
_LONGEST_TOKEN: Final = 500
_MOST_LISTED: Final = 500
_MOST_SESSIONS: Final = 50
_MOST_VERSIONS: Final = 100


@dataclass(frozen=True)
class ShareSigner:
    """Signs and reads links. `keys`: SECRETS_KEY, the first one signs. `base_url` has no trailing slash."""

    keys: Sequence[bytes] = field(default=(), repr=False)
    base_url: str = ""

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Make the signer from the settings."""
        return cls(settings.database.secrets_keys, str(settings.server.public_base_url or "").rstrip("/"))

    def link(self, share_id: UUID, ends_at: datetime) -> str:
        """URL of a shared view. Raises ShareNotSignableError without a key."""
        if not self.keys:
            raise ShareNotSignableError(
                text("error.links_not_signable"),
                hint=text("error.set_secrets_key"),
            )
        import jwt  # loads cryptography, which a service without links does not need

        claims = {"sub": str(share_id), "exp": ends_at, "aud": _AUDIENCE}
        # Behind the `#`: a browser sends it to nobody, so that it is in no log of a server on the way.
        return f"{self.base_url}/#/shared/{jwt.encode(claims, _derived(self.keys[0]), 'HS256')}"

    def read(self, token: str) -> tuple[UUID, datetime] | None:
        """Id and expiry of a link that one of the keys signed, even if it has expired; None for any other text."""
        import jwt

        for key in self.keys if len(token) <= _LONGEST_TOKEN else ():
            try:
                claims = jwt.decode(
                    token,
                    _derived(key),
                    algorithms=["HS256"],
                    audience=_AUDIENCE,
                    options={"verify_exp": False, "require": ["sub", "exp"]},
                )
            except jwt.InvalidTokenError:
                continue
            return UUID(claims["sub"]), datetime.fromtimestamp(claims["exp"], UTC)
        return None


def _derived(key: bytes) -> bytes:
    """Derive the signing key for links, so that the encryption key itself signs nothing."""
    return hmac.digest(key, _AUDIENCE.encode(), "sha256")


class ShareService:
    """Share links of an owner and their content. Raises what `Shares`, `Sessions` and `FlowService` raise."""

    def __init__(
        self,
        database: Database,
        signer: ShareSigner,
        *,
        sessions: Sessions,
        versions: Versions,
        history: FlowVersions,
        flows: FlowService,
        conversations: Conversations,
        previews: Previews,
    ) -> None:
        self._rows = Shares(database)
        self._signer = signer
        self._sessions = sessions
        self._versions = versions
        self._history = history
        self._flows = flows
        self._conversations = conversations
        self._previews = previews

    # --- for callers with a key ---------------------------------------------------------------------------------------

    async def make(self, wanted: NewShare) -> MadeShare:
        """Create a link.

        Raises SessionNotFoundError, InvalidInputError for a flow without history here, and ShareNotSignableError.
        """
        share_id, ends_at = uuid4(), (datetime.now(UTC) + timedelta(days=wanted.days)).replace(microsecond=0)
        link = self._signer.link(share_id, ends_at)
        of_session = wanted.subject == "session"
        row = await self._rows.add(
            share_id,
            session_id=wanted.id if of_session else None,
            chatflow_id=None if of_session else str(wanted.id),
            title=await self._title(wanted),
            ends_at=ends_at,
        )
        return MadeShare(**_view(row).model_dump(), link=link)

    async def all(self, *, session_id: UUID | None, chatflow_id: UUID | None) -> ShareList:
        """The newest links of a session, of a flow, or of all."""
        flow = None if chatflow_id is None else str(chatflow_id)
        rows = await self._rows.page(session_id=session_id, chatflow_id=flow, limit=_MOST_LISTED)
        return ShareList(shares=[_view(row) for row in rows])

    async def revoke(self, share_id: UUID) -> None:
        """End a link at once."""
        await self._rows.revoke(share_id)

    async def _title(self, wanted: NewShare) -> str:
        if wanted.subject == "session":
            row = await self._sessions.get(wanted.id)
            return row.name or masked(row.requirement)[:200]
        if kept := await self._versions.of_chatflow(str(wanted.id), limit=1):
            return masked(kept[0].name)
        rows = await self._sessions.page(SessionFilter(chatflow_id=str(wanted.id)), limit=1)
        if not rows:
            raise InvalidInputError(text("error.flow_has_no_history_here"), hint=text("error.share_after_session"))
        return rows[0].name or masked(rows[0].requirement)[:200]

    # --- for callers with a link -------------------------------------------------------------------------------------

    async def caller(self, token: str, door: Door) -> Caller | None:
        """Authenticate a link; None if the text is not a link. Raises ShareEndedError."""
        said = self._signer.read(token)
        if said is None:
            return None
        share_id, ends_at = said
        row = await self._rows.of_anybody(share_id) if ends_at > datetime.now(UTC) else None
        if row is None or not row.active:
            raise ShareEndedError(text("error.share_ended"), hint=text("error.share_ask_again"))
        return Caller("share link", frozenset(), f"share:{share_id}", door, row.owner, share=share_id)

    async def shown(self) -> SharedView:
        """Content of the caller's link. Also records that the link was opened."""
        row = await self._shared()
        await self._rows.note_opened(row.id)
        session = None if row.session_id is None else await self._sessions.get(row.session_id)
        chatflow_id = session.chatflow_id if session else row.chatflow_id
        numbered = await self._history.numbered(chatflow_id, limit=_MOST_VERSIONS) if chatflow_id else None
        kept = numbered.versions if numbered else []
        if session is None:
            said = await self._conversations.of_flow(row.chatflow_id or "", None, limit=_MOST_SESSIONS)
            sessions = said.sessions
        else:
            # The open interrupt is not shown here.
            sessions = await self._conversations.of([replace(session, interrupt=None)])
            kept = [one for one in kept if one.session_id == session.id]
        return _public(
            SharedView(
                subject="flow" if session is None else "session",
                title=row.title,
                ends_at=row.ends_at,
                sessions=[_nameless(one) for one in sessions],
                plan=_plan(session) if session else "",
                preview=await self._preview(session) if session else None,
                versions=[view_of(SharedVersion, one) for one in kept],
            ),
            SharedView,
        )

    async def version(self, number: int) -> CanvasView:
        """A version from the content of the caller's link. Raises VersionNotFoundError for any other version."""
        row = await self._shared()
        if row.session_id is not None:
            kept = await self._versions.of_session(row.session_id)
            found = next((one for one in kept if one.version == number), None)
        else:
            found = await self._versions.with_number(row.chatflow_id or "", number)
        if found is None:
            raise VersionNotFoundError(
                text("error.no_version", version=f"v{number}"), hint=text("error.view_lists_versions")
            )
        return _public(await self._flows.drawn(found), CanvasView)

    async def _shared(self) -> ShareRow:
        share_id = current_caller().share
        assert share_id is not None  # noqa: S101 - the route needs a link
        return await self._rows.get(share_id)

    async def _preview(self, row: SessionRow) -> Preview | None:
        try:
            return await self._previews.of(row.id)
        except (NoPlanError, InvalidInputError, FlowiseError):
            return None  # there is no plan yet, its flow is not kept any more, or Flowise is away


def _view(row: ShareRow) -> ShareView:
    subject = "flow" if row.session_id is None else "session"
    return view_of(
        ShareView, row, subject=subject, subject_id=str(row.session_id or row.chatflow_id), active=row.active
    )


def _nameless(session: ConversationSession) -> ConversationSession:
    """Remove the names of people and the open question, which may list other flows."""
    return session.model_copy(update={"interrupt": None, "turns": [_nameless_turn(turn) for turn in session.turns]})


def _nameless_turn(turn: Turn) -> Turn:
    asks_for_flow = turn.kind == "question" and turn.interrupt is not None and turn.interrupt.type == "select_target"
    return turn.model_copy(update={"by": None, **({"words": ""} if asks_for_flow else {})})


def _plan(row: SessionRow) -> str:
    """Text of the plan that waits for approval, else of the approved one; without the section on personal data."""
    interrupt = open_interrupt(row)
    if isinstance(interrupt, PlanApprovalInterrupt):
        text = interrupt.data.plan
    else:
        text = str((row.plan or {}).get("text") or "")
    return without_section(text, "plan.heading.personal_data")


def _public(value: T, shape: type[T]) -> T:
    """Mask e-mail addresses and telephone numbers in all texts of a value."""
    adapter: TypeAdapter[T] = TypeAdapter(shape)
    shown: Any = without_contacts(adapter.dump_python(value, mode="json"))
    return adapter.validate_python(shown)
