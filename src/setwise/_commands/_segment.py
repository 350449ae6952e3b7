"""`setwise segment`: masks of one or many images with scribbles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np

import setwise as sw
from setwise._commands._output import (
    check_stdout,
    example,
    json_option,
    print_json,
    print_note,
    quiet_option,
    read_array,
    shows_progress,
)
from setwise._commands._pictures import (
    check_picture,
    mask_numbers,
    read_image,
    read_marks,
    write_picture,
)
from setwise._foundation._display import heat_picture
from setwise._foundation._imports import load
from setwise._foundation._search import completed
from setwise.conformal._masks import MaskSet
from setwise.images._pixels import as_pixels
from setwise.images._segment import Segmentation


@click.command(
    epilog=example(
        "setwise segment cup.jpg --scribbles strokes.png -o mask.png --alternatives 6",
        "setwise segment *.jpg --scribbles strokes/ -o masks/ --json",
    )
)
@click.argument("images", nargs=-1, required=True, metavar="IMAGE...")
@click.option(
    "-s",
    "--scribbles",
    multiple=True,
    metavar="FILE",
    help="A picture of the image's size: 0 where nothing was drawn, k for label k - 1. One for "
    "each image, in order, or a folder with files of the images' names.",
)
@click.option("--box", metavar="TOP,LEFT,BOTTOM,RIGHT", help="The object is within; may be all.")
@click.option("--probabilities", metavar="FILE.npy", help="Of a network, (H, W, L).")
@click.option(
    "-o",
    "--output",
    metavar="MASK",
    help="A file, or a folder; IMAGE_mask.png by default.",
)
@click.option("--alternatives", type=click.IntRange(0), default=0, help="How many to write beside.")
@click.option("--entropy", metavar="FILE", help="Where the mask is unsure: white is log L.")
@click.option("--overlay", metavar="FILE", help="The image with the mask over it.")
@click.option(
    "--guarantee",
    metavar="FILE.json",
    help="Of sw.conformal: write the inner and the outer mask too, and show both in --overlay.",
)
@click.option("--colors", type=click.Choice(["mixture", "histogram"]), default="mixture")
@click.option("--smoothness", type=float, help="The price of a unit of border.")
@click.option("--connectivity", type=int, help="4 or 8; 6, 18 or 26 in volumes.")
@json_option
@quiet_option
def segment(
    images: tuple[str, ...],
    scribbles: tuple[str, ...],
    box: str | None,
    probabilities: str | None,
    output: str | None,
    alternatives: int,
    entropy: str | None,
    overlay: str | None,
    guarantee: str | None,
    colors: str,
    smoothness: float | None,
    connectivity: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Label the pixels of images from scribbles, with a certificate of the mask.

    In a scribble file 0 means unmarked and k means label k - 1. The mask has the same encoding.
    IMAGE may be - for stdin. With many images, outputs are folders, in which files have the images'
    names; an image that fails does not stop the others, and the exit code is then 1.
    """
    options: dict[str, Any] = {
        "colors": colors,
        "smoothness": smoothness,
        "options": sw.images.FieldOptions(connectivity=connectivity),
    }
    if box is not None:
        options["boxes"] = _as_box(box)
    if probabilities is not None:
        options["probabilities"] = read_array(probabilities, "probabilities")
    if not scribbles and box is None and probabilities is None:
        raise click.UsageError("give --scribbles, --box or --probabilities")
    if guarantee is not None:
        options["guarantee"] = load("setwise.app._serve").as_guarantee(guarantee)
    check_stdout(as_json, output, entropy, overlay)
    many = len(images) > 1
    _check_names(images)
    pairs = _scribbles_of(images, scribbles)
    failed = 0
    shown = shows_progress(quiet) and many
    with _progress(pairs, shown) as (steps, write_line):
        for image, drawn in steps:
            try:
                summary, words = _segmented(
                    image, drawn, output, alternatives, entropy, overlay, many, options
                )
            except (ValueError, TypeError, OSError, MemoryError) as error:
                if not many:
                    raise
                failed += 1
                why = " ".join(str(error).split()) or type(error).__name__
                summary, words = {"image": image, "error": why}, f"setwise: {image}: {why}"
                write_line(words, quiet=False)
            else:
                write_line(words, quiet=quiet or shown)
            if as_json:
                print_json(summary)
    if many:
        print_note(
            f"{len(images) - failed} of {len(images)} images segmented, {failed} failed", quiet
        )
    if failed:
        raise click.exceptions.Exit(1)


def _segmented(
    image: str,
    drawn: str | Path | None,
    output: str | None,
    alternatives: int,
    entropy: str | None,
    overlay: str | None,
    many: bool,
    options: dict[str, Any],
) -> tuple[dict[str, Any], str]:
    """Segment an image and write the requested files. Return the result for JSON and as text."""
    start = perf_counter()
    guarantee = options.get("guarantee")
    options = {name: value for name, value in options.items() if name != "guarantee"}
    marks = None if drawn is None else read_marks(str(_namesake(image, drawn)))
    pixels, shares = read_image(image), options.get("probabilities")
    if marks is not None:
        shape = marks.shape
    else:
        shape = as_pixels(pixels).shape if shares is None else shares.shape[:-1]
    places = _places(image, shape, output, entropy, overlay, many)
    found = sw.images.segment(pixels, marks, **options)
    bounds = None if guarantee is None else guarantee.predict_set([found.field])[0]
    summary = _write(found, image, places, alternatives, bounds)
    summary["seconds"] = perf_counter() - start
    proved = "no labelling is better" if found.exact else f"bound {found.bound:.6g}"
    return summary, f"{summary['mask']}: energy {found.value:.6g}, {proved}"


