"""Two people of one team and one of another sign in at a provider, and programs of both teams come with keys."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from flowise_dev_agent.flowise import FlowiseClient
from tests.e2e.page.screen import SIZES, Screen
from tests.e2e.people import KEY, LOCKED, MakeService, http_of, run_command
from tests.e2e.service import ServiceProcess, free_port
from tests.e2e.test_mcp import over_http
from tests.fixtures.oidc import CLIENT, SECRET, OidcProvider

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.nightly]

REQUIREMENT = "Build a chatbot for a harbour with GPT-4o and memory"
REFUSAL = "You started this session, so somebody else has to decide."


@pytest.fixture
def provider() -> Iterator[OidcProvider]:
    with OidcProvider() as started:
        yield started


@dataclass
class Office:
    """A service with two teams, and the provider that knows their people."""

    service: ServiceProcess
    provider: OidcProvider
    browser: Browser

    async def arrives(self, name: str, group: str) -> Screen:
        """A person at the page, who signs in."""
        self.provider.person = {"sub": name, "email": f"{name}@example.org", "groups": [group]}
        screen = await Screen.open(self.browser, self.service.url, has_key=False)
        dialog = screen.page.get_by_role("dialog", name="Sign in")
        await expect(dialog).to_be_visible()
        assert await screen.violations() == []
        await dialog.get_by_role("link", name="Sign in").click()
        await expect(screen.page.locator(".person-name")).to_have_text(f"{name}@example.org")
        # Nothing was allowed before, and the browser says so.
        assert [heard for heard in screen.heard if "401" not in heard] == []
        screen.heard.clear()
        return screen

    async def key(self, team: str) -> str:
        """A new key of a program that builds and approves for a team."""
        async with http_of(self.service, KEY) as http:
            body = {"name": f"ci of {team} {uuid4().hex[:4]}", "scopes": ["build", "approve"], "owner": team}
            made = await http.post("/keys", json=body)
            assert made.status_code == 201, made.text
            return made.json()["key"]


@pytest_asyncio.fixture(loop_scope="session")
async def office(
    built_page: Path,
    browser: Browser,
    make_service: MakeService,
    flowise_flows: FlowiseClient,
    provider: OidcProvider,
) -> AsyncIterator[Office]:
    del built_page, flowise_flows  # the page is served; what a test leaves on the server is deleted
    port = free_port()
    service = make_service(
        **LOCKED,
        AGENT_API_PORT=str(port),
        PUBLIC_BASE_URL=f"http://127.0.0.1:{port}",
        OIDC_ISSUER=provider.endpoint,
        OIDC_CLIENT_ID=CLIENT,
        OIDC_CLIENT_SECRET=SECRET,
        OIDC_GROUPS="crew=build@harbour,harbour=build+approve@harbour,airport=build+approve@airport",
        SEPARATE_APPROVAL="true",
    )
    await service.start()
    yield Office(service, provider, browser)


async def test_two_people_of_a_team_decide_together_and_another_team_sees_nothing(
    office: Office, tmp_path: Path
) -> None:
    ada = await office.arrives("ada", "harbour")
    session = await ada.start(REQUIREMENT)
    plan = await ada.question("The plan")
    await expect(ada.page.get_by_text("Approving needs somebody")).to_have_count(0)
    # Who asked for it does not approve it.
    await ada.press("Approve", plan)
    await ada.reads(REFUSAL)
    assert [heard for heard in ada.heard if "403" not in heard] == []
    ada.heard.clear()

    # Who may build only reads it beforehand.
    tim = await office.arrives("tim", "crew")
    await tim.see(session)
    await tim.question("The plan")
    await tim.reads("Approving needs somebody with the right “approve”.")
    assert await tim.violations() == []

    grace = await office.arrives("grace", "harbour")
    waiting = grace.page.locator(".inbox a").first
    await expect(waiting).to_contain_text("ada@example.org")
    await waiting.click()
    await grace.page.wait_for_url(f"**/#/s/{session}")
    said = grace.page.locator(".turn.mine")
    await expect(said.first.locator("header")).to_contain_text("ada@example.org")
    await grace.press("Approve", await grace.question("The plan"))
    await grace.accept(await grace.question("The result"))
    await grace.status("Accepted")
    await expect(said.nth(1).locator("header")).to_contain_text("You")
    # Ada's page has followed, and says who decided.
    await ada.status("Accepted")
    decided = ada.page.locator(".turn.mine")
    await expect(decided.first.locator("header")).to_contain_text("You")
    await expect(decided.nth(1).locator("header")).to_contain_text("grace@example.org")
    for size in SIZES:
        await ada.page.set_viewport_size(size)
        assert await ada.overflow() == 0
        assert await ada.violations() == []
    async with http_of(office.service, await office.key("harbour")) as http:
        flow = (await http.get(f"/sessions/{session}")).json()["chatflow_id"]
    await ada.page.goto(f"{ada.url}/#/history/{flow}")
    await expect(ada.page.locator(".version").first).to_contain_text("grace@example.org")

    linus = await office.arrives("linus", "airport")
    await linus.reads("No sessions yet")
    await expect(linus.page.locator(".inbox")).to_have_count(0)
    await linus.see(session)
    await linus.reads("Session not found")
    assert [heard for heard in linus.heard if "404" not in heard] == []

    await the_programs_of_both_teams_see_what_their_people_see(office, session, tmp_path)

    # The sign-in ends at the service and at the provider.
    await grace.press("Sign out")
    await grace.page.wait_for_url(f"{office.provider.endpoint}/logout?*")
    await grace.page.goto(grace.url)
    await expect(grace.page.get_by_role("dialog", name="Sign in")).to_be_visible()


async def the_programs_of_both_teams_see_what_their_people_see(office: Office, session: str, folder: Path) -> None:
    for team, sees in (("harbour", True), ("airport", False)):
        key = await office.key(team)
        async with httpx2.AsyncClient(base_url=office.service.url, headers={"Authorization": f"Bearer {key}"}) as http:
            listed = [row["thread_id"] for row in (await http.get("/sessions")).json()["sessions"]]
            one = await http.get(f"/sessions/{session}")
        assert (listed, one.status_code) == (([session], 200) if sees else ([], 404))
        async with over_http(office.service, key) as agent:
            found = await agent.call("get_session", session_id=session)
            assert found.is_error is not sees
        (folder / ".env").write_text(f"AGENT_API_KEY={key}\n")
        printed = await run_command(office.service, folder, "sessions", "list", "--json")
        assert (session in printed) is sees
