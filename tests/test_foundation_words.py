"""Words that are nearly right are answered with the right one; rounds are told to a logger."""

import inspect
import logging

import numpy as np
import pytest

import setwise as sw
from setwise._foundation._keywords import hints_at_names
from setwise._foundation._progress import Progress
from setwise.inference._map._result import MapProgress
from setwise.inference._marginals._result import MarginalsProgress


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: sw.SetClasifier, "SetClassifier"),
        (lambda: sw.losses.get("jacard"), "jaccard"),
        (lambda: sw.surrogates.get("Lovasz", "jaccard"), "lovasz"),
        (lambda: sw.solve_map(sw.fields.Field([[0.0, 1.0]]), "expansions"), "expansion"),
        (lambda: sw.marginals(sw.fields.Field([[0.0, 1.0]]), "meanfield"), "mean_field"),
        (lambda: sw.SetClassifier(sets="row").fit([[0.0], [1.0]], [[0, 1], [1, 0]]), "rows"),
        (lambda: sw.SetClassifier("jaccard", "lovas").fit([[0.0], [1.0]], [0, 1]), "lovasz"),
        (lambda: sw.surrogates.MarginRescaling("jaccard", maximizer="gredy"), "greedy"),
        (lambda: sw.SetClassifierCV(scoring="f1_sample").fit([[0.0], [1.0]], [0, 1]), "f1_samples"),
        (lambda: sw.StructBoostRanker(loss="acu").fit([[0.0], [1.0]], [0, 1]), "auc"),
    ],
)
def test_a_word_that_is_nearly_right_is_answered_with_the_right_one(call, word: str) -> None:
    with pytest.raises((AttributeError, ValueError), match=f"did you mean '{word}'\\?$"):
        call()


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda t: t.LovaszHingeLoss(reduction="meen"), "mean"),
        (lambda t: t.LovaszSoftmaxLoss(classes="presnt"), "present"),
        (lambda t: t.LovaszSoftmaxLoss(average="class", per_image=True), "classes"),
        (lambda t: t.SoftDiceLoss(activation="softmx"), "softmax"),
        (lambda t: t.SetScore("jaccard", n_classes=2, kind="mask"), "masks"),
        (lambda t: t.SetScore("jaccard", n_classes=2, reduction="non"), "none"),
        (lambda t: t.InstanceLoss(errors="sigmoyd"), "sigmoid"),
        (lambda t: t.InstanceLoss(assign="nearst"), "nearest"),
        (lambda t: t.FieldMarginals(method="tree"), "trees"),
    ],
)
def test_a_word_in_torch_is_answered_likewise(call, word: str) -> None:
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match=f"did you mean '{word}'\\?$"):
        call(sw.torch)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: sw.SetClassifier(surogate="lovasz"), "surrogate"),
        (lambda: sw.StructBoostClassifier(n_estimaters=3), "n_estimators"),
        (lambda: sw.decide([0.5], los="dice"), "loss"),
        (lambda: sw.solve_map(sw.fields.Field([[0.0, 1.0]]), methd="cut"), "method"),
        (lambda: sw.solve_map(sw.fields.Field([[0.0, 1.0]]), methd="", verbose=True), "method"),
        (lambda: sw.marginals(sw.fields.Field([[0.0, 1.0]]), methd="trees"), "method"),
        (lambda: sw.marginals(sw.fields.Field([[0.0, 1.0]]), methd="", verbose=True), "method"),
        (lambda: sw.images.segment(np.zeros((4, 4)), smothness=2.0), "smoothness"),
    ],
)
def test_an_argument_that_is_nearly_right_is_answered_likewise(call, name: str) -> None:
    with pytest.raises(TypeError, match=f"(?i)did you mean '{name}'\\?$"):
        call()


