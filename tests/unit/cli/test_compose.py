"""Deployment files name commands, options, paths and variables that exist: image, compose, Kubernetes, systemd."""

import re
import subprocess
import sys
from configparser import ConfigParser
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
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"proxy": ["127.0.0.1:8080:8080"]}


@pytest.mark.parametrize("name", ["docker-compose.scale.yml", "docker-compose.postgres.yml"])
def test_a_compose_file_fits_the_specification(name: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def accepts(command: list[str]) -> bool:
    known = typer.main.get_command(app).commands[command[0]]  # type: ignore[attr-defined]
    return bool(known.make_context(command[0], command[1:], resilient_parsing=False).params)


@pytest.mark.parametrize("part", ["api", "worker"])
def test_kubernetes_runs_what_exists_without_rights_and_asks_public_paths(part: str) -> None:
    documents = list(yaml.safe_load_all((ROOT / "deploy/kubernetes.yaml").read_text()))
    (spec,) = [one["spec"] for one in documents if one["metadata"]["name"] == f"flowise-dev-agent-{part}"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert accepts(list(container["args"]))
    assert {one["name"] for one in container["env"]} <= VARIABLES
    assert all(is_public("GET", container[f"{kind}Probe"]["httpGet"]["path"]) for kind in ("liveness", "readiness"))
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    (port,) = container["ports"]
    served = container["args"][-1] if part == "worker" else DEFAULT_PORT
    assert str(port["containerPort"]) == served


def test_the_unit_of_systemd_starts_a_command_that_exists() -> None:
    unit = ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(ROOT / "deploy/flowise-dev-agent.service")
    program, *command = unit["Service"]["ExecStart"].split()
    assert (Path(program).name, accepts(command)) == ("flowise-dev-agent", True)


def test_the_image_is_made_as_images_should_be() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    of = {
        word: [line for line in lines if line.startswith(f"{word} ")] for word in ("FROM", "RUN", "USER", "COPY", "ADD")
    }
    assert of["USER"] == ["USER 65534:65534"]
    assert all("PYTHON" in line for line in of["FROM"])
    assert not of["ADD"]
    assert not [line for line in of["RUN"] if re.search(r"\b(sudo|apt|curl|wget)\b|&&|;(?! )", line)]
    assert [line for line in lines if line.startswith(("ENTRYPOINT", "CMD"))] == [
        'ENTRYPOINT ["flowise-dev-agent"]',
        'CMD ["serve"]',
    ]
    assert accepts(["serve"])
    assert any(line.startswith("HEALTHCHECK") for line in lines)
