"""The parts of the experiments that need no data: generators, samplers, searches, readers."""

import gzip
import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import setwise as sw

FOLDER = Path(__file__).parent.parent / "experiments"
if not FOLDER.exists():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
sys.path.insert(0, str(FOLDER.parent))

_data, _greedy, _labels, _linear, _report, early, jaccard, multilabel, gap, partition, rare = map(
    import_module,
    (
        "experiments.shared.data",
        "experiments.lovasz_hinge._greedy_rescaling",
        "experiments.lovasz_hinge._multilabel_problems",
        "experiments.lovasz_hinge._linear_models",
        "experiments.shared.report",
        "experiments.lovasz_hinge.table1_early_detection",
        "experiments.lovasz_hinge.table2_jaccard",
        "experiments.lovasz_hinge.tables3_4_multilabel",
        "experiments.lovasz_hinge.figure8_gap",
        "experiments.no_paper.uai_log_partition",
        "experiments.no_paper.rare_positives",
    ),
)
bags, dice = map(
    import_module,
    ("experiments.decomposed_hinge._bags", "experiments.decomposed_hinge.table1_dice"),
)


def test_bags_are_half_of_each_class_and_change_after_three_points() -> None:
    X, Y = early.bags(4000, np.random.default_rng(0))
    assert X.shape == (4000, 15, 2)
    assert Y.shape == (4000, 15)
    assert np.ptp(Y, axis=1).max() == 0
    assert np.sum(Y[:, 0] == 1) == 2000
    means = X[Y[:, 0] == 1].mean(axis=0)
    assert np.allclose(means[:3], [-2, 2], atol=0.1)
    assert np.allclose(means[3:], [2, -2], atol=0.1)
    assert np.allclose(X[Y[:, 0] == -1].mean(axis=0), 1, atol=0.1)
    assert set(Y[:10, 0]) == {-1, 1}, "the bags are shuffled"


@pytest.mark.parametrize("slack", [True, False])
def test_greedy_is_the_library_s_for_all_sets_at_once(slack: bool) -> None:
    rng = np.random.default_rng(0)
    Y, scores = rng.choice([-1, 1], (30, 6)), rng.standard_normal((30, 6))
    loss = sw.losses.ItemsetLoss([4.0, 3.0, 2.0, 2.0, 1.0, 1.0])
    kind = sw.surrogates.SlackRescaling if slack else sw.surrogates.MarginRescaling
    theirs = kind(loss, maximizer="greedy").value_and_gradient(Y, scores)
    ours = _greedy.GreedyRescaling(loss, slack=slack).value_and_gradient(Y, scores)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("slack", [True, False])
def test_no_greedy_search_finds_more_than_there_is(slack: bool) -> None:
    rng = np.random.default_rng(1)
    Y, scores = rng.choice([-1, 1], (50, 5)), rng.standard_normal((50, 5))
    loss = sw.losses.Exponential()
    exact = (sw.surrogates.SlackRescaling if slack else sw.surrogates.MarginRescaling)(loss)
    for published in (True, False):
        search = _greedy.GreedyRescaling(loss, slack=slack, published=published)
        found, _ = search.value_and_gradient(Y, scores)
        assert np.all(found <= exact(Y, scores) + 1e-12)
        assert np.all(found >= 0)


def test_common_itemset_counts_examples_that_have_all() -> None:
    Y = np.array([[1, 1, 0, 1], [1, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 1, 0]])
    assert _labels.common_itemset(Y, 2) == [1, 0]
    assert _labels.common_itemset(Y, 3) == [1, 0, 3]
    assert _labels.common_itemset(Y, 4) == [1, 2, 0, 3], "a tie at no example: all, by frequency"


def test_balanced_split_draws_the_same_shares_to_train_and_to_test() -> None:
    present = np.repeat([0, 1, 2, 3], [500, 60, 9, 0])
    rng = np.random.default_rng(0)
    train, test = _labels.balanced_split(present, (150, 150, 150, 30), rng)
    assert np.bincount(present[train]).tolist() == [150, 40, 6]
    assert np.bincount(present[test]).tolist() == [75, 20, 3]
    assert len(np.intersect1d(train, test)) == 0


