"""Every argument of every public callable, written otherwise and spoilt.

A good value in another form (lists, read-only and big-endian arrays, pandas, polars, tensors, other
widths) gives the same answer or one sentence; a bad one gives a sound answer or a TypeError or
ValueError that names the argument: no other exception, no warning of NumPy's, no NaN, no end that
never comes. What a caller's own function raises passes through.
"""

import contextlib
import gzip
import inspect
import tempfile

import examples_of_conformal
import examples_of_fields
import examples_of_functions
import examples_of_images
import examples_of_learning
import numpy as np
import public_api
import pytest
from example_registry import EXAMPLES
from hypothesis import given
from hypothesis import strategies as st
from input_law import cases, verdict

import setwise as sw
from setwise import diversities, fields, functions, losses, surrogates
from setwise.fields._uai import _model as _uai_model


@pytest.fixture(autouse=True, scope="module")
def in_a_folder_of_its_own(tmp_path_factory):
    """A word is a path too: ``write_uai`` writes where it is told."""
    with contextlib.chdir(tmp_path_factory.mktemp("written")):
        yield


# They fill the registry.
LISTS = (
    *(examples_of_conformal, examples_of_functions, examples_of_fields, examples_of_images),
    examples_of_learning,
)

# What the library makes, and others only read; what one derives from; what has laws of its own.
WEAK_LEARNERS = {"CategoryStump", "Perceptron", "Step", "Stump", "WeakClassifier"}
DESCRIBED = {
    name for name, value in public_api.described_objects() if value.__name__ not in WEAK_LEARNERS
}
PROTOCOLS = {
    name for name, value in public_api.described_objects() if getattr(value, "_is_protocol", False)
}
RECORDS = DESCRIBED | {
    "setwise.decisions.BudgetDecision",
    "setwise.decisions.Decision",
    "setwise.decisions.LabelDecision",
    "setwise.inference.DiverseResult",
    "setwise.inference.MapResult",
    "setwise.inference.MarginalsResult",
    "setwise.inference.Samples",
    "setwise.inference.TemperatureCalibration",
    "setwise.learning.Column",
    "setwise.surrogates.Properties",
}
# Methods that a subclass defines. The library calls them with arguments that it has checked.
HOOKS = {
    diversities.Diversity: ("addition", "gain_of", "scaled"),
    fields.Potential: ("check", "energies", "terms"),
    losses.Loss: ("function_of",),
    surrogates.Surrogate: ("evaluate", "general_properties", "properties_of"),
}
# tests/test_app_*.py, tests/test_dask_*.py, tests/test_torch_*.py
ELSEWHERE = ("setwise.app.", "setwise.dask.", "setwise.torch.")


def callables():
    """The name of every public callable, one where it has several, with its parameters."""
    named = {}
    for name, value in public_api.interface():
        known = any(example.startswith(f"{name}.") for example in EXAMPLES)  # what it can do
        if name in PROTOCOLS or (name in RECORDS and not known):
            continue
        if name.startswith(ELSEWHERE) or inspect.ismodule(value):
            continue
        if callable(value) and (value not in named or name in EXAMPLES):
            named[value] = name
    for value, name in named.items():
        if not inspect.isabstract(value) and name not in RECORDS:
            yield name, parameters(value)
        for member in public_api.members(value) if inspect.isclass(value) else ():
            kind, _, rest = member.partition(" ")
            called = rest.partition("(")[0]
            if f"{name}.{kind[:-1]}" in EXAMPLES:  # a method that is there under a condition
                kind, called = "def", kind[:-1]
            if any(called in hooks for of, hooks in HOOKS.items() if issubclass(value, of)):
                continue
            if kind in ("def", "classmethod", "staticmethod") and not inspect.isabstract(value):
                yield f"{name}.{called}", parameters(getattr(value, called)) - {"self", "cls"}


def parameters(value):
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    known = inspect.signature(value).parameters.values()
    return {parameter.name for parameter in known if parameter.kind not in variable}


def test_every_public_callable_has_an_example_with_all_its_arguments():
    wanted = dict(callables())
    assert {*wanted} == {*EXAMPLES}
    for name, arguments in wanted.items():
        assert {*EXAMPLES[name].arguments} == arguments, name


LAYERS = (
    "conformal",
    *("functions", "fields", "images", "diversities", "inference", "learning", "losses"),
    "surrogates",
)


@pytest.mark.parametrize("layer", [*LAYERS, "estimators and plots"])
@given(data=st.data())
def test_bad_input(layer, data):
    parts = {name: name.split(".")[1] for name in EXAMPLES}
    here = [name for name in parts if parts[name] == layer]
    name = data.draw(st.sampled_from(here or [n for n in parts if parts[n] not in LAYERS]))
    possible = list(cases([name]))
    if possible:
        case = data.draw(st.sampled_from(possible))
        assert verdict_alone(case) is None, str(case)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", ["alternative", "hostile"])
