"""The addresses that a person connects the service to."""

import pytest
from pydantic import ValidationError

from flowise_dev_agent.schemas.connections import ConnectFlowise, ConnectModel


def test_an_address_may_be_as_long_as_its_schema_says() -> None:
    longest = f"https://{'a.' * 246}"
    assert len(longest) == ConnectFlowise.model_json_schema()["properties"]["endpoint"]["maxLength"] == 500
    assert str(ConnectFlowise.model_validate({"endpoint": longest}).endpoint) == f"{longest}/"
    assert ConnectModel.model_validate({"engine": "openai", "base_url": longest}).base_url is not None
    with pytest.raises(ValidationError, match="at most 500 characters"):
        ConnectFlowise.model_validate({"endpoint": f"{longest}a"})
