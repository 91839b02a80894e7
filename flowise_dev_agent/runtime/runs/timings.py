"""The time intervals of the runtime; tests shorten them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Timings:
    """Seconds. A worker that is silent for `stalled` has lost its runs; `heartbeat` must fit into it several times."""

    heartbeat: float = 2.0
    stalled: float = 8.0
    #: How often each worker looks for runs without a worker.
    recovery: float = 1.5
    #: Grace for the running step at shutdown; the run is then handed back from its last checkpoint.
    drain: float = 8.0
    #: Backup for lost notices: job queue, event feed, waiting requests.
    poll: float = 30.0
    #: First pause before a run is tried again; it doubles up to `backoff_max`.
    backoff: float = 1.0
    backoff_max: float = 60.0
