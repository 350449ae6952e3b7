"""Triton kernels without a GPU: Triton's interpreter runs them in another process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from setwise.torch._cuda import has_triton


@pytest.mark.skipif(not has_triton(), reason="no Triton of 3.6 or later")
def test_exact_path_in_the_interpreter():
    script = Path(__file__).parent / "helpers" / "triton_interpreter.py"
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "ok"
