"""`setwise info`: the data on the machine for a bug report."""

from __future__ import annotations

import ctypes
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

from setwise import __version__
from setwise._commands._output import example, json_option, print_json
from setwise._foundation._threads import as_threads

_PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "highspy",
    "torch",
    "matplotlib",
    "scikit-image",
    "pillow",
    "starlette",
    "anywidget",
)


@click.command(epilog=example("setwise info --json"))
@json_option
def info(as_json: bool) -> None:
    """Print versions, processor and CUDA, for bug reports."""
    found = gathered()
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        if isinstance(value, dict):
            value = ", ".join(f"{part} {number or 'none'}" for part, number in value.items())
        click.echo(f"{name}: {value}")


def gathered() -> dict[str, Any]:
    """Return the versions of setwise and its dependencies, the processor, and any graphics card."""
    return {
        "setwise": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _processor(),
        "cores": as_threads(None),
        "cuda": _cuda(),
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    if sys.platform == "linux" and listing.exists():
        for line in listing.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cuda() -> str:
    """Return the name of the graphics card, as CUDA's driver reports it."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return "none"
    count, number, name = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(100)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
        return "a driver without a card"
    driver.cuDriverGetVersion(ctypes.byref(number))
    driver.cuDeviceGetName(name, len(name), 0)
    version = f"{number.value // 1000}.{number.value % 1000 // 10}"
    return f"{count.value} x {name.value.decode()}, CUDA {version}"
