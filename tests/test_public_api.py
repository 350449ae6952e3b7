"""A change of the interface shows in a diff, and every public name shows how it is used."""

import difflib
import inspect

import pytest
from public_api import LISTING, listing, public_objects

NAMES = [pytest.param(value, id=name) for name, value in public_objects() if callable(value)]


def test_interface_is_the_listed_one() -> None:
    before, now = LISTING.read_text(encoding="utf-8"), listing()
    diff = difflib.unified_diff(
        before.splitlines(), now.splitlines(), "tests/public_api.txt", "the code", lineterm="", n=1
    )
    assert before == now, "if this is meant, run `make api`:\n" + "\n".join(diff)


@pytest.mark.parametrize("value", NAMES)
def test_public_name_has_a_docstring_with_an_example(value: object) -> None:
    assert ">>>" in (inspect.getdoc(value) or ""), "the docstring needs an Examples section"
