"""What a process that runs for long does once everything is loaded."""

import gc

from flowise_dev_agent.cli.console import warn
from flowise_dev_agent.flowise.instances import Instances
from flowise_dev_agent.runtime.admin.instances import flowise_health
from flowise_dev_agent.settings import Settings


async def become_ready(settings: Settings) -> None:
    """Warn of a Flowise that does not answer; spare the garbage collector what stays loaded anyway.

    A full collection over the modules holds the event loop, with all streams and heartbeats, for a tenth of a second.
    """
    gc.freeze()
    await _warn_about_flowise(settings)


async def _warn_about_flowise(settings: Settings) -> None:
    """Say now what would otherwise stop the first session; the service starts all the same."""
    instances = Instances(settings.flowise)
    try:
        states = await flowise_health(instances)
    finally:
        await instances.aclose()
    for instance, state in states.items():
        if error := state.error:
            warn(f"Flowise instance '{instance}': {error['detail']} {error.get('hint', '')}".rstrip())
