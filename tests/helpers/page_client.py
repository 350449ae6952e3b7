"""Starlette's client for tests, which warns where httpx2 is not at hand; httpx does."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

__all__ = ["TestClient"]
