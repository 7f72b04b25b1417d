"""What a Prometheus sends for a remote read, written bit by bit: slow, plain, and independent of the decoder."""

from __future__ import annotations

import struct
from collections.abc import Sequence

Sample = tuple[int, float]  # unix milliseconds, value


class Bits:
    def __init__(self) -> None:
        self.text = ""

    def write(self, value: int, width: int) -> None:
        self.text += format(value & (1 << width) - 1, f"0{width}b") if width else ""

    def varint(self, value: int) -> None:
        for byte in varint(value):
            self.write(byte, 8)

    def bytes(self) -> bytes:
        padded = self.text + "0" * (-len(self.text) % 8)
        return int(padded, 2).to_bytes(len(padded) // 8, "big")


def chunk(samples: Sequence[Sample]) -> bytes:
    bits, delta, window = Bits(), 0, (64, 64)  # no XOR has 64 leading zeros: the first one is written out
    bits.write(len(samples), 16)
    for index, (at, value) in enumerate(samples):
        if index == 0:
            bits.varint(at << 1 if at >= 0 else ~(at << 1))
            bits.write(pattern(value), 64)
            continue
        before, distance = samples[index - 1], at - samples[index - 1][0]
        if index == 1:
            bits.varint(distance)
        else:
            _change(bits, distance - delta)
        delta = distance
        window = _xor(bits, pattern(value) ^ pattern(before[1]), window)
    return bits.bytes()


def pattern(value: float) -> int:
    return int.from_bytes(struct.pack(">d", value), "big")


def _change(bits: Bits, change: int) -> None:
    """Of the distance of two samples: the fewer bits the smaller it is."""
    if change == 0:
        bits.write(0, 1)
        return
    for mark, length, width in ((0b10, 2, 14), (0b110, 3, 17), (0b1110, 4, 20)):
        if -(1 << width - 1) < change <= 1 << width - 1:
            bits.write(mark, length)
            bits.write(change, width)
            return
    bits.write(0b1111, 4)
    bits.write(change, 64)


def _xor(bits: Bits, xor: int, window: tuple[int, int]) -> tuple[int, int]:
    if xor == 0:
        bits.write(0, 1)
        return window
    leading, trailing = min(31, 64 - xor.bit_length()), (xor & -xor).bit_length() - 1
    if leading >= window[0] and trailing >= window[1]:
        bits.write(0b10, 2)
    else:
        window, width = (leading, trailing), 64 - leading - trailing
        bits.write(0b11, 2)
        bits.write(leading, 5)
        bits.write(width, 6)  # 64 is written as 0
    bits.write(xor >> window[1], 64 - window[0] - window[1])
    return window


def series(labels: dict[str, str], *chunks: bytes, encoding: int = 1) -> bytes:
    """A ChunkedReadResponse of one series."""
    named = (field(1, field(1, key.encode()) + field(2, value.encode())) for key, value in labels.items())
    held = (field(2, number(1, 1) + number(2, 2) + number(3, encoding) + field(4, data)) for data in chunks)
    return field(1, b"".join(named) + b"".join(held)) + number(2, 0)


def frame(message: bytes) -> bytes:
    return varint(len(message)) + crc32c(message).to_bytes(4, "big") + message


def field(key: int, value: bytes) -> bytes:
    return varint(key << 3 | 2) + varint(len(value)) + value


def number(key: int, value: int) -> bytes:
    return varint(key << 3) + varint(value)


def varint(value: int) -> bytes:
    found = []
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def snappy(data: bytes) -> bytes:
    """A block of literals of up to 60 bytes."""
    parts = (data[at : at + 60] for at in range(0, len(data), 60))
    return varint(len(data)) + b"".join(bytes([len(part) - 1 << 2]) + part for part in parts)


def crc32c(data: bytes) -> int:
    """By the polynomial, read from RFC 3720: long division, one bit at a time."""
    rest = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            low = (rest ^ byte >> bit) & 1
            rest = rest >> 1 ^ low * 0x82F63B78
    return rest ^ 0xFFFFFFFF
