"""As much of protobuf's encoding as remote read needs: numbers and byte strings, by field."""

from __future__ import annotations

from collections.abc import Iterator

VARINT_BYTES = 10


class NotProtobuf(ValueError):
    """Says what is wrong with a message."""


def number_field(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def bytes_field(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    low = bytes([value & 127 | (128 if value > 127 else 0)])
    return low + varint(value >> 7) if value > 127 else low


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and byte strings: the messages of remote read have nothing else."""
    at = 0
    while at < len(message):
        try:
            key, at = read_varint(message, at)
            value, at = read_varint(message, at)
        except IndexError:
            raise NotProtobuf("a message that ends early") from None
        if key & 7 == 0:
            yield key >> 3, value
        elif key & 7 == 2 and at + value <= len(message):
            yield key >> 3, message[at : at + value]
            at += value
        else:
            raise NotProtobuf("a message of another kind")


def read_varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    value, shift = byte & 127, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at + 1
        shift += 7
        if shift >= 7 * VARINT_BYTES:
            raise NotProtobuf("a number of more than 64 bits")
