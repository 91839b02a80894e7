"""The Flowise servers and the model of a process: from the settings, else stored by people."""

import asyncio
import base64
import json
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, SecretStr
from pydantic.networks import HttpUrl

from flowise_dev_agent.errors import (
    ConnectionNotStorableError,
    ConnectionUnreadableError,
    DatabaseUnavailableError,
    FlowiseAuthError,
    FlowiseError,
    FlowiseTimeoutError,
    InvalidInputError,
    ModelAuthError,
    ModelUnavailableError,
    ReasoningError,
    SessionsOpenError,
)
from flowise_dev_agent.flowise.instances import Instances, address_of
from flowise_dev_agent.models import StoredCapabilities
from flowise_dev_agent.models.messages import Message
from flowise_dev_agent.persistence import Claim, ConnectionRow, Database, Fact, ModelCapabilityRows, StoredConnections
from flowise_dev_agent.persistence.connections import ConnectionKind, StoredRows
from flowise_dev_agent.planning.phased import make_reasoner
from flowise_dev_agent.planning.reasoner import Reasoner
from flowise_dev_agent.schemas.base import Contract
from flowise_dev_agent.schemas.connections import (
    ConnectFlowise,
    ConnectionsView,
    ConnectModel,
    FlowiseConnection,
    ModelConnection,
    Source,
)
from flowise_dev_agent.schemas.etags import Expected, changed_meanwhile, etag_of
from flowise_dev_agent.sessions.emission import count_call
from flowise_dev_agent.settings import ReasoningSettings, Settings
from flowise_dev_agent.texts import sentences, text
from flowise_dev_agent.timings import end_tasks

if TYPE_CHECKING:
    from cryptography.fernet import Fernet, MultiFernet

    from flowise_dev_agent.models.engine import ModelEngine

logger = logging.getLogger(__name__)
Stored = TypeVar("Stored", bound=BaseModel)

