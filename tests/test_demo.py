"""The demo: its experiment is sound, and a quick run leaves a page with its pictures."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from skimage import color

import setwise as sw
from setwise.demo import _alternatives, _digits, _photograph
from setwise.demo.__main__ import main
from setwise.demo._findings import findings
from setwise.surrogates import LovaszHinge

PICTURES = (
    "digits.png",
    "photograph.png",
    "alternatives.png",
    "surfaces.png",
    "decompositions.png",
)


def test_quick_run_writes_the_page_and_its_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "folder"
    assert main(["--quick", "--out", str(out)]) == 0
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "$" not in page, "a placeholder was left in the page"
    images = re.findall(r'<img src="([^"]+)" alt="([^"]+)"', page)
    assert {name for name, _ in images} == set(PICTURES)
    for name in (*PICTURES, "demo.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    assert (out / "demo.png").stat().st_size < 150_000, "the README shows this picture"
    assert not re.search(r"(src|href)=\"https?:", page), "the page must need no network"
    printed = capsys.readouterr().out
    assert "Lovász hinge" in printed
    assert "log Z between" in printed
    assert "6 ways to cut out" in printed
    assert printed.splitlines()[-1] == str(out / "index.html")


@pytest.mark.parametrize("package", ["matplotlib", "skimage"])
def test_without_the_extra_one_sentence_names_it(package: str, tmp_path: Path) -> None:
    # A package that cannot be imported, in front of the one that can.
    (tmp_path / f"{package}.py").write_text("raise ImportError('not here')\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    run = subprocess.run(
        [sys.executable, "-m", "setwise.demo", "--quick", "--out", str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert run.stderr == "the demo needs pip install 'setwise[demo]': not here\n"


def test_figures_of_the_photograph_are_those_of_its_field() -> None:
    segmented = _photograph.segment(32)
    lab = color.rgb2lab(segmented.image)
    centers = color.rgb2lab(segmented.colors[None])[0]
    field = _photograph.make_field(lab, centers, segmented.superpixels)
    assert field.is_submodular
    best, post = segmented.best, segmented.post
    assert field.energy(best.labels) == pytest.approx(best.value, rel=1e-6)
    assert best.relative_gap <= _photograph.TOL
    assert post.relative_gap <= _photograph.TOL
    assert post.log_partition_lower <= post.log_partition_upper
    assert -best.value <= post.log_partition_upper, "one term of Z is more than all of it"


def test_alternatives_are_those_of_their_field() -> None:
    cut = _alternatives.cut_out(32)
    field = sw.images.field_from_image(cut.image, cut.scribbles)
    assert field.is_submodular
    np.testing.assert_allclose(field.energy(cut.six.labelings), cut.six.values, rtol=1e-9)
    assert np.all(cut.six.values >= cut.six.values[0] - 1e-9), "the first is the best"
    marks = cut.scribbles.ravel()
    assert {-1, 0, 1} == set(marks)
    assert np.all(cut.six.labelings[:, marks >= 0] == marks[marks >= 0]), "scribbles hold"
    assert cut.post.relative_gap <= _alternatives.TOL


@pytest.mark.parametrize("name", _digits.SURROGATES)
def test_fit_proves_how_good_it_is(name: str) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(60, 3)), np.ones(60)])
    y = X @ [1.0, -1.0, 0.5, -0.7] + 0.5 * rng.normal(size=60) > 0
    surrogate = _digits.surrogate_for(name, 60)
    found = _digits.fit(surrogate, X, y, 5.0, max_iter=5000, tol=1e-3)
    assert 0 <= found.relative_gap <= 1e-3

    def objective(w: np.ndarray) -> float:
        return 0.5 * w @ w + 5.0 * surrogate(y, X @ w)

    least = objective(found.w)
    for scale in (1e-2, 1e-1, 1.0):
        for _ in range(100):
            other = objective(found.w + scale * rng.normal(size=4))
            assert other >= least - 1e-3 * max(1.0, least)


def test_plain_hinge_is_the_mean_hinge() -> None:
    rng = np.random.default_rng(1)
    scores, y = rng.normal(size=20), rng.random(20) < 0.3
    mean = np.maximum(0.0, 1.0 - scores * np.where(y, 1.0, -1.0)).mean()
    assert _digits.surrogate_for("hinge", 20)(y, scores) == pytest.approx(mean)
    for name in _digits.SURROGATES:
        assert _digits.surrogate_for(name, 20)(y, np.zeros(20)) == pytest.approx(1.0)
    assert isinstance(_digits.surrogate_for("lovasz", 20), LovaszHinge)


@pytest.mark.parametrize(
    ("lovasz", "hinge", "said"),
    [
        ((0.7, 0.6, 0.65), (0.7, 0.61, 0.64), "no difference"),
        ((0.80, 0.81, 0.80), (0.60, 0.61, 0.61), "the Lovász hinge is ahead"),
        ((0.60, 0.61, 0.61), (0.80, 0.81, 0.80), "the plain hinge is ahead"),
    ],
)
def test_verdict_follows_the_numbers(
    lovasz: tuple[float, ...], hinge: tuple[float, ...], said: str
) -> None:
    settings = _digits.Settings(Cs=(1.0, 10.0, 100.0))
    outcomes = [
        _digits.Outcome(name, np.array([0.1, 0.58, 0.6]), 100.0, index, 0.05, 0.001)
        for name, indices in (("lovasz", lovasz), ("hinge", hinge))
        for index in indices
    ]
    found = findings(outcomes, settings)
    assert said in found.verdict
    assert "from C = 10 to 100 with the plain hinge" in found.range_of_C
    assert found.rows[0].jaccard[0] == pytest.approx(np.mean(lovasz))