def test_every_case_there_is(kind):
    """What is drawn above, whole: a hundred thousand cases, two minutes."""
    found = (case for case in cases(EXAMPLES) if case.kind == kind)
    assert [str(case) for case in found if verdict_alone(case) is not None] == []


def verdict_alone(case):
    """Return the verdict in an empty folder: what one call writes, another would read."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return verdict(case)


# ---------------------------------------------------------------------------------- cases by name

MASKED = np.ma.masked_array([1, 0, 1], [False, False, True])
PLAIN = np.array([1, 0, 1])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: losses.Jaccard()(MASKED, PLAIN), "y_true"),
        (lambda: losses.Jaccard()(PLAIN, MASKED), "y_pred"),
        (lambda: losses.Jaccard()([MASKED, MASKED], [PLAIN, PLAIN]), "y_true"),
        (lambda: surrogates.LovaszHinge("jaccard")(MASKED, [0.5, 0.5, 0.5]), "y"),
        (lambda: surrogates.LovaszHinge("jaccard")(PLAIN, MASKED * 0.5), "scores"),
        (lambda: sw.SetClassifier().fit(np.ma.masked_array(np.eye(3), np.eye(3)), PLAIN), "X"),
        (lambda: sw.SetClassifier().fit(np.eye(3), MASKED), "y"),
        (lambda: sw.StructBoostClassifier().fit(np.eye(3), MASKED), "y"),
    ],
)
def test_masks_are_not_dropped(call, name):
    with pytest.raises(TypeError, match=f"^{name} must be a plain array, got a masked one"):
        call()


@pytest.mark.parametrize("stranger", [3, 1.5, None, "jaccard", np.ones(3), np.sqrt])
@pytest.mark.parametrize(
    "call",
    [
        functions.tabulate,
        functions.check,
        functions.decompose,
        functions.minimize,
        functions.maximize,
        lambda function: functions.base_vertex(function, [0.5]),
        lambda function: functions.lovasz_extension(function, [0.5]),
        sw.plots.DecompositionDisplay.from_function,
    ],
)
def test_what_is_no_set_function_is_refused_in_a_sentence(call, stranger):
    with pytest.raises(TypeError, match=r"^function must be a set function, got "):
        call(stranger)


@pytest.mark.parametrize("flag", ["no", "False", 0, 1, 1.0, np.array([True])])
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda flag: sw.SetClassifier(fit_intercept=flag), "fit_intercept"),
        (lambda flag: sw.SetClassifier(verbose=flag), "verbose"),
        (lambda flag: sw.StructBoostClassifier(verbose=flag), "verbose"),
        (lambda flag: sw.StructBoostRanker(ordinal=flag), "ordinal"),
        (lambda flag: sw.StructBoostRanker(verbose=flag), "verbose"),
    ],
)
def test_words_and_numbers_are_no_flags(call, name, flag):
    with pytest.raises(TypeError, match=f"^{name} must be True or False, got "):
        call(flag).fit(np.eye(4), [0, 1, 0, 1])


def test_itemsets_end_with_the_last_frequent_one():
    """max_size is a limit, not a number of rounds."""
    Y = [[1, 1, 0], [1, 0, 1], [1, 1, 1]]
    largest = losses.ItemsetLoss.from_labels(Y, 0.3)
    for max_size in (3, 2**31, 10**400):
        found = losses.ItemsetLoss.from_labels(Y, 0.3, max_size)
        assert found.weights.tolist() == largest.weights.tolist()


@pytest.mark.parametrize("name", ["early_detection", "dice", "jaccard", "hamming"])
def test_scores_near_the_largest_float_give_a_number_or_a_sentence(name):
    y = np.array([1, 0, 1, 0])
    for surrogate in (surrogates.SlackRescaling(name), surrogates.MarginRescaling(name)):
        for signs in ([1, 1, 1, 1], [-1, 1, -1, 1], [1, -1, -1, 1], [1, -1, 1, -1]):
            scores = 1e308 * np.array(signs)
            try:
                value, gradient = surrogate.value_and_gradient(y, scores)
            except ValueError:
                with pytest.raises(ValueError, match="scores must be so small that the surrogate"):
                    surrogate(y, scores)
            else:
                assert np.isfinite(value)
                assert np.isfinite(gradient).all()


def test_a_packed_file_is_not_read_beyond_what_it_announces(tmp_path, monkeypatch):
    """A few bytes of header and megabytes of ones: one piece is read, and no second."""
    path = tmp_path / "bomb.uai.gz"
    path.write_bytes(gzip.compress(b"MARKOV 1 2 1 1 0 2 " + b"1 " * (1 << 23)))
    read = []
    pieces = _uai_model.pieces

    def counted(path):
        for piece in pieces(path):
            read.append(len(piece))
            yield piece

    monkeypatch.setattr(_uai_model, "pieces", counted)
    with pytest.raises(ValueError, match="nothing must follow the last table"):
        fields.read_uai(path)
    assert len(read) == 1
