"""The report: a page, its pictures, and a few lines for the terminal."""

from __future__ import annotations

from html import escape
from importlib import resources
from pathlib import Path
from string import Template

import numpy as np
from matplotlib.figure import Figure

from setwise import __version__
from setwise.demo import _alternatives, _pictures
from setwise.demo._alternatives import Alternatives, cut_out
from setwise.demo._digits import QUICK, Settings, load, run
from setwise.demo._findings import Findings, Row, findings
from setwise.demo._photograph import N_LABELS, QUICK_SIDE, SIDE, Segmentation, segment


def write_report(out: str | Path = "out", *, quick: bool = False) -> tuple[Path, str]:
    """Run the experiment, draw the pictures and write the page.

    Parameters
    ----------
    out : str or Path
        The folder, made if it is not there.
    quick : bool
        Two folds, two values of C, few steps and a small photograph: to see that it works, not
        what comes out.

    Returns
    -------
    page : Path
        ``index.html`` in the folder.
    summary : str
        What was found, in a few lines.
    """
    settings = QUICK if quick else Settings()
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = run(settings)
    found = findings(outcomes, settings)
    segmented = segment(QUICK_SIDE if quick else SIDE)
    cut = cut_out(_alternatives.QUICK_SIDE if quick else _alternatives.SIDE)
    _save(_pictures.digits(outcomes, settings), folder / "digits.png")
    _save(_pictures.photograph(segmented), folder / "photograph.png")
    _save(_pictures.alternatives(cut), folder / "alternatives.png")
    _save(_pictures.surfaces(), folder / "surfaces.png")
    _save(_pictures.decompositions(), folder / "decompositions.png")
    _save(_pictures.summary(outcomes, settings), folder / "demo.png")
    page = folder / "index.html"
    page.write_text(_page(found, settings, segmented, cut), encoding="utf-8")
    return page, "\n".join(
        [_summary(found), _photograph_summary(segmented), _alternatives_summary(cut)]
    )


def _save(figure: Figure, path: Path) -> None:
    # Without the version of matplotlib in it a picture changes only when what it shows does.
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _page(found: Findings, settings: Settings, segmented: Segmentation, cut: Alternatives) -> str:
    _, y = load()
    template = resources.files("setwise.demo").joinpath("page.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        n=len(y),
        positives=int(y.sum()),
        rows="\n".join(map(_html_row, found.rows)),
        verdict=escape(found.verdict),
        range_of_C=escape(found.range_of_C),
        n_folds=settings.n_folds,
        n_inner=settings.n_inner,
        Cs=", ".join(f"{C:g}" for C in settings.Cs),
        max_iter=settings.max_iter,
        tol=f"{settings.tol:g}",
        gap=f"{max(row.relative_gap for row in found.rows):.2f}",
        **_photograph_figures(segmented),
        **_alternatives_figures(cut),
        version=__version__,
    )


def _html_row(row: Row) -> str:
    cells = (
        row.name,
        f"{row.jaccard[0]:.3f} ± {row.jaccard[1]:.3f}",
        f"{100 * row.error[0]:.1f} % ± {100 * row.error[1]:.1f}",
        ", ".join(f"{C:g}" for C in row.Cs),
    )
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _summary(found: Findings) -> str:
    lines = ["Is it an 8? One set of digits, judged by its Jaccard index (mean ± standard error):"]
    lines += [
        f"  {row.name:24s} Jaccard {row.jaccard[0]:.3f} ± {row.jaccard[1]:.3f}   "
        f"error {100 * row.error[0]:.1f} % ± {100 * row.error[1]:.1f}"
        for row in found.rows
    ]
    return "\n".join([*lines, found.verdict, found.range_of_C])


def _photograph_figures(segmented: Segmentation) -> dict[str, str]:
    best, post = segmented.best, segmented.post
    height, width = segmented.shape
    return {
        "height": str(height),
        "width": str(width),
        "n_labels": str(N_LABELS),
        "n_superpixels": f"{len(np.unique(segmented.superpixels)):,}",
        "energy": f"{best.value:,.1f}",
        "energy_bound": f"{best.bound:,.1f}",
        "energy_gap": f"{100 * best.relative_gap:.2f}",
        "log_lower": f"{post.log_partition_lower:,.0f}",
        "log_upper": f"{post.log_partition_upper:,.0f}",
        "log_gap": f"{post.gap:,.0f}",
        "mean_entropy": f"{post.entropy.mean():.2f}",
        "most_entropy": f"{np.log(N_LABELS):.2f}",
        "agreement": f"{100 * np.mean(best.labels == post.labels):.1f}",
    }


def _photograph_summary(segmented: Segmentation) -> str:
    known = _photograph_figures(segmented)
    return Template(
        "A photograph in $n_labels labels: energy $energy, no labelling below $energy_bound;\n"
        "  log Z between $log_lower and $log_upper, mean entropy $mean_entropy nats"
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
        "cut_gap": f"{100 * six.relative_gaps.max():.1f}",
        "cut_temperature": f"{cut.post.temperature:g}",
    }


def _alternatives_summary(cut: Alternatives) -> str:
    return Template(
        "Two scribbles, $n_items ways to cut out what they mean: energy $cut_energy, the others "
        "$cut_least to $cut_most more;\n"
        "  each leaves at most $cut_gap % of what there was to gain in its step"
    ).substitute(_alternatives_figures(cut))
