"""Every public callable is long or short: what is long is interrupted by every law on Ctrl-C.

``LONG`` holds the calls that may take seconds, by name, and ways to make them: each takes a size (1
for a short test) and returns a call that can be made again and again. A name that is in neither
list fails the test, so that a new one is listed or found out.
"""

# Each lists its calls when it is loaded.
from interrupt_registry import (  # noqa: F401
    _conformal,
    _decisions,
    _estimators,
    _field_layers,
    _flows,
    _functions,
    _images,
    _inference,
    _learning,
    _surrogates,
)
from interrupt_registry._calls import LONG, Call
from interrupt_registry._inference import grid_field
from interrupt_registry._short import SHORT, SHORT_METHODS, public_callables

__all__ = ["LONG", "SHORT", "SHORT_METHODS", "Call", "grid_field", "public_callables"]
