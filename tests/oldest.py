"""Print the oldest version of every dependency that pyproject.toml admits, as pip constraints."""

import re
import tomllib
from itertools import chain
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
without_torch = (requirements for extra, requirements in extras.items() if extra != "torch")
for requirement in sorted({*project["dependencies"], *chain.from_iterable(without_torch)}):
    print(re.sub(r"(\[.*\])?>=", "==", requirement))
print("pyparsing<3.3")  # from then on matplotlib before 3.10.7 raises warnings
