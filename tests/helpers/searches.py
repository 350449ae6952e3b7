"""Each method of solve_map alone: options as keywords, without the bound that solve_map adds."""

from collections.abc import Callable

from setwise.fields import Field
from setwise.inference import MapResult
from setwise.inference._map._convex import convex as _convex
from setwise.inference._map._enumerate import enumerate_labels as _enumerate_labels
from setwise.inference._map._messages._messages import messages as _messages
from setwise.inference._map._moves._cut import cut as _cut
from setwise.inference._map._moves._expansion import expansion as _expansion
from setwise.inference._map._moves._swap import swap as _swap
from setwise.inference._map._options import MapOptions


def alone(method: Callable[[Field, MapOptions], MapResult]) -> Callable[..., MapResult]:
    def search(field: Field, **options: object) -> MapResult:
        return method(field, MapOptions.read(field, **options))

    return search


convex = alone(_convex)
cut = alone(_cut)
enumerate_labels = alone(_enumerate_labels)
expansion = alone(_expansion)
messages = alone(_messages)
swap = alone(_swap)
