"""One shared client per instance of the settings."""

import json

import pytest

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.flowise import Instances
from flowise_dev_agent.settings import FlowiseSettings


@pytest.fixture
def two() -> Instances:
    listed = [{"id": "dev", "endpoint": "http://dev:3000/", "api_key": "k1"}, {"id": "prod", "endpoint": "http://prod"}]
    return Instances(FlowiseSettings(FLOWISE_INSTANCES=json.dumps(listed)))


async def test_first_instance_is_the_default_and_clients_are_shared(two: Instances) -> None:
    assert two.ids == ("dev", "prod")
    assert two.client() is two.client("dev")
    assert two.client("prod") is not two.client("dev")
    assert two.client("prod").endpoint == two.endpoint("prod") == "http://prod"
    assert two.endpoint() == "http://dev:3000"
    await two.aclose()


def test_unknown_instance_is_refused_with_the_known_ones_named(two: Instances) -> None:
    with pytest.raises(InvalidInputError, match="Known: dev, prod"):
        two.client("stage")


async def test_a_login_in_an_address_is_neither_shown_nor_compared() -> None:
    named = FlowiseSettings(FLOWISE_INSTANCES='[{"id": "dev", "endpoint": "http://ada:secret@dev:3000"}]')
    instances = Instances(named)
    assert (instances.endpoint(), instances.addresses()) == ("http://dev:3000", ("http://dev:3000",))
    # What began when the address was kept as it stood goes on.
    assert instances.client_at("dev", "http://ada:secret@dev:3000") is instances.client_at("dev", "http://dev:3000")
    await instances.aclose()
