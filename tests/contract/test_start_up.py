"""What a process pays at its start."""

import subprocess
import sys


def test_without_a_model_no_provider_sdk_is_imported() -> None:
    code = "import sys, flowise_dev_agent.cli, flowise_dev_agent.runtime.dependencies; print(*sys.modules, sep='\\n')"
    modules = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"anthropic", "openai"} & set(modules)
    assert "langgraph" in modules
