"""The command `setwise`."""

import errno
import gzip
import io
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from PIL import Image
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

import setwise as sw
from setwise._commands._group import run
from setwise._commands._group import setwise as group
from setwise._commands._pictures import read_marks
from setwise.images._picture import Picture

COMMANDS = sorted(group.commands)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Answered:
    """What a command answers: its code, what it prints, and its one line of error."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        code = run(list(arguments))
        return (code, *self._capture.readouterr())

    def json(self, *arguments: str) -> Any:
        code, out, err = self(*arguments, "--json", *(["-q"] if "info" not in arguments else []))
        assert (code, err) == (0, "")
        return json.loads(out)


@pytest.fixture
def answered(capsys: pytest.CaptureFixture[str]) -> Answered:
    return Answered(capsys)


def on_stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


# --------------------------------------------------------------------------------------- segment


def write_case(name: str = "cup", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """An image and its scribble file, in which 0 is unmarked; the image and the marks."""
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 60, (20, 28, 3), dtype=np.uint8)
    image[4:14, 6:18] += 150
    marks = np.full((20, 28), -1)
    marks[1, 2:22], marks[9, 8:16] = 0, 1
    Image.fromarray(image).save(f"{name}.png")
    Path("strokes").mkdir(exist_ok=True)
    Image.fromarray((marks + 1).astype(np.uint8)).save(f"strokes/{name}.png")
    return image, marks


def test_a_mask_is_that_of_segment_and_is_a_scribble_file_again(answered: Answered) -> None:
    image, marks = write_case()
    found = sw.images.segment(image, marks)
    told = answered.json(
        "segment", "cup.png", "-s", "strokes/cup.png", "-o", "mask.png", "--alternatives", "3",
        "--entropy", "unsure.png", "--overlay", "over.png",
    )  # fmt: skip
    np.testing.assert_array_equal(read_marks("mask.png"), found.label_image)
    np.testing.assert_array_equal(np.unique(np.asarray(Image.open("mask.png"))), [1, 2])
    assert told["exact"] is True
    assert told["value"] == found.value
    assert told["shape"] == [20, 28]
    assert sum(told["pixels"]) == 560
    three = sw.diverse(found.field, 3)
    for entry, labels, value in zip(
        told["alternatives"], three.label_images, three.values, strict=True
    ):  # fmt: skip
        np.testing.assert_array_equal(read_marks(entry["file"]), labels)
        assert entry["value"] == value
    shares = np.asarray(Image.open("unsure.png")) / 255
    np.testing.assert_allclose(shares, found.entropy_image / np.log(2), atol=0.002)
    np.testing.assert_array_equal(np.asarray(Image.open("over.png")), found.overlay())
    # The mask as scribbles says all, and comes out as it went in.
    with pytest.warns(UserWarning, match="scribbles mark every pixel"):
        assert answered("segment", "cup.png", "-s", "mask.png", "-o", "again.png", "-q")[0] == 0
    assert (read_marks("again.png") == found.label_image).all()


def test_many_files_go_into_a_folder(answered: Answered) -> None:
    cases = {name: write_case(name, k) for k, name in enumerate(("one", "two", "three"))}
    names = [f"{name}.png" for name in cases]
    code, out, _ = answered("segment", *names, "-s", "strokes", "-o", "masks", "--json")
    assert code == 0
    for name, line in zip(cases, out.splitlines(), strict=True):
        told = json.loads(line)
        assert told["image"] == f"{name}.png"
        found = sw.images.segment(*cases[name])
        np.testing.assert_array_equal(read_marks(told["mask"]), found.label_image)
    assert sorted(path.name for path in Path("masks").iterdir()) == [
        "one_mask.png", "three_mask.png", "two_mask.png",
    ]  # fmt: skip
    code, _, err = answered("segment", *names, "-s", "strokes/one.png")
    assert code == 2
    assert "once for each of the 3 images" in err


def test_a_file_that_fails_does_not_stop_the_others(answered: Answered) -> None:
    write_case("one")
    write_case("three", 2)
    Path("two.png").write_text("hello")
    write_case("four", 3)
    Path("strokes/four.png").unlink()
    names = [f"{name}.png" for name in ("one", "two", "three", "four")]
    command = ["segment", *names, "-s", "strokes", "-o", "masks"]
    code, out, err = answered(*command)
    assert (code, out) == (1, "")
    one, two, three, four, last = err.splitlines()
    assert re.fullmatch(r"masks/one_mask\.png: energy .*, no labelling is better", one)
    assert two.startswith("setwise: two.png: ")
    assert three.startswith("masks/three_mask.png: energy")
    assert four.startswith("setwise: four.png: ")
    assert last == "2 of 4 images segmented, 2 failed"
    assert len(os.listdir("masks")) == 2
    code, out, err = answered(*command, "--json", "-q")
    assert (code, err.splitlines()) == (1, [two, four])
    told = [json.loads(line) for line in out.splitlines()]
    assert [entry["image"] for entry in told] == names
    assert ["error" in entry for entry in told] == [False, True, False, True]
    code, _, err = answered("segment", "one.png", "three.png", "-s", "strokes", "-o", "masks")
    assert code == 0
    assert err.splitlines()[-1] == "2 of 2 images segmented, 0 failed"


def test_no_other_program_decodes_a_picture(
    answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pillow starts Ghostscript for whatever begins as an EPS file does."""
    Image.new("RGB", (8, 8)).save("photo.jpg", "EPS")

    def started(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", started)
    code, _, err = answered("segment", "photo.jpg", "--box", "1,1,7,7")
    assert code == 1
    assert "photo.jpg must be a picture: it is no PNG, JPEG or TIFF" in err


def test_a_decoder_that_fails_in_its_own_way_is_one_line(
    answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_case()

    def fail(*_: object) -> None:
        warnings.warn("metadata", stacklevel=1)
        raise RuntimeError("in the\ndecoder")

    monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", fail)
    told = answered("segment", "cup.png", "--box", "1,1,9,9")
    assert told == (1, "", "setwise: cup.png must be a picture: in the decoder\n")


def test_what_decoders_say_themselves_is_not_heard(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Libtiff writes to stderr past Python."""
    noise = np.random.default_rng(0).integers(0, 256, (30, 30), np.uint8)
    Image.fromarray(noise).save("cut.tif", compression="tiff_adobe_deflate")
    with Image.open("cut.tif") as picture:
        start, length = picture.tag_v2[273][0], picture.tag_v2[279][0]  # of the strip
    data = bytearray(Path("cut.tif").read_bytes())
    data[start + length - 4 : start + length] = bytes(4)  # its checksum
    Path("cut.tif").write_bytes(data)
    assert run(["segment", "cut.tif", "--box", "0,0,9,9"]) == 1
    err = capfd.readouterr().err
    assert err.startswith("setwise: cut.tif must be a picture: ")
    assert err.count("\n") == 1


def test_volumes_are_arrays(answered: Answered) -> None:
    volume = np.random.default_rng(0).integers(0, 60, (6, 20, 20), dtype=np.uint8)
    volume[1:5, 4:12, 4:12] += 150
    np.save("volume.npy", volume)
    Path("m").mkdir()
    told = answered.json(
        "segment", "volume.npy", "--box", "0,2,2,6,14,14", "-o", "m", "--entropy", "e.npy",
        "--alternatives", "2",
    )  # fmt: skip
    assert told["mask"] == "m/volume_mask.npy"
    found = sw.images.segment(volume, boxes=[0, 2, 2, 6, 14, 14])
    np.testing.assert_array_equal(np.load(told["mask"]), found.label_image + 1)
    assert np.load("e.npy").shape == volume.shape
    for entry in told["alternatives"]:
        assert np.load(entry["file"]).shape == volume.shape


def test_a_stack_gives_a_stack_with_its_spacing(answered: Answered) -> None:
    volume = np.random.default_rng(0).integers(0, 60, (6, 20, 20), dtype=np.uint8)
    volume[1:5, 4:12, 4:12] += 150
    marks = np.zeros(volume.shape, np.uint8)
    marks[3, 6:9, 6:9], marks[3, 16, 2:18] = 2, 1
    like = Picture(volume, None, (2.0, 0.5, 0.5), "micrometer")
    for name in ("cells.ome.tif", "cells.nii.gz", "cells.zarr"):
        sw.images.write(name, volume, like=like)
        sw.images.write(name.replace("cells", "strokes"), marks)
    sw.images.write("slices", volume)
    sw.images.write("marks", marks)
    found = sw.images.segment(like, marks.astype(int) - 1)
    for name in ("cells.ome.tif", "cells.nii.gz", "cells.zarr"):
        told = answered.json("segment", name, "-s", name.replace("cells", "strokes"))
        assert told["mask"] == name.replace("cells", "cells_mask")
        mask = sw.images.read(told["mask"])
        np.testing.assert_array_equal(mask, found.label_image + 1)
        assert mask.spacing == like.spacing
    told = answered.json("segment", "slices", "-s", "marks", "--spacing", "2,0.5,0.5")
    np.testing.assert_array_equal(read_marks(told["mask"]), found.label_image)
    assert answered("segment", "slices", "-s", "marks", "--spacing", "0,1,1")[0] == 1
    assert answered("segment", "slices", "-s", "marks", "--spacing", "2,a")[0] == 2


def test_resume_skips_masks_that_are_there(answered: Answered) -> None:
    for name in ("one", "two"):
        write_case(name)
    command = ["segment", "one.png", "two.png", "-s", "strokes", "-o", "masks"]
    assert answered(*command)[0] == 0
    Path("masks/two_mask.png").unlink()
    before = Path("masks/one_mask.png").stat().st_mtime_ns
    code, _, err = answered(*command, "--resume")
    assert code == 0
    assert "masks/one_mask.png: there already" in err
    assert Path("masks/one_mask.png").stat().st_mtime_ns == before
    assert Path("masks/two_mask.png").exists()


def test_a_full_disk_leaves_the_files_that_are_there(
    answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_case()
    a_model()
    Path("graph.max").write_text("p max 2 1\nn 1 s\nn 2 t\na 1 2 3\n")
    Path("p.txt").write_text("0.5 0.25")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("setwise._foundation._files.os.fsync", full)
    for output, *arguments in (
        ("grid.MPE", "map", "grid.uai"),
        ("grid.MAR", "marginals", "grid.uai"),
        ("graph.flow", "flow", "graph.max"),
        ("mask.npy", "decide", "p.txt"),
        *(
            (f"mask.{kind}", "segment", "cup.png", "-s", "strokes/cup.png")
            for kind in ("png", "tif", "npy")
        ),
    ):
        Path(output).write_text("old")
        before = sorted(os.listdir())
        code, _, err = answered(*arguments, "-o", output)
        assert code == 1
        assert err == f"setwise: [Errno 28] No space left on device: '{output}'\n"
        assert Path(output).read_text() == "old"
        assert sorted(os.listdir()) == before


def test_boxes_probabilities_and_stdin(answered: Answered, monkeypatch: pytest.MonkeyPatch) -> None:
    image, _ = write_case()
    found = sw.images.segment(image, boxes=[2, 4, 17, 20])
    on_stdin(monkeypatch, Path("cup.png").read_bytes())
    answered.json("segment", "-", "--box", "2,4,17,20")
    np.testing.assert_array_equal(read_marks("stdin_mask.png"), found.label_image)
    chances = np.random.default_rng(0).dirichlet(np.ones(3), (20, 28))
    np.save("chances.npy", chances)
    answered.json("segment", "cup.png", "--probabilities", "chances.npy", "-o", "m.npy")
    expected = sw.images.segment(image, probabilities=chances).label_image
    np.testing.assert_array_equal(np.load("m.npy"), expected + 1)


def test_photographs_are_upright_as_they_are_seen(answered: Answered) -> None:
    image, marks = write_case()
    lying = Image.Exif()
    lying[0x0112] = 6  # to be turned by a quarter to the right
    turned = np.rot90(image).copy()
    Image.fromarray(turned).save("lying.png", exif=lying)
    answered.json("segment", "lying.png", "-s", "strokes/cup.png", "-o", "mask.png")
    found = sw.images.segment(image, marks)
    np.testing.assert_array_equal(read_marks("mask.png"), found.label_image)


def test_palette_scribbles_are_their_numbers(answered: Answered) -> None:
    image, marks = write_case()
    picture = Image.fromarray((marks + 1).astype(np.uint8)).convert("P")
    picture.putdata((marks + 1).ravel().tolist())
    picture.putpalette([0, 0, 0, 200, 0, 0, 0, 0, 200])
    picture.save("palette.png")
    np.testing.assert_array_equal(read_marks("palette.png"), marks)
    Image.fromarray(image).save("colours.png")
    code, _, err = answered("segment", "cup.png", "-s", "colours.png")
    assert code == 1
    assert "grey or palette picture" in err


# ---------------------------------------------------------------------------------------- models


def a_model() -> sw.fields.Field:
    rng = np.random.default_rng(0)
    field = sw.fields.Field(rng.normal(size=(12, 3)))
    field = field + sw.fields.Potts(sw.fields.grid_edges((3, 4)), 0.4)
    sw.fields.write_uai(field, "grid.uai")
    return sw.fields.read_uai("grid.uai")


def test_map_answers_as_the_competitions_ask(
    answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = sw.solve_map(a_model())
    code, out, err = answered("map", "grid.uai")
    assert code == 0
    assert out == f"MPE\n12 {' '.join(map(str, best.labels))}\n"
    assert "no labelling is better" in err
    told = answered.json("map", "grid.uai", "-o", "grid.MPE")
    assert told["labels"] == best.labels.tolist()
    assert told["value"] == best.value
    assert Path("grid.MPE").read_text() == out
    for data in (Path("grid.uai").read_bytes(), gzip.compress(Path("grid.uai").read_bytes())):
        on_stdin(monkeypatch, data)
        assert answered("map", "-", "-q") == (0, out, "")


def test_marginals_answer_as_the_competitions_ask(answered: Answered) -> None:
    post = sw.marginals(a_model())
    code, out, _ = answered("marginals", "grid.uai", "-q")
    task, numbers = out.splitlines()
    assert (code, task) == (0, "MAR")
    read = np.array(numbers.split(), float)
    assert read[0] == 12
    rows = read[1:].reshape(12, 4)
    assert (rows[:, 0] == 3).all()
    np.testing.assert_allclose(rows[:, 1:], post.probabilities, atol=1e-8)
    told = answered.json("marginals", "grid.uai")
    assert told["log_partition_upper"] == post.log_partition_upper
    np.testing.assert_allclose(told["probabilities"], post.probabilities)


def test_variables_have_the_labels_of_their_model(answered: Answered) -> None:
    Path("two.uai").write_text("MARKOV 2  2 3  1  2 0 1  6  1 2 3 4 5 6")
    told = answered.json("marginals", "two.uai", "-o", "two.MAR")
    assert told["log_partition_upper"] == pytest.approx(np.log(21))  # exact: a tree
    told = answered.json("marginals", "two.uai", "--method", "mean_field")
    assert told["log_partition_upper"] is None  # mean field knows none, and JSON no infinity
    words = Path("two.MAR").read_text().split()
    assert words[:3] == ["MAR", "2", "2"]
    assert words[5] == "3"
    assert len(words) == 9


@pytest.mark.parametrize("seed", range(12))
def test_answers_keep_the_labels_of_the_file_and_the_forbidden_ones(
    answered: Answered, seed: int
) -> None:
    """Read by the file's numbers of labels, answers are those of brute force, evidence or not."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 4, 4)
    kept = tuple(rng.integers(cards))  # a labelling that nothing forbids
    kept = kept if seed % 2 else (0, 0, 0, 0)  # often the last label is forbidden
    scopes = [(0,), (1,), (2,), (3,), (0, 1), (2, 1), (2, 3), (3, 1, 0)]
    joint = np.ones(cards)
    words = ["MARKOV", "4", *map(str, cards), str(len(scopes))]
    words += [" ".join(map(str, (len(scope), *scope))) for scope in scopes]
    for scope in scopes:
        table = rng.uniform(0.1, 2.0, cards[list(scope)]) * (rng.random(cards[list(scope)]) < 0.6)
        table[tuple(kept[i] for i in scope)] = 1.5
        words += [str(table.size), *map(repr, table.ravel().tolist())]
        order = np.argsort(scope)
        joint *= table.transpose(order).reshape(
            [c if i in scope else 1 for i, c in enumerate(cards)]
        )
    Path("model.uai").write_text("\n".join(words))
    Path("model.evid").write_text(f"2 3 {kept[3]} 0 {kept[0]}")
    only = np.zeros(cards)
    only[kept[0], :, :, kept[3]] = 1.0
    for extra, weights in ([], joint), (["--evidence", "model.evid"], joint * only):
        code, out, err = answered("marginals", "model.uai", "-q", *extra)
        assert (code, err) == (0, "")
        task, *numbers = out.split()
        assert (task, numbers.pop(0)) == ("MAR", "4")
        for i, card in enumerate(cards):
            assert int(numbers.pop(0)) == card
            expected = weights.sum(axis=tuple(k for k in range(4) if k != i)) / weights.sum()
            np.testing.assert_allclose(list(map(float, numbers[:card])), expected, atol=1e-8)
            del numbers[:card]
        assert not numbers
        code, out, err = answered("map", "model.uai", "-q", *extra)
        assert (code, err) == (0, "")
        task, count, *labels = out.split()
        assert (task, count) == ("MPE", "4")
        assert weights[tuple(map(int, labels))] == pytest.approx(weights.max(), rel=1e-9)


def test_evidence_may_come_on_stdin(answered: Answered, monkeypatch: pytest.MonkeyPatch) -> None:
    a_model()
    on_stdin(monkeypatch, b"1 5 2")
    told = answered.json("map", "grid.uai", "--evidence", "-")
    assert told["labels"][5] == 2
    code, _, err = answered("map", "-", "--evidence", "-")
    assert code == 2
    assert "got - for both" in err
    assert answered("marginals", "grid.uai", "--evidence", "none.evid")[0] == 1


def test_flows_are_those_of_scipy(answered: Answered, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    arcs = np.unique(rng.integers(0, 12, (60, 2)), axis=0)
    capacities = rng.integers(1, 20, len(arcs))
    lines = [f"a {i + 1} {j + 1} {c}" for (i, j), c in zip(arcs, capacities, strict=True)]
    text = "\n".join(["c a graph", f"p max 12 {len(arcs)}", "n 1 s", "n 12 t", *lines, ""])
    Path("graph.max").write_text(text)
    graph = coo_array((capacities, arcs.T.astype(np.int32)), shape=(12, 12)).tocsr()
    graph = graph.astype(np.int32)
    value = maximum_flow(graph, 0, 11).flow_value
    assert answered.json("flow", "graph.max")["value"] == value
    on_stdin(monkeypatch, gzip.compress(text.encode()))
    code, out, _ = answered("flow", "-")
    assert code == 0
    first, *rest = out.splitlines()
    assert first == f"s {value}"
    net = np.zeros(12, int)
    for line in rest:
        kind, tail, head, amount = line.split()
        assert kind == "f"
        assert 0 < int(amount) <= graph[int(tail) - 1, int(head) - 1]
        net[int(tail) - 1] += int(amount)
        net[int(head) - 1] -= int(amount)
    assert net.tolist() == [value, *[0] * 10, -value]
    Path("tabs.max").write_text(text.replace(" ", "\t"))
    assert answered.json("flow", "tabs.max")["value"] == value


def test_decide_takes_arrays_and_tables(
    answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    chances = np.random.default_rng(0).random((3, 8)).round(3)
    np.save("p.npy", chances)
    rows = sw.decide(chances, "jaccard")
    told = answered.json("decide", "p.npy", "--loss", "jaccard")
    assert told["mask"] == rows.mask.astype(int).tolist()
    np.testing.assert_allclose(told["expected"], rows.expected)
    cells = sw.decide(chances, "dice", sets="cells")
    assert answered("decide", "p.npy", "--sets", "cells", "-o", "m.npy", "-q") == (0, "", "")
    np.testing.assert_array_equal(np.load("m.npy"), cells.mask)
    table = "\n".join(",".join(map(str, row)) for row in chances)
    on_stdin(monkeypatch, table.encode())
    code, out, _ = answered("decide", "-", "--loss", "jaccard", "-q")
    assert code == 0
    np.testing.assert_array_equal(np.loadtxt(io.StringIO(out)), rows.mask)


# ----------------------------------------------------------------------------------- the command


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_in_its_help(command: str, answered: Answered) -> None:
    code, out, _ = answered(command, "--help")
    assert code == 0
    example = re.search(r"^  Example: (.*)$", out, re.MULTILINE)
    assert example is not None
    words = example[1].split()
    assert f"setwise {command}" in example[1]
    options = {name for p in group.commands[command].params for name in p.opts}
    assert {word for word in words if re.match(r"--?[a-z]", word)} <= options
    known = {option.name for option in group.commands[command].params}
    assert "as_json" in known or command == "completion"


def test_no_command_is_help_and_a_version_is_printed(answered: Answered) -> None:
    code, _, err = answered()
    assert code == 2
    assert all(command in err for command in COMMANDS)
    assert answered("--version") == (0, f"setwise {sw.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["map", "missing.uai"], 1, "missing.uai"),
        (["map", "text.png"], 1, "must begin with MARKOV or BAYES"),
        (["map", "text.png", "--tol", "x"], 2, "is not a valid float"),
        (["marginals"], 2, "Missing argument"),
        (["flow", "text.png"], 1, "line 1 is not one of a flow problem"),
        (["flow", "short.max"], 1, "the 2 arcs that it promises, got 1"),
        (["flow", "far.max"], 1, "nodes from 1 to 2"),
        (["flow", "words.max"], 1, "line 4 is not one of a flow problem"),
        (["flow", "half.max"], 1, "nodes by whole numbers"),
        (["flow", "infinite.max"], 1, "capacities must be finite"),
        (["flow", "digits.max"], 1, "line 4 is not one of a flow problem: it must have numbers"),
        (["flow", "nodes.max"], 1, "promises 1000000000000 nodes, too many for 1 arcs"),
        (["flow", "arcs.max"], 1, "line 1 is not one of a flow problem: it must have whole"),
        (["decide", "header.npy"], 1, "must be a .npy file or a table of numbers"),
        (["decide", "huge.npy"], 1, "must be a .npy file or a table of numbers"),
        (["segment", "header.npy", "--box", "0,0,1,1"], 1, "header.npy must be a .npy file"),
        (["segment", "pages.tif", "--box", "0,0,1,1"], 1, "boxes must have shape (B, 6)"),
        (["segment", "plain.png", "-s", "pages.tif"], 1, "scribbles must have the image's shape"),
        (
            ["segment", "plain.png", "--box", "1,1,9,9", "-o", "m.gif"],
            1,
            "must end in .png, .jpg, .tif",
        ),
        (["segment", "volume.npy", "--box", "1,1,1,4,9,9", "-o", "m.png"], 1, "holds 3 sides"),
        (["segment", "eps.jpg", "--box", "0,0,1,1"], 1, "it is no PNG, JPEG or TIFF"),
        (["flow", "cut.max"], 1, "cut.max: the file must be packed by gzip"),
        (["segment", "cut.png", "--box", "0,0,1,1"], 1, "cut.png must be a picture: "),
        (["segment", "a/x.png", "b/x.png", "--box", "0,0,1,1"], 2, "their masks would be one file"),
        (["segment", "text.png", "--box", "1,1,2,2", "-o", "-", "--json"], 2, "on stdout"),
        (["decide", "p.txt", "-o", "-", "--json"], 2, "on stdout"),
        (["decide", "nothing.txt"], 1, "it is empty"),
        (["segment", "text.png", "-s", "text.png"], 1, "must be a picture"),
        (["segment", "text.png"], 2, "give --scribbles, --box or --probabilities"),
        (["segment", "text.png", "--box", "1,a"], 2, "--box must be whole numbers"),
        (["segment", "text.png", "-s", "empty"], 1, "must hold scribbles for text.png"),
        (["decide", "text.png"], 1, "must be a .npy file or a table of numbers"),
        (["decide", "p.txt", "--loss", "no"], 1, "got 'no'"),
        (["nothing"], 2, "No such command"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_an_error_is_one_line(
    arguments: list[str], code: int, words: str, answered: Answered
) -> None:
    Path("empty").mkdir()
    Path("text.png").write_text("hello\nworld\n")
    Path("p.txt").write_text("0.5 0.25")
    Path("short.max").write_text("p max 2 2\nn 1 s\nn 2 t\na 1 2 3\n")
    Path("far.max").write_text("p max 2 1\nn 1 s\nn 2 t\na 1 3 3\n")
    Path("words.max").write_text("p max 4 2\nn 1 s\nn 4 t\na 1 2\na 3 2 4 2\n")
    Path("half.max").write_text("p max 2 1\nn 1 s\nn 2 t\na 1.5 2 3\n")
    Path("infinite.max").write_text("p max 2 1\nn 1 s\nn 2 t\na 1 2 inf\n")
    Path("cut.max").write_bytes(gzip.compress(b"p max 2 1\n" * 9)[:20])
    Path("nothing.txt").write_text("\n")
    Path("digits.max").write_text(f"p max 2 1\nn 1 s\nn 2 t\na 1 2 {'1' * 10**5}\n")
    Path("nodes.max").write_text("p max 1000000000000 1\nn 1 s\nn 2 t\na 1 2 3\n")
    Path("arcs.max").write_text(f"p max 2 {'9' * 4000}\nn 1 s\nn 2 t\n")
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }\n"
    for name, shape in (("header", b"1, (2"), ("huge", b"1%s," % (b"0" * 17))):
        text = header % shape
        Path(f"{name}.npy").write_bytes(
            b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
        )
    plain = Image.fromarray(np.arange(400, dtype=np.uint16).astype(np.uint8).reshape(20, 20))
    plain.save("plain.png")
    plain.save("pages.tif", save_all=True, append_images=[plain, plain])
    plain.save("eps.jpg", "EPS")
    np.save("volume.npy", np.zeros((20, 20, 20)))
    picture = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (30, 30), np.uint8)
    Image.fromarray(noise).save(picture, "PNG")
    Path("cut.png").write_bytes(picture.getvalue()[:500])
    got, out, err = answered(*arguments)
    assert (got, out) == (code, "")
    assert err.startswith("setwise: ")
    assert err.count("\n") == 1
    assert words in err


def test_info_is_what_a_report_needs(answered: Answered) -> None:
    told = answered.json("info")
    assert told["setwise"] == sw.__version__
    assert told["packages"]["numpy"] == np.__version__
    assert {"python", "platform", "cpu", "cores", "cuda"} <= set(told)
    code, out, _ = answered("info")
    assert code == 0
    assert f"numpy {np.__version__}" in out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete(shell: str, answered: Answered) -> None:
    code, out, _ = answered("completion", shell)
    assert code == 0
    assert "_SETWISE_COMPLETE" in out


def test_commands_complete_by_name() -> None:
    context = click.Context(group)
    assert [item.value for item in group.shell_complete(context, "ma")] == ["map", "marginals"]


WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Absent())
sys.argv = ["setwise", *{arguments}]
from setwise.__main__ import main
sys.exit(main())
"""


def test_without_the_extra_one_sentence_names_it() -> None:
    program = WITHOUT.format(absent={"click", "rich"}, arguments=["info"])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.fullmatch(r"setwise: .*pip install 'setwise\[app\]'.*\n", done.stderr)


SHELL = "{python} -m setwise {arguments} {redirection}"


@pytest.mark.skipif(os.name != "posix", reason="redirections of a POSIX shell")
@pytest.mark.parametrize(
    ("arguments", "redirection", "code", "out", "error"),
    [
        ("map two.uai", "2>&-", 0, "MPE\n2 1 1\n", ""),
        ("map two.uai -o out.MPE", "<&- >&- 2>&-", 0, "", ""),
        ("map -", "<&-", 1, "", "setwise: stdin must be open to be read, got none\n"),
        ("map two.uai -q", ">&-", 1, "", "setwise: stdout must be open to be written, got none\n"),
        ("info", ">&- 2>&-", 1, "", ""),
        ("map nothing.uai", "2>&-", 1, "", ""),
        ("map two.uai", ">/dev/full", 1, "", "setwise: [Errno 28] No space left on device\n"),
        ("map two.uai", "2>/dev/full", 0, "MPE\n2 1 1\n", ""),
    ],
)
def test_missing_streams_give_an_answer_or_an_error_code(
    arguments: str, redirection: str, code: int, out: str, error: str
) -> None:
    if "/dev/full" in redirection and not Path("/dev/full").exists():
        pytest.skip("a device of Linux")
    if code == 0 and "2>&-" in redirection and np.lib.NumpyVersion(np.__version__) < "2.1.0":
        pytest.skip("NumPy itself needs a stderr")
    Path("two.uai").write_text("MARKOV 2  2 2  2  1 0  2 0 1  2  0.5 1  4  1 0.25 0.25 1")
    command = SHELL.format(python=sys.executable, arguments=arguments, redirection=redirection)
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, error)
    if "-o" in arguments:
        assert Path("out.MPE").read_text() == "MPE\n2 1 1\n"


def test_python_m_setwise_is_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "setwise", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"setwise {sw.__version__}\n")
