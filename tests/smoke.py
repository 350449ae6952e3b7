"""A first look at an installed setwise: `python tests/smoke.py`, with no extra and no test tool.

It runs on the wheel, in an environment that holds what the wheel asks for and nothing else.
"""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

import setwise as sw

HEAVY = {"sklearn", "highspy", "torch", "matplotlib", "dask"}


def main() -> None:
    loaded = HEAVY.intersection(sys.modules)
    assert not loaded, f"import setwise loaded {sorted(loaded)}"
    assert sw.__version__ == version("setwise")
    assert (Path(sw.__file__).parent / "py.typed").exists()

    values = np.sqrt(np.arange(5.0))
    function = sw.functions.Cardinality(values)
    np.testing.assert_allclose(function.gains([2, 0, 3, 1]), np.diff(values))
    assert sw.functions.minimize(sw.functions.Modular([1.0, -2.0])).mask.tolist() == [False, True]

    loss = sw.losses.Jaccard()
    y = np.array([1, 1, -1, -1])
    assert np.isclose(loss(y, np.array([1, -1, 1, -1])), 2 / 3)

    value, gradient = sw.surrogates.LovaszHinge(loss).value_and_gradient(y, np.zeros(4))
    assert np.isclose(value, 1.0), "at scores of zero every margin is violated by one"
    assert gradient.shape == (4,)

    # The linear programming package is a dependency, not an extra.
    import highspy  # noqa: F401

    part, rest = sw.functions.decompose(sw.functions.Table([0.0, 1.0, 1.0, 3.0]))
    everything = np.ones(2, dtype=bool)
    assert np.isclose(part(everything) + rest(everything), 3.0)

    field = sw.fields.Field([[0.0, 2.0], [1.0, 0.0], [0.0, 2.0]])
    field = field + sw.fields.Potts([[0, 1], [1, 2]], 0.75)
    best = sw.solve_map(field)
    assert best.exact
    assert best.labels.tolist() == [0, 0, 0]
    image = np.repeat([[10, 12, 11, 200, 203, 198]], 4, axis=0)
    scribbles = np.full((4, 6), -1)
    scribbles[0, 0], scribbles[3, 5] = 0, 1
    assert sw.images.segment(image, scribbles).label_image[0].tolist() == [0, 0, 0, 1, 1, 1]
    post = sw.marginals(field, tol=1e-6)
    assert post.log_partition_lower <= post.log_partition_upper
    assert sw.inference.maxflow([[0, 1]], [3], source=0, sink=1).value == 3
    loaded = HEAVY.intersection(sys.modules) - {"highspy"}
    assert not loaded, f"fields and inference loaded {sorted(loaded)}"

    X = np.array([[2.0], [1.0], [-1.0], [-2.0]])
    model = sw.SetClassifier(C=10.0).fit(X, y)
    assert model.gap_ <= 1e-3
    assert model.score(X, y) == 1.0
    # Without its extra the command says which one it needs.
    command = subprocess.run([sys.executable, "-m", "setwise"], capture_output=True, text=True)
    assert command.returncode == 1
    assert "pip install 'setwise[app]'" in command.stderr
    print(f"setwise {sw.__version__} from {Path(sw.__file__).parent}: all well")


if __name__ == "__main__":
    main()
