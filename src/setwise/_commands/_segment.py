"""`setwise segment`: masks of images with scribbles, one or many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    quiet_option,
    read_array,
    say,
    shows_progress,
)
from setwise._commands._pictures import mask_numbers, read_image, read_marks, write_picture
from setwise._foundation._pictures import heat_picture


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
    colors: str,
    smoothness: float | None,
    connectivity: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Label the pixels of images from scribbles: the best mask, proved so where it can be.

    In a scribble file 0 is unmarked and k is label k - 1, and so is the mask. IMAGE may be - for
    stdin. With many images, outputs are folders, in which files have the images' names.
    """
    options: dict[str, Any] = {
        "colors": colors,
        "connectivity": connectivity,
        "smoothness": smoothness,
    }
    if box is not None:
        options["boxes"] = _as_box(box)
    if probabilities is not None:
        options["probabilities"] = read_array(probabilities, "probabilities")
    if not scribbles and box is None and probabilities is None:
        raise click.UsageError("give --scribbles, --box or --probabilities")
    check_stdout(as_json, output, entropy, overlay)
    many = len(images) > 1
    _check_names(images)
    pairs = list(zip(images, _scribbles_of(images, scribbles), strict=True))
    with _progress(pairs, shows_progress(quiet) and many) as steps:
        for image, drawn in steps:
            start = perf_counter()
            marks = None if drawn is None else read_marks(drawn)
            found = sw.images.segment(
                read_image(image), marks, n_alternatives=max(alternatives, 1), **options
            )
            told = _write(found, image, output, alternatives, entropy, overlay, many)
            told["seconds"] = perf_counter() - start
            if as_json:
                print_json(told)
            proved = "no labelling is better" if found.exact else f"bound {found.bound:.6g}"
            say(f"{told['mask']}: energy {found.value:.6g}, {proved}", quiet or many)


def _write(
    found: sw.images.Segmentation,
    image: str,
    output: str | None,
    alternatives: int,
    entropy: str | None,
    overlay: str | None,
    many: bool,
) -> dict[str, Any]:
    """The files that were asked for; what JSON says of them."""
    stem = "stdin" if image == "-" else Path(image).stem
    mask = _place(output, stem, "_mask.png", many)
    write_picture(mask_numbers(found.label_image), mask)
    told: dict[str, Any] = {
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
    if entropy is not None:
        place = _place(entropy, stem, "_entropy.png", many)
        most = float(np.log(max(found.field.n_labels, 2)))
        values = found.entropy_image
        write_picture(values if place.endswith(".npy") else heat_picture(values, most), place)
        told["entropy"] = {"file": place, "mean": float(values.mean())}
    if overlay is not None:
        place = _place(overlay, stem, "_overlay.png", many)
        write_picture(found.overlay(), place)
        told["overlay"] = place
    if alternatives:
        base = Path(stem + "_mask.png" if mask == "-" else mask)
        told["alternatives"] = []
        listed = found.alternatives
        for k, (labels, value) in enumerate(
            zip(listed.label_images, listed.values.tolist(), strict=True), start=1
        ):
            place = str(base.with_name(f"{base.stem}_{k}{base.suffix}"))
            write_picture(mask_numbers(labels), place)
            told["alternatives"].append({"file": place, "value": value})
    return told


def _check_names(images: tuple[str, ...]) -> None:
    """Files are named after their images: two of one name would be one file."""
    seen: dict[str, str] = {}
    for image in images:
        other = seen.setdefault(Path(image).stem, image)
        if image is not other:
            raise click.UsageError(
                f"images must have different names, got {other} and {image}: their masks would be "
                "one file"
            )


def _place(given: str | None, stem: str, ending: str, many: bool) -> str:
    """A file: the one that was named, or one in the folder that was."""
    if given is None:
        return stem + ending
    if given == "-" and not many:
        return given
    if many or Path(given).is_dir():
        Path(given).mkdir(parents=True, exist_ok=True)
        return str(Path(given, stem + ending))
    return given


def _scribbles_of(images: tuple[str, ...], given: tuple[str, ...]) -> list[str | None]:
    """The scribble file of each image."""
    if not given:
        return [None] * len(images)
    if len(given) == 1 and Path(given[0]).is_dir():
        return [_namesake(image, Path(given[0])) for image in images]
    if len(given) != len(images):
        raise click.UsageError(
            f"--scribbles must be given once for each of the {len(images)} images, or name a "
            f"folder, got {len(given)}"
        )
    return list(given)


def _namesake(image: str, folder: Path) -> str:
    for ending in (".png", ".npy", ".tif", ".tiff", ".bmp"):
        path = folder / (Path(image).stem + ending)
        if path.exists():
            return str(path)
    raise ValueError(f"{folder} must hold scribbles for {image}, such as {Path(image).stem}.png")


def _as_box(words: str) -> list[int]:
    try:
        return [int(word) for word in words.split(",")]
    except ValueError:
        raise click.UsageError(f"--box must be whole numbers with commas, got {words!r}") from None


@contextmanager
def _progress(
    pairs: list[tuple[str, str | None]], shown: bool
) -> Iterator[Iterable[tuple[str, str | None]]]:
    """The images, with a bar on stderr as they go."""
    if not shown:
        yield pairs
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        yield bar.track(pairs, description="segment")