_TEST_SECS: Final = 20.0
#: Test and check of a model together: clients wait for 30 s.
_CHECK_SECS: Final = 28.0
#: Seconds until a process without runs notices a connection that another process has stored.
_LOOK_SECS: Final = 5.0
_FLOWISE_VARIABLES: Final = ("FLOWISE_API_ENDPOINT", "FLOWISE_API_KEY", "FLOWISE_INSTANCES")
_MODEL_VARIABLES: Final = ("REASONING_ENGINE", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL")


_WRONG_KEY: Final = text("error.wrong_flowise_key")
_WRONG_ADDRESS: Final = text("error.wrong_flowise_address")


class StoredFlowise(Contract):
    """Stored connection to a Flowise server."""

    endpoint: HttpUrl
    api_key: SecretStr | None
    #: Earlier addresses of the same server.
    formerly: tuple[HttpUrl, ...] = ()


class Connections:
    """Connections of a process. A variable of the environment wins over a stored connection."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._rows = StoredConnections(database)
        self.capabilities = StoredCapabilities(ModelCapabilityRows(database))
        self._turn = asyncio.Lock()
        self._seen: Mapping[ConnectionKind, ConnectionRow] = {}
        self._flowise: StoredFlowise | None = None
        self._model: ConnectModel | None = None
        #: Stored connections that SECRETS_KEY cannot decrypt.
        self._unreadable: frozenset[ConnectionKind] = frozenset()
        #: Reasoners of runs that began before a change.
        self._retired: list[Reasoner] = []
        self.instances = Instances(settings.flowise, on_call=count_call)
        self.reasoning = settings.reasoning

    @cached_property
    def reasoner(self) -> Reasoner:
        """The reasoner for `reasoning`. Raises ConnectionUnreadableError if the stored connection is unreadable."""
        if problem := self.problem():
            raise problem
        return make_reasoner(self.reasoning, self.capabilities)

    def problem(self) -> ConnectionUnreadableError | None:
        """Error that prevents planning: the stored model connection cannot be decrypted; else None."""
        return _unreadable_error("model") if "model" in self._unreadable else None

    def planned_with(self, model: str | None = None) -> str | None:
        """Engine and model that a session which asks for `model` plans with; None for the engine without a model."""
        if self.reasoning.engine == "deterministic":
            return None
        return f"{self.reasoning.engine} {self.reasoning.model_for('plan', model)}"

    async def aclose(self) -> None:
        """Close all clients."""
        await self.instances.aclose()
        for reasoner in (*self._retired, *filter(None, [self.__dict__.get("reasoner")])):
            await reasoner.aclose()

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Follow changes that other processes store, while the block runs."""
        await self.refresh()
        task = asyncio.create_task(self._watch(), name="connections")
        try:
            yield
        finally:
            await end_tasks([task])

    async def refresh(self) -> None:
        """Load the stored connections and switch to them if they changed. Raises DatabaseUnavailableError."""
        async with self._turn:
            rows = await self._rows.all()
            if rows == self._seen:
                return
            before, self._seen = self._seen, rows
            flowise = self._opened("flowise", StoredFlowise, before, self._flowise)
            self._use(flowise, self._opened("model", ConnectModel, before, self._model))
            for row in rows.values():
                if (sealed := self._resealed(row)) is not None:
                    await self._rows.reseal(row, sealed)

    async def prepare(self, claim: Claim) -> None:
        """Use the connections as they were at the claim of a run, or later. Raises DatabaseUnavailableError."""
        if list(claim.connected) != [self._seen[kind].changed_at for kind in sorted(self._seen)]:
            await self.refresh()

    async def view(self) -> ConnectionsView:
        """Current connections, without keys. Raises DatabaseUnavailableError."""
        await self.refresh()
        source, by = self._source("flowise", self._flowise), self._seen.get("flowise")
        flowise = FlowiseConnection(
            source=source,
            endpoint=self.instances.endpoint() or None,
            has_key=source != "unreadable" and self.instances.has_key(),
            changed_by=by.changed_by if by else None,
            changed_at=by.changed_at if by else None,
        )
        by = self._seen.get("model")
        model = ModelConnection(
            source=self._source("model", self._model),
            engine=self.reasoning.engine,
            model=self.reasoning.model_for("plan"),
            base_url=str(self._model.base_url) if self._model and self._model.base_url else None,
            changed_by=by.changed_by if by else None,
            changed_at=by.changed_at if by else None,
        )
        view = ConnectionsView(storable=bool(self._settings.database.secrets_keys), flowise=flowise, model=model)
        return view.model_copy(update={"etag": etag_of(view.model_dump_json())})

    async def connect_flowise(self, wanted: ConnectFlowise, expected: Expected | None = None) -> ConnectionsView:
        """Try a Flowise server and store it as the default one.

        Raises ConnectionNotStorableError, SessionsOpenError, FlowiseError when the server cannot be used, and
        PreconditionFailedError; then nothing has changed.
        """
        self._check_storable("flowise")
        seen = await self._as_expected(expected)
        await self._try_flowise(wanted)
        # After the try, which takes seconds: a session may have begun meanwhile.
        await self.refresh()
        here = self.instances.addresses()
        if not wanted.same_server and not wanted.force:
            await self._check_idle(here, wanted.endpoint, text("error.same_server_hint"))
        same = wanted.same_server or address_of(wanted.endpoint) in here
        formerly = tuple(HttpUrl(address) for address in here) if same else ()
        stored = StoredFlowise(endpoint=wanted.endpoint, api_key=wanted.api_key, formerly=formerly)
        await self._store("flowise", stored, f"flowise {wanted.endpoint}", seen)
        return await self.view()

    async def connect_model(self, wanted: ConnectModel, expected: Expected | None = None) -> ConnectionsView:
        """Try a model provider, store it, and check what its model can do.

        Raises ConnectionNotStorableError, InvalidInputError, ReasoningError when it cannot be used, and
        PreconditionFailedError; then nothing has changed.
        """
        self._check_storable("model")
        seen = await self._as_expected(expected)
        if wanted.api_key is None and (wanted.engine == "claude" or wanted.base_url is None):
            raise InvalidInputError(text("error.key_missing"), hint=text("error.key_needed"))
        settings = self._reasoning_with(wanted)
        # The model layer takes half a second to import.
        from flowise_dev_agent.models.engine import ModelEngine

        engine, until = ModelEngine(settings, self.capabilities), monotonic() + _CHECK_SECS
        try:
            await _try_model(engine)
            await self._store("model", wanted, f"model {settings.engine} {settings.general_model}", seen)
            await _check_model(engine, until - monotonic())
        finally:
            await engine.aclose()
        return await self.view()

    async def disconnect(
        self, kind: ConnectionKind, expected: Expected | None = None, *, force: bool = False
    ) -> ConnectionsView:
        """Remove a stored connection. Raises SessionsOpenError unless forced, PreconditionFailedError."""
        seen = await self._as_expected(expected)
        if kind == "flowise" and not force and not self._is_fixed(kind):
            await self.refresh()
            await self._check_idle(self.instances.addresses(), self._settings.flowise.instances[0].endpoint)
        if not await self._rows.remove(kind, Fact("connection.remove", words=kind), seen=seen):
            raise changed_meanwhile((await self.view()).etag)
        return await self.view()

    # --- stored connections -----------------------------------------------------------------------------------------

    async def _check_idle(self, here: Sequence[str], wanted: HttpUrl, also: str = "") -> None:
        """Raise SessionsOpenError if another server is requested while sessions on the current one are open."""
        if address_of(wanted) in here:
            return
        if count := await self._rows.open_sessions(self.instances.default_id, here):
            raise SessionsOpenError(
                text("error.sessions_open", count=count, endpoint=here[0]),
                hint=sentences(text("error.sessions_open_hint"), also),
                details={"sessions": count, "endpoint": here[0]},
            )

    async def _as_expected(self, expected: Expected | None) -> StoredRows | None:
        """Check the caller's entity tag. Returns the rows that it stands for; None if the caller expects none."""
        if expected is None or expected.tags is None:
            return None
        expected.check((await self.view()).etag)
        return self._seen

    async def _store(self, kind: ConnectionKind, wanted: BaseModel, words: str, seen: StoredRows | None) -> None:
        key: SecretStr | None = getattr(wanted, "api_key", None)
        text = json.dumps(wanted.model_dump(mode="json") | {"api_key": key.get_secret_value() if key else None})
        fact = Fact("connection.store", words=words)
        if not await self._rows.store(kind, self._vault.encrypt(text.encode()), fact, seen=seen):
            raise changed_meanwhile((await self.view()).etag)

    def _opened(
        self, kind: ConnectionKind, shape: type[Stored], before: StoredRows, used: Stored | None
    ) -> Stored | None:
        row, earlier = self._seen.get(kind), before.get(kind)
        if row is None or self._is_fixed(kind):
            return None
        from cryptography.fernet import InvalidToken

        try:
            return shape.model_validate_json(self._vault.decrypt(row.sealed))
        except (InvalidToken, ValueError):
            if used and earlier and earlier.changed_at == row.changed_at:
                # Another process with the next key has encrypted the same content again.
                return used
            logger.warning("The stored connection '%s' cannot be read with SECRETS_KEY.", kind)
            return None

    def _resealed(self, row: ConnectionRow) -> bytes | None:
        """The row's content encrypted with the first key; None if it already is, or cannot be decrypted."""
        from cryptography.fernet import InvalidToken

        if not self._settings.database.secrets_keys:
            return None
        try:
            self._first.decrypt(row.sealed)
        except InvalidToken:
            with suppress(InvalidToken):
                return self._vault.rotate(row.sealed)
        return None

    @cached_property
    def _first(self) -> "Fernet":
        return _fernet(self._settings.database.secrets_keys[0])

    @cached_property
    def _vault(self) -> "MultiFernet":
        # Loaded where it is needed: it takes a tenth of a second.
        from cryptography.fernet import MultiFernet

        return MultiFernet([_fernet(key) for key in self._settings.database.secrets_keys])

    def _use(self, flowise: StoredFlowise | None, model: ConnectModel | None) -> None:
        used: dict[ConnectionKind, BaseModel | None] = {"flowise": flowise, "model": model}
        before = self._unreadable
        self._unreadable = frozenset(kind for kind, one in used.items() if self._source(kind, one) == "unreadable")
        changed = before ^ self._unreadable
        if flowise != self._flowise or "flowise" in changed:
            self._flowise = flowise
            unknown = _unreadable_error("flowise") if "flowise" in self._unreadable else None
            self.instances.connect(
                flowise and flowise.endpoint,
                flowise and flowise.api_key,
                formerly=flowise.formerly if flowise else (),
                unknown=unknown,
            )
        if model != self._model or "model" in changed:
            self._model = model
            self.reasoning = self._reasoning_with(model) if model else self._settings.reasoning
            if former := self.__dict__.pop("reasoner", None):
                self._retired.append(former)

    def _reasoning_with(self, model: ConnectModel) -> ReasoningSettings:
        settings = self._settings.reasoning
        given = {name: getattr(settings, name) for name in settings.model_fields_set}
        name = "anthropic" if model.engine == "claude" else "openai"
        stored: dict[str, Any] = {
            f"{name}_api_key": model.api_key,
            f"{name}_base_url": str(model.base_url) if model.base_url else None,
            "engine_choice": model.engine,
            "model_choice": settings.model_choice or model.model,
        }
        return ReasoningSettings(**given | stored)

    # --- environment variables ---------------------------------------------------------------------------------------

    def _is_fixed(self, kind: ConnectionKind) -> bool:
        if kind == "flowise":
            return bool({"api_endpoint", "api_key", "instances_json"} & self._settings.flowise.model_fields_set)
        settings = self._settings.reasoning
        return settings.engine_choice is not None or settings.engine != "deterministic"

    def _source(self, kind: ConnectionKind, used: BaseModel | None) -> Source:
        if self._is_fixed(kind):
            return "environment"
        if used is not None:
            return "stored"
        return "unreadable" if kind in self._seen else "none"

    def _check_storable(self, kind: ConnectionKind) -> None:
        if self._is_fixed(kind):
            variables = _FLOWISE_VARIABLES if kind == "flowise" else _MODEL_VARIABLES
            raise ConnectionNotStorableError(
                text("error.set_by_environment"),
                hint=text("error.set_by_environment_hint", names=[*variables]),
            )
        if not self._settings.database.secrets_keys:
            raise ConnectionNotStorableError(
                text("error.keeps_no_keys"),
                hint=text("error.set_secrets_key_or_environment"),
            )

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECS)
            with suppress(DatabaseUnavailableError):
                await self.refresh()

    async def _try_flowise(self, wanted: ConnectFlowise) -> None:
        async with self.instances.other(str(wanted.endpoint), wanted.api_key) as client:
            try:
                async with asyncio.timeout(_TEST_SECS):
                    # The version needs no key and shows whether it is a Flowise; the list needs one.
                    await client.version()
                    await client.list_chatflows(limit=1)
            except FlowiseAuthError as error:
                hint = text("error.make_flowise_key") if wanted.api_key is None else _WRONG_KEY
                raise FlowiseAuthError(error.message, hint=hint, details=error.details) from None
            except FlowiseError as error:
                raise type(error)(error.message, hint=_WRONG_ADDRESS, details=error.details) from None
            except TimeoutError:
                raise FlowiseTimeoutError(
                    text("error.flowise_test_timeout", endpoint=client.endpoint, seconds=f"{_TEST_SECS:.0f}"),
                    hint=_WRONG_ADDRESS,
                ) from None


