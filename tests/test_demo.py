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

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from demo import alternatives, photograph, piles  # noqa: E402
from demo.__main__ import main  # noqa: E402

PICTURES = (
    "alternatives.png",
    "piles.png",
    "decision.png",
    "photograph.png",
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
    for name in PICTURES:
        assert (out / name).read_bytes().startswith(b"\x89PNG")
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
        [sys.executable, "-m", "demo", "--quick", "--out", str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": path},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert run.stderr == "the demo needs pip install '.[demo]': not here\n"


def test_figures_of_the_photograph_are_those_of_its_field() -> None:
    segmented = photograph.segment(32)
    lab = color.rgb2lab(segmented.image)
    centers = color.rgb2lab(segmented.colors[None])[0]
    field = photograph.make_field(lab, centers, segmented.superpixels)
    assert field.is_submodular
    best, post = segmented.best, segmented.post
    assert field.energy(best.labels) == pytest.approx(best.value, rel=1e-6)
    assert best.relative_gap <= photograph.TOL
    assert post.relative_gap <= photograph.TOL
    assert post.method == "trees", "the page says whose marginals they are"
    assert post.log_partition_lower <= post.log_partition_upper
    assert -best.value <= post.log_partition_upper, "one term of Z is more than all of it"


def test_alternatives_are_those_of_their_field() -> None:
    cut = alternatives.cut_out(32)
    field = sw.images.field_from_image(cut.image, cut.scribbles)
    assert field.is_submodular
    np.testing.assert_allclose(field.energy(cut.six.labelings), cut.six.values, rtol=1e-9)
    assert np.all(cut.six.values >= cut.six.values[0] - 1e-9), "the first is the best"
    assert cut.six.exact, "the page says that each is proved"
    marks = cut.scribbles.ravel()
    assert {-1, 0, 1} == set(marks)
    assert np.all(cut.six.labelings[:, marks >= 0] == marks[marks >= 0]), "scribbles hold"
    assert cut.post.relative_gap <= alternatives.TOL


def test_piles_are_the_ink_of_their_digits() -> None:
    rng = np.random.default_rng(0)
    ink, digits = np.eye(10), np.arange(10)
    X, Y = piles.draw_piles(ink, digits, 400, rng)
    assert set(Y.sum(axis=1)) == {1, 2, 3}
    np.testing.assert_allclose(X.mean(axis=0), Y.mean(axis=0), atol=4 * piles.NOISE / 20)
    assert np.std(X - Y) == pytest.approx(piles.NOISE, rel=0.05)


def test_index_of_piles_is_that_of_the_loss() -> None:
    rng = np.random.default_rng(1)
    Y, answer = rng.random((30, 10)) < 0.4, rng.random((30, 10)) < 0.4
    Y[:, 0] = True
    each = [1 - float(sw.losses.Jaccard()(y, z)) for y, z in zip(Y, answer, strict=True)]
    assert piles.jaccard(Y, answer) == pytest.approx(np.mean(each))


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ((2, 5, 4), (2, 4, 4), "no difference beyond chance"),
        ((8, 8, 9), (2, 1, 2), "ahead by more than chance"),
        ((2, 1, 2), (8, 8, 9), "behind by more than chance"),
    ],
)
def test_verdict_follows_the_numbers(
    first: tuple[int, ...], second: tuple[int, ...], said: str
) -> None:
    Y = np.ones((1, 10), dtype=bool)

    def found(n: int) -> np.ndarray:
        return np.arange(10)[None] < n  # n of ten labels: an index of n / 10

    results = [
        piles.Piles(np.zeros((1, 64)), Y, {"lovasz": found(a), "half": found(b)}, 0.5 * Y)
        for a, b in zip(first, second, strict=True)
    ]
    told = piles.verdict(results, "lovasz", "half")
    assert told.endswith(f"{said}.")
    assert f"{(np.sum(first) - np.sum(second)) / 30:+.3f}" in told
