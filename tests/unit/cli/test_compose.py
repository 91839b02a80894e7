"""The compose files name commands, options and variables that exist."""

from pathlib import Path

import pytest
import typer
import yaml

from flowise_dev_agent.api.middleware import is_public
from flowise_dev_agent.cli.main import app
from flowise_dev_agent.settings import ServerSettings, Settings

ROOT = Path(__file__).resolve().parents[3]
VARIABLES = {
    field.alias
    for group in Settings.model_fields.values()
    for field in group.default_factory.model_fields.values()  # type: ignore[union-attr]
}
DEFAULT_PORT = str(ServerSettings.model_fields["port"].default)
SERVICES = yaml.safe_load((ROOT / "docker-compose.scale.yml").read_text())["services"]


@pytest.mark.parametrize("name", ["api", "worker"])
def test_the_scaled_services_use_options_and_variables_that_exist(name: str) -> None:
    command, *arguments = SERVICES[name]["command"]
    known = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    context = known.make_context(command, list(arguments), resilient_parsing=False)
    assert context.params
    assert set(SERVICES[name]["environment"]) <= VARIABLES


@pytest.mark.parametrize(("name", "port"), [("api", "8000"), ("worker", "9100")])
def test_health_checks_ask_a_public_path_at_the_port_that_is_served(name: str, port: str) -> None:
    how, python, option, script = SERVICES[name]["healthcheck"]["test"]
    assert (how, python, option) == ("CMD", "python", "-c")
    assert f"http://127.0.0.1:{port}/live" in script
    compile(script, name, "exec")
    assert is_public("GET", "/live")
    command = SERVICES[name]["command"]
    served = command[command.index("--metrics-port") + 1] if "--metrics-port" in command else DEFAULT_PORT
    assert served == port


def test_api_and_worker_are_apart_and_nothing_is_published_beyond_this_machine() -> None:
    assert SERVICES["api"]["command"] == ["serve", "--no-worker"]
    assert "ports" not in SERVICES["worker"]
    assert all(port.startswith("127.0.0.1:") for port in SERVICES["api"]["ports"])
