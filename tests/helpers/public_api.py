"""The public interface of setwise as text: `make api` writes tests/public_api.txt.

Names, parameters and defaults are listed, type annotations are not: mypy checks those, and what
they print as depends on the version of NumPy.
"""

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

MODULES = (
    "setwise",
    "setwise.app",
    "setwise.conformal",
    "setwise.dask",
    "setwise.diversities",
    "setwise.estimators",
    "setwise.fields",
    "setwise.functions",
    "setwise.images",
    "setwise.inference",
    "setwise.learning",
    "setwise.losses",
    "setwise.plots",
    "setwise.surrogates",
    "setwise.torch",
)
LISTING = Path(__file__).parent.with_name("public_api.txt")


def public_objects() -> Iterator[tuple[str, object]]:
    """The names in each module's ``__all__``, with what they stand for."""
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in sorted(module.__all__):
            yield f"{module_name}.{name}", getattr(module, name)


def listing() -> str:
    lines = (line for name, value in public_objects() for line in describe(name, value))
    return "\n".join(lines) + "\n"


def describe(name: str, value: object) -> Iterator[str]:
    if inspect.ismodule(value):
        yield f"{name}: module"
    elif inspect.isclass(value):
        yield f"class {name}{signature(value)}"
        yield from (f"    {member}" for member in members(value))
    elif callable(value):
        yield f"def {name}{signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def members(cls: type) -> Iterator[str]:
    """Fields, properties and methods that a class has from setwise, not from Python."""
    fields = {field.name for field in dataclasses.fields(cls)} if is_record(cls) else set()
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("setwise"):
            found.update(vars(base))
    names = {name for name in found if not name.startswith("_") or name == "__call__"} | fields
    for name in sorted(names):
        value = found.get(name)
        if name in fields:
            yield f"{name}: field"
        elif isinstance(value, (classmethod, staticmethod)):
            kind = type(value).__name__
            yield f"{kind} {name}{signature(value.__func__)}"
        elif inspect.isfunction(value):
            yield f"def {name}{signature(value)}"
        elif isinstance(value, property) or not callable(value):
            yield f"{name}: property"
        else:
            yield f"{name}: {type(value).__name__}"


def is_record(cls: type) -> bool:
    return dataclasses.is_dataclass(cls)


def signature(value: object) -> str:
    try:
        known = inspect.signature(value)  # type: ignore[arg-type]
    except ValueError:  # some compiled callables cannot tell
        return "(...)"
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in known.parameters.values()]
    text = str(known.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return re.sub(r"<(?:function|built-in function|class) '?([\w.]+)'?[^>]*>", r"\1", text)


if __name__ == "__main__":
    LISTING.write_text(listing(), encoding="utf-8")
    print(f"{LISTING.name}: {len(listing().splitlines())} lines")
