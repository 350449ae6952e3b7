"""Compilation of CUDA C++ by torch's NVRTC, and launches through the driver."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch

# The names that kernels have for the types of scores and of labels.
SCORES = {torch.float32: "float", torch.float16: "Half", torch.bfloat16: "Bfloat16"}
LABELS = {
    torch.bool: "unsigned char",
    torch.uint8: "unsigned char",
    torch.int8: "signed char",
    torch.int16: "short",
    torch.int32: "int",
    torch.int64: "long long",
    torch.float32: "float",
    torch.float64: "double",
}

# The most classes or labels whose values stay in registers, as in pixels.cuh.
IN_REGISTERS = 32
# The bytes of shared memory of a block that kernels leave free, for their static arrays.
RESERVED = 4096
# Threads per block of the kernels that count and sort. Four such blocks fill a multiprocessor.
# Not tuned.
THREADS = 512
_SHARED_MEMORY_LIMIT = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_INVALID_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT: this thread has not used the device yet


class Unavailable(RuntimeError):
    """The error raised where the device, the driver or NVRTC cannot run a kernel."""


@cache
def _text(name: str) -> str:
    """Return the text of a kernel file in this folder or in a subfolder."""
    (path,) = Path(__file__).parent.rglob(name)
    return path.read_text("utf-8")


def constant(file: str, name: str) -> int:
    """Return an integer constant of a kernel file, so that it is defined in one place only."""
    found = re.search(rf"\b{name} = (\d+)", _text(file))
    assert found is not None
    return int(found[1])


def _load(names: list[str]) -> ctypes.CDLL:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise Unavailable(f"none of {', '.join(names)} could be loaded")


@cache
def _driver() -> ctypes.CDLL:
    library = _load(["nvcuda.dll"] if sys.platform == "win32" else ["libcuda.so.1", "libcuda.so"])
    # Without argument types ctypes would truncate 64-bit handles to 32 bits.
    pointer, unsigned = ctypes.c_void_p, ctypes.c_uint
    library.cuLaunchCooperativeKernel.argtypes = [pointer, *[unsigned] * 7, pointer, pointer]
    library.cuLaunchKernel.argtypes = [pointer, *[unsigned] * 7, pointer, pointer, pointer]
    return library


@cache
def _nvrtc() -> ctypes.CDLL:
    major = str(torch.version.cuda).split(".")[0]
    if sys.platform == "win32":
        return _load([f"nvrtc64_{major}0_0.dll"])
    packages = Path(torch.__file__).parent.parent / "nvidia"
    beside = sorted(str(path) for path in packages.glob(f"*/lib/libnvrtc.so.{major}"))
    return _load([f"libnvrtc.so.{major}", *beside, "libnvrtc.so"])


def _compile(source: str, architecture: str, macros: Mapping[str, object]) -> bytes:
    """Return the machine code for an architecture such as "sm_90"."""
    nvrtc = _nvrtc()
    options = [f"--gpu-architecture={architecture}", "--std=c++17"]
    options += [f"-D{name}={value}" for name, value in macros.items()]
    program = ctypes.c_void_p()
    status = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), b"setwise.cu", 0, None, None
    )
    if status:
        raise Unavailable(f"NVRTC refused a program (error {status})")
    try:
        flags = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = nvrtc.nvrtcCompileProgram(program, len(options), flags)
        size = ctypes.c_size_t()
        if status:
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise Unavailable(f"NVRTC could not compile for {architecture}: {log.value.decode()}")
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, code)
        return code.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


@cache
def shared_memory(device: int) -> int:
    """Return the bytes of shared memory that a block can ask for, less those that are RESERVED."""
    properties: Any = torch.cuda.get_device_properties(device)
    return int(properties.shared_memory_per_block_optin) - RESERVED


class Kernel:
    """A kernel on one device; all its blocks run at once.

    Its only parameter is a structure, which is passed as packed bytes. ``shape`` is the number of
    threads per block and of blocks per multiprocessor; ``together`` means that blocks wait for one
    another (a cooperative launch).
    """

    def __init__(
        self,
        files: tuple[str, ...],
        name: str,
        macros: Mapping[str, object],
        shared: int,
        device: int,
        shape: tuple[int, int],
        together: bool,
    ) -> None:
        properties = torch.cuda.get_device_properties(device)
        if shared > shared_memory(device):
            raise Unavailable(f"{name} needs {shared} bytes of shared memory a block")
        source = "".join(map(_text, ("device.cuh", *files)))
        architecture = f"sm_{properties.major}{properties.minor}"
        code = _compile(source, architecture, {"THREADS": shape[0], **macros})
        with torch.cuda.device(device):
            torch.cuda.synchronize()  # this creates the device's context in this thread
            driver = _driver()
            self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
            status = (
                driver.cuModuleLoadData(ctypes.byref(self._module), code)
                or driver.cuModuleGetFunction(
                    ctypes.byref(self._function), self._module, name.encode()
                )
                or driver.cuFuncSetAttribute(self._function, _SHARED_MEMORY_LIMIT, shared)
            )
        if status:
            raise Unavailable(f"the driver could not load {name} (error {status})")
        self.blocks: int = properties.multi_processor_count * shape[1]
        self.device, self.together = device, together
        self._shape = (1, 1, shape[0], 1, 1, shared)

    def launch(self, arguments: bytes, stream: int, blocks: int | None = None) -> None:
        """Run the kernel on a stream; ``arguments`` are the bytes of its structure."""
        blocks = self.blocks if blocks is None else blocks
        # The driver copies the structure before it returns.
        at = ctypes.cast(ctypes.c_char_p(arguments), ctypes.c_void_p)
        status = self._launch(ctypes.byref(at), stream, blocks)
        if status == _INVALID_CONTEXT:
            torch.cuda.synchronize(self.device)
            status = self._launch(ctypes.byref(at), stream, blocks)
        if status:
            raise RuntimeError(f"a kernel could not be launched (CUDA error {status})")

    def _launch(self, parameters: Any, stream: int, blocks: int) -> int:
        driver, shape = _driver(), (blocks, *self._shape)
        if self.together:
            return int(driver.cuLaunchCooperativeKernel(self._function, *shape, stream, parameters))
        return int(driver.cuLaunchKernel(self._function, *shape, stream, parameters, None))


@cache
def kernel(
    files: tuple[str, ...],
    name: str,
    macros: tuple[tuple[str, Any], ...],
    shared: int,
    device: int,
    shape: tuple[int, int] = (1024, 1),
    together: bool = True,
) -> Kernel | None:
    """Return the kernel, compiled on the first call; None if it cannot run."""
    try:
        return Kernel(files, name, dict(macros), shared, device, shape, together)
    except Unavailable:
        return None


_WORKSPACES: dict[tuple[int, int], tuple[torch.Tensor, torch.Tensor]] = {}


def workspaces(
    device: torch.device, stream: int, zero: int, scratch: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two buffers of the current stream: ``zero`` or more zero bytes, and ``scratch`` bytes.

    Kernels set the first buffer to zero again before they end, so that no launch has to clear it.
    """
    key = (device.index, stream)
    found = _WORKSPACES.get(key)
    if found is None or len(found[0]) < zero or len(found[1]) < scratch:
        sizes = (zero, scratch)
        if found is not None:
            sizes = (max(zero, len(found[0])), max(scratch, len(found[1])))
        found = (
            torch.zeros(sizes[0], dtype=torch.uint8, device=device),
            torch.empty(sizes[1], dtype=torch.uint8, device=device),
        )
        # Memory that is allocated while a graph is captured belongs to the graph, and is not zero
        # before the graph runs.
        if not torch.cuda.is_current_stream_capturing():
            _WORKSPACES[key] = found
    return found
