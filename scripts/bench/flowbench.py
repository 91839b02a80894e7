"""Does a requirement become a flow that really runs? Grades a running service by a file of cases.

    python scripts/bench/flowbench.py CASES.yaml [--engine NAME ...] [--cassette DIR [--record]] [--parallel N]
                                      [--wait SECS] [--case ID ...] [--json FILE]

Reads the addresses and keys of the service and of Flowise from the same settings as the service. A case passes when
its session ends under nothing but plain approvals, the flow read back holds what the case expects, and every question
of `ask` is answered by it. The project's own verdict plays no part. Credential types that a case needs and the server
lacks get a dummy.

Without `--engine` the service that listens on AGENT_API_PORT is graded. With it the runner starts a service of its own
for each engine named, on the same database and Flowise. `--cassette` stands between that service and the model
provider: it answers from DIR, and with `--record` asks the provider for what is missing and keeps it, so that a run
with a real model can be repeated without a key. A scripted model says nothing about an engine.
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx2
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from flowise_dev_agent.client import AgentClient
from flowise_dev_agent.errors import AgentError
from flowise_dev_agent.flowise import FlowiseClient
from flowise_dev_agent.schemas.requests import StartSession
from flowise_dev_agent.schemas.session import SessionView
from flowise_dev_agent.settings import Settings, load_settings
from scripts.bench.cassette import PROVIDERS, Cassette
from scripts.bench.playing import CaseFailedError, clean_up, grade, play, request_of

START_SECS = 60
#: A key that opens nothing, for an engine whose provider is a cassette.
NO_KEY = "cassette"


@dataclass
class Result:
    """One graded case; `failed_at` is empty when it passed."""

    case: str
    failed_at: str
    seconds: float
    model_calls: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    usd: float = 0.0


async def main(
    cases: list[dict[str, Any]], settings: Settings, url: str, parallel: int, wait_secs: float
) -> dict[str, Any]:
    """Run the cases against the service at `url`; the table of one engine."""
    instance = settings.flowise.instances[0]
    slots = asyncio.Semaphore(parallel)
    async with (
        AgentClient(url, settings.server.api_key) as agent,
        FlowiseClient(str(instance.endpoint), instance.api_key) as flowise,
        credentials_api(settings) as credentials,
    ):
        engine = (await agent.health()).reasoning.engine

        async def one(case: Mapping[str, Any]) -> Result:
            async with slots:
                result = await run_case(agent, flowise, credentials, case, wait_secs)
            print(_line(result), flush=True)
            return result

        started = time.monotonic()
        # Whoever looks at the whole server must be alone on it.
        alone = [case for case in cases if {"no_write", "others_untouched"} & set(case["expect"])]
        results = list(await asyncio.gather(*(one(case) for case in cases if case not in alone)))
        results += [await one(case) for case in alone]
        elapsed = time.monotonic() - started
    passed = sum(not result.failed_at for result in results)
    tokens, calls = sum(result.tokens for result in results), sum(result.model_calls for result in results)
    print(f"{engine}: {passed}/{len(results)} passed, {tokens} tokens, {calls} model calls, {elapsed:.0f} s")
    return {
        "engine": engine,
        "passed": passed,
        "total": len(results),
        "prompt_tokens": sum(result.prompt_tokens for result in results),
        "cached_tokens": sum(result.cached_tokens for result in results),
        "model_calls": calls,
        "usd": round(sum(result.usd for result in results), 6),
        "seconds": round(elapsed, 1),
        "slowest_seconds": round(max((result.seconds for result in results), default=0.0), 1),
        "cases": [asdict(result) | {"passed": not result.failed_at} for result in results],
    }


def recorder(folder: Path, settings: Settings, cases: list[dict[str, Any]], *, record: bool) -> Cassette:
    """A running cassette in front of the providers that the settings name (OpenAI's address ends in /v1)."""
    chosen = settings.reasoning
    upstream = dict(PROVIDERS)
    if chosen.anthropic_base_url:
        upstream["anthropic"] = chosen.anthropic_base_url.rstrip("/")
    if chosen.openai_base_url:
        upstream["openai"] = chosen.openai_base_url.rstrip("/").removesuffix("/v1")
    requirements = {case["id"]: case["requirement"] for case in cases} if record else None
    return Cassette(folder, cases=requirements, upstream=upstream, timeout_secs=chosen.timeout_secs).start()


@contextmanager
def own_service(settings: Settings, engine: str, cassette: Cassette | None) -> Generator[str]:
    """A service with this engine on a free port, for as long as the context; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "REASONING_ENGINE": engine, "AGENT_API_PORT": str(port)}
    environment["RATE_LIMIT_SESSIONS_PER_MIN"] = "0"
    if cassette:
        environment |= cassette.environment
        for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
            environment.setdefault(name, NO_KEY)
    process = subprocess.Popen(
        [sys.executable, "-m", "flowise_dev_agent", "serve"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _until_it_answers(process, url)
        yield url
    finally:
        process.terminate()
        process.wait()


def _until_it_answers(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + START_SECS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"The service ended with code {process.returncode}; start it by hand to see why.")
        try:
            httpx2.get(f"{url}/live")
        except httpx2.TransportError:
            time.sleep(0.2)
        else:
            return
    raise SystemExit(f"The service did not answer within {START_SECS} s.")


def credentials_api(settings: Settings) -> httpx2.AsyncClient:
    """For the dummies alone: the product itself never makes a credential."""
    instance = settings.flowise.instances[0]
    key = instance.api_key.get_secret_value() if instance.api_key else ""
    base = f"{str(instance.endpoint).rstrip('/')}/api/v1"
    return httpx2.AsyncClient(base_url=base, headers={"Authorization": f"Bearer {key}"})


async def run_case(
    agent: AgentClient,
    flowise: FlowiseClient,
    credentials: httpx2.AsyncClient,
    case: Mapping[str, Any],
    wait_secs: float,
) -> Result:
    """Play one case to its end and grade it; what it created is deleted."""
    started = time.monotonic()
    before = {row.id: row async for row in flowise.iter_chatflows()}
    view: SessionView | None = None
    request: StartSession | None = None
    failed_at = ""
    seconds = 0.0
    try:
        request = await request_of(flowise, case)
        if request.target:
            before[request.target] = await flowise.get_chatflow(request.target)
        started = time.monotonic()
        told: list[str] = []
        view = await play(agent, credentials, await agent.start(request), case, told, wait_secs)
        seconds = time.monotonic() - started
        await grade(flowise, credentials, case, view, before, request.target, told)
    except (CaseFailedError, AgentError) as error:
        failed_at = str(error)
    finally:
        await clean_up(flowise, request, view)
    result = Result(case["id"], failed_at, seconds or time.monotonic() - started)
    if view:
        result.model_calls = view.totals.model_calls
        result.prompt_tokens, result.cached_tokens = view.totals.input_tokens, view.totals.cached_tokens
        result.usd = view.totals.usd
        result.tokens = view.totals.input_tokens + view.totals.output_tokens
    return result


def _write(report: Path, text: str) -> None:
    if str(report) == "-":
        print(text)
    else:
        report.write_text(f"{text}\n", "utf-8")


def _line(result: Result) -> str:
    return f"{'FAIL' if result.failed_at else 'ok':4} {result.case:24} {result.seconds:5.1f} s  {result.failed_at}"


def _run(arguments: argparse.Namespace) -> int:
    """All engines asked for, one after the other; the number of failed cases."""
    everything: list[dict[str, Any]] = yaml.safe_load(arguments.cases.read_text("utf-8"))
    cases = [case for case in everything if not arguments.case or case["id"] in arguments.case]
    settings = load_settings()
    tables: list[dict[str, Any]] = []
    if not arguments.engine:
        url = f"http://localhost:{settings.server.port}"
        tables.append(asyncio.run(main(cases, settings, url, arguments.parallel, arguments.wait)))
    for engine in arguments.engine or ():
        folder: Path | None = arguments.cassette
        cassette = recorder(folder, settings, cases, record=arguments.record) if folder else None
        try:
            with own_service(settings, engine, cassette) as url:
                tables.append(asyncio.run(main(cases, settings, url, arguments.parallel, arguments.wait)))
            if cassette:
                changed = sorted(cassette.changed)
                tables[-1] |= {"cassette_hits": cassette.hits, "cassette_misses": cassette.misses, "changed": changed}
                print(f"{engine}: {cassette.hits} answers from the cassette, {cassette.misses} not on it")
                print(f"{engine}: {len(changed)} answers were given to other prompts: {', '.join(changed) or '-'}")
        finally:
            if cassette:
                cassette.stop()
    if arguments.json:
        _write(arguments.json, json.dumps(tables, ensure_ascii=False, indent=1))
    return sum(table["total"] - table["passed"] for table in tables)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--engine", action="append", choices=("deterministic", "claude", "openai"))
    parser.add_argument("--cassette", type=Path, help="folder of recorded answers; only with --engine")
    parser.add_argument("--record", action="store_true", help="ask the provider for what the cassette lacks")
    parser.add_argument("--parallel", type=int, default=2, help="cases at a time")
    parser.add_argument("--wait", type=float, default=300, help="seconds to wait for each question of a session")
    parser.add_argument("--case", action="append", help="only this id; may be given several times")
    parser.add_argument("--json", type=Path, help="write the tables to this file, or to stdout with -")
    try:
        sys.exit(1 if _run(parser.parse_args()) else 0)
    except AgentError as problem:
        sys.exit(str(problem))
