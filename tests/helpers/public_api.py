"""The public interface of setwise as text: `make api` writes tests/public_api.txt.

Names, parameters and defaults are listed, type annotations are not: mypy checks those, and what
they print as depends on the version of NumPy.
"""

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

MODULES = (
    "setwise",
    "setwise.app",
    "setwise.conformal",
    "setwise.dask",
    "setwise.decisions",
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

# Classes whose objects users receive or imitate, but whose names they do not write: what functions
# return and pass to callbacks, and protocols. They are not exported. The reference describes each
# on the page of the public name that is its key here.
DESCRIBED_WITH = {
    "setwise.calibrate_temperature": ("inference._calibration._calibrated.CalibrationProgress",),
    "setwise.diverse": (
        "inference._diverse._result.DiverseProgress",
        "inference._diverse._result.Guarantee",
    ),
    "setwise.marginals": ("inference._marginals._result.MarginalsProgress",),
    "setwise.solve_map": ("inference._map._result.MapProgress", "_foundation._clock.Timings"),
    "setwise.conformal.ConformalMasks": ("conformal._masks.MaskSet",),
    "setwise.conformal.control_risk": ("decisions._risk_control.RiskControl",),
    "setwise.dask.map_fields": (
        "dask._maps._map_fields.FieldMap",
        "dask._maps._field_results.FieldResults",
        "dask._maps._field_results.FieldRow",
    ),
    "setwise.dask.solve_map": (
        "dask._volumes._volume_result.VolumeResult",
        "dask._volumes._volume_result.VolumeProgress",
    ),
    "setwise.functions.check": ("functions._check.Check",),
    "setwise.functions.decompose": ("functions._decomposition._decompose.Decomposition",),
    "setwise.functions.maximize": ("functions._maximization._maximum.Maximum",),
    "setwise.functions.minimize": ("functions._minimization._minimum.Minimum",),
    "setwise.images.read": ("images._picture.Picture",),
    "setwise.images.segment": ("images._segment.Segmentation",),
    "setwise.inference.EditableCut": (
        "inference._editing._result.EditResult",
        "inference._editing._result.EditCertificate",
        "inference._editing._result.EditProgress",
    ),
    "setwise.inference.bias_path": ("inference._diverse._path._nested_path.BiasPath",),
    "setwise.inference.log_partition_gradient": (
        "inference._marginals._gradient.LogPartitionGradient",
    ),
    "setwise.inference.maxflow": ("inference._flows._maxflow.Flow",),
    "setwise.inference.reliability": ("inference._calibration._reliability.Reliability",),
    "setwise.inference.tune_diversity": (
        "inference._diverse._tuning.TuningResult",
        "inference._diverse._tuning.TuningProgress",
    ),
    "setwise.learning.ClassifierSearch": ("learning._weak_learners._classifiers.WeakClassifier",),
    "setwise.learning.PerceptronSearch": ("learning._weak_learners._perceptrons.Perceptron",),
    "setwise.learning.StepSearch": ("learning._weak_learners._steps.Step",),
    "setwise.learning.StumpSearch": (
        "learning._weak_learners._stumps.Stump",
        "learning._weak_learners._category_stumps.CategoryStump",
    ),
    "setwise.learning.Threads": ("learning._executors.Executor",),
    "setwise.learning.one_slack": (
        "learning._cutting_planes._fit.Fit",
        "learning._cutting_planes._fit.Planes",
        "learning._history.History",
        "_foundation._progress.Progress",
    ),
    "setwise.learning.struct_boost": (
        "learning._boosting._problem.Risk",
        "learning._boosting._problem.ExamplewiseRisk",
        "learning._boosting._problem.WeakLearnerSearch",
        "learning._boosting._boost_fit.BoostFit",
        "learning._boosting._boost_fit.BoostHistory",
        "learning._boosting._boost_fit.BoostProgress",
    ),
    "setwise.torch.FieldHingeLoss": ("torch._fields._criterion.FieldLoss",),
    "setwise.torch.FieldMAP": ("torch._fields._field_map.FieldLabels",),
    "setwise.torch.FieldMarginals": ("torch._fields._field_marginals.FieldPosterior",),
    "setwise.torch.MaskCalibrator": ("torch._mask_calibrator.MaskBounds",),
    "setwise.torch.decide": (
        "torch._decide.MaskDecision",
        "torch._decide.LabelMapDecision",
    ),
}


def public_objects() -> Iterator[tuple[str, object]]:
    """The names in each module's ``__all__``, with what they stand for."""
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in sorted(module.__all__):
            yield f"{module_name}.{name}", getattr(module, name)


def described_objects() -> Iterator[tuple[str, type]]:
    """The classes without a public name, under the folder of the page that describes them.

    The records of ``setwise.solve_map`` count as those of ``setwise.inference``.
    """
    for page, paths in DESCRIBED_WITH.items():
        for path in paths:
            home, _, name = path.rpartition(".")
            folder = path.partition(".")[0] if page.count(".") == 1 else page.split(".")[1]
            folder = "inference" if folder == "_foundation" else folder
            yield (
                f"setwise.{folder}.{name}",
                getattr(importlib.import_module(f"setwise.{home}"), name),
            )


def interface() -> Iterator[tuple[str, object]]:
    """The exported names, and then the classes that are only described."""
    yield from public_objects()
    yield from described_objects()


def listing() -> str:
    lines = (line for name, value in interface() for line in describe(name, value))
    return "\n".join(lines) + "\n"


@cache
def exported() -> frozenset[str]:
    return frozenset(name for name, _ in public_objects())


def describe(name: str, value: object) -> Iterator[str]:
    if inspect.ismodule(value):
        yield f"{name}: module"
    elif inspect.isclass(value):
        kind = "class" if name in exported() else "described"
        yield f"{kind} {name}{signature(value)}"
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
