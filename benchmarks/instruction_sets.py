"""Which calls are slower where loops are compiled for one instruction set only.

With GCC on Linux and x86-64, marked loops are compiled for AVX-512, AVX2 and SSE2, and the version
is chosen when the module is loaded. Clang, MSVC and other processors have one version. This script
compiles the kernels again with one version and times all problems of both builds in turn, as
``side_by_side.py`` does. It needs the build tools of ``make build``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.shared.measure import arguments, nothing_to_measure, report
from benchmarks.side_by_side import measure, ratios

ROOT = Path(__file__).resolve().parents[1]
LEAST = 1.15  # one version / several; below it a problem is not listed


def one_version(folder: Path) -> Path:
    """Compile a copy of the library with one version of each loop; return its folder src."""
    for name in ("src", "cpp"):
        ignored = shutil.ignore_patterns("_core*.so", "__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "CMakeLists.txt", folder)
    import nanobind

    settings = {
        "nanobind_DIR": nanobind.cmake_dir(),
        "Python_EXECUTABLE": sys.executable,
        "CMAKE_CXX_FLAGS": "-DSETWISE_ONE_VERSION",
    }
    given = [f"-D{name}={value}" for name, value in settings.items()]
    subprocess.run(["cmake", "-S", folder, "-B", folder / "build", *given], check=True)
    subprocess.run(["cmake", "--build", folder / "build"], check=True)
    return folder / "src"


def main() -> None:
    args = arguments(__doc__.splitlines()[0])
    if sys.platform != "linux" or shutil.which("cmake") is None:
        nothing_to_measure("several versions are compiled on Linux alone, with cmake")
    with tempfile.TemporaryDirectory() as folder:
        sources = ROOT / "src", one_version(Path(folder))
        rounds, least = (1, 0.0) if args.quick else (5, 0.02)
        found = measure(sources, [], None, rounds, least)
    slower = {name: ratios(seconds) for name, seconds in found.items()}
    data = [
        {"problem": name, "best": best, "median": float(np.median(near))}
        for name, (best, near) in slower.items()
    ]
    listed = [d for d in data if min(d["best"], d["median"]) > LEAST]
    listed.sort(key=lambda d: -d["median"])
    table = [["problem", "one version / several"]]
    table += [[d["problem"], f"{d['median']:.2f}"] for d in listed]
    middle = float(np.exp(np.mean([np.log(d["median"]) for d in data])))
    notes = [f"{len(data)} problems, geometric mean {middle:.2f}; {len(listed)} above {LEAST:g}"]
    measured = f"Processor time, medians of {rounds} rounds in turn, one thread, AVX2 or more"
    report("instruction_sets", table, data, notes=notes, measured=measured, quick=args.quick)


if __name__ == "__main__":
    main()