X = np.arange(8.0).reshape(4, 2)
Y = np.array([[0, 1], [1, 0], [1, 1], [0, 0]])
FOREIGN = [
    (lambda: sw.SetClassifier(class_weights={0: 2.0}), r"SetClassifier.* 'class_weight'\?$"),
    (lambda: sw.SetClassifier(mode="rows"), r"SetClassifier.* 'sets'\?$"),
    (lambda: sw.SetClassifier(group=[0, 1]), r"SetClassifier.* 'sets'\?$"),
    (lambda: sw.SetClassifier().fit(X, Y, group=[0, 0, 1, 1]), r"SetClassifier.fit.* 'groups'\?$"),
    (lambda: sw.SetClassifierCV().score(X, Y, group=[0, 1]), r"SetClassifierCV.* 'groups'\?$"),
    (lambda: sw.SetDecision().decide(X, group=[0, 1]), r"SetDecision.decide.* 'groups'\?$"),
    (lambda: sw.StructBoostRanker().fit(X, Y[:, 0], group=[2, 2]), r"Ranker.fit.* 'groups'\?$"),
    (lambda: sw.losses.scorer("dice", mode="rows"), r"scorer\(\) .* 'sets'\?$"),
    (lambda: sw.decide([0.5], "dice", mode="rows"), r"decide\(\) .* 'sets'\?$"),
    (lambda: sw.decide([0.5], sw.losses.Dice), r"got a class: did you mean Dice\(\)\?$"),
    (
        lambda: sw.StructBoostClassifier(taxonomy={"a": ["b", "c"]}).fit(X, list("bcbc")),
        r"taxonomy must be nested lists .* a dict: write .* as \[\['cat', 'dog'\], \['oak'\]\]$",
    ),
]


@pytest.mark.parametrize(("call", "words"), FOREIGN)
def test_what_other_libraries_take_is_answered_with_what_this_one_takes(call, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


def test_estimators_over_a_cluster_hint_likewise() -> None:
    dask = pytest.importorskip("setwise.dask")
    with pytest.raises(TypeError, match=r"DaskStructBoostClassifier.* 'class_weight'\?$"):
        dask.DaskStructBoostClassifier(class_weights={0: 2.0})
    for kind in (dask.DaskSetClassifier, dask.DaskStructBoostRanker, dask.DaskFieldSVM):
        with pytest.raises(TypeError, match=rf"{kind.__name__}.* 'tol'\?$"):
            kind(tool=1e-3)


def test_a_refusal_names_the_class_that_was_called_and_not_its_private_base() -> None:
    class _Base:
        @hints_at_names
        def __init__(self, *, weight: float = 1.0, classes: str = "all") -> None: ...

    class Public(_Base): ...

    with pytest.raises(TypeError) as caught:
        Public(class_weights=2.0)
    words = "Public.__init__() got an unexpected keyword argument 'class_weights'"
    assert str(caught.value).endswith(f"{words}: did you mean 'weight'?")
    with pytest.raises(TypeError, match=r"Public.__init__\(\) .* argument 'zzz'$"):
        Public(zzz=2.0)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("DiceLoss", r"sw\.losses\.Dice\(\), in PyTorch sw\.torch\.SoftDiceLoss\(\)"),
        ("JaccardLoss", r"sw\.losses\.Jaccard\(\), in PyTorch sw\.torch\.JaccardMetricLoss\(\)"),
        ("IoULoss", r"sw\.losses\.Jaccard\(\), in PyTorch sw\.torch\.JaccardMetricLoss\(\)"),
    ],
)
def test_losses_by_the_names_of_other_libraries(name: str, meant: str) -> None:
    for module in (sw, sw.losses):
        with pytest.raises(AttributeError, match=f"{name!r}: did you mean {meant}\\?$"):
            getattr(module, name)
        assert not hasattr(module, name)
    for call in meant.replace("\\", "").split(", in PyTorch "):
        if "torch" not in call:
            assert eval(call, {"sw": sw}) is not None
    with pytest.raises(AttributeError, match=r"no attribute 'Hammming': did you mean 'Hamming'\?$"):
        _ = sw.losses.Hammming


LISTS = {
    "of different lengths": [["a", "b"], ["c"], [], ["a"]],
    "of one length": [["a", "b"]] * 2 + [["b", "c"]] * 2,
    "of numbers": [[0, 2], [1], [], [0]],
    "of sets": [{"a", "b"}, {"c"}, set(), {"a"}],
}


