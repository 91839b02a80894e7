"""Images are taken by their content, within limits, without being unpacked."""

import base64
import struct

import pytest

from flowise_dev_agent.errors import InvalidInputError
from flowise_dev_agent.knowledge.documents import read_document
from flowise_dev_agent.schemas.attachments import MAX_IMAGE_BYTES

#: One pixel each, as other programs write them.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////"
    "////////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA="
) + b"\xff\xd9"  # fmt: skip
LOSSY = base64.b64decode("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
LOSSLESS = base64.b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")


def png(width: int, height: int) -> bytes:
    return PNG[:16] + struct.pack(">II", width, height) + PNG[24:]


@pytest.mark.parametrize(
    ("content", "media_type"),
    [(PNG, "image/png"), (JPEG, "image/jpeg"), (LOSSY, "image/webp"), (LOSSLESS, "image/webp")],
    ids=["png", "jpeg", "webp lossy", "webp lossless"],
)
def test_an_image_is_known_by_its_content_whatever_its_name(content: bytes, media_type: str) -> None:
    read = read_document("photo.txt", content)
    assert (read.facts.kind, read.facts.pixels, read.media_type, read.text) == ("image", (1, 1), media_type, "")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (png(30_000, 30_000), "30000 x 30000 pixels, more than 40 million"),
        (png(0, 1), "damaged"),
        (PNG[:-12], "damaged"),
        (JPEG[:-2], "damaged"),
        (LOSSY[:-8], "damaged"),
        (PNG[:12], "damaged"),
        (PNG + b"\0" * MAX_IMAGE_BYTES, "more than 5 MB"),
    ],
    ids=["bomb", "no width", "png cut", "jpeg cut", "webp cut", "head only", "too large"],
)
def test_an_image_that_is_damaged_or_too_large_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        read_document("photo.png", content)


def test_other_pictures_are_no_kind_that_is_taken() -> None:
    with pytest.raises(InvalidInputError, match="not taken"):
        read_document("photo.gif", b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff")
