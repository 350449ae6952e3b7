"""Each method of solve_map alone: options as keywords, without the bound that solve_map adds."""

from collections.abc import Callable

from setwise.fields import Field
from setwise.inference import MapResult
from setwise.inference._map._methods import METHODS
from setwise.inference._map._options import MapOptions


def alone(name: str) -> Callable[..., MapResult]:
    def search(field: Field, **options: object) -> MapResult:
        METHODS[name].check(field)
        return METHODS[name].run(field, MapOptions.read(field, **options))

    return search


SEARCHES = {name: alone(name) for name in METHODS}
convex, cut, enumerate_labels = (SEARCHES[name] for name in ("convex", "cut", "enumerate"))
expansion, messages, swap = (SEARCHES[name] for name in ("expansion", "messages", "swap"))