@pytest.mark.parametrize("y", LISTS.values(), ids=LISTS)
def test_lists_of_labels_are_pointed_to_what_makes_a_matrix_of_them(y: list[object]) -> None:
    words = "got a list of labels for each sample: MultiLabelBinarizer"
    for model in (sw.SetClassifier(), sw.SetClassifierCV(), sw.SetDecision()):
        with pytest.raises(ValueError, match=words):
            model.fit(X, y)
    with pytest.raises(ValueError, match="y must hold one class for each sample, got a list"):
        sw.StructBoostClassifier().fit(X, y)
    with pytest.raises(ValueError, match="MultiLabelBinarizer"):
        sw.SetClassifier().fit(X, np.array(LISTS["of one length"]))


@pytest.mark.parametrize(
    ("model", "values"),
    [
        (sw.SetClassifier(), "'sigmoid' or 'isotonic'"),
        (sw.StructBoostClassifier(n_estimators=2), "'softmax' or 'sigmoid' or 'isotonic'"),
    ],
)
def test_probabilities_without_calibration_say_what_they_need(model, values: str) -> None:
    kind = type(model).__name__
    words = f"^predict_proba of {kind} needs calibrate={values}, got calibrate=None$"
    with pytest.raises(AttributeError, match=words):
        _ = model.predict_proba
    assert not hasattr(model, "predict_proba")
    assert hasattr(model.set_params(calibrate="sigmoid"), "predict_proba")
    assert inspect.signature(type(model).predict_proba).parameters.keys() == {"self", "X"}


def test_an_argument_of_a_torch_loss_likewise() -> None:
    pytest.importorskip("torch")
    for loss in (sw.torch.LovaszSoftmaxLoss, sw.torch.SoftDiceLoss):
        with pytest.raises(TypeError, match=r"(?i)did you mean 'ignore_index'\?$"):
            loss(ignor_index=255)


def test_other_refusals_of_arguments_are_as_they_were() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'zzz'$"):
        sw.decide([0.5], zzz="dice")
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'field'$"):
        sw.solve_map()
    with pytest.raises(TypeError, match=r"^field must be a Field, got int$"):
        sw.solve_map(3)


def test_a_word_that_is_far_from_all_has_no_hint() -> None:
    with pytest.raises(ValueError, match=r"got 'zzz'$"):
        sw.losses.get("zzz")
    with pytest.raises(AttributeError, match=r"'__wrapped__'$"):
        _ = sw.__wrapped__


def test_the_logger_hears_every_round(caplog: pytest.LogCaptureFixture) -> None:
    def risk(w: np.ndarray) -> tuple[float, np.ndarray]:
        return abs(w[0] - 1), np.sign(w - 1)

    with caplog.at_level(logging.DEBUG, logger="setwise"):
        fit = sw.learning.one_slack(risk, 1)
    assert len(caplog.records) == fit.n_iter
    assert "relative_gap" in caplog.text
    with caplog.at_level(logging.INFO, logger="setwise"):
        caplog.clear()
        sw.learning.one_slack(risk, 1)
    assert not caplog.records


@pytest.mark.parametrize("method", ["trees", "projection"])
def test_the_logger_hears_marginals_without_a_callback(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    unary = np.random.default_rng(0).normal(size=(36, 3))
    field = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges((6, 6)), 0.5)
    plain, rounds = sw.marginals(field, method), []
    with caplog.at_level(logging.DEBUG, logger="setwise"):
        heard = sw.marginals(field, method)
    told = sw.marginals(field, method, callback=rounds.append)
    records = [record.args[0] for record in caplog.records]  # a labelling beneath is told of too
    told_of = [now.value for now in records if isinstance(now, MarginalsProgress)]
    assert told_of == [now.value for now in rounds]
    assert all("relative_gap" in record.getMessage() for record in caplog.records)
    assert plain.log_partition_upper == heard.log_partition_upper == told.log_partition_upper


