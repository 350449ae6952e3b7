"""Files that are written completely or not at all, and decompressed within limits."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from threading import current_thread, main_thread
from typing import BinaryIO

# The most memory that a small file may require, by compressed data or by a header that announces
# large arrays: 256 MiB, which any machine has.
MOST_UNPACKED = 1 << 28
# A larger file may require up to this multiple of its size, or of the memory of its numbers. gzip
# compresses text with numbers by a factor of two to ten. Not tuned.
_MOST_TIMES = 32
# The most bytes of a word that may be a number. The exact decimal expansion of a float64 has at
# most 1077 bytes. A longer word shows that the file has no spaces, so that the rest need not be
# read.
LONGEST_WORD = 1 << 12
# Paths of open streams. A file behind one of them must not be replaced.
_STREAMS = ("/dev/fd/", "/dev/std", "/proc/")
# Signals that end a process at once by default. Windows has no SIGHUP.
_DEADLY = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def as_path(path: object) -> Path:
    """Return the path of a file."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a string or a path, got {type(path).__name__}")
    return Path(os.fsdecode(path))


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file and replace an existing one, which stays if anything fails.

    The bytes are written to a temporary file in the same folder, which is then renamed. A link
    stays a link, and a file keeps its permissions. A target that is not a regular file, such as a
    pipe or ``/dev/stdout``, is written directly.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if str(Path(path).absolute()).startswith(_STREAMS) or not (mode is None or stat.S_ISREG(mode)):
        with target.open("wb") as file:  # this raises an error if the target is a folder
            file.write(data)
        return
    beside = target.with_name(f".setwise-{token_hex(8)}.tmp")
    try:
        with removed_by_signals(lambda: beside.unlink(missing_ok=True)):
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if mode is not None:
                beside.chmod(stat.S_IMODE(mode))
            beside.replace(target)
    except OSError as error:
        # The error shall name the target, not the temporary file.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield an empty folder that replaces ``path`` at the end, and not after an exception."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_dir():
        raise FileExistsError(17, "A file of this name exists", os.fspath(path))
    beside = target.with_name(f".setwise-{token_hex(8)}.tmp")
    with removed_by_signals(lambda: shutil.rmtree(beside, ignore_errors=True)):
        beside.mkdir()
        yield beside
        if target.exists():
            before = target.with_name(f"{beside.name}.old")
            target.rename(before)
            beside.rename(target)
            shutil.rmtree(before, ignore_errors=True)
        else:
            beside.rename(target)


@contextmanager
def removed_by_signals(remove: Callable[[], object]) -> Iterator[None]:
    """Call ``remove`` at an exception, and before a signal ends the process.

    Signals that the program handles itself are left to it.
    """
    taken = []
    if current_thread() is main_thread():  # only this thread can set signal handlers
        taken = [number for number in _DEADLY if signal.getsignal(number) == signal.SIG_DFL]

    def end(number: int, frame: object) -> None:
        with suppress(OSError):
            remove()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    try:
        for number in taken:
            signal.signal(number, end)
        yield
    except BaseException:
        with suppress(OSError):
            remove()
        raise
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def unpacked(file: BinaryIO, size: int, name: str, *, packed: bool) -> Iterator[bytes]:
    """Yield a text in pieces of 64 kilobytes.

    A compressed file of ``size`` bytes must not expand to more than a limit that grows with
    ``size``.
    """
    most = max(MOST_UNPACKED, _MOST_TIMES * size)
    total = 0
    try:
        source: BinaryIO = gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[assignment]
        while piece := source.read(1 << 16):
            total += len(piece)
            if packed and total > most:
                raise ValueError(
                    f"{name}: a packed file of {size} bytes must hold at most {most}, got more: "
                    "unpack it first if it is to be trusted"
                )
            yield piece
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{name}: the file must be packed by gzip, got: {error}") from error


def affords(n_numbers: int, entries: int) -> bool:
    """Return whether a file of ``n_numbers`` numbers may require arrays of that size.

    A number takes eight bytes. An entry takes twice as many, because its array is copied once.
    """
    return 16 * entries <= max(MOST_UNPACKED, _MOST_TIMES * 8 * n_numbers)


def quoted(word: bytes) -> str:
    """Return the first letters of a word, for an error message."""
    text = word[:24].decode("ascii", "backslashreplace")
    return repr(text if len(word) <= 24 else f"{text}...")
