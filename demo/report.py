"""The report: a page, its pictures, and a few lines for the terminal."""

from __future__ import annotations

import io
from html import escape
from pathlib import Path
from string import Template

import numpy as np
from matplotlib.figure import Figure

from demo import alternatives, pictures
from demo.alternatives import Alternatives, cut_out
from demo.photograph import N_LABELS, QUICK_SIDE, SIDE, Segmentation, segment
from demo.piles import METHODS, NOISE, QUICK, Piles, Settings, run, verdict
from setwise import __version__
from setwise._foundation._files import write_whole


def write_report(out: str | Path = "out", *, quick: bool = False) -> tuple[Path, str]:
    """Run the experiment, draw the pictures and write the page.

    Parameters
    ----------
    out : str or Path
        The folder, which is made if it does not exist.
    quick : bool
        Whether to use two seeds, one C, few piles and small photographs, which only checks that
        everything runs.

    Returns
    -------
    page : Path
        ``index.html`` in the folder.
    summary : str
        The results in a few lines.
    """
    settings = QUICK if quick else Settings()
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    cut = cut_out(alternatives.QUICK_SIDE if quick else alternatives.SIDE)
    results = run(settings)
    segmented = segment(QUICK_SIDE if quick else SIDE)
    _save(pictures.alternatives(cut), folder / "alternatives.png")
    _save(pictures.piles(results), folder / "piles.png")
    _save(pictures.decision(results), folder / "decision.png")
    _save(pictures.photograph(segmented), folder / "photograph.png")
    _save(pictures.surfaces(), folder / "surfaces.png")
    _save(pictures.decompositions(), folder / "decompositions.png")
    page = folder / "index.html"
    write_whole(page, _page(results, settings, segmented, cut).encode())
    return page, "\n".join(
        [_alternatives_summary(cut), _piles_summary(results), _photograph_summary(segmented)]
    )


def _save(figure: Figure, path: Path) -> None:
    # Without matplotlib's version in the metadata, a file changes only when its picture changes.
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    write_whole(path, buffer.getvalue())


def _page(
    results: list[Piles], settings: Settings, segmented: Segmentation, cut: Alternatives
) -> str:
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        rows="\n".join(map(_html_row, _rows(results))),
        lovasz_verdict=escape(verdict(results, "lovasz", "half")),
        tuned_verdict=escape(verdict(results, "lovasz", "tuned")),
        decision_verdict=escape(verdict(results, "decision", "tuned")),
        n_seeds=settings.n_seeds,
        n_train=settings.n_train,
        n_test=settings.n_test,
        n_inner=settings.n_inner,
        noise=f"{NOISE:g}",
        Cs=", ".join(f"{C:g}" for C in settings.Cs),
        **_photograph_figures(segmented),
        **_alternatives_figures(cut),
        version=__version__,
    )


def _rows(results: list[Piles]) -> list[tuple[str, str, str]]:
    """Return for each method its name, its score and the share of piles without labels.

    A score is the mean ± standard error over seeds.
    """
    rows = []
    for name, label in METHODS.items():
        scores = np.array([one.scores[name] for one in results])
        error = scores.std(ddof=1) / np.sqrt(len(scores))
        empty = np.mean([~one.answers[name].any(axis=1) for one in results])
        rows.append((label, f"{scores.mean():.3f} ± {error:.3f}", f"{100 * empty:.0f} %"))
    return rows


def _html_row(row: tuple[str, str, str]) -> str:
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"


def _piles_summary(results: list[Piles]) -> str:
    lines = ["Digits of a pile: Jaccard index of a row (mean ± standard error):"]
    lines += [f"  {label:38s} {index}" for label, index, _ in _rows(results)]
    return "\n".join([*lines, *(verdict(results, *pair) for pair in _PAIRS)])


_PAIRS = (("lovasz", "half"), ("lovasz", "tuned"), ("decision", "tuned"))


def _photograph_figures(segmented: Segmentation) -> dict[str, str]:
    best, post = segmented.best, segmented.post
    height, width = segmented.shape
    return {
        "height": str(height),
        "width": str(width),
        "n_labels": str(N_LABELS),
        "n_superpixels": f"{len(np.unique(segmented.superpixels)):,}",
        "energy": f"{best.value:,.1f}",
        # Bounds are rounded outwards, so that the printed values remain bounds.
        "energy_bound": f"{np.floor(10 * best.bound) / 10:,.1f}",
        "energy_gap": f"{np.ceil(1e4 * best.relative_gap) / 100:.2f}",
        "log_lower": f"{np.floor(post.log_partition_lower):,.0f}",
        "log_upper": f"{np.ceil(post.log_partition_upper):,.0f}",
        "log_width": f"{post.width / (height * width):.3f}",
        "log_flat_width": f"{segmented.flat.width / (height * width):.3f}",
        "log_times": f"{segmented.flat.width / post.width:.0f}",
        "log_gap": f"{np.ceil(post.gap):,.0f}",
        "mean_entropy": f"{post.entropy.mean():.2f}",
        "most_entropy": f"{np.log(N_LABELS):.2f}",
        "agreement": f"{100 * np.mean(best.labels == post.labels):.1f}",
    }


def _photograph_summary(segmented: Segmentation) -> str:
    known = _photograph_figures(segmented)
    return Template(
        "A photograph in $n_labels labels: energy $energy, no labelling below $energy_bound;\n"
        "  log Z between $log_lower and $log_upper, $log_width nats per pixel ($log_flat_width by "
        "projection,\n"
        "  $log_times times as wide), mean entropy $mean_entropy nats"
    ).substitute(known)


def _alternatives_figures(cut: Alternatives) -> dict[str, str]:
    six, pixels = cut.six, cut.scribbles.size
    differ = np.count_nonzero(six.labelings != six.labelings[0], axis=1) / pixels
    return {
        "cut_height": str(cut.shape[0]),
        "cut_width": str(cut.shape[1]),
        "n_items": str(len(six.values)),
        "cut_energy": f"{six.values[0]:,.0f}",
        "cut_least": f"{(six.values[1:] - six.values[0]).min():,.0f}",
        "cut_most": f"{(six.values[1:] - six.values[0]).max():,.0f}",
        "cut_differ_least": f"{100 * differ[1:].min():.0f}",
        "cut_differ_most": f"{100 * differ[1:].max():.0f}",
        "cut_temperature": f"{cut.post.temperature:g}",
    }


def _alternatives_summary(cut: Alternatives) -> str:
    return Template(
        "Three strokes, $n_items ways to cut out the object: energy $cut_energy, the others "
        "$cut_least to $cut_most more;\n"
        "  each is proved to be the best under its bias"
    ).substitute(_alternatives_figures(cut))
