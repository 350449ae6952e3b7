"""Surrogates by name: one registry for NumPy, scikit-learn and torch."""

import numpy as np
import pytest

import setwise as sw
from setwise import losses, surrogates
from setwise.surrogates import DecomposedHinge, LovaszHinge, MarginRescaling, SlackRescaling

CLASSES = {
    "decomposed": DecomposedHinge,
    "hinge": LovaszHinge,
    "lovasz": LovaszHinge,
    "margin": MarginRescaling,
    "slack": SlackRescaling,
}


def test_every_name_stands_for_its_class():
    assert surrogates.names() == sorted(CLASSES)
    for name, kind in CLASSES.items():
        made = surrogates.get(name, "jaccard")
        assert type(made) is kind
        assert repr(made.loss) == ("Hamming()" if name == "hinge" else "Jaccard()")


def test_options_reach_the_surrogate():
    assert surrogates.get("margin", "dice", scale="extension").scale == "extension"
    assert surrogates.get("lovasz", losses.Jaccard(), case=2).case == 2
    assert surrogates.get("slack", "dice", maximizer="greedy").maximizer == "greedy"


SAME = [
    (lambda: losses.Jaccard(), "jaccard"),
    (lambda: losses.Jaccard(), "iou"),
    (lambda: losses.Dice(), "f1"),
    (lambda: losses.Hamming([1.0, 2.0]), losses.Hamming([1.0, 2.0])),
    (lambda: losses.FBeta(2.0), losses.FBeta(2.0)),
    (lambda: losses.TruncatedModular(1.5), losses.TruncatedModular(1.5)),
    (lambda: losses.ConcaveLoss(np.sqrt), losses.ConcaveLoss(np.sqrt)),
    (lambda: 2.0 * losses.Dice() + losses.Hamming(), 2.0 * losses.Dice() + losses.Hamming()),
]


@pytest.mark.parametrize(("make", "loss"), SAME)
def test_a_surrogate_is_given_back(make, loss):
    made = MarginRescaling(make())
    made([1, 0], [0.5, 0.5])  # what it remembers is no part of what it is
    assert surrogates.get(made) is surrogates.get(made, made.loss) is made
    assert surrogates.get(made, loss) is made


OTHERS = [
    (losses.Jaccard(), "dice"),
    (losses.Hamming([1.0, 2.0]), losses.Hamming([1.0, 3.0])),
    (losses.Hamming([1.0, 2.0]), "hamming"),
    (losses.FBeta(1.0), "dice"),
    (losses.TruncatedModular(1.5), losses.TruncatedModular(2.5)),
    (losses.ConcaveLoss(np.sqrt), losses.ConcaveLoss(np.log1p)),
    (2.0 * losses.Dice(), 3.0 * losses.Dice()),
]


@pytest.mark.parametrize(("own", "other"), OTHERS)
def test_another_loss_beside_a_surrogate_is_refused(own, other):
    message = "loss must be left out or be that of the surrogate, .*, got"
    with pytest.raises(ValueError, match=message):
        surrogates.get(MarginRescaling(own), other)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: surrogates.get("hinges", "dice"),
            ValueError,
            "surrogate must be one of decomposed, hinge, lovasz, margin, slack, got 'hinges'",
        ),
        (
            lambda: surrogates.get(3, "dice"),
            TypeError,
            "surrogate must be a Surrogate or a name, got int",
        ),
        (lambda: surrogates.get("slack"), TypeError, "loss must be given with the name"),
        (lambda: surrogates.get("slack", "overlap"), ValueError, "loss must be one of"),
        (
            lambda: surrogates.get(LovaszHinge("jaccard"), case=1),
            TypeError,
            "case must be left out with a surrogate that is made already",
        ),
        (lambda: surrogates.get("lovasz", "dice"), ValueError, "loss must be submodular"),
    ],
)
def test_a_surrogate_that_cannot_be_had(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_aliases_of_losses():
    y, z = [1, 1, 0, 0, 1], [1, 0, 1, 0, 1]
    for alias, name in (("iou", "jaccard"), ("f1", "dice")):
        assert alias in losses.names()
        assert type(losses.get(alias)) is type(losses.get(name))
        assert losses.get(alias)(y, z) == losses.get(name)(y, z)
    torch = pytest.importorskip("torch")
    x, target = torch.linspace(-1, 1, 5), torch.tensor(y)
    assert sw.torch.lovasz_hinge(x, target, "iou") == sw.torch.lovasz_hinge(x, target, "jaccard")
    assert sw.torch.DecomposedHingeLoss("f1")(x, target) == sw.torch.decomposed_hinge(x, target)
