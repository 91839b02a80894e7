"""The state of the Flowise servers of the settings: reachability, version, node types."""

import asyncio
from typing import Any, Final

from flowise_dev_agent.errors import ConnectionUnreadableError, FlowiseError, FlowiseTimeoutError
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.knowledge.nodes import NodeStore
from flowise_dev_agent.knowledge.snapshot import fingerprint
from flowise_dev_agent.schemas.base import Failure
from flowise_dev_agent.schemas.service import Drift, FlowiseHealth, InstanceList, InstanceView
from flowise_dev_agent.texts import text

_SECS: Final = 10.0
_HEALTH_SECS: Final = 3.0


async def survey(instances: Instances) -> InstanceList:
    """Ask all servers at once; takes 10 s at most."""
    views = await asyncio.gather(*(_view(instances, id_) for id_ in instances.ids))
    return InstanceList(instances=list(views))


async def _view(instances: Instances, id_: str) -> InstanceView:
    known: dict[str, Any] = {"id": id_, "default": id_ == instances.default_id, "endpoint": instances.endpoint(id_)}
    try:
        client = instances.client(id_)
        async with asyncio.timeout(_SECS):
            # First a call that needs the key, so that a wrong one shows; one at a time, so that none is left behind.
            await client.list_chatflows(limit=1)
            store = await NodeStore.from_server(client)
    except (FlowiseError, ConnectionUnreadableError) as error:
        return InstanceView(**known, state="unavailable", error=error.message)
    except TimeoutError:
        return InstanceView(**known, state="unavailable", error=_late(known["endpoint"], _SECS))
    return InstanceView(
        **known,
        state="ok",
        version=store.flowise_version,
        nodes=len(store),
        drift=_drift(NodeStore.from_snapshot(), store),
    )


def _drift(snapshot: NodeStore, live: NodeStore) -> Drift:
    old, new = snapshot.schemas, live.schemas
    both = [name for name in new if name in old]
    changed = [name for name in both if fingerprint([old[name]]) != fingerprint([new[name]])]
    added, removed = [name for name in new if name not in old], [name for name in old if name not in new]
    return Drift(
        snapshot_version=snapshot.flowise_version,
        added=sorted(added)[:20],
        removed=sorted(removed)[:20],
        changed=sorted(changed)[:20],
        differs=bool(added or removed or changed),
    )


async def flowise_health(instances: Instances) -> dict[str, FlowiseHealth]:
    """The health of each server by instance id. Takes 3 s at most."""
    states = await asyncio.gather(*(_instance_health(instances, id_) for id_ in instances.ids))
    return dict(zip(instances.ids, states, strict=True))


async def _instance_health(instances: Instances, id_: str) -> FlowiseHealth:
    endpoint = instances.endpoint(id_)
    try:
        async with asyncio.timeout(_HEALTH_SECS):
            # A call that needs the key, so that a wrong one shows here and not in the first session.
            await instances.client(id_).list_chatflows(limit=1)
    except (FlowiseError, ConnectionUnreadableError) as error:
        return FlowiseHealth(endpoint=endpoint, state="unavailable", error=Failure.of(error))
    except TimeoutError:
        late = FlowiseTimeoutError(_late(endpoint, _HEALTH_SECS))
        return FlowiseHealth(endpoint=endpoint, state="unavailable", error=Failure.of(late))
    return FlowiseHealth(endpoint=endpoint, state="ok")


def _late(endpoint: str, seconds: float) -> str:
    return text("error.flowise_test_timeout", endpoint=endpoint, seconds=f"{seconds:.0f}")
