"""The base of all modules: a module whose pickle carries the version of setwise."""

from __future__ import annotations

import warnings
from typing import Any

from torch import nn

from setwise._foundation._base_classes import MADE_BY, this_version
from setwise._foundation._warnings import callers_level


class Module(nn.Module):
    """A module that warns when its pickle was made by another version of setwise.

    A ``state_dict`` carries no version: it holds arrays alone, which every version reads.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {MADE_BY: this_version(), **self.__dict__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        attributes = {name: value for name, value in state.items() if name != MADE_BY}
        super().__setstate__(attributes)  # type: ignore[no-untyped-call]
        made_by = state.get(MADE_BY, "an earlier version")
        if made_by != this_version():
            warnings.warn(
                f"a stored {type(self).__name__} was made by {made_by} of setwise, and this is "
                f"{this_version()}: make it anew, and load its state_dict",
                UserWarning,
                stacklevel=callers_level(),
            )