def _fernet(key: bytes) -> "Fernet":
    from cryptography.fernet import Fernet

    return Fernet(base64.urlsafe_b64encode(key))


def _unreadable_error(kind: ConnectionKind) -> ConnectionUnreadableError:
    return ConnectionUnreadableError(
        text("error.connection_unreadable_flowise" if kind == "flowise" else "error.connection_unreadable_model"),
        hint=text("error.connection_unreadable_hint"),
        details={"connection": kind},
    )


async def _try_model(engine: "ModelEngine") -> None:
    try:
        async with asyncio.timeout(_TEST_SECS):
            await engine.complete([Message(role="user", content="Reply with: ok")], "Be brief.", max_tokens=16)
    except ModelAuthError as error:
        is_key = error.details.get("refused") == "key"
        hint = text("error.wrong_model_key" if is_key else "error.check_key_and_model")
        raise ModelAuthError(error.message, hint=hint, details=error.details) from None
    except ReasoningError as error:
        raise type(error)(error.message, hint=text("error.check_address_and_model")) from None
    except TimeoutError:
        raise ModelUnavailableError(text("error.model_timeout", seconds=f"{_TEST_SECS:.0f}")) from None


async def _check_model(engine: "ModelEngine", secs: float) -> None:
    """Check a model that has answered; without a result it is connected all the same."""
    from flowise_dev_agent.models.check import check_model

    try:
        async with asyncio.timeout(secs):
            await check_model(engine)
    except (ReasoningError, TimeoutError) as error:
        logger.warning("The check of the connected model gave no result: %s", error or "it took too long")
