"""What an image file says of itself: its kind and size, read from its first bytes. Nothing is unpacked."""

import struct
from collections.abc import Iterator
from typing import Final

from flowise_dev_agent.contracts.attachments import MAX_IMAGE_BYTES, MAX_IMAGE_PIXELS
from flowise_dev_agent.errors import InvalidInputError

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_JPEG: Final = b"\xff\xd8\xff"
#: Markers of JPEG that carry the size: all frames but DHT, JPG and DAC.
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def image_type(content: bytes) -> str | None:
    """The media type of a PNG, JPEG or WebP; None for other files."""
    if content.startswith(_PNG):
        return "image/png"
    if content.startswith(_JPEG):
        return "image/jpeg"
    return "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else None


def image_size(content: bytes) -> tuple[int, int]:
    """Width and height. Raises InvalidInputError: damaged or cut off, too large, or with too many pixels."""
    if len(content) > MAX_IMAGE_BYTES:
        raise InvalidInputError(f"The image has more than {MAX_IMAGE_BYTES // 1024**2} MB.", hint="Make it smaller.")
    try:
        width, height = _size(content)
    except (struct.error, IndexError):
        width = height = 0
    if not width or not height or not _is_whole(content):
        raise InvalidInputError("The image is damaged.")
    if width * height > MAX_IMAGE_PIXELS:
        raise InvalidInputError(
            f"The image has {width} x {height} pixels, more than {MAX_IMAGE_PIXELS // 1_000_000} million.",
            hint="Make it smaller.",
        )
    return width, height


def _is_whole(content: bytes) -> bool:
    if content.startswith(_PNG):
        return content[-12:-4] == b"\0\0\0\0IEND"
    if content.startswith(_JPEG):
        return b"\xff\xd9" in content[-64:]
    return struct.unpack("<I", content[4:8])[0] + 8 <= len(content)


def _size(content: bytes) -> tuple[int, int]:
    if content.startswith(_PNG):
        width, height = struct.unpack(">II", content[16:24]) if content[12:16] == b"IHDR" else (0, 0)
        return width, height
    if content.startswith(_JPEG):
        height, width = next((struct.unpack(">HH", content[at + 5 : at + 9]) for at in _frames(content)), (0, 0))
        return width, height
    match content[12:16]:
        case b"VP8 ":
            width, height = struct.unpack("<HH", content[26:30])
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            bits = struct.unpack("<I", content[21:25])[0]
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            width, height = content[24:27], content[27:30]
            return int.from_bytes(width, "little") + 1, int.from_bytes(height, "little") + 1
        case _:
            return 0, 0


def _frames(content: bytes) -> Iterator[int]:
    """Where the segments begin that carry the size."""
    at = 2
    while at + 9 < len(content) and content[at] == 0xFF:
        if content[at + 1] in _FRAMES:
            yield at
        at += 2 + struct.unpack(">H", content[at + 2 : at + 4])[0]
