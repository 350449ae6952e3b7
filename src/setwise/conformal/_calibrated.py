"""The base class of conformal predictors: groups, their levels, and files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from setwise._foundation._arguments import BoolArray, as_array, as_list
from setwise._foundation._base_classes import Versioned
from setwise._foundation._files import MOST_UNPACKED, as_path, write_whole
from setwise.decisions._risk_control import RiskControl

_FORMAT = "setwise conformal"

Group = str | int | None
Calibrate = Callable[[BoolArray, str], RiskControl]


class Conformal(Versioned, BaseEstimator):  # type: ignore[misc]
    """The base class of the predictors, with a level for each part and each group."""

    # The parameters that a file holds: all that predictions depend on, except the estimator.
    _stored: ClassVar[tuple[str, ...]] = ()

    _controls: dict[str, dict[Group, RiskControl]]

    @property
    def controls_(self) -> dict[str, Any]:
        """The ``RiskControl`` of each part; with groups, a dictionary of them by group."""
        return {
            part: found[None] if None in found else dict(found)
            for part, found in self._calibrated().items()
        }

    def _calibrated(self) -> dict[str, dict[Group, RiskControl]]:
        if not hasattr(self, "_controls"):
            raise NotFittedError(
                f"this {type(self).__name__} is not calibrated yet: call conformalize first"
            )
        return self._controls

    def _calibrate(self, parts: Mapping[str, Calibrate], groups: ArrayLike | None, n: int) -> None:
        """Calibrate each part on the examples of each group, a Mondrian conformal predictor."""
        names = as_groups(groups, n)
        found: dict[str, dict[Group, RiskControl]] = {part: {} for part in parts}
        for part, calibrate in parts.items():
            if names is None:
                found[part][None] = calibrate(np.ones(n, np.bool_), "")
                continue
            for group in dict.fromkeys(names):
                chosen = np.array([name == group for name in names])
                found[part][group] = calibrate(chosen, f" of group {group!r}")
        self._controls = found

    def _levels(self, part: str, groups: ArrayLike | None, n: int) -> list[float | None]:
        """Return the level of each example, by its group."""
        found = self._calibrated()[part]
        names = as_groups(groups, n)
        if (names is None) != (None in found):
            given = "None, as they were in conformalize" if None in found else "given, as they were"
            raise ValueError(f"groups must be {given}")
        if names is None:
            return [found[None].level] * n
        for name in names:
            if name not in found:
                known = ", ".join(map(repr, found))
                raise ValueError(f"groups must hold calibrated groups, {known}, got {name!r}")
        return [found[name].level for name in names]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the calibrated levels and the settings into a JSON file.

        The file holds numbers and words, no code; ``sw.conformal.load`` reads it. The estimator or
        function is not in it.
        """
        as_path(path)
        controls = [
            {"part": part, "group": group, **_written(control)}
            for part, found in self._calibrated().items()
            for group, control in found.items()
        ]
        content = {
            "format": _FORMAT,
            "version": self.__getstate__()["_made_by"],
            "kind": type(self).__name__,
            "parameters": {name: getattr(self, name) for name in self._stored},
            "state": self._state(),
            "controls": controls,
        }
        try:
            text = json.dumps(content, indent=1, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"parameters must be numbers, words or None to be saved: {error}"
            ) from None
        write_whole(path, (text + "\n").encode())

    def _state(self) -> dict[str, Any]:
        """Return further fitted state that predictions depend on."""
        return {}

    def _restored(self, state: dict[str, Any], controls: list[dict[str, Any]]) -> Self:
        self._controls = {}
        for entry in controls:
            own = self._controls.setdefault(str(entry["part"]), {})
            own[entry["group"]] = _read(entry)
        for name, value in state.items():
            setattr(self, name, value)
        return self


def as_groups(groups: ArrayLike | None, n: int) -> list[str | int] | None:
    """Return the group of each example, which is a string or an integer."""
    if groups is None:
        return None
    array: NDArray[Any] = as_array(groups, "groups")
    if array.shape != (n,):
        raise ValueError(
            f"groups must have shape ({n},), one for each example of X, got {array.shape}"
        )
    if array.dtype.kind not in "iuUb":
        raise TypeError(f"groups must hold integers or strings, got dtype {array.dtype}")
    return [int(name) if isinstance(name, bool) else name for name in array.tolist()]


def as_examples(X: Any, y: Any = None, *, given: bool = False) -> tuple[list[Any], list[Any]]:
    """Return the examples, and their truths if they are ``given``, as lists of one length."""
    if hasattr(X, "__array__"):  # rows also for a DataFrame, whose iteration would be over columns
        X = as_array(X, "X")
    examples = as_list(X, "X", "examples")
    if not examples:
        raise ValueError("X must hold at least one example, got none")
    if not given:
        return examples, []
    if hasattr(y, "__array__"):
        y = as_array(y, "y")
    truths = as_list(y, "y", "masks")
    if len(truths) != len(examples):
        raise ValueError(
            f"y must hold a truth for each of the {len(examples)} examples of X, got {len(truths)}"
        )
    return examples, truths


def _written(control: RiskControl) -> dict[str, Any]:
    return {
        "level": _number_out(control.level),
        "alpha": control.alpha,
        "delta": control.delta,
        "n_examples": control.n_examples,
        "risk": _number_out(control.risk),
        "bound": _number_out(control.bound),
        "certified": [_number_out(level) for level in control.certified_levels.tolist()],
        "sense": control.sense,
        "assumption": control.assumption,
        "words": control.words,
    }


def _number_out(value: Any) -> Any:
    """Return a number for JSON, with infinite numbers and NaN as words, because JSON lacks them."""
    return value if value is None or np.isfinite(value) else repr(float(value))


def _number_in(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, bool) or (isinstance(value, str) and value not in ("inf", "-inf", "nan")):
        raise ValueError(f"a number, got {value!r}")
    return float(value)


def _read(entry: dict[str, Any]) -> RiskControl:
    return RiskControl(
        level=_number_in(entry["level"]),
        alpha=_number_in(entry["alpha"]),
        delta=_number_in(entry["delta"]),
        n_examples=int(entry["n_examples"]),
        risk=_number_in(entry["risk"]),
        bound=_number_in(entry["bound"]),
        certified_levels=np.array([_number_in(level) for level in entry["certified"]], np.float64),
    )


def read_file(
    path: str | os.PathLike[str], kinds: Mapping[str, type[Conformal]], estimator: Any
) -> Conformal:
    """Return the predictor of a file that ``save`` wrote."""
    file = as_path(path)
    if file.stat().st_size > MOST_UNPACKED:
        raise ValueError(f"path must name a file of at most {MOST_UNPACKED} bytes, got {file}")
    wanted = f"path must name a file that save wrote, got {file}"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content.get("format") != _FORMAT:
            raise ValueError("it has another format")
        kind = kinds[content["kind"]]
        known = {name: content["parameters"][name] for name in kind._stored}
        model = kind(estimator, **known)
        return model._restored(_known(content["state"], model._state()), content["controls"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{wanted}: {error}") from None


def _known(state: dict[str, Any], own: Iterable[str]) -> dict[str, Any]:
    return {name: state[name] for name in own}