@pytest.mark.parametrize(("size", "names"), [(3, ("Δ2", "Δ3")), (6, ("Δ4", "Δ5", "Δ6"))])
def test_losses_have_the_paper_s_values(size: int, names: tuple[str, ...]) -> None:
    Y = np.where(np.random.default_rng(0).random((40, size)) < 0.5, 1, -1)
    none, everything = Y[0], -Y[0]
    worst = {
        "Δ2": 1.3,
        "Δ3": 1 - np.exp(-3) + 1.7,
        "Δ4": 1 - np.exp(-6),
        "Δ5": 1 - np.exp(-6) + 4.0,
        "Δ6": 1.0,
    }
    for name in names:
        loss = _labels.make_loss(name, Y)
        assert loss(Y[0], none) == 0
        assert loss(Y[0], everything) == pytest.approx(worst[name])
        for method in multilabel.METHODS:
            surrogate = _labels.make_surrogate(method, loss)
            values, gradient = surrogate.value_and_gradient(Y, np.zeros(Y.shape))
            assert values.shape == (40,)
            assert gradient.shape == Y.shape


def test_risks_have_the_gradient_they_say() -> None:
    rng = np.random.default_rng(0)
    surrogate = sw.surrogates.LovaszHinge("exponential")
    Y = rng.choice([-1, 1], (7, 3))
    for risk in (
        _linear.LabelRisk(surrogate, rng.standard_normal((7, 4)), Y),
        _linear.BagRisk(surrogate, rng.standard_normal((7, 3, 4)), Y),
    ):
        w = rng.standard_normal(risk.dimension)
        _, gradient = risk(w)
        step = 1e-6 * rng.standard_normal(risk.dimension)
        change = risk(w + step)[0] - risk(w - step)[0]
        assert change == pytest.approx(2 * gradient @ step, rel=1e-4)


def test_path_goes_up_in_c() -> None:
    rng = np.random.default_rng(0)
    X, Y = early.bags(20, rng)
    risk = _linear.BagRisk(sw.surrogates.LovaszHinge("hamming"), X, Y)
    fits = _linear.path(risk, [1.0, 0.01], tol=1e-3, max_iter=100)
    assert np.linalg.norm(fits[0].w) < np.linalg.norm(fits[1].w)


def test_pairs_are_those_that_occur_together() -> None:
    train = csr_matrix(np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 1, 0]], np.float64))
    test = csr_matrix(np.array([[1, 1, 1]], np.float64))
    X, X_test = jaccard.with_pairs(train, test, 3)
    assert X.toarray()[:, 3:].ravel().tolist() == [1, 1, 0, 1]
    assert X_test.toarray().tolist() == [[1, 1, 1, 1]]


def test_wins_are_counted_at_three_digits() -> None:
    ours, theirs = np.array([0.1, 0.2001, 0.3]), np.array([0.2, 0.2002, 0.1])
    assert jaccard.wins(ours, theirs) == "1 / 1 / 1"


def test_rounds_to_a_gap() -> None:
    gaps = np.array([1.0, 0.05, 0.001])
    assert gap.rounds_to(gaps, 0.1) == "2"
    assert gap.rounds_to(gaps, 1e-4) == "–"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [("1.5,0\n2,1\n", [[1.5, 0], [2, 1]]), ("{0 1.5}\n{}\n{1 1}\n", [[1.5, 0], [0, 0], [0, 1]])],
)
def test_arff_dense_and_sparse(tmp_path: Path, rows: str, expected: list[list[float]]) -> None:
    path = tmp_path / "a.arff.gz"
    head = "@relation r\n@attribute 'it\\'s a' numeric\n@attribute b {0,1}\n\n@data\n"
    path.write_bytes(gzip.compress((head + rows).encode()))
    names, values = _data.read_arff(path)
    assert names == ["it's a", "b"]
    assert np.asarray(values.todense() if hasattr(values, "todense") else values).tolist() == (
        expected
    )


def test_marginals_of_a_competition(tmp_path: Path) -> None:
    path = tmp_path / "a.uai.MAR.gz"
    path.write_bytes(gzip.compress(b"MAR\n2 2 0.25 0.75 2 1 0\n"))
    assert partition.read_marginals(path).tolist() == [[0.25, 0.75], [1.0, 0.0]]


def test_missing_data_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SETWISE_DATA", str(tmp_path))
    with pytest.raises(SystemExit) as end:
        _data.multilabel("yeast")
    assert end.value.code == 77
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("missing data: multilabel/yeast/yeast.xml")


def test_estimates_and_tables() -> None:
    assert _report.estimate([1.0, 3.0]) == _report.Estimate(2.0, 1.0)
    assert _report.estimate([1.0]).show(2) == "1.00"
    assert _report.beside(None, _report.Estimate(0.5, 0.25), 2) == ["–", "0.50 ± 0.25"]
    table = _report.Table("T", ["a", "b"], [["1", "22"]])
    assert table.markdown().splitlines()[-1] == "| 1 | 22 |"


