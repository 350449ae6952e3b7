"""The report: a page, its pictures, and a few lines for the terminal."""

from __future__ import annotations

from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from matplotlib.figure import Figure

from setwise import __version__
from setwise.demo import _pictures
from setwise.demo._digits import QUICK, Settings, load, run
from setwise.demo._findings import Findings, Row, findings


def write_report(out: str | Path = "out", *, quick: bool = False) -> tuple[Path, str]:
    """Run the experiment, draw the pictures and write the page.

    Parameters
    ----------
    out : str or Path
        The folder, made if it is not there.
    quick : bool
        Two folds, two values of C and few steps: to see that it works, not what comes out.

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
    _save(_pictures.digits(outcomes, settings), folder / "digits.png")
    _save(_pictures.surfaces(), folder / "surfaces.png")
    _save(_pictures.decompositions(), folder / "decompositions.png")
    _save(_pictures.summary(outcomes, settings), folder / "demo.png")
    page = folder / "index.html"
    page.write_text(_page(found, settings), encoding="utf-8")
    return page, _summary(found)


def _save(figure: Figure, path: Path) -> None:
    # Without the version of matplotlib in it a picture changes only when what it shows does.
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _page(found: Findings, settings: Settings) -> str:
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
