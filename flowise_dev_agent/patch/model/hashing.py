"""The one hash by which validation, write guard and read-back speak of a flow."""

import hashlib


def payload_sha256(flow_data: str) -> str:
    """Lower-case hex SHA-256 of the exact ``flowData`` text in UTF-8."""
    return hashlib.sha256(flow_data.encode("utf-8")).hexdigest()
