"""Try a wheel as a user does: `python tests/install.py dist/setwise-*.whl`.

A fresh environment installs the wheel with every extra, runs the code of every page of the
documentation, and removes setwise again. Nothing of it may stay.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
# Packages that the pages show beside setwise: a file format for scikit-learn's models, and tables.
SHOWN = ("skops", "pandas", "polars", "xarray", "clarabel")
FOUND = "import importlib.util as u; raise SystemExit(u.find_spec('setwise') is not None)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel.resolve()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        bin = Path(folder) / ("Scripts" if os.name == "nt" else "bin")

        def run(*command: str | Path) -> None:
            print("$", *command, flush=True)
            subprocess.run([bin / "python", *command], check=True, cwd=folder)

        pip = ("-m", "pip", "--disable-pip-version-check")
        run(*pip, "install", "--quiet", "--upgrade", "pip>=25.1")
        constraints = ("--constraint", ROOT / "constraints.txt")
        run(*pip, "install", "--quiet", *constraints, f"{wheel}[{','.join(EXTRAS)}]", *SHOWN)
        run(*pip, "check")
        before = {path for path in Path(folder).rglob("*") if "setwise" in path.name}
        assert before, "nothing was installed"
        run("-W", "error", ROOT / "tests" / "helpers" / "doc_pages.py")
        run("-m", "setwise", "info")
        run(*pip, "uninstall", "--quiet", "--yes", "setwise")
        run("-c", FOUND)
        left = sorted(str(p) for p in Path(folder).rglob("*") if "setwise" in p.name)
        assert not left, f"left behind: {left}"
    print(f"{wheel.name}: installed with {', '.join(EXTRAS)}, ran every page, left nothing")


if __name__ == "__main__":
    main()
