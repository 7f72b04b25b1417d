"""XOR chunks, as Prometheus stores floats, decoded in lockstep: sample i of all chunks at once, with numpy.

chunk = uint16 count, then bits: time (varint), value (64), delta (uvarint), value, and from then on the change of the
delta (0 | 10 + 14 | 110 + 17 | 1110 + 20 | 1111 + 64 bits) and the value XOR the one before it (0 | 10 + as wide as
before | 11 + 5 leading zeros + 6 width). Source: Facebook's Gorilla paper, 4.1; tsdb/chunkenc/xor.go of Prometheus.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trimtab.errors import MetricsUnavailable
from trimtab.series import Floats

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]

HEADER_BITS = 16
FIRST_BITS = 8 + 64  # at least: a time and a value
MORE_BITS = 2  # at least, of each other sample: the same delta and the same value
# By the first four bits of a change of the delta: how long its mark is, and how many bits follow it.
MARK = np.array([1] * 8 + [2] * 4 + [3] * 2 + [4] * 2, dtype=np.uint64)
WIDTH = np.array([0] * 8 + [14] * 4 + [17] * 2 + [20, 64], dtype=np.uint64)
# 14 bits mean -8191..8192, and so on: what is larger than the half is negative. (64 bits are a plain int64.)
HALF = np.array([0] * 8 + [1 << 13] * 4 + [1 << 16] * 2 + [1 << 19, (1 << 64) - 1], dtype=np.uint64)
WHOLE = np.array([0] * 8 + [1 << 14] * 4 + [1 << 17] * 2 + [1 << 20, 0], dtype=np.uint64)
WIDE = 15
VALUE_MARK = np.array([1, 1, 2, 13], dtype=np.int64)  # by the first two bits of a value


class Decoded(NamedTuple):
    """All samples, chunk after chunk: unix milliseconds and values, and how many each chunk holds."""

    times_ms: Ints
    values: Floats
    counts: Ints


def count(chunk: bytes) -> int:
    """How many samples a chunk says it holds; refused where it has no bits for them, before room is made for them."""
    samples = int.from_bytes(chunk[:2], "big")
    if samples and 8 * len(chunk) < HEADER_BITS + FIRST_BITS + MORE_BITS * (samples - 1):
        raise MetricsUnavailable("the metrics server sent a chunk that ends before its samples do")
    return samples


def decode(chunks: Sequence[bytes]) -> Decoded:
    counts = np.array([count(chunk) for chunk in chunks], dtype=np.int64)
    ends = np.cumsum([len(chunk) for chunk in chunks], dtype=np.int64) * 8
    order = np.argsort(-counts, kind="stable")  # the chunks that still have samples are always the first ones
    lanes = _Lanes(_Bits(b"".join(chunks)), (ends - 8 * np.array([len(chunk) for chunk in chunks]))[order])
    first = (np.cumsum(counts) - counts)[order]
    times, values = np.empty(counts.sum(), dtype=np.int64), np.empty(counts.sum(), dtype=np.uint64)
    still = np.searchsorted(-counts[order], -np.arange(counts.max(initial=0)))
    for index, some in enumerate(still):
        lanes.read(index, int(some))
        place = first[:some] + index
        times[place], values[place] = lanes.time[:some], lanes.value[:some]
    if (lanes.position > ends[order]).any():
        raise MetricsUnavailable("the metrics server sent a chunk that ends before its samples do")
    return Decoded(times, values.view(np.float64), counts)


class _Bits:
    """Any 64 bits of a buffer, at many positions at once; beyond its end there are zeros."""

    def __init__(self, data: bytes) -> None:
        self._words: Words = np.frombuffer(data + bytes(16 + -len(data) % 8), dtype=">u8").astype(np.uint64)

    def at(self, position: Ints) -> Words:
        word, shift = position >> 6, (position & 63).view(np.uint64)
        found: Words = self._words.take(word, mode="clip") << shift
        found |= self._words.take(word + 1, mode="clip") >> 1 >> (63 - shift)
        return found


class _Lanes:
    """Where each chunk is being read, and what it last held."""

    def __init__(self, bits: _Bits, position: Ints) -> None:
        self._bits, self.position = bits, position + HEADER_BITS
        self.time, self._delta = np.zeros((2, len(position)), dtype=np.int64)
        self.value, self._unused, self._trailing = np.zeros((3, len(position)), dtype=np.uint64)

    def read(self, index: int, some: int) -> None:
        """Sample `index` of the first `some` chunks."""
        if index == 0:
            zigzag = self._varint(some)
            self.time[:some] = (zigzag >> 1).view(np.int64) ^ -(zigzag & 1).view(np.int64)
            self.value[:some] = self._bits.at(self.position[:some])
            self.position[:some] += 64
            return
        if index == 1:
            self._delta[:some] = self._varint(some).view(np.int64)
        else:
            self._read_delta(some)
        self.time[:some] += self._delta[:some]
        self._read_value(some)

    def _varint(self, some: int) -> Words:
        value, more = np.zeros(some, dtype=np.uint64), np.ones(some, dtype=bool)
        for shift in range(0, 70, 7):
            byte = self._bits.at(self.position[:some]) >> 56
            value |= np.where(more, (byte & 127) << shift, 0)
            self.position[:some] += 8 * more
            more &= byte > 127
            if not more.any():
                break
        return value

    def _read_delta(self, some: int) -> None:
        position = self.position[:some]
        head = self._bits.at(position)
        mark = (head >> 60).view(np.int64)
        length, width = MARK.take(mark), WIDTH.take(mark)
        change = head << length >> (64 - width)  # numpy shifts by 64 to zero
        change -= np.where(change > HALF.take(mark), WHOLE.take(mark), 0)
        wide = np.flatnonzero(mark == WIDE)
        change[wide] = self._bits.at(position[wide] + 4)
        self._delta[:some] += change.view(np.int64)
        position += (length + width).view(np.int64)

    def _read_value(self, some: int) -> None:
        position, unused, trailing = self.position[:some], self._unused[:some], self._trailing[:some]
        head = self._bits.at(position)
        mark = (head >> 62).view(np.int64)
        new = mark == 3
        width = (head >> 51) - 1 & 63  # one less than it is: 64 is written as 0
        np.copyto(unused, 63 - width, where=new)
        np.copyto(trailing, 63 - width - (head >> 57 & 31), where=new)
        position += VALUE_MARK.take(mark)
        changed = mark > 1
        self.value[:some] ^= np.where(changed, self._bits.at(position) >> unused << trailing, 0)
        position += np.where(changed, 64 - unused.view(np.int64), 0)
