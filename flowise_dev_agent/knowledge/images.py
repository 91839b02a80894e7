"""What an image file says of itself: its kind and size, read from its first bytes. Nothing is unpacked."""

import struct
from io import BytesIO
from typing import Final

from flowise_dev_agent.contracts.attachments import MAX_IMAGE_BYTES, MAX_IMAGE_PIXELS
from flowise_dev_agent.errors import InvalidInputError

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG: Final = b"\xff\xd8\xff"


def image_type(content: bytes) -> str | None:
    """The media type of a PNG, JPEG or WebP; None for other files."""
    if content.startswith(_PNG):
        return "image/png"
    if content.startswith(_JPEG):
        return "image/jpeg"
    return "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else None


def image_size(content: bytes) -> tuple[int, int]:
    """Width and height. Raises InvalidInputError: damaged or cut off, too large, or with too many pixels."""
    import imagesize  # loads what a service without images does not need

    if len(content) > MAX_IMAGE_BYTES:
        raise InvalidInputError(f"The image has more than {MAX_IMAGE_BYTES // 1024**2} MB.", hint="Make it smaller.")
    width, height = imagesize.get(BytesIO(content))
    if width < 1 or height < 1 or not _is_whole(content):
        raise InvalidInputError("The image is damaged.")
    if width * height > MAX_IMAGE_PIXELS:
        raise InvalidInputError(
            f"The image has {width} x {height} pixels, more than {MAX_IMAGE_PIXELS // 1_000_000} million.",
            hint="Make it smaller.",
        )
    return width, height


def _is_whole(content: bytes) -> bool:
    """Whether the end of the file is there, which its size says nothing about."""
    if content.startswith(_PNG):
        return content[-12:-4] == b"\0\0\0\0IEND"
    if content.startswith(_JPEG):
        return b"\xff\xd9" in content[-64:]
    return struct.unpack("<I", content[4:8])[0] + 8 <= len(content)
