"""Files are written whole or not at all."""

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import setwise as sw
from setwise._foundation._files import write_whole

FIELD = sw.fields.Field([[0.0, 1.0], [2.0, 0.0]])


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("failure", "error"), [(full, OSError), (interrupted, KeyboardInterrupt)])
@pytest.mark.parametrize("name", ["m.uai", "m.uai.gz"])
def test_what_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: object, error: type, name: str
) -> None:
    path = tmp_path / name
    path.write_text("old")
    with monkeypatch.context() as patched:
        patched.setattr("setwise._foundation._files.os.fsync", failure)
        with pytest.raises(error, match=name if error is OSError else None):
            sw.fields.write_uai(FIELD, path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [name]
    sw.fields.write_uai(FIELD, path)
    assert sw.fields.read_uai(path).energy([0, 1]) == 0.0
    assert os.listdir(tmp_path) == [name]


@pytest.mark.skipif(os.name != "posix", reason="modes, links and /dev are of POSIX")
def test_links_modes_and_devices_stay_what_they_are(tmp_path: Path) -> None:
    target, link, new = (tmp_path / name for name in ("target", "link", "new"))
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    before = os.umask(0o027)
    try:
        write_whole(new, b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    write_whole(os.devnull, b"nothing")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    if Path("/dev/full").exists():
        with pytest.raises(OSError, match="No space left"):
            write_whole("/dev/full", b"too much")
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, b"")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_whole(tmp_path / "nowhere" / "file", b"")


STRUCK = """
import os, signal, sys
from setwise._foundation import _files
number = signal.Signals[sys.argv[2]]
signal.signal(number, signal.SIG_DFL)  # nohup makes it ignored
def strike(file):
    os.kill(os.getpid(), number)
_files.os.fsync = strike
_files.write_whole(sys.argv[1], b"new")
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_leaves_the_old_file_and_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mask.png"
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", STRUCK, str(path), name], timeout=60)
    assert done.returncode == -signal.Signals[name]
    assert os.listdir(tmp_path) == ["mask.png"]
    assert path.read_text() == "old"


def test_a_program_keeps_its_own_answer_to_signals(tmp_path: Path) -> None:
    def own(number: int, frame: object) -> None:
        raise AssertionError

    before = signal.signal(signal.SIGTERM, own)
    try:
        write_whole(tmp_path / "a", np.arange(3).tobytes())
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)
