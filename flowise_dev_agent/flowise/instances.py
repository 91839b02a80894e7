"""The Flowise servers of the settings, one shared client each."""

from collections.abc import Mapping, Sequence

from pydantic import SecretStr
from pydantic.networks import HttpUrl

from flowise_dev_agent.errors import AgentError, InvalidInputError, ServerChangedError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.transport import OnCall, without_login
from flowise_dev_agent.settings import FlowiseInstance, FlowiseSettings
from flowise_dev_agent.texts import text


def address_of(endpoint: HttpUrl | str) -> str:
    """As it is shown and compared: without a login and without a slash at the end."""
    return without_login(str(endpoint)).rstrip("/")


class Instances:
    """Clients by instance id; the first instance of the settings is the default one."""

    def __init__(self, settings: FlowiseSettings, *, on_call: OnCall | None = None) -> None:
        self._settings = settings
        self._on_call = on_call
        self._instances = {instance.id: instance for instance in settings.instances}
        self._clients: dict[str, FlowiseClient] = {}
        #: Why nobody knows which server the default one is.
        self._unknown: AgentError | None = None
        #: Of servers that were replaced: somebody may be in the middle of a call.
        self._former: list[FlowiseClient] = []

    @property
    def ids(self) -> tuple[str, ...]:
        """All instance ids, the default one first."""
        return tuple(self._instances)

    @property
    def default_id(self) -> str:
        """The instance used when a request names none."""
        return self.ids[0]

    def endpoint(self, instance_id: str | None = None) -> str:
        """Base address of the instance, without a slash at the end; empty where nobody knows it."""
        if self._is_unknown(instance_id):
            return ""
        return address_of(self._instance(instance_id).endpoint)

    def client(self, instance_id: str | None = None) -> FlowiseClient:
        """The client of the instance, made on first use; None means the default one.

        Raises:
            InvalidInputError: unknown instance; the message names the known ones.
            ConnectionUnreadableError: nobody knows its address.
        """
        instance = self._instance(instance_id)
        if self._unknown and self._is_unknown(instance.id):
            raise self._unknown
        if instance.id not in self._clients:
            self._clients[instance.id] = self.other(str(instance.endpoint), instance.api_key, instance.headers)
        return self._clients[instance.id]

    def resolve(self, name: str | None) -> str:
        """The id of the instance that a request names; None is the default one. Raises InvalidInputError and
        ConnectionUnreadableError."""
        self.client(name)
        return name or self.default_id

    def addresses(self) -> tuple[str, ...]:
        """The addresses of the default instance, today's first, then earlier ones; empty while it is unknown."""
        default = self._instance(None)
        return () if self._unknown else tuple(dict.fromkeys(map(address_of, (default.endpoint, *default.formerly))))

    def is_at(self, instance_id: str, endpoint: str | None) -> bool:
        """True if the instance is still the server that was at `endpoint`, or if that is None."""
        instance = self._instance(instance_id)
        return endpoint is None or address_of(endpoint) in {
            address_of(one) for one in (instance.endpoint, *instance.formerly)
        }

    def client_at(self, instance_id: str, endpoint: str | None) -> FlowiseClient:
        """The client of the instance, for what began on the server that was at `endpoint`.

        Raises InvalidInputError and ConnectionUnreadableError as `client` does, and ServerChangedError.
        """
        client = self.client(instance_id)
        if not self.is_at(instance_id, endpoint):
            raise ServerChangedError(
                text(
                    "error.server_changed",
                    former=address_of(endpoint or "?"),
                    instance=instance_id,
                    now=client.endpoint,
                ),
                hint=text("error.server_changed_hint"),
                details={"instance": instance_id, "endpoint": endpoint and address_of(endpoint)},
            )
        return client

    def has_key(self) -> bool:
        """True if the default instance has a key."""
        return self._instance(None).api_key is not None

    def other(
        self, endpoint: str, api_key: SecretStr | None, headers: Mapping[str, SecretStr] | None = None
    ) -> FlowiseClient:
        """A client of a server that is not one of these; the caller closes it."""
        return FlowiseClient(
            endpoint,
            api_key,
            headers=headers,
            timeout=self._settings.timeout_secs,
            connect_timeout=self._settings.connect_timeout_secs,
            prediction_timeout=self._settings.prediction_timeout_secs,
            on_call=self._on_call,
        )

    def connect(
        self,
        endpoint: HttpUrl | None,
        api_key: SecretStr | None,
        *,
        formerly: Sequence[HttpUrl] = (),
        unknown: AgentError | None = None,
    ) -> None:
        """Use this server as the default one from now on; None is that of the settings. `unknown`: none at all, whoever
        asks for it is told this."""
        self._unknown = unknown
        default = self._settings.instances[0]
        if endpoint is not None:
            default = FlowiseInstance(id=default.id, endpoint=endpoint, api_key=api_key, formerly=tuple(formerly))
        self._instances[default.id] = default
        if former := self._clients.pop(default.id, None):
            self._former.append(former)

    async def aclose(self) -> None:
        """Close all clients."""
        clients, self._clients, self._former = [*self._clients.values(), *self._former], {}, []
        for client in clients:
            await client.aclose()

    def _is_unknown(self, instance_id: str | None) -> bool:
        return self._unknown is not None and instance_id in (None, self.default_id)

    def _instance(self, instance_id: str | None) -> FlowiseInstance:
        wanted = self.default_id if instance_id is None else instance_id
        if wanted not in self._instances:
            raise InvalidInputError(
                text("error.no_instance", name=repr(wanted[:64])), hint=text("error.known", names=[*self.ids])
            )
        return self._instances[wanted]
