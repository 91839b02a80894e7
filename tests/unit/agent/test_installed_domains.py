"""Domains are found by the entry points of installed distributions."""

from pathlib import Path

import pytest

from flowise_dev_agent.agent.domains.installed import installed_domains
from flowise_dev_agent.errors import ConfigurationError
from flowise_dev_agent.settings import load_settings

MODULE = """
from flowise_dev_agent.agent.domains.flowise import FlowiseCapability

class Tickets(FlowiseCapability):
    name = "tickets"

def broken():
    raise OSError("no licence")
"""


def install(folder: Path, name: str, entry: str) -> None:
    """A distribution as pip leaves it: a module and the metadata beside it."""
    (folder / f"{name}_module.py").write_text(MODULE)
    info = folder / f"{name}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[flowise_dev_agent.domains]\n{entry}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_domain_of_an_installed_distribution_is_found_behind_flowise(site: Path) -> None:
    install(site, "acme", "tickets = acme_module:Tickets")

    assert [domain.name for domain in installed_domains()] == ["flowise", "openapi", "workday", "tickets"]


def test_domains_that_the_setting_leaves_out_are_off_and_not_loaded(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "acme", "tickets = acme_module:Tickets\nother = acme_module:broken")
    monkeypatch.setenv("DOMAINS", "tickets")

    found = installed_domains(load_settings().domain_settings.names)

    assert [domain.name for domain in found] == ["flowise", "tickets"]
    assert [domain.name for domain in installed_domains(("flowise",))] == ["flowise"]


def test_a_named_domain_that_is_not_installed_is_an_error(site: Path) -> None:
    with pytest.raises(ConfigurationError, match="DOMAINS names tickets, which is not installed") as caught:
        installed_domains(("flowise", "tickets"))

    assert "Installed: flowise" in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("tickets = acme_module:broken", "acme 1.2 cannot be loaded: OSError: no licence"),
        ("tickets = acme_module:Missing", "acme 1.2 cannot be loaded: AttributeError"),
        ("other = acme_module:Tickets", "does not give a DomainCapability of this name"),
        ("flowise = acme_module:Tickets", "'flowise' of acme 1.2 is already there"),
    ],
)
def test_an_unusable_entry_point_names_its_package(site: Path, entry: str, said: str) -> None:
    install(site, "acme", entry)

    with pytest.raises(ConfigurationError, match=said.replace(".", r"\.")):
        installed_domains()


def test_two_distributions_cannot_bring_one_domain(site: Path) -> None:
    install(site, "acme", "tickets = acme_module:Tickets")
    install(site, "zenith", "tickets = zenith_module:Tickets")

    with pytest.raises(ConfigurationError, match=r"'tickets' of (acme|zenith) 1\.2 is already there"):
        installed_domains()
