"""The parts of the MSRC-21 experiments that need no data."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent.parent / "experiments"
if not FOLDER.exists():
    pytest.skip("the experiments are not part of this copy", allow_module_level=True)
pytest.importorskip("skimage")
sys.path.insert(0, str(FOLDER.parent))

_models, _roc, smoothing, figures, table1 = map(
    import_module,
    (
        "experiments.log_supermodular._models",
        "experiments.log_supermodular._roc",
        "experiments.log_supermodular.figures_smoothing",
        "experiments.log_supermodular.figures_roc_and_maps",
        "experiments.log_supermodular.table1_marginals",
    ),
)
_msrc, _mean_shift, _pixels, _texture, _unaries, unaries, layers = map(
    import_module,
    (
        "experiments.shared.msrc",
        "experiments.msrc21._mean_shift",
        "experiments.msrc21._pixel_classifier",
        "experiments.shared.texture",
        "experiments.msrc21._two_classifiers",
        "experiments.msrc21.unaries",
        "experiments.msrc21.superpixels",
    ),
)


def test_unary_file(tmp_path: Path) -> None:
    vectors = np.array([[600, 400, 0], [0, 1, 998]], ">i4")
    of_pixel = np.array([[0, 1], [1, 1], [0, 0]], ">u4")
    head = np.array([2, 3, 3, 2], ">i4").tobytes() + np.array([1e-3], ">f4").tobytes()
    path = tmp_path / "a.c_unary"
    path.write_bytes(head + vectors.tobytes() + of_pixel.tobytes())
    p = _msrc.read_unary(path)
    assert p.shape == (3, 2, 3)
    np.testing.assert_allclose(p[0, 0], [0.6, 0.4, 0], atol=1e-12)
    np.testing.assert_allclose(p[0, 1], np.array([0, 1, 998]) / 999, atol=1e-12)


def test_boundary_is_between_labels_and_never_void() -> None:
    labels = np.array([[0, 0, 1, -1, 2], [0, 0, 0, -1, 2]])
    expected = [[0, 1, 1, 0, 0], [0, 0, 1, 0, 0]]
    assert _msrc.boundary(labels).astype(int).tolist() == expected


@pytest.mark.parametrize("bandwidth", [0, 1, 3])
def test_trimap_is_the_union_of_squares(bandwidth: int) -> None:
    labels = np.random.default_rng(0).integers(-1, 2, (5, 6)).repeat(4, axis=0).repeat(4, axis=1)
    edge = _msrc.boundary(labels)
    expected = np.zeros(labels.shape, bool)
    for y, x in zip(*np.nonzero(edge), strict=True):
        rows = slice(max(y - bandwidth, 0), y + bandwidth + 1)
        expected[rows, max(x - bandwidth, 0) : x + bandwidth + 1] = True
    assert np.array_equal(_msrc.trimap(labels, bandwidth), expected & (labels >= 0))
    assert not _msrc.trimap(np.zeros((4, 4), np.int8), bandwidth).any()


def test_energies_are_of_distributions_above_the_floor() -> None:
    p = np.array([[[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]])
    unary = _msrc.energies(p, floor=0.01)
    assert unary.shape == (2, 3)
    np.testing.assert_allclose(np.exp(-unary).sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(-unary[1]), [0.2, 0.3, 0.5])
    np.testing.assert_allclose(np.exp(-unary[0, 1]), 0.01 / 1.02)


@pytest.mark.parametrize("shape", [(6, 8), (5, 7), (1, 2)])
def test_enlarging_keeps_linear_images(shape: tuple[int, int]) -> None:
    rows, columns = (-(-size // 2) for size in shape)
    y, x = np.mgrid[0.5 : 2 * rows : 2, 0.5 : 2 * columns : 2]  # centres of cells, in pixels
    pixels = _msrc.enlarge(np.stack([y, x], axis=-1), shape, 2)
    wanted = np.stack(np.indices(shape), axis=-1)
    limits = np.array([2 * rows - 1.5, 2 * columns - 1.5])
    np.testing.assert_allclose(pixels, np.clip(wanted, 0.5, limits))


def test_cache_goes_and_comes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SETWISE_CACHE", str(tmp_path))
    with pytest.raises(SystemExit, match=r"run experiments/msrc21/unaries\.py first"):
        _msrc.recall("unaries", "1_1_s")
    array = np.arange(6, dtype=np.float16).reshape(1, 2, 3)
    _msrc.store("unaries", "1_1_s", array)
    back = _msrc.recall("unaries", "1_1_s")
    assert back.dtype == np.float16
    assert np.array_equal(back, array)


def test_scene_from_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from skimage.io import imsave

    monkeypatch.setenv("SETWISE_DATA", str(tmp_path))
    monkeypatch.setenv("SETWISE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "msrc21"
    (folder / "images").mkdir(parents=True)
    (folder / "labels").mkdir()
    (folder / "split_validation.txt").write_text("a\n")
    (folder / "classes.txt").write_text("0 void\n" + "".join(f"{k} c{k}\n" for k in range(1, 22)))
    labels = np.zeros((6, 8), np.uint8)
    labels[:, :3], labels[:, 3:6] = 1, 21
    imsave(folder / "images" / "a.jpg", np.full((6, 8, 3), 200, np.uint8), check_contrast=False)
    imsave(folder / "labels" / "a.png", labels, check_contrast=False)
    _msrc.store("unaries", "a", np.full((3, 4, 21), 1 / 21, np.float16))
    _msrc.store("superpixels", "a", np.arange(3 * 48, dtype=np.uint16).reshape(3, 6, 8) // 12)
    scene = _msrc.scene("a")
    assert _msrc.names("validation") == ["a"]
    assert _msrc.classes()[20] == "c21"
    assert scene.shape == (6, 8)
    assert np.array_equal(np.unique(scene.truth), [-1, 0, 20])
    assert scene.unary.shape == (48, 21)
    np.testing.assert_allclose(scene.unary, np.log(21), rtol=1e-6)
    assert [layer.shape for layer in scene.regions] == [(48,)] * 3
    assert [int(scene.trimaps[h].sum()) for h in (0, 5)] == [12, 36]
    with pytest.raises(ValueError, match="unaries is 'best'"):
        _msrc.scene("a", "best")


def test_modes_of_two_flat_halves_stay() -> None:
    colors = np.zeros((8, 10, 3))
    colors[:, 5:] = 20
    np.testing.assert_allclose(_mean_shift.modes(colors, 3, 4.0), colors)


def test_modes_follow_the_mean_shift_of_one_point() -> None:
    colors = np.random.default_rng(0).uniform(0, 10, (7, 9, 3))
    fast = _mean_shift.modes(colors, 2, 6.0, rounds=4)
    for y, x in [(0, 0), (3, 4), (6, 8)]:
        place, point = np.array([y, x], float), colors[y, x]
        for _ in range(4):
            row, column = np.rint(place)
            members = [
                (i, j)
                for i, j in np.ndindex(7, 9)
                if (i - row) ** 2 + (j - column) ** 2 <= 4
                and np.linalg.norm(colors[i, j] - point) <= 6.0
            ]
            if not members:
                break
            old = np.concatenate([place, point])
            place, point = np.mean(members, axis=0), np.mean([colors[m] for m in members], axis=0)
            if np.abs(np.concatenate([place, point]) - old).max() <= 0.1:
                break
        np.testing.assert_allclose(fast[y, x], point, atol=1e-4)


def test_superpixels_are_connected_numbered_and_large_enough() -> None:
    from skimage.measure import label

    rng = np.random.default_rng(0)
    image = rng.integers(0, 255, (4, 5, 3)).repeat(8, axis=0).repeat(8, axis=1)
    image = np.clip(image + rng.normal(0, 2, image.shape), 0, 255).astype(np.uint8)
    regions = _mean_shift.superpixels(image, 4, 7.0, 30)
    sizes = np.bincount(regions.ravel())
    assert regions.dtype == np.int64
    assert sizes.min() >= 30
    assert label(regions + 1, connectivity=1).max() == len(sizes)
    assert len(sizes) == 20, "one a square"


def test_small_regions_join_the_nearest_colour() -> None:
    regions = np.array([[0, 0, 0, 1, 2, 2, 2]])
    colors = np.array([0, 0, 0, 6, 10, 10, 10.0]).reshape(1, 7, 1)
    assert _mean_shift.absorb_small(regions, colors, 3).tolist() == [[0, 0, 0, 1, 1, 1, 1]]
    assert not _mean_shift.absorb_small(regions, colors, 100).any()


def test_best_hits_of_regions() -> None:
    regions, labels = np.array([[0, 0, 0, 1, 1]]), np.array([[3, 3, 5, -1, 2]])
    assert layers.best_hits(regions, labels) == 3


def test_box_means_are_means_of_what_is_inside() -> None:
    values = np.random.default_rng(0).normal(size=(5, 7, 2))
    boxes = _texture.Boxes(values)
    y, x = np.array([0, 2, 9]), np.array([0, 3, -4])
    expected = [values[:3, :3], values[:5, 1:6], values[2:, :3]]
    means = [part.mean(axis=(0, 1)) for part in expected]
    np.testing.assert_allclose(boxes.means(y, x, 2), means, rtol=1e-5)
    np.testing.assert_allclose(boxes.overall(), values.mean(axis=(0, 1)), atol=1e-6)


def test_features_have_one_finite_row_a_cell() -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 255, (21, 30, 3)).astype(np.uint8)
    textons = np.ones(17, np.float32), rng.normal(size=(4, 17)).astype(np.float32)
    cells = _texture.channels(image, textons)
    assert cells.shape == (11, 15, 3 + 2 + 8 + 20 + 4)
    np.testing.assert_allclose(cells[..., -4:].sum(axis=2), 1, rtol=1e-6)
    np.testing.assert_allclose(cells[..., 13:33].sum(axis=2), 2, rtol=1e-6)
    y, x = np.array([0, 10, 5]), np.array([0, 14, 7])
    looks = _texture.appearance(cells, y, x)
    around = _texture.context(cells[..., -4:], y, x)
    assert len(looks) == len(around) == 3
    assert np.isfinite(looks).all()
    assert around.shape[1] == 4 * (1 + 4 + 16 + 1)


def test_nearest_texton_is_brute_force() -> None:
    rng = np.random.default_rng(0)
    points, centers = rng.normal(size=(20, 3)), rng.normal(size=(5, 3))
    distances = np.linalg.norm(points[:, None] - centers, axis=2)
    assert np.array_equal(_texture.nearest(points, centers), distances.argmin(axis=1))


def test_classifier_learns_and_a_missing_label_stays_unlikely() -> None:
    rng = np.random.default_rng(0)
    y = rng.choice([0, 2, 3], 600)
    X = rng.normal(size=(600, 70)).astype(np.float32)
    X[np.arange(600), y] += 4
    model = _pixels.PixelClassifier(5, seed=0, jobs=1, epochs=10, trees=5).fit(X, y)
    log_p = model.log_probabilities(X)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1, rtol=1e-5)
    assert np.mean(log_p.argmax(axis=1) == y) > 0.95
    assert np.exp(log_p[:, [1, 4]]).max() < 0.01


def test_calibration_finds_slope_and_offsets() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20_000, 3)) * 2
    wanted = 0.5 * scores + np.array([0.5, 0.0, -0.5])
    y = np.argmax(wanted + rng.gumbel(size=wanted.shape), axis=1)
    slope, offsets = _pixels.calibrate(scores, y, np.ones(len(y)))
    assert slope == pytest.approx(0.5, abs=0.03)
    np.testing.assert_allclose(offsets - offsets.mean(), [0.5, 0, -0.5], atol=0.05)


def test_sampled_cells_favour_rare_labels_and_their_weights_undo_it() -> None:
    labels = np.zeros((40, 50), np.int8)
    labels[:4, :5], labels[20:] = 7, -1
    points = _unaries.choose(labels, 100, np.random.default_rng(0))
    assert len(points.y) == 100
    assert np.array_equal(labels[points.y, points.x], points.labels)
    assert np.mean(points.labels == 7) > 0.05
    assert points.weights[points.labels == 0].sum() == pytest.approx(980, rel=0.1)
    few = _unaries.choose(labels, 5000, np.random.default_rng(0))
    assert len(few.y) == 1000
    assert few.weights.sum() == 1000


def test_tally_counts_pixels_labels_and_bands() -> None:
    labels = np.array([[0, 0, 1, -1]])
    p = np.full((1, 4, 21), 0.01)
    p[0, :, 0] = 0.8
    tally = unaries.Tally()
    tally.add(p, labels)
    pixels, by_label, loss, at_boundary, *_ = map(float, tally.row())
    assert (pixels, by_label, at_boundary) == (0.667, 0.5, 0.5)
    assert loss == pytest.approx((2 * -np.log(0.8) - np.log(0.01)) / 3, abs=1e-3)


def _flat_scene(h: int, w: int, seed: int = 0):
    """Blocks of 2 x 2 equal pixels: what ``coarse`` with a step of 2 loses nothing of."""
    rng = np.random.default_rng(seed)

    def large(array: np.ndarray) -> np.ndarray:
        return array.repeat(2, axis=0).repeat(2, axis=1)

    truth = large(rng.integers(-1, 3, (h, w))).ravel().astype(np.int8)
    regions = large(rng.integers(0, 4, (h, w))).ravel()
    return _msrc.Scene(
        "made",
        large(rng.integers(0, 255, (h, w, 3)).astype(np.uint8)),
        truth,
        large(rng.normal(size=(h, w, 3))).reshape(-1, 3),
        (regions, regions[::-1].copy(), regions),
        {0: truth >= 0},
    )


@pytest.mark.parametrize("name", ["UNARY", "2-LAYER", "3-LAYER"])
def test_energy_a_pixel_survives_coarse_image(name: str) -> None:
    scene = _flat_scene(4, 5)
    small = _models.coarse(scene, 2)
    assert small.shape == (4, 5)
    setting = (0.8, 2.5) if name != "UNARY" else ()
    x = np.random.default_rng(1).integers(0, 3, (4, 5))
    fine = _models.field_of(scene, name, setting)
    rough = _models.field_of(small, name, setting, step=2)
    large = x.repeat(2, axis=0).repeat(2, axis=1).ravel()
    assert fine.energy(large) == pytest.approx(4 * rough.energy(x.ravel()))


def test_pairwise_energy_survives_coarse_image() -> None:
    scene = _flat_scene(4, 5)
    small = _models.coarse(scene, 2)
    x = np.random.default_rng(1).integers(0, 3, (4, 5))
    large = x.repeat(2, axis=0).repeat(2, axis=1).ravel()
    fine = _models.field_of(scene, "PAIR", (0.0, 1.5))
    rough = _models.field_of(small, "PAIR", (0.0, 1.5), step=2)
    assert fine.energy(large) == pytest.approx(4 * rough.energy(x.ravel()))


def test_robust_price_survives_coarse_image() -> None:
    scene = _flat_scene(4, 5)
    x = np.random.default_rng(1).integers(0, 3, (4, 5))
    large = x.repeat(2, axis=0).repeat(2, axis=1).ravel()
    setting = (0.0, 1.0, 0.3, 2.0)
    fine = _models.field_of(scene, "ROBUST-PN", setting)
    rough = _models.field_of(_models.coarse(scene, 2), "ROBUST-PN", setting, step=2)
    assert fine.energy(large) == pytest.approx(4 * rough.energy(x.ravel()))


def test_mean_roc() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    scores = rng.normal(size=(60, 5)).round(1) + (truth[:, None] == np.arange(5))
    pairs = []
    for label in range(3):
        a, b = scores[truth == label, label], scores[truth != label, label]
        above = (a[:, None] > b).mean() + (a[:, None] == b).mean() / 2
        pairs.append(above)
    found = _roc.mean_roc(scores, truth)
    assert found.labels == 3
    assert found.area == pytest.approx(np.mean(pairs))
    assert np.trapezoid(found.curve, _roc.RATES) == pytest.approx(found.area, abs=5e-3)
    assert np.isnan(_roc.mean_roc(scores[:0], truth[:0]).area)


def test_cross_entropy_of_impossible_label_is_finite() -> None:
    log_p = _models.logarithms(np.array([[0.0, 1.0], [0.25, 0.75]]))
    loss = _models.cross_entropy(log_p, np.array([0, 1]))
    assert 700 < loss[0] < 720
    assert loss[1] == pytest.approx(-np.log(0.75))


def test_void_is_no_mistake() -> None:
    assert _models.accuracy(np.array([0, 1, 2]), np.array([0, 2, -1])) == 0.5


def test_best_setting_sees_training_images_only() -> None:
    scores = {(1.0,): np.array([[0.9, 1], [0.1, 1]]), (2.0,): np.array([[0.5, 1], [0.5, 1]])}
    assert table1.best_setting(scores, np.array([0])) == (1.0,)
    assert table1.best_setting(scores, np.array([1])) == (2.0,)


def test_unit_range() -> None:
    values = smoothing.unit_range(np.array([[2.0, 4.0, 3.0], [1.0, 1.0, 1.0]]))
    np.testing.assert_allclose(values, [[0, 1, 0.5], [0, 0, 0]])


def test_extremes() -> None:
    assert figures.extremes(np.array([0.0, 3.0, -1.0, 2.0]), 1) == [1, 2]
