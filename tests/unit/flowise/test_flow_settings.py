"""Settings of flows, which other people set on the server: of any length and content."""

import json

from flowise_dev_agent.flowise.flow_settings import columns_for, settings_of, with_settings
from flowise_dev_agent.flowise.models import Chatflow
from flowise_dev_agent.flowise.uploads import offering
from flowise_dev_agent.patch.views.flow_diff import NO_DIFFERENCE
from flowise_dev_agent.schemas.change import Difference
from flowise_dev_agent.schemas.flow_writes import FlowSettings

SECRET = "sk-proj-" + "a1B2" * 8


def flow(config: str) -> Chatflow:
    return Chatflow(id="f", name="f", flow_data="{}", chatbot_config=config)


def test_settings_with_a_picture_are_recorded_compared_and_put_back() -> None:
    picture = flow(json.dumps({"avatar": "data:image/png;base64," + "A" * 2_000_000}))
    recorded = settings_of(picture)
    assert FlowSettings.model_validate(recorded.columns) == recorded
    assert columns_for(flow("{}"), recorded) == {"chatbot_config": picture.chatbot_config}


def test_settings_that_no_database_keeps_are_recorded_without_what_is_not_text() -> None:
    recorded = settings_of(flow('{"welcomeMessage":"a\x00b\ud800"}'))
    assert FlowSettings.model_validate(recorded.columns) == recorded
    assert recorded.chatbot_config == '{"welcomeMessage":"a\ufffdb\ufffd"}'


def test_half_a_character_in_the_settings_of_others_stays_beside_starter_questions() -> None:
    before = '{"welcomeMessage":"\\ud800"}'
    written = offering(["Hello?"])(before)
    assert written.encode() == b'{"welcomeMessage":"\\ud800","starterPrompts":{"0":{"prompt":"Hello?"}}}'


def test_a_key_of_the_settings_shows_no_secret_and_is_short() -> None:
    none = Difference(text=NO_DIFFERENCE, summary=NO_DIFFERENCE)
    after = FlowSettings(chatbot_config=json.dumps({SECRET: "x", "k" * 100_000: "x", "a\nb": "x"}))
    shown = with_settings(none, FlowSettings(), after)
    assert shown.settings is not None
    assert len(shown.settings) == 3
    assert SECRET not in shown.model_dump_json()
    assert len(shown.text) < 1_000
    assert len(shown.text.splitlines()) == 3
