"""Images and volumes in files: what is written comes back, with what is known of its axes."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setwise as sw
from setwise.images import FieldOptions
from setwise.images._files import ending_of
from setwise.images._ome_zarr import open_ome
from setwise.images._picture import Picture

nibabel = pytest.importorskip("nibabel")
tifffile = pytest.importorskip("tifffile")
zarr = pytest.importorskip("zarr")

VOLUMES = ["a.npy", "a.tif", "a.ome.tif", "a.nii", "a.nii.gz", "a.zarr", "a.ome.zarr", "slices"]
PLANES = ["a.npy", "a.png", "a.tif", "a.ome.tiff", "a.nii", "a.zarr"]


def numbers(shape: tuple[int, ...], most: int = 255) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, most + 1, shape)


@pytest.mark.parametrize("name", VOLUMES)
@pytest.mark.parametrize("most", [1, 255, 65535])
def test_a_volume_comes_back_with_its_spacing(name: str, most: int, tmp_path: Path) -> None:
    values = numbers((3, 5, 7), most)
    like = Picture(values, None, (2.0, 0.5, 0.25), "micrometer")
    for _ in range(2):  # the second replaces the first
        sw.images.write(tmp_path / name, values, like=like)
    found = sw.images.read(tmp_path / name)
    np.testing.assert_array_equal(found, values)
    assert found.pixels.dtype == (np.uint8 if most <= 255 else np.uint16)
    if name not in ("a.npy", "slices"):
        assert found.channel_axis is None
        np.testing.assert_allclose(found.spacing, like.spacing, rtol=1e-6)
        assert found.unit == "micrometer"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", PLANES)
def test_a_plane_comes_back(name: str, tmp_path: Path) -> None:
    values = numbers((5, 7))
    sw.images.write(tmp_path / name, values)
    np.testing.assert_array_equal(sw.images.read(tmp_path / name), values)
    if name not in ("a.npy", "a.png", "a.zarr"):
        sw.images.write(tmp_path / name, values > 100)
        np.testing.assert_array_equal(sw.images.read(tmp_path / name), values > 100)


@pytest.mark.parametrize("name", ["a.npy", "a.tif", "a.nii", "a.zarr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_real_numbers_come_back(name: str, dtype: type, tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(3, 5, 7)).astype(dtype)
    sw.images.write(tmp_path / name, values)
    np.testing.assert_array_equal(sw.images.read(tmp_path / name), values)


def test_colours_come_back(tmp_path: Path) -> None:
    values = numbers((5, 7, 3)).astype(np.uint8)
    for name in ("a.png", "a.tif"):
        sw.images.write(tmp_path / name, values, channels=True)
        found = sw.images.read(tmp_path / name)
        np.testing.assert_array_equal(found, values)
        assert found.channel_axis == 2


def test_a_picture_tells_segment_its_channels_and_its_spacing(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 256, (2, 3, 4, 5), np.uint8)  # two channels first
    tifffile.imwrite(
        tmp_path / "a.ome.tif",
        values,
        ome=True,
        metadata={"axes": "CZYX", "PhysicalSizeZ": 3.0, "PhysicalSizeY": 1.5, "PhysicalSizeX": 1.5},
    )
    stack = sw.images.read(tmp_path / "a.ome.tif")
    assert (stack.channel_axis, stack.spacing) == (0, (3.0, 1.5, 1.5))
    chances = rng.dirichlet(np.ones(2), (3, 4, 5))
    field = sw.images.field_from_image(stack, probabilities=chances)
    other = sw.images.field_from_image(
        values, probabilities=chances, channel_axis=0, options=FieldOptions(spacing=(3, 1.5, 1.5))
    )
    plain = sw.images.field_from_image(values, probabilities=chances, channel_axis=0)
    labels = rng.integers(0, 2, 60)
    assert field.energy(labels) == other.energy(labels) != plain.energy(labels)


def test_neighbours_agree_less_the_farther_they_are() -> None:
    """The formula of `field_from_image` with |i - j| in units of the smallest spacing."""
    rng = np.random.default_rng(5)
    image, spacing = rng.integers(0, 256, (2, 3, 4)), (2.5, 1.0, 0.5)
    chances = rng.dirichlet(np.ones(2), (2, 3, 4))
    options = FieldOptions(beta=1e-4, connectivity=26, spacing=spacing)
    field = sw.images.field_from_image(
        image, probabilities=chances, smoothness=2.0, options=options, channel_axis=None
    )
    labels = rng.integers(0, 2, image.shape)
    places = list(np.ndindex(image.shape))
    energy = -sum(np.log(chances[i][labels[i]]) for i in places)
    for k, i in enumerate(places):
        for j in places[:k]:
            step = np.subtract(i, j)
            if np.abs(step).max() == 1 and labels[i] != labels[j]:
                change = float(image[i] - image[j]) ** 2
                energy += 2.0 * np.exp(-1e-4 * change) / np.linalg.norm(step * spacing / 0.5)
    np.testing.assert_allclose(field.energy(labels.ravel()), energy)


@pytest.mark.parametrize(
    ("spacing", "words"),
    [
        ((0.0, 1.0), "spacing must be 2 positive finite numbers"),
        ((np.nan, 1.0), "spacing must be 2 positive finite numbers"),
        ((1.0, 1.0, 1.0), "spacing must be 2 positive finite numbers"),
        ("wide", "spacing must"),
    ],
)
def test_spacing_is_positive_and_finite(spacing: object, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        sw.images.field_from_image(
            np.zeros((3, 4)), boxes=[0, 0, 2, 2], options=FieldOptions(spacing=spacing)
        )


def test_a_mask_of_a_scan_keeps_its_place(tmp_path: Path) -> None:
    affine = np.array([[0, -2.0, 0, 9], [1.5, 0, 0, -4], [0, 0, 3.0, 7], [0, 0, 0, 1]])
    values = numbers((4, 5, 6)).astype(np.int16)
    nibabel.save(nibabel.Nifti1Image(values, affine), tmp_path / "scan.nii.gz")
    scan = sw.images.read(tmp_path / "scan.nii.gz")
    assert scan.shape == (6, 5, 4)
    np.testing.assert_allclose(scan.spacing, (3.0, 2.0, 1.5))
    sw.images.write(tmp_path / "mask.nii", scan.pixels > 9, like=scan)
    mask = nibabel.load(tmp_path / "mask.nii")
    np.testing.assert_allclose(mask.affine, affine)
    np.testing.assert_array_equal(mask.dataobj, values > 9)


def test_slices_are_ordered_by_their_numbers(tmp_path: Path) -> None:
    for k in (10, 9, 2, 1):
        Image.fromarray(np.full((3, 4), k, np.uint8)).save(tmp_path / f"cell{k}.png")
    (tmp_path / "notes.txt").write_text("no slice")
    assert sw.images.read(tmp_path).pixels[:, 0, 0].tolist() == [1, 2, 9, 10]
    Image.fromarray(np.zeros((3, 5), np.uint8)).save(tmp_path / "cell3.png")
    with pytest.raises(ValueError, match=r"its slices must have one shape and type.*cell3\.png"):
        sw.images.read(tmp_path)


def test_ome_zarr_of_both_versions_is_read(tmp_path: Path) -> None:
    values = numbers((1, 2, 4, 5, 6)).astype(np.uint8)  # t, c, z, y, x
    axes = [{"name": name, "type": "space"} for name in "tczyx"]
    for axis in axes[2:]:
        axis["unit"] = "nanometer"
    scale = {
        "axes": axes,
        "datasets": [
            {
                "path": "0",
                "coordinateTransformations": [{"type": "scale", "scale": [1, 1, 4, 2, 2]}],
            }
        ],
        "coordinateTransformations": [{"type": "scale", "scale": [1, 1, 0.5, 1, 1]}],
    }
    for version, format_ in (("0.4", 2), ("0.5", 3)):
        group = zarr.open_group(tmp_path / f"v{version}.zarr", mode="w", zarr_format=format_)
        scales = {"multiscales": [scale]}
        group.attrs.update(scales if version == "0.4" else {"ome": scales})
        group.create_array("0", data=values)
        found = sw.images.read(tmp_path / f"v{version}.zarr")
        np.testing.assert_array_equal(found, values[0])
        assert (found.channel_axis, found.spacing) == (0, (2.0, 2.0, 2.0))
        assert found.unit == "nanometer"
        assert open_ome(tmp_path / f"v{version}.zarr").axes == "tczyx"


def test_ome_tiff_and_imagej_agree_on_the_spacing(tmp_path: Path) -> None:
    like = Picture(numbers((3, 5, 7)), None, (2.0, 0.5, 0.5), "micrometer")
    for name in ("a.tif", "a.ome.tif"):
        sw.images.write(tmp_path / name, like.pixels, like=like)
    with tifffile.TiffFile(tmp_path / "a.tif") as tiff:
        assert tiff.is_imagej
        assert tiff.imagej_metadata["spacing"] == 2.0
    with tifffile.TiffFile(tmp_path / "a.ome.tif") as tiff:
        assert tiff.is_ome
        assert 'PhysicalSizeZ="2.0"' in tiff.ome_metadata


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("a.gif", numbers((3, 4)), r"a\.gif must end in \.png"),
        ("a.png", numbers((3, 4, 5)), "must have a format that holds 3 sides"),
        ("a.jpg", numbers((3, 4)), "must not be a JPEG"),
        ("a.png", np.zeros((3, 4)), "for real numbers"),
        ("a.png", np.array([[-1, 2]]), "whole numbers from 0 to 65535, got -1"),
        ("a.tif", np.array([[70_000]]), "whole numbers from 0 to 65535, got 70000"),
        ("a.tif", np.array([["x"]]), "values must hold real numbers"),
    ],
)
def test_what_cannot_be_written_is_said_before_any_work(
    name: str, values: np.ndarray, words: str, tmp_path: Path
) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        sw.images.write(tmp_path / name, values)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.tif", "a.nii.gz", "a.npy", "a.zarr"])
def test_a_broken_file_is_one_sentence(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    sw.images.write(path, numbers((4, 50, 60)))
    if path.is_dir():
        next(one for one in path.glob("0/c/**/0") if one.is_file()).write_bytes(b"nonsense")
    else:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match=ending_of(name)) as caught:
        sw.images.read(path)
    assert str(caught.value).startswith(str(path))


def test_files_with_several_times_or_series_are_refused(tmp_path: Path) -> None:
    tifffile.imwrite(
        tmp_path / "t.ome.tif", np.zeros((2, 3, 4), np.uint8), ome=True,
        metadata={"axes": "TYX"}, photometric="minisblack",
    )  # fmt: skip
    with pytest.raises(ValueError, match="save each time as a file"):
        sw.images.read(tmp_path / "t.ome.tif")
    with tifffile.TiffWriter(tmp_path / "two.tif") as tiff:
        tiff.write(np.zeros((3, 4), np.uint8))
        tiff.write(np.zeros((5, 6), np.uint8))
    with pytest.raises(ValueError, match="one picture or stack"):
        sw.images.read(tmp_path / "two.tif")


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.nii", "a.zarr", "slices"])
def test_a_full_disk_leaves_what_was_there(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = (4, 5) if name == "a.png" else (3, 4, 5)
    sw.images.write(tmp_path / name, np.zeros(shape, int))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(OSError, match="No space left"):
        sw.images.write(tmp_path / name, np.ones(shape, int))
    assert not np.any(sw.images.read(tmp_path / name).pixels)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_volume_beyond_memory_points_to_dask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setwise.images._files.machine_memory", lambda: 1000)
    for name in VOLUMES:
        sw.images.write(tmp_path / name, numbers((4, 15, 20)))
        with pytest.raises(ValueError, match=r"sw\.dask\.solve_map cuts volumes larger than"):
            sw.images.read(tmp_path / name)
