"""Prints what sessions through each door take: requests, refused ones, and features that were lost.

    python scripts/bench/doors.py [door ...]

A door is a way to a model (`tests/doors/peers/`). Through each go a new flow, a change, and after a restart of the
service another new flow, on a Postgres of this program and a Flowise of tests.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from flowise_dev_agent.caller import DEFAULT_OWNER, serving
from flowise_dev_agent.devkit.postgres import EmbeddedPostgres
from flowise_dev_agent.persistence import migrate
from tests.chaos.fake_flowise import FakeFlowise
from tests.doors.peers import DOORS
from tests.doors.sessions import FLOWISE_KEY, figures, own_variables, through


async def measure(names: list[str]) -> None:
    """Print a line for each door."""
    print("| door | requests | refused | rules | lost | failed |\n|---|---|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory(prefix="fda-doors-") as folder,
        EmbeddedPostgres(Path(folder) / "data") as postgres,
        FakeFlowise(api_key=FLOWISE_KEY, latency=0) as flowise,
        serving(DEFAULT_OWNER),
    ):
        for number, name in enumerate(names):
            dsn = postgres.create_database(f"door_{number}")
            await migrate(dsn)
            try:
                found = figures(await through(DOORS[name], dsn, flowise, restart=True))
            except Exception as error:  # noqa: BLE001 - a door without a way in is a line of the table, too
                print(f"| {name} | | | | | {type(error).__name__}: {str(error)[:120]} |", flush=True)
                continue
            refused = ", ".join(f"{kind} {count}" for kind, count in found.refused.items()) or "0"
            cells = (", ".join(part) for part in (found.rules, found.lost, found.broken))
            print(f"| {name} | {found.requests} | {refused} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Measure the doors that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("doors", nargs="*", choices=[*DOORS, []], help="all, if none is named")
    for name in own_variables():
        del os.environ[name]
    asyncio.run(measure(parser.parse_args().doors or [*DOORS]))


if __name__ == "__main__":
    main()