@pytest.mark.parametrize("method", ["cut", "expansion", "messages"])
def test_the_logger_hears_the_best_labelling_without_a_callback(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    unary = np.random.default_rng(0).normal(size=(36, 2))
    field = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges((6, 6)), 0.5)
    rounds: list[MapProgress] = []
    with caplog.at_level(logging.DEBUG, logger="setwise"):
        sw.solve_map(field, method)
    sw.solve_map(field, method, callback=lambda now: rounds.append(now))
    assert rounds
    assert [record.args[0].value for record in caplog.records] == [now.value for now in rounds]


def test_the_logger_hears_a_round_once_beside_a_display(caplog: pytest.LogCaptureFixture) -> None:
    function = sw.functions.ConcaveOfModular(np.sqrt, [1.0, 2.0, 3.0]) + sw.functions.Modular(
        [-1.0, 0.5, -0.25]
    )
    rounds: list[object] = []
    with caplog.at_level(logging.DEBUG, logger="setwise"):
        sw.functions.minimize(function, callback=lambda now: rounds.append(now), verbose=True)
    assert len(caplog.records) == len(rounds)


def fit_with_validation(X: np.ndarray, Y: np.ndarray, callback) -> None:
    model = sw.StructBoostClassifier(n_estimators=5, C=50.0)
    model.fit(X, Y[:, 0], eval_set=(X, Y[:, 0]), callback=callback)


def fit_a_field(X: np.ndarray, Y: np.ndarray, callback) -> None:
    chain = np.stack([np.arange(len(X) - 1), np.arange(1, len(X))], axis=1)
    model = sw.FieldSVM()
    model.fit([(X, chain, np.ones((len(chain), 1)))], [Y[:, 0].astype(int)], callback=callback)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("fit", [fit_with_validation, fit_a_field])
def test_the_logger_hears_what_the_callback_of_a_learner_is_told(
    fit, caplog: pytest.LogCaptureFixture
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    rounds: list[Progress] = []
    with caplog.at_level(logging.DEBUG, logger="setwise"):
        fit(X, X @ rng.normal(size=(3, 2)) > 0, lambda now: rounds.append(now))
    assert len(rounds) > 1
    assert [record.args[0].n_iter for record in caplog.records] == [now.n_iter for now in rounds]


def test_a_line_of_the_log_is_short(caplog: pytest.LogCaptureFixture) -> None:
    unary = np.random.default_rng(0).normal(size=(900, 2))
    field = sw.fields.Field(unary) + sw.fields.Potts(sw.fields.grid_edges((30, 30)), 0.5)
    with caplog.at_level(logging.DEBUG, logger="setwise"):
        sw.diverse(field, 3)
    assert caplog.records
    assert all(len(record.getMessage()) < 200 for record in caplog.records)


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        (lambda: sw.losses.CardinalityLoss(lambda k: k), r"formula\(k, p\)"),
        (lambda: sw.losses.CountsLoss(lambda n, q: n + q), r"formula\(n, q, m, r\)"),
        (lambda: sw.functions.ConcaveOfModular(lambda a, b: a, [1.0]), r"concave\(sums\)"),
        (lambda: sw.functions.Counts(lambda n: n, [True, False]), r"formula\(n, q\)"),
        (lambda: sw.functions.Oracle(lambda: 0.0, 3), r"function\(mask\)"),
        (lambda: sw.losses.SetLoss(lambda mask: 0.0), r"function\(mistakes, positive\)"),
        (lambda: sw.diversities.LabelDiversity(lambda a, b: a), r"h\(counts\)"),
        (lambda: sw.learning.one_slack(lambda: 0.0, 2), r"oracle\(w\)"),
        (lambda: sw.learning.n_slack(lambda w: 0.0, 3, 2), r"oracle\(i, w\)"),
        (
            lambda: sw.solve_map(sw.fields.Field([[0.0, 1.0]]), callback=lambda: None),
            r"callback\(progress\)",
        ),
    ],
)
def test_a_formula_with_other_arguments_is_told_how_it_is_called(call, asked: str) -> None:
    with pytest.raises(TypeError, match=f"is called as {asked}"):
        call()


def test_a_formula_that_does_not_tell_its_arguments_is_taken() -> None:
    assert sw.functions.ConcaveOfModular(np.sqrt, [4.0])([True]) == 2.0
