"""What a process pays at its start."""

import subprocess
import sys


def modules_after(code: str) -> set[str]:
    code = f"import sys; {code}; print(*sys.modules, sep='\\n')"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


def test_without_a_model_no_provider_sdk_is_imported() -> None:
    modules = modules_after("import flowise_dev_agent.cli.serve, flowise_dev_agent.runtime.dependencies")
    assert not {"anthropic", "openai"} & modules
    assert "langgraph.graph" in modules


def test_a_command_that_only_asks_a_service_imports_neither_the_graph_nor_the_api() -> None:
    modules = modules_after("import flowise_dev_agent.cli.main")
    assert "flowise_dev_agent.client" in modules
    assert not {"langgraph.graph", "fastapi", "flowise_dev_agent.agent"} & modules
