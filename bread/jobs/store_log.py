"""SQLite's write-ahead log: how many of its entries are lost where it is damaged.

SQLite reads the log up to the first frame that is not whole, and says nothing of the rest. A frame has a header of six
numbers: page, size of the database where it ends a transaction (else 0), the two salts of the log's generation, and
two checksums (https://www.sqlite.org/fileformat2.html#the_write_ahead_log). What SQLite has read it can tell.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

_HEADER, _FRAME = 32, 24
_MAGIC = (0x377F0682, 0x377F0683)


class Log(NamedTuple):
    """The ends of transactions in a log: the numbers of their frames, from 1; how many frames there are."""

    ends: tuple[int, ...]
    n_frames: int
    is_overwriting: bool  # frames of an older generation follow

    def lost(self, n_read: int) -> int:
        """Return how many transactions are lost where SQLite has read so many frames.

        The last frame may be half written where a process was killed while it wrote over an older generation: then
        nothing is lost that was on disk.
        """
        lost = [end for end in self.ends if end > n_read]
        is_torn = self.is_overwriting and lost == [self.n_frames]
        return 0 if is_torn else len(lost)


def read_log(file: Path) -> Log:
    """Read a log; one that is not there is empty."""
    try:
        content = file.read_bytes()
    except OSError:
        content = b""
    if len(content) < _HEADER + _FRAME:
        return Log((), 0, False)
    magic, _, size, _, *salts = struct.unpack(">6I", content[:24])
    if size < 512 or size > 65536 or size & (size - 1):
        size = 4096  # SQLite's default: the header itself is damaged
    frames = [
        struct.unpack(">4I", content[place : place + 16])
        for place in range(_HEADER, len(content) - _FRAME - size + 1, _FRAME + size)
    ]
    if magic not in _MAGIC or not any(list(frame[2:]) == salts for frame in frames):
        salts = list(frames[0][2:]) if frames else salts
    last = max((n for n, frame in enumerate(frames, 1) if list(frame[2:]) == salts), default=0)
    ends = tuple(n for n, frame in enumerate(frames[:last], 1) if frame[1] and list(frame[2:]) == salts)
    return Log(ends, last, last < len(frames))