def test_results_lie_beside_their_script_under_its_name(tmp_path: Path) -> None:
    script = tmp_path / "paper" / "table1.py"
    script.parent.mkdir()
    table = _report.Table("T", ["a"], [["1"]])
    given = {"choices": {"seed": 0}, "data": {"mean": _report.Estimate(0.5)}}
    _report.report(str(script), "Title", [table], **given, quick=True)
    assert list(script.parent.iterdir()) == [], "a quick look writes nothing"
    _report.report(str(script), "Title", [table], **given, quick=False)
    assert _report.data_of(script) == {"mean": {"mean": 0.5, "error": None}}
    written = sorted(path.name for path in (script.parent / "results").iterdir())
    assert written == ["table1.json", "table1.md"]
    assert json.loads((script.parent / "results" / "table1.json").read_text())["name"] == (
        "paper/table1"
    )


def test_what_another_script_should_have_written_is_asked_for() -> None:
    with pytest.raises(SystemExit, match=r"run experiments/diverse/none\.py first"):
        _report.data_of(FOLDER / "diverse" / "none.py")


def test_greedy_slack_is_the_librarys_and_a_sum_below_zero_counts_as_zero() -> None:
    drawn = dice.draw(np.random.default_rng(0), 2)
    bags.require_same_greedy(sw.losses.Dice(), drawn)
    published = bags.GreedySlack(sw.losses.Dice(), published=True)
    w = np.random.default_rng(1).standard_normal((200, 3))
    sums = [published.value_and_gradient(drawn.y, drawn.X @ v, offsets=drawn.offsets) for v in w]
    answers = [bags.risk(published, drawn)(v) for v in w]
    for (values, slopes), (total, slope) in zip(sums, answers, strict=True):
        below = values.sum() < 0
        assert total == (0.0 if below else values.sum())
        np.testing.assert_array_equal(slope, 0.0 if below else slopes @ drawn.X)
    assert 0 < sum(values.sum() < 0 for values, _ in sums) < len(w)


@pytest.mark.parametrize("noise", rare.NOISE)
def test_rare_positives_are_as_many_at_any_noise(noise: float) -> None:
    X, y = rare.sample(20_000, noise, np.random.default_rng(0))
    assert X.shape == (20_000, rare.FEATURES)
    assert abs(y.mean() - rare.SHARE) < 0.005


def test_the_best_threshold_by_trying_all() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        scores, y = rng.normal(size=30), rng.random(30) < 0.2
        y[0] = True
        best = max(rare.jaccard(y, scores > cut) for cut in [-9.0, *scores])
        assert rare.jaccard(y, scores > rare.best_threshold(scores, y)) == best


def test_calibration_keeps_the_images_of_a_group_in_one_fold() -> None:
    calibration = import_module("experiments.no_paper.calibration")
    fields = import_module("experiments.no_paper._calibrated_fields")
    groups = [group for group in "abcdef" for _ in range(2)]
    folds = calibration.folds_of(groups)
    assert folds.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 0, 0]
    marks = np.full((5, 7), -1)
    marks[3, 5], marks[0, 1] = 1, 0
    assert fields._thinned(marks, 2).tolist() == [[0, -1, -1, -1], [-1, -1, 1, -1], [-1] * 4]


def test_adaboost_mh_takes_the_best_stump_and_its_bound_holds() -> None:
    from experiments.struct_boost._adaboost_mh import AdaBoostMH

    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(40, 3)), 1)
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=40), [-0.5, 0.5])
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    first = AdaBoostMH(1).fit(X, y)
    (j, cut, _), least = first.stumps_[0], np.inf
    for k in range(3):
        for threshold in (np.unique(X[:, k])[:-1] + np.unique(X[:, k])[1:]) / 2:
            total = 0.0
            for side in (X[:, k] > threshold, X[:, k] <= threshold):
                right, wrong = (signs[side] > 0).sum(0), (signs[side] < 0).sum(0)
                total += 2 * np.sqrt(right * wrong).sum() / signs.size
            if total < least - 1e-12:
                least, best = total, (k, threshold)
    assert (j, cut) == pytest.approx(best)
    model = AdaBoostMH(30).fit(X, y)
    bounds = np.array(model.bounds_)
    assert (np.diff(bounds) < 0).all()
    wrong = model.decision_function(X) * signs <= 0
    assert wrong.mean() <= bounds[-1] + 1e-12
    assert (model.predict(X) != y).mean() < 0.2
