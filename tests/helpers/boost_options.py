"""Parameters of boosted estimators, those of few fits among them."""

from dataclasses import fields
from typing import Any

from setwise.learning import BoostOptions

NAMES = frozenset(field.name for field in fields(BoostOptions))


def boost_options(**given: Any) -> dict[str, Any]:
    """Return the parameters with those of ``BoostOptions`` as ``options``."""
    own = {name: value for name, value in given.items() if name in NAMES}
    rest = {name: value for name, value in given.items() if name not in NAMES}
    return {**rest, "options": BoostOptions(**own)} if own else rest