def _places(
    image: str,
    shape: tuple[int, ...],
    output: str | None,
    entropy: str | None,
    overlay: str | None,
    many: bool,
) -> dict[str, str]:
    """Return the paths of mask, entropy and overlay, if they can be written."""
    stem = _stem(image)
    ending = ".png" if len(shape) == 2 else ".npy"
    places = {"mask": _place(output, stem, "_mask" + ending, many)}
    if entropy is not None:
        places["entropy"] = _place(entropy, stem, "_entropy" + ending, many)
    if overlay is not None:
        places["overlay"] = _place(overlay, stem, "_overlay" + ending, many)
    for kind, place in places.items():
        check_picture(place, shape, lossless=kind != "overlay")
    return places


def _write(
    found: Segmentation,
    image: str,
    places: dict[str, str],
    alternatives: int,
    bounds: MaskSet | None,
) -> dict[str, Any]:
    """Write the requested files, and return their description for JSON."""
    mask = places["mask"]
    write_picture(mask_numbers(found.label_image), mask)
    summary: dict[str, Any] = {
        "image": image,
        "mask": mask,
        "shape": found.shape,
        "labels": found.field.n_labels,
        "pixels": np.bincount(found.labels, minlength=found.field.n_labels),
        "value": found.value,
        "bound": found.bound,
        "gap": found.gap,
        "relative_gap": found.result.relative_gap,
        "exact": found.exact,
    }
    if "entropy" in places:
        place = places["entropy"]
        most = float(np.log(max(found.field.n_labels, 2)))
        values = found.entropy_image
        write_picture(values if place.endswith(".npy") else heat_picture(values, most), place)
        summary["entropy"] = {"file": place, "mean": float(values.mean())}
    if "overlay" in places:
        shown = found.overlay() if bounds is None else bounds.overlay(found.image)
        write_picture(shown, places["overlay"])
        summary["overlay"] = places["overlay"]
    base = Path(f"{_stem(image)}_mask.png" if mask == "-" else mask)
    if bounds is not None:
        summary["guarantee"] = bounds.words
        for name in ("inner", "outer"):
            found_mask = getattr(bounds, name)
            if found_mask is not None:
                place = str(base.with_name(f"{base.stem}_{name}{base.suffix}"))
                write_picture(mask_numbers(found_mask.astype(np.int64)), place)
                summary[name] = {"file": place, "pixels": int(np.count_nonzero(found_mask))}
    if alternatives:
        summary["alternatives"] = []
        listed = completed(sw.diverse(found.field, alternatives))
        for k, (labels, value) in enumerate(
            zip(listed.label_images, listed.values.tolist(), strict=True), start=1
        ):
            place = str(base.with_name(f"{base.stem}_{k}{base.suffix}"))
            write_picture(mask_numbers(labels), place)
            summary["alternatives"].append({"file": place, "value": value})
    return summary


def _check_names(images: tuple[str, ...]) -> None:
    """Raise an error if two outputs have the same name."""
    seen: dict[str, str] = {}
    for image in images:
        other = seen.setdefault(Path(image).stem, image)
        if image is not other:
            raise click.UsageError(
                f"images must have different names, got {other} and {image}: their masks would be "
                "one file"
            )


def _stem(image: str) -> str:
    return "stdin" if image == "-" else Path(image).stem


def _place(given: str | None, stem: str, ending: str, many: bool) -> str:
    """Return the path of a file: the given one, or a file in the given folder."""
    if given is None:
        return stem + ending
    if given == "-" and not many:
        return given
    if many or Path(given).is_dir():
        Path(given).mkdir(parents=True, exist_ok=True)
        return str(Path(given, stem + ending))
    return given


def _scribbles_of(
    images: tuple[str, ...], given: tuple[str, ...]
) -> list[tuple[str, str | Path | None]]:
    """Pair each image with its scribble file, or with the folder that has it."""
    if not given:
        return [(image, None) for image in images]
    if len(given) == 1 and Path(given[0]).is_dir():
        return [(image, Path(given[0])) for image in images]
    if len(given) != len(images):
        raise click.UsageError(
            f"--scribbles must be given once for each of the {len(images)} images, or name a "
            f"folder, got {len(given)}"
        )
    return list(zip(images, given, strict=True))


def _namesake(image: str, drawn: str | Path) -> str | Path:
    """Return the scribble file, which has the image's name if a folder is given."""
    if isinstance(drawn, str):
        return drawn
    for ending in (".png", ".npy", ".tif", ".tiff"):
        path = drawn / (Path(image).stem + ending)
        if path.exists():
            return path
    raise ValueError(f"{drawn} must hold scribbles for {image}, such as {Path(image).stem}.png")


def _as_box(words: str) -> list[int]:
    try:
        return [int(word) for word in words.split(",")]
    except ValueError:
        raise click.UsageError(f"--box must be whole numbers with commas, got {words!r}") from None


@contextmanager
def _progress(
    pairs: list[tuple[str, str | Path | None]], shown: bool
) -> Iterator[tuple[Iterable[tuple[str, str | Path | None]], Callable[..., None]]]:
    """Yield the images and a function that prints words above the bar on stderr, if any."""
    if not shown:
        yield pairs, print_note
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:

        def above(words: str, quiet: bool) -> None:
            if not quiet:
                bar.console.print(words, markup=False, highlight=False)

        yield bar.track(pairs, description="segment"), above
