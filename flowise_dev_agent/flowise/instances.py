"""The Flowise servers of the settings, one shared client each."""

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise.client import FlowiseClient
from flowise_dev_agent.flowise.transport import OnCall
from flowise_dev_agent.settings import FlowiseInstance, FlowiseSettings


class Instances:
    """Clients by instance id; the first instance of the settings is the default one."""

    def __init__(self, settings: FlowiseSettings, *, on_call: OnCall | None = None) -> None:
        self._settings = settings
        self._on_call = on_call
        self._instances = {instance.id: instance for instance in settings.instances}
        self._clients: dict[str, FlowiseClient] = {}

    @property
    def ids(self) -> tuple[str, ...]:
        """All instance ids, the default one first."""
        return tuple(self._instances)

    @property
    def default_id(self) -> str:
        """The instance used when a request names none."""
        return self.ids[0]

    def endpoint(self, instance_id: str | None = None) -> str:
        """Base address of the instance, without a slash at the end."""
        return str(self._instance(instance_id).endpoint).rstrip("/")

    def client(self, instance_id: str | None = None) -> FlowiseClient:
        """The client of the instance, made on first use; None means the default one.

        Raises:
            InvalidInputError: unknown instance; the message names the known ones.
        """
        instance = self._instance(instance_id)
        if instance.id not in self._clients:
            self._clients[instance.id] = FlowiseClient(
                str(instance.endpoint),
                instance.api_key,
                timeout=self._settings.timeout_secs,
                connect_timeout=self._settings.connect_timeout_secs,
                prediction_timeout=self._settings.prediction_timeout_secs,
                on_call=self._on_call,
            )
        return self._clients[instance.id]

    async def aclose(self) -> None:
        """Close all clients."""
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.aclose()

    def _instance(self, instance_id: str | None) -> FlowiseInstance:
        wanted = self.default_id if instance_id is None else instance_id
        if wanted not in self._instances:
            raise InvalidInputError(
                f"There is no Flowise instance called {wanted[:64]!r}.", hint=f"Known: {', '.join(self.ids)}."
            )
        return self._instances[wanted]
