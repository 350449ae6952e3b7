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
    check_output,
    mask_numbers,
    read_image,
    read_marks,
    write_output,
)
from setwise._foundation._display import heat_picture
from setwise._foundation._imports import load
from setwise._foundation._search import completed
from setwise.conformal._masks import MaskSet
from setwise.images._files import ENDINGS, ending_of
from setwise.images._picture import Picture
from setwise.images._pixels import as_marks, as_pixels, as_spacing
from setwise.images._segment import Segmentation


@click.command(
    epilog=example(
        "setwise segment cup.jpg --scribbles strokes.png -o mask.png --alternatives 6",
        "setwise segment *.jpg --scribbles strokes/ -o masks/ --json",
        "setwise segment cells.ome.tif --scribbles strokes.tif --spacing 2,0.5,0.5",
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
@click.option("--spacing", metavar="Z,Y,X", help="The distance of neighbours along each side.")
@click.option("--resume", is_flag=True, help="Skip images whose mask is there already.")
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
    spacing: str | None,
    resume: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Label the pixels of images from scribbles, with a certificate of the mask.

    IMAGE is a picture, a stack (TIFF, OME-TIFF, NIfTI, .npy), a folder of slices or an OME-Zarr
    folder; - is stdin. In a scribble file 0 means unmarked and k means label k - 1. The mask has
    the same encoding, and the format and the spacing of the image. With many images, outputs are
    folders, in which files have the images' names; an image that fails does not stop the others,
    and the exit code is then 1.
    """
    options: dict[str, Any] = {
        "colors": colors,
        "smoothness": smoothness,
        "options": sw.images.FieldOptions(
            connectivity=connectivity, spacing=None if spacing is None else _as_spacing(spacing)
        ),
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
                if resume and (done := _mask_of(image, output, many)) is not None:
                    write_line(f"{done}: there already", quiet=quiet or shown)
                    continue
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
    picture, shares = read_image(image), options.get("probabilities")
    sides = None if shares is None else shares.shape[:-1]
    shape = as_pixels(picture, sides=sides if marks is None else marks.shape).shape
    as_marks(marks, shape, "scribbles")
    places = _places(image, shape, output, entropy, overlay, many)
    found = sw.images.segment(picture, marks, **options)
    bounds = None if guarantee is None else guarantee.predict_set([found.field])[0]
    summary = _write(found, image, picture, places, alternatives, bounds)
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
    given = {"mask": output, "entropy": entropy, "overlay": overlay}
    places = {
        kind: _place(place, image, f"_{kind}", many)
        for kind, place in given.items()
        if kind == "mask" or place is not None
    }
    for kind, place in places.items():
        check_output(place, shape, colors=kind == "overlay")
    return places


def _mask_of(image: str, output: str | None, many: bool) -> str | None:
    """Return the path of the mask if the mask exists."""
    place = _place(output, image, "_mask", many)
    return place if place != "-" and Path(place).exists() else None


def _write(
    found: Segmentation,
    image: str,
    picture: Picture,
    places: dict[str, str],
    alternatives: int,
    bounds: MaskSet | None,
) -> dict[str, Any]:
    """Write the requested files, and return their description for JSON."""
    mask = places["mask"]
    write_output(mask_numbers(found.label_image), mask, picture)
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
        grey = place == "-" or place.endswith((".png", ".jpg", ".jpeg"))
        write_output(heat_picture(values, most) if grey else values, place, picture)
        summary["entropy"] = {"file": place, "mean": float(values.mean())}
    if "overlay" in places:
        shown = found.overlay() if bounds is None else bounds.overlay(found.image)
        write_output(shown, places["overlay"], picture, colors=True)
        summary["overlay"] = places["overlay"]
    base = f"{_stem(image)}_mask.png" if mask == "-" else mask
    start = base.removesuffix(ending_of(base))
    if bounds is not None:
        summary["guarantee"] = bounds.words
        for name in ("inner", "outer"):
            found_mask = getattr(bounds, name)
            if found_mask is not None:
                place = f"{start}_{name}{ending_of(base)}"
                write_output(mask_numbers(found_mask.astype(np.int64)), place, picture)
                summary[name] = {"file": place, "pixels": int(np.count_nonzero(found_mask))}
    if alternatives:
        summary["alternatives"] = []
        listed = completed(sw.diverse(found.field, alternatives))
        for k, (labels, value) in enumerate(
            zip(listed.label_images, listed.values.tolist(), strict=True), start=1
        ):
            place = f"{start}_{k}{ending_of(base)}"
            write_output(mask_numbers(labels), place, picture)
            summary["alternatives"].append({"file": place, "value": value})
    return summary


def _check_names(images: tuple[str, ...]) -> None:
    """Raise an error if two outputs have the same name."""
    seen: dict[str, str] = {}
    for image in images:
        other = seen.setdefault(_stem(image), image)
        if image is not other:
            raise click.UsageError(
                f"images must have different names, got {other} and {image}: their masks would be "
                "one file"
            )


def _stem(image: str) -> str:
    """Return the name of an image without its ending."""
    return "stdin" if image == "-" else Path(image).name.removesuffix(ending_of(image))


def _place(given: str | None, image: str, kind: str, many: bool) -> str:
    """Return the path of a file: the given one, or a file in the given folder.

    It has the format of the image, or PNG instead of JPEG.
    """
    ending = ".png" if image == "-" else ending_of(image)
    if ending in (".jpg", ".jpeg"):
        ending = ".png"
    name = _stem(image) + kind + ending
    if given is None:
        return name
    if given == "-" and not many:
        return given
    if many or given.endswith("/") or (Path(given).is_dir() and not ending_of(given)):
        return str(Path(given, name))
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
    """Return the scribble file; in a folder it is the file with the image's name."""
    if isinstance(drawn, str):
        return drawn
    for ending in ENDINGS:
        path = drawn / (_stem(image) + ending)
        if path.exists():
            return path
    if Path(image).is_dir():  # a folder of slices, and so are the scribbles
        return drawn
    raise ValueError(f"{drawn} must hold scribbles for {image}, such as {_stem(image)}.png")


def _as_spacing(words: str) -> tuple[float, ...]:
    try:
        numbers = [float(word) for word in words.split(",")]
    except ValueError:
        raise click.UsageError(f"--spacing must be numbers with commas, got {words!r}") from None
    steps = as_spacing(numbers, len(numbers))
    assert steps is not None
    return steps


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
