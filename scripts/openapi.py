"""Write `docs/openapi.json`, the OpenAPI document of the service. The page's types are generated from it.

python scripts/openapi.py            (make openapi)
"""

from pathlib import Path

from flowise_dev_agent.api.app import create_app
from flowise_dev_agent.api.openapi import rendered
from flowise_dev_agent.settings import Settings

PATH = Path(__file__).parents[1] / "docs" / "openapi.json"


def main() -> None:
    """The document depends on no setting."""
    PATH.write_text(rendered(create_app(Settings())), encoding="utf-8")


if __name__ == "__main__":
    main()
