"""The pictures of the tutorials, from their code: `python docs/figures/tutorials.py [FOLDER]`."""

import doctest
import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from demo.pictures import piles
from demo.piles import QUICK, Settings, run

PAGES = Path(__file__).parents[1] / "tutorials"


def names_of(page):
    """Return the names that the code of a page defines."""
    text = re.sub(r"^```.*$", "", (PAGES / f"{page}.md").read_text("utf-8"), flags=re.MULTILINE)
    names = {}
    for example in doctest.DocTestParser().get_examples(text):
        exec(compile(example.source, page, "exec"), names)
    return names


def row(pictures, **options):
    """Draw panels side by side, each with its title."""
    figure, axes = plt.subplots(1, len(pictures), figsize=(11, 2.2), layout="constrained")
    for axis, (title, picture) in zip(axes, pictures.items(), strict=True):
        axis.imshow(picture, **({} if picture.ndim == 3 else options))
        axis.set_title(title, fontsize=10)
        axis.set_axis_off()
    return figure


def cut_out(photograph, mask):
    """Return a photograph that fades outside the mask."""
    share = photograph / photograph.max()
    return np.where(mask.astype(bool)[..., None], share, 0.2 * share + 0.8)


def photograph_figures():
    """Draw the segmented cup, and the learnt field."""
    known = names_of("photograph")
    found, six, shape = known["found"], known["six"], known["shape"]
    first = {
        "strokes": found.overlay(opacity=0.0),
        "mask": cut_out(known["cup"], found.label_image),
        "entropy": found.entropy_image,
    }
    for k in (1, 2, 4):
        first[f"alternative {k}"] = cut_out(known["cup"], six.label_images[k])
    shot, model, graph = known["later"][0].clip(0, 1), known["model"], known["X_later"][0]
    alone = model.decision_function([graph])[0].reshape(shape) > 0
    second = {
        "a later photograph": shot,
        "pixel by pixel": cut_out(shot, alone),
        "the learnt field": cut_out(shot, model.predict([graph])[0].reshape(shape)),
        "entropy": known["post"].entropy.reshape(shape),
    }
    options = {"cmap": "inferno", "vmin": 0, "vmax": np.log(2)}
    return row(first, **options), row(second, **options)


def torch_figure():
    """Draw one image and its masks, with the mean overlaps in the titles."""
    known = names_of("torch")
    overlap, k = known["overlap"], 0
    masks = {
        "cross-entropy, 1/2": known["logits"] > 0,
        "the same, decided": known["decided"].mask,
        "Jaccard metric loss": known["learnt"] > 0,
    }
    panels = {"image": known["images"][k, 0].numpy(), "truth": known["masks"][k, 0].numpy()}
    for name, mask in masks.items():
        panels[f"{name}\noverlap {overlap(mask):.2f}"] = mask[k, 0].numpy()
    return row(panels, cmap="gray")


def write(folder, settings=None):
    """Write all pictures."""
    cup, learnt = photograph_figures()
    cup.savefig(Path(folder) / "tutorial_photograph.jpg", dpi=100)
    learnt.savefig(Path(folder) / "tutorial_learnt.jpg", dpi=100)
    plain = {"Software": None}
    torch_figure().savefig(Path(folder) / "tutorial_torch.png", dpi=80, metadata=plain)
    compared = piles(run(settings or Settings()))
    compared.savefig(Path(folder) / "tutorial_piles.png", dpi=110, metadata=plain)


if __name__ == "__main__":
    quick = "--quick" in sys.argv
    where = [it for it in sys.argv[1:] if it != "--quick"]
    write(where[0] if where else PAGES.parent / "images", QUICK if quick else None)
