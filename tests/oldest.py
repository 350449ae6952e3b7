"""Print the oldest version of every dependency that pyproject.toml admits, as pip constraints."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
for requirement in sorted(
    {*project["dependencies"], *extras["plot"], *extras["demo"], *extras["app"]}
):
    print(re.sub(">=", "==", requirement))
