"""Measures how long a call takes, in a way that is comparable on a busy machine.

Times are CPU time of this process, not wall time. Each has its ratio to a fixed piece of plain Python (`yardstick`, run
alternately with it); compare two runs of a benchmark by these ratios.
"""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """Milliseconds of CPU time; `ratio` is the median relative to the yardstick, `calls` how many were timed."""

    min: float
    median: float
    p95: float
    ratio: float
    calls: int


def yardstick() -> int:
    """About half a millisecond of dictionary and string work."""
    table: dict[str, int] = {}
    for number in range(2000):
        table[f"k{number}"] = number
    return len(table)


def measure(run: Callable[[], object], seconds: float = 1.0) -> Measured:
    """Time `run` for about `seconds`, at least 20 times."""
    for _ in range(3):
        run()
    times: list[float] = []
    ratios: list[float] = []
    gc.collect()
    gc.disable()
    end = time.process_time() + seconds
    while time.process_time() < end or len(times) < 20:
        start = time.process_time_ns()
        yardstick()
        between = time.process_time_ns()
        run()
        stop = time.process_time_ns()
        times.append((stop - between) / 1e6)
        ratios.append((stop - between) / max(between - start, 1))
    gc.enable()
    return Measured(
        min=min(times),
        median=statistics.median(times),
        p95=statistics.quantiles(times, n=20)[-1],
        ratio=statistics.median(ratios),
        calls=len(times),
    )


def heading() -> str:
    """The first line of a table of `line`s."""
    return f"{'':58} {'min':>9} {'median':>9} {'p95':>9} ms  {'ratio':>8} {'calls':>6}"


def line(name: str, measured: Measured) -> str:
    """One row."""
    return (
        f"{name:58} {measured.min:9.4f} {measured.median:9.4f} {measured.p95:9.4f}     "
        f"{measured.ratio:8.3f} {measured.calls:6}"
    )
