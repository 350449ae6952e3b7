"""What estimators on dask have in common: a client, and a local copy."""

from __future__ import annotations

from typing import Any, Self

from distributed import Client
from sklearn.base import clone

from setwise.dask._executor import DaskExecutor, as_client


class DaskEstimator:
    """A ``client``, which clones share and pickles leave behind, and ``to_local``.

    ``_local`` is the class of the local estimator.
    """

    client: Client | None
    _local: type[Any]

    @property
    def client_(self) -> Client:
        """The client that is used: ``client``, else the one that was made last."""
        return as_client(self.client)

    def _executor(self) -> Any:
        return DaskExecutor(self.client)

    def to_local(self) -> Any:
        """The same model as an estimator that needs no cluster, with the same attributes.

        Returns
        -------
        estimator
        """
        known = self._local._get_param_names()
        own = {name: value for name, value in self._params().items() if name in known}
        model = self._local(**own)
        for name, value in vars(self).items():
            if name not in self._params() and name != "client":
                setattr(model, name, value)
        return model

    def _to_send(self) -> Any:
        """The local model for workers: what is the client's own stays here."""
        return self.to_local().set_params(callback=None, verbose=False)

    def _params(self) -> dict[str, Any]:
        params: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        return params

    def __sklearn_clone__(self) -> Self:
        params = self._params()
        client = params.pop("client")
        make: Any = type(self)
        copied: Self = make(
            client=client, **{name: clone(value, safe=False) for name, value in params.items()}
        )
        return copied

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {**state, "client": None}
