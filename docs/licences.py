"""Write docs/licences.md: the packages that are installed with setwise, with their licences.

Reads the requirements of pyproject.toml, including its extras, and recursively the metadata of the
installed distributions. Exits with a message if a licence is missing, or if setwise may not depend
on it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

PAGE = Path(__file__).with_name("licences.md")
PROJECT = tomllib.loads((PAGE.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
REFUSED = re.compile(r"\b(A?GPL|GNU (Affero )?General Public|research only|non-?commercial)", re.I)
# Short names for licences that packages describe in many words, or in classifiers alone.
KNOWN = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "ISC License (ISCL)": "ISC",
}
HEAD = """# Licences

setwise is under the BSD 3-clause licence. What `pip install setwise` brings along, and each of its
extras, with the licence that a package states in its own metadata; written by `docs/licences.py`,
which refuses the GPL and whatever forbids a use. Compilers, linters, peers of the benchmarks and
the like are not listed: no user installs them. A package stands under the first part that brings
it, as on Linux. torch's builds for CUDA bring packages of NVIDIA under NVIDIA's own terms, its
build for the CPU does not.
"""


def licence(name: str) -> str:
    """Return the licence that a distribution states.

    It is its expression, its classifiers, or its free text.
    """
    fields = metadata.metadata(name)
    if fields["License-Expression"]:
        return str(fields["License-Expression"])
    classifiers = [c for c in fields.get_all("Classifier", []) if c.startswith("License ::")]
    names = [c.rpartition(" :: ")[2] for c in classifiers if c != "License :: OSI Approved"]
    if names:
        return " and ".join(KNOWN.get(name, name) for name in names)
    text = str(fields["License"] or "").strip().splitlines()
    if not text:
        sys.exit(f"{name} states no licence")
    return KNOWN.get(text[0], text[0])


def required(name: str, extra: str) -> Iterator[Requirement]:
    """Yield the requirements of a distribution on this machine.

    They are those without extras, or those of one extra.
    """
    for asked in map(Requirement, metadata.requires(name) or []):
        always = asked.marker is None or asked.marker.evaluate({"extra": ""})
        if (not extra and always) or (
            extra and not always and asked.marker.evaluate({"extra": extra})
        ):
            yield asked


def closure(requirements: Iterable[str]) -> set[str]:
    """Return the names of all packages that the requirements install."""
    waiting = [Requirement(line) for line in requirements]
    seen: set[tuple[str, str]] = set()
    while waiting:
        asked = waiting.pop()
        name = re.sub("[-_.]+", "-", asked.name).lower()
        for one in ((name, extra) for extra in ("", *asked.extras)):
            if one not in seen:
                seen.add(one)
                waiting += required(*one)
    return {name for name, _ in seen}


def page() -> str:
    """Return the whole page: a table for the plain install, and one for each extra's packages."""
    lines, listed = [HEAD.rstrip()], set()
    parts = {"Without extras": PROJECT["dependencies"]}
    parts |= {f"The extra `{k}` adds": v for k, v in PROJECT["optional-dependencies"].items()}
    for title, requirements in parts.items():
        names = closure(requirements)
        lines += ["", f"## {title}", "", "| package | licence |", "|---|---|"]
        for name in sorted(names - listed):
            stated = licence(name)
            if REFUSED.search(stated):
                sys.exit(f"{name} is under {stated}: not for a dependency")
            lines.append(f"| {name} | {stated} |")
        listed |= names
    return "\n".join(lines) + "\n"


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
