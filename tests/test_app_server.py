"""The page over HTTP: who gets in, what is refused, what comes out."""

import base64
import io
import json
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
import urllib.request
import zipfile
import zlib
from contextlib import contextmanager, suppress

import anyio
import numpy as np
import pytest
from browser import served
from drawings import line, picture, random_stroke, two_strokes
from page_client import TestClient
from PIL import Image, ImageDraw, ImageOps
from scipy.ndimage import label as connected_parts
from starlette.websockets import WebSocketDisconnect
from websockets.sync.client import connect

import setwise as sw
from setwise.app import _decoding, _exports, _http_app, _outlines
from setwise.app._decoding import Refused, as_picture, decode, working_picture
from setwise.app._drawing import _drawing, _strokes
from setwise.app._drawing._answers import MaskAnswer
from setwise.app._drawing._levels import ImageLevel
from setwise.app._drawing._memory import MemoryBudget
from setwise.app._exports import coco, drawing_from_json, polygons, run_lengths
from setwise.app._http_app import make_app
from setwise.app._outlines import outlines

TOKEN, PORT = "a-token", 8123
HERE = f"http://127.0.0.1:{PORT}"


@pytest.fixture(scope="module")
def client():
    with TestClient(make_app(TOKEN, PORT), base_url=HERE) as made:
        yield made


def as_png(array):
    out = io.BytesIO()
    Image.fromarray(array).save(out, "PNG")
    return out.getvalue()


def opened(client, body=None, **named):
    answer = client.post("/api/drawings", params={"token": TOKEN}, content=body, **named)
    assert answer.status_code == 201, answer.text
    return answer.json()["key"]


def message(data):
    (length,) = struct.unpack("<I", data[:4])
    header = json.loads(data[4 : 4 + length])
    at, buffers = 4 + length, []
    for size in header["buffers"]:
        buffers.append(data[at : at + size])
        at += size
    assert at == len(data)
    return header, buffers


def until(events, kind, **wanted):
    while True:
        header, buffers = message(events.receive_bytes())
        assert header["type"] != "error", header
        if header["type"] == kind and all(header[name] == value for name, value in wanted.items()):
            return header, buffers


# ---- who gets in

PATHS = ["/", "/segment.js", "/segment.css", "/api/samples/coins", "/api/drawings/x", "/nowhere"]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_there_without_the_token(client, path):
    client.cookies.clear()
    assert client.get(path).status_code == 403
    assert client.get(path, params={"once": "a-code"}).status_code == 403
    assert client.get(path, headers={"cookie": f"setwise-{PORT}={TOKEN}"}).status_code == 403
    assert client.get(path, params={"token": "a-tokem"}).status_code == 403
    assert client.get(path, params={"token": ""}).status_code == 403
    assert client.get(path, headers={"x-setwise-token": "é".encode()}).status_code == 403
    assert client.post("/api/drawings", content=b"x").status_code == 403


@pytest.mark.parametrize("host", ["example.org", f"example.org:{PORT}", "127.0.0.1:1", "127.0.0.1"])
def test_a_foreign_host_is_refused(client, host):
    answer = client.get("/", params={"token": TOKEN}, headers={"host": host})
    assert answer.status_code == 421


@pytest.mark.parametrize("origin", ["http://example.org", "null", "https://127.0.0.1:8123"])
def test_a_foreign_origin_is_refused(client, origin):
    answer = client.post(
        "/api/drawings", params={"token": TOKEN, "sample": "coins"}, headers={"origin": origin}
    )
    assert answer.status_code == 403


def test_a_second_origin_is_refused(client):
    for origins in (["http://example.org", HERE], [HERE, "http://example.org"], [HERE, HERE]):
        answer = client.post(
            "/api/drawings",
            params={"token": TOKEN, "sample": "coins"},
            headers=[("origin", origin) for origin in origins],
        )
        assert answer.status_code == 403, origins


@contextmanager
def browsing(app):
    """A client that follows no redirect and keeps its cookies."""
    with TestClient(app, base_url=HERE, follow_redirects=False) as client:
        yield client


def test_the_token_in_the_address_becomes_a_cookie():
    with browsing(make_app(TOKEN, PORT)) as client:
        answer = client.get("/", params={"token": TOKEN})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"setwise-{PORT}=")  # cookies of all ports are sent to each
        assert TOKEN not in cookie
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} < set(cookie.split("; "))
        for path in ("/", "/segment.js", "/segment.css", "/api/samples/coins"):
            answer = client.get(path)
            assert answer.status_code == 200
            assert TOKEN.encode() not in answer.content
        key = client.post("/api/drawings", params={"sample": "coins"}).json()["key"]
        with client.websocket_connect(
            f"/api/drawings/{key}/events",
            headers={"host": f"127.0.0.1:{PORT}", "cookie": cookie.partition(";")[0]},
        ) as events:
            until(events, "drawing")


def test_the_code_of_the_address_works_once_and_is_void_when_it_comes_again():
    app = make_app(TOKEN, PORT)
    code = {"once": app.state.keys.code}
    with browsing(app) as first, browsing(app) as second:
        assert first.get("/segment.js", params=code).status_code == 403
        assert first.get("/", params=code).status_code == 303
        assert first.get("/").status_code == 200
        assert second.get("/", params=code).status_code == 403
        assert second.get("/").status_code == 403
        assert first.get("/").status_code == 403  # either may be the one that was not meant
        assert second.get("/", params={"token": TOKEN}).status_code == 303
        assert second.get("/").status_code == 200


def test_the_page_itself_gets_in_and_may_talk_to_nobody_else(client):
    for headers in ({}, {"origin": HERE}, {"host": f"localhost:{PORT}"}):
        answer = client.get("/", params={"token": TOKEN}, headers=headers)
        assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert answer.headers["referrer-policy"] == "no-referrer"
    for name in ("segment.js", "segment.css"):
        text = client.get(f"/{name}", params={"token": TOKEN}).text
        without = text.replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in without
        assert "https:" not in without
        assert "//cdn" not in without


def test_sockets_are_guarded_too(client):
    key = opened(client, as_png(picture()))
    path = f"/api/drawings/{key}/events"
    for query, headers in (
        ("", {}),
        ("?token=wrong", {}),
        (f"?token={TOKEN}", {"origin": "http://example.org"}),
        (f"?token={TOKEN}", {"host": "example.org"}),
    ):
        with (
            pytest.raises(WebSocketDisconnect) as refused,
            client.websocket_connect(
                path + query, headers={"host": f"127.0.0.1:{PORT}", **headers}
            ),
        ):
            pass
        assert refused.value.status_code in (403, 421)
    with (
        client.websocket_connect(
            f"/api/drawings/none/events?token={TOKEN}", headers={"host": f"127.0.0.1:{PORT}"}
        ) as events,
        pytest.raises(WebSocketDisconnect) as gone,
    ):
        events.receive_bytes()
    assert gone.value.code == 4404


# ---- what is refused


def bomb():
    """A PNG whose header promises 50,000 x 50,000 pixels."""

    def chunk(name, body):
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    header = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(10_000))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (chunk(b"IHDR", header), chunk(b"IDAT", data), chunk(b"IEND", b""))
    )


def large(side):
    out = io.BytesIO()
    Image.new("1", (side, side)).save(out, "PNG")
    return out.getvalue()


def without_a_number():
    out = io.BytesIO()
    Image.fromarray(np.full((4, 4), np.nan, np.float32)).save(out, "TIFF")
    return out.getvalue()


def cut_short():
    return as_png(picture())[:-60]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (bomb, 413),
        (lambda: large(9000), 413),  # well compressed: 81 million pixels in some kilobytes
        (lambda: large(14000), 413),
        (lambda: b"only a text, called .png", 415),
        (lambda: b"", 400),
        (lambda: b"\x89PNG\r\n\x1a\n", 415),
        (cut_short, 422),
        (lambda: b"GIF89a" + bytes(100), 415),
        (lambda: b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415),
        (lambda: b"{}", 400),
        (lambda: b"{" * 100_000, 400),
        (lambda: b'{"format": ' + b"1" * 5000 + b"}", 400),
        (without_a_number, 422),
        (lambda: b'{"format": "setwise drawing", "image": "/etc/passwd"}', 400),
        (
            lambda: json.dumps(
                {"format": "setwise drawing", "image": "", "smoothness": 1, "steps": []}
            ).encode(),
            415,
        ),
    ],
)
def test_what_is_no_picture_gets_a_sentence(client, body, status):
    answer = client.post("/api/drawings", params={"token": TOKEN}, content=body())
    assert answer.status_code == status, answer.text
    assert len(answer.json()["error"].split()) > 3
    assert "Traceback" not in answer.text


def test_long_bodies_are_refused_before_they_are_read(client, monkeypatch):
    answer = client.post(
        "/api/drawings",
        params={"token": TOKEN},
        content=b"x",
        headers={"content-length": str(10**12)},
    )
    assert answer.status_code == 413
    monkeypatch.setattr("setwise.app._http_app.MOST_BYTES", 1000)

    parts = (bytes(400) for _ in range(10))  # sent in chunks, without a length
    answer = client.post("/api/drawings", params={"token": TOKEN}, content=parts)
    assert answer.status_code == 413


def test_no_path_of_the_client_is_opened(client):
    for path in (
        "/api/samples/..%2f..%2fetc%2fpasswd",
        "/api/samples/__init__",
        "/static/../_http_app.py",
        "/..%2f_server.py",
        "/api/drawings/..%2f..",
    ):
        assert client.get(path, params={"token": TOKEN}).status_code == 404
    key = opened(client, as_png(picture()), headers={"x": "y"})
    for name in ("..%2fmask.png", "passwd", "mask.exe"):
        answer = client.get(f"/api/drawings/{key}/export/{name}", params={"token": TOKEN})
        assert answer.status_code == 404
    answer = client.post("/api/drawings", params={"token": TOKEN, "sample": "../x"})
    assert answer.status_code == 404


def test_more_than_the_memory_holds_is_refused():
    with TestClient(make_app(TOKEN, PORT, 2**20), base_url=HERE) as client:
        answer = client.post(
            "/api/drawings", params={"token": TOKEN}, content=as_png(picture(200, 200))
        )
    assert answer.status_code == 413
    assert "MiB" in answer.json()["error"]


# ---- pictures


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *(("PNG", mode) for mode in ("L", "RGB", "RGBA", "P", "I;16", "1", "LA")),
        *(("JPEG", mode) for mode in ("L", "RGB", "CMYK")),
        *(("TIFF", mode) for mode in ("L", "RGB", "RGBA", "P", "I;16", "F", "CMYK", "1")),
    ],
)
def test_pictures_of_every_mode(kind, mode):
    grey = picture()[..., 0]
    if mode == "I;16":
        image = Image.fromarray(grey.astype(np.uint16) * 200)
    else:
        image = Image.fromarray(grey).convert(mode)
    out = io.BytesIO()
    image.save(out, kind)
    read, shape = decode(out.getvalue())
    assert read.shape == (40, 56, 3)
    assert shape == (40, 56)
    assert np.corrcoef(read[..., 0].ravel(), grey.ravel().astype(float))[0, 1] > 0.5


def test_a_picture_of_several_pages_is_refused():
    out, page = io.BytesIO(), Image.new("L", (8, 8))
    page.save(out, "TIFF", save_all=True, append_images=[page])
    with pytest.raises(Refused, match="the file must hold one picture, got 2"):
        decode(out.getvalue())


def test_a_photograph_is_upright():
    out = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    Image.fromarray(picture()).save(out, "JPEG", exif=exif)
    assert decode(out.getvalue())[0].shape == (56, 40, 3)


def test_large_pictures_are_worked_on_at_a_reduced_size(monkeypatch):
    monkeypatch.setattr(_decoding, "WORKING_PIXELS", 500)
    read, shape = working_picture(picture())
    assert shape == (40, 56)
    assert read.shape[0] * read.shape[1] <= 600


@pytest.mark.parametrize("wrong", [np.zeros(3), np.zeros((2, 2, 5)), np.zeros((0, 4)), [[np.nan]]])
def test_arrays_that_are_no_picture(wrong):
    with pytest.raises(ValueError, match="image must"):
        as_picture(wrong)
    with pytest.raises(TypeError, match="image must hold real numbers"):
        as_picture([["a"]])


# ---- what comes out


@pytest.fixture
def drawn(client):
    """A drawing with two strokes, its answer and alternatives."""
    key = opened(client, as_png(picture()))
    with client.websocket_connect(
        f"/api/drawings/{key}/events?token={TOKEN}", headers={"host": f"127.0.0.1:{PORT}"}
    ) as events:
        header, _ = until(events, "drawing")
        assert (header["height"], header["width"]) == (40, 56)
        for stroke in two_strokes((40, 56)):
            events.send_text(json.dumps({"type": "stroke", "stroke": stroke.as_json()}))
        labels = np.zeros((40, 56), np.uint8)
        header = {"version": 0}
        while header["version"] != 2 or not header["final"]:
            header, (part,) = until(events, "labels")
            top, left, height, width = header["box"]
            patch = np.frombuffer(part, np.uint8).reshape(height, width)
            labels[top : top + height, left : left + width] = patch
        listed, _ = until(events, "alternatives", version=2)
        assert len(listed["items"]) == 6
        yield key, events, labels, header


def export(client, key, name):
    answer = client.get(f"/api/drawings/{key}/export/{name}", params={"token": TOKEN})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"].startswith("attachment")
    return answer.content


def test_a_mask_in_every_form(client, drawn):
    key, _, labels, header = drawn
    assert header["exact"]
    assert header["words"] == "best for these strokes"
    image = np.asarray(Image.open(io.BytesIO(export(client, key, "mask.png"))))
    np.testing.assert_array_equal(image, labels + 1)
    np.testing.assert_array_equal(np.load(io.BytesIO(export(client, key, "mask.npy"))), labels)
    notes = json.loads(export(client, key, "coco.json"))
    assert [note["category_id"] for note in notes["annotations"]] == [1, 2]
    for note in notes["annotations"]:
        np.testing.assert_array_equal(from_runs(note["segmentation"]), labels == note["id"] - 1)
    shapes = json.loads(export(client, key, "polygons.json"))
    for feature in shapes["features"]:
        filled = fill(feature["geometry"]["coordinates"], labels.shape)
        np.testing.assert_array_equal(filled, labels == feature["properties"]["label"] - 1)
    with zipfile.ZipFile(io.BytesIO(export(client, key, "alternatives.zip"))) as archive:
        told = json.loads(archive.read("alternatives.json"))
        first = np.asarray(Image.open(io.BytesIO(archive.read(told[0]["mask"]))))
    assert len(told) == 6
    np.testing.assert_array_equal(first, labels + 1)
    again = opened(client, export(client, key, "drawing.json"))
    np.testing.assert_array_equal(np.load(io.BytesIO(export(client, again, "mask.npy"))), labels)


def from_runs(rle):
    height, width = rle["size"]
    counts = rle["counts"]
    return np.repeat(np.arange(len(counts)) % 2, counts).reshape(width, height).T.astype(bool)


def fill(pieces, shape):
    """By the even-odd rule, at the centres of the pixels."""
    image = np.zeros((4 * shape[0], 4 * shape[1]), np.uint8)
    for rings in pieces:
        for ring in rings:
            one = Image.new("L", image.shape[::-1])
            ImageDraw.Draw(one).polygon([(4 * x - 0.5, 4 * y - 0.5) for x, y in ring], fill=1)
            image ^= np.asarray(one)
    return image[2::4, 2::4].astype(bool)


def test_runs_and_outlines_of_random_masks():
    rng = np.random.default_rng(0)
    for _ in range(60):
        mask = rng.random(rng.integers(1, 9, 2)) < rng.random()
        np.testing.assert_array_equal(
            from_runs({"size": mask.shape, "counts": run_lengths(mask)}), mask
        )
        rings = outlines(mask)
        area = sum(
            0.5 * float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))
            for x, y in (ring.T for ring in rings)
        )
        assert area == mask.sum()
        np.testing.assert_array_equal(fill([[ring.tolist()] for ring in rings], mask.shape), mask)
    assert coco(np.zeros((2, 3), np.uint8), "a")["annotations"][0]["area"] == 6
    ring = np.zeros((5, 5), np.uint8)
    ring[1:4, 1:4] = 1
    ring[2, 2] = 0
    pieces = [f["geometry"]["coordinates"] for f in json.loads(polygons(ring))["features"]]
    assert [sorted(len(piece) for piece in label) for label in pieces] == [[1, 2], [2]]


def signed_area(ring):
    x, y = np.array(ring, float).T
    return 0.5 * float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))


def test_each_polygon_is_a_connected_piece_with_its_own_holes():
    rng = np.random.default_rng(1)
    for _ in range(40):
        labels = rng.integers(0, 2, rng.integers(1, 12, 2)).astype(np.uint8)
        for feature in json.loads(polygons(labels))["features"]:
            mask = labels == feature["properties"]["label"] - 1
            parts, count = connected_parts(mask)
            pieces = feature["geometry"]["coordinates"]
            assert len(pieces) == count
            for outline, *holes in pieces:
                filled = fill([[outline, *holes]], labels.shape)
                (part,) = np.unique(parts[filled])
                np.testing.assert_array_equal(filled, parts == part)
                assert signed_area(outline) > 0
                assert all(signed_area(hole) < 0 for hole in holes)


def test_polygons_of_noise_take_work_linear_in_the_number_of_pieces(monkeypatch):
    looked = 0

    def lines(frame, event, _):
        nonlocal looked
        looked += event == "line"
        return lines

    rng, work = np.random.default_rng(0), []
    for side in (50, 100):
        noise = rng.integers(0, 2, (side, side)).astype(np.uint8)
        looked, before = 0, sys.gettrace()
        sys.settrace(lines)
        try:
            polygons(noise)
        finally:
            sys.settrace(before)
        work.append(looked)
    assert work[1] < 5 * work[0]  # four times as many pieces
    # Each of 250 x 250 pixels has at most four sides, and each side is walked along once.
    noise = rng.integers(0, 2, (250, 250)).astype(np.uint8)
    polls = []
    monkeypatch.setattr(_outlines._core, "poll", lambda: polls.append(1))
    features = json.loads(polygons(noise))["features"]
    rings = sum(len(piece) for f in features for piece in f["geometry"]["coordinates"])
    assert 10_000 < len(polls) < 3 * rings


def test_messages_that_are_none_get_a_sentence(client, drawn):
    _, events, _, _ = drawn
    for wrong in (
        "no json",
        "[]",
        "{}",
        '{"type": "fly"}',
        '{"type": "stroke"}',
        '{"type": "stroke", "stroke": {"points": [[1, 2, 3]]}}',
        '{"type": "take", "number": 99}',
        '{"type": "take"}',
        '{"type": "smoothness", "value": -1}',
        '{"type": "smoothness", "value": "a"}',
        '{"type": "smoothness", "value": 1' + "0" * 400 + "}",
        '{"type": "stroke", "stroke": {"points": [[1' + "0" * 400 + ", 1]]}}",
        "1" * 5000,
        '{"type": "want", "what": "cake", "on": true}',
    ):
        events.send_text(wrong)
        while True:
            header, _ = message(events.receive_bytes())
            if header["type"] == "error":
                break
        assert len(header["words"].split()) > 3
    events.send_text('{"type": "undo"}')
    header, _ = until(events, "history", version=3)
    assert header["redo"]


@pytest.mark.parametrize("last", ["websocket.accept", "websocket.send"])
def test_a_client_that_goes_away_at_a_message_raises_nothing(client, last):
    key = opened(client, as_png(picture()))
    scope = {
        "type": "websocket",
        "path": f"/api/drawings/{key}/events",
        "query_string": f"token={TOKEN}".encode(),
        "headers": [(b"host", f"127.0.0.1:{PORT}".encode())],
    }
    gone = anyio.Event()

    async def receive():
        message = messages.pop(0)
        if message["type"] != "websocket.connect":
            await gone.wait()
        return message

    async def send(message):
        if message["type"] == last:
            gone.set()
            raise OSError("the client has gone away")

    messages = [
        {"type": "websocket.connect"},
        {"type": "websocket.receive", "text": "{}"},  # was under way
        {"type": "websocket.disconnect", "code": 1006},
    ]
    client.portal.call(client.app, scope, receive, send)
    assert gone.is_set()


def test_two_watchers_see_one_drawing(client, drawn):
    key, events, _, _ = drawn
    with client.websocket_connect(
        f"/api/drawings/{key}/events?token={TOKEN}", headers={"host": f"127.0.0.1:{PORT}"}
    ) as other:
        header, _ = until(other, "history")
        assert len(header["steps"]) == 2
        until(other, "labels", version=2)
        other.send_text(
            json.dumps({"type": "stroke", "stroke": line(0, (50.0, 3.0), (50.0, 30.0)).as_json()})
        )
        header, _ = until(events, "history", version=3)
        assert header["keep"] + len(header["steps"]) == 3
        until(events, "labels", version=3)
        until(other, "labels", version=3)


def test_there_is_no_mask_before_anything_is_drawn(client):
    key = opened(client, as_png(picture()))
    for name in ("mask.png", "alternatives.zip"):
        answer = client.get(f"/api/drawings/{key}/export/{name}", params={"token": TOKEN})
        assert answer.status_code == 409
    answer = client.get(f"/api/drawings/{key}/image.png", params={"token": TOKEN})
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(answer.content))), picture())


def test_samples_open(client):
    answer = client.get("/api/samples/coins", params={"token": TOKEN})
    assert max(Image.open(io.BytesIO(answer.content)).size) <= 200
    answer = client.post("/api/drawings", params={"token": TOKEN, "sample": "coins"})
    assert client.get(f"/api/drawings/{answer.json()['key']}", params={"token": TOKEN}).json() == {
        "name": "coins",
        "height": 303,
        "width": 384,
    }


@pytest.mark.parametrize(
    "steps",
    [
        [{"kind": "fly"}],
        [3],
        [{"kind": "take", "bias": "a"}],
        [{"kind": "take", "bias": 10**400, "weight": 1, "against": []}],
        [{"kind": "brush", "label": 0, "radius": 10**400, "points": [[1, 1]]}],
        [{"kind": "clear"}] * 10_001,
        [{"kind": "take", "bias": 0, "weight": float("inf"), "against": []}],
        [{"kind": "take", "bias": 1e308, "weight": 1, "against": []}] * 2,
        [{"kind": "take", "bias": -1.1e6, "weight": 1, "against": []}],
        [{"kind": "take", "bias": 0, "weight": 1e300, "against": []}],
        [{"kind": "take", "bias": float("nan"), "weight": 1, "against": []}],
        [
            {
                "kind": "take",
                "bias": 0,
                "weight": 1,
                "against": [{"shape": [9999, 9999], "labels": ""}],
            }
        ],
        [
            {
                "kind": "take",
                "bias": 0,
                "weight": 1,
                "against": [{"shape": [2, 2], "labels": "AAAA"}],
            }
        ],
    ],
)
def test_drawings_with_a_wrong_step_are_refused(steps):
    with pytest.raises(Refused, match="a step that is none"):
        drawing_from_json(as_json(steps=steps))


def as_json(**named):
    image = base64.b64encode(as_png(picture())).decode()
    given = {"format": "setwise drawing", "image": image, "smoothness": 5.0, "steps": []}
    return {**given, **named}


@pytest.mark.parametrize("version", [2, 10**400, 0, True, 1.0, "1", None])
def test_drawings_of_another_format_are_refused(version):
    with pytest.raises(Refused, match="format_version"):
        drawing_from_json(as_json(format_version=version))


def test_the_largest_numbers_of_a_drawing_still_have_a_finite_energy():
    steps = [stroke.as_json() for stroke in two_strokes((40, 56))]
    steps += [{"kind": "take", "bias": 1e6, "weight": 1e12, "against": []}] * 100
    drawing = drawing_from_json(as_json(steps=steps, smoothness=1000, format_version=1))
    assert np.isfinite(drawing.level().solve(drawing.state()).value)


@pytest.mark.parametrize("named", [{"smoothness": 10**400}, {"original": [float("inf"), 3]}])
def test_drawings_with_a_number_beyond_all_are_refused(named):
    with pytest.raises(Refused, match="lacks an image, a smoothness or its steps"):
        drawing_from_json(as_json(**named))


@pytest.mark.parametrize("original", [[-5, 100_000], [0, 10], [100_000, 100_000]])
def test_a_size_that_no_image_has_is_not_believed(original):
    drawing = drawing_from_json(as_json(original=original))
    assert drawing.original == drawing.shape


def test_steps_have_a_limit_on_their_memory():
    drawing = _drawing.Drawing(picture())
    drawing.count_in(MemoryBudget(100_000))
    while drawing.steps[-1:] == () or drawing.steps[-1].total < 50_000:
        drawing.add(line(len(drawing.steps) % 2, (0.0, 0.0), (90.0, 60.0)))
    kept = drawing.version, len(drawing.steps)
    whole = drawing.nbytes
    with pytest.raises(ValueError, match="must take at most"):
        drawing.add(line(1, (0.0, 0.0), key="another"))
    assert (drawing.version, len(drawing.steps)) == kept
    assert drawing.undo()
    assert drawing.nbytes == whole
    drawing.add(line(1, (1.0, 1.0)))


def test_strokes_that_would_take_long_are_refused(monkeypatch):
    monkeypatch.setattr(_strokes, "MOST_WORK", 10_000)
    drawing = _drawing.Drawing(picture())
    drawing.add(line(0, (1.0, 1.0), (9.0, 9.0), key="a"))
    with pytest.raises(ValueError, match="a stroke must be shorter"):
        drawing.add(line(0, *[(1.0, 1.0), (90.0, 90.0)] * 50, key="a"))
    assert (drawing.version, len(drawing.steps)) == (1, 1)


def test_a_socket_that_is_never_read_is_not_written_without_end(monkeypatch):
    framed, sizes = _http_app.framed, []

    def counted(message, buffers):
        sizes.append(sum(map(len, buffers)))
        return framed(message, buffers)

    monkeypatch.setattr(_http_app, "framed", counted)
    with served() as page, socket.socket() as never:
        entry = page.drawings.add(_drawing.Drawing(np.zeros((500, 500, 3), np.uint8)))
        never.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        never.connect(("127.0.0.1", page.port))
        asked = f"GET /api/drawings/{entry.key}/events?token={page.token} HTTP/1.1"
        key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
        host = f"Host: 127.0.0.1:{page.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        never.sendall(f"{asked}\r\n{host}{key}\r\n".encode())
        while not entry.watched:
            time.sleep(0.005)
        told = 0
        for turn in range(200):
            labels = np.full((500, 500), turn % 2, np.uint8)
            entry.emit(MaskAnswer(0, labels, 1, 0.0, 0.0, 0.0, True, True, 0.0))
            told += labels.size
            time.sleep(0.001)
        assert sum(sizes) < 0.5 * told
        assert len(sizes) < 100


# ---- serve


def test_serve_checks_what_it_is_given(tmp_path):
    text = tmp_path / "text.png"
    text.write_text("a text")
    with pytest.raises(ValueError, match="PNG, JPEG or TIFF"):
        sw.app.serve(text)
    with pytest.raises(ValueError, match="image must be a file"):
        sw.app.serve(tmp_path / "none.png")
    with pytest.raises(ValueError, match="port must be at most 65535"):
        sw.app.serve(port=65536)
    with pytest.raises(TypeError, match="open_browser must be True or False"):
        sw.app.serve(open_browser="no")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ValueError, match="port must be free"):
            sw.app.serve(port=taken.getsockname()[1], open_browser=False)


@contextmanager
def running(code, **named):
    """A page in a process of its own, and its port, token and connections."""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, **named
    ) as page:
        try:
            yield Running(page)
        finally:
            page.kill()


class Running:
    def __init__(self, page):
        self.page = page
        address, _, self.token = page.stdout.readline().strip().partition("/?token=")
        self.port = int(address.rpartition(":")[2])
        self.host = f"Host: 127.0.0.1:{self.port}\r\n"

    def said(self, request):
        """Sends bytes on a connection, which comes back with the first bytes of the answer."""
        line = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        line.sendall(request)
        return line, line.recv(100)

    def request(self, path, *, more="", method="GET"):
        mark = "&" if "?" in path else "?"
        return f"{method} {path}{mark}token={self.token} HTTP/1.1\r\n{self.host}{more}\r\n".encode(
            "latin-1"
        )


def test_the_token_is_in_no_command_line():
    code = (
        "import webbrowser; webbrowser.open = lambda address: print(address, flush=True)\n"
        "import setwise as sw; sw.app.serve()"
    )
    with running(code) as own:
        address = own.page.stdout.readline().strip()
        assert own.token
        assert own.token not in address
        path = address.partition(f":{own.port}")[2]
        line, answer = own.said(f"GET {path} HTTP/1.1\r\n{own.host}\r\n".encode())
        line.close()
        assert answer.startswith(b"HTTP/1.1 303")


UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
)


def test_nothing_that_a_client_sends_prints_a_traceback(tmp_path):
    code = (
        "import setwise as sw; from setwise.app import _http_server\n"
        "_http_server.PATIENCE = 1.0; sw.app.serve(open_browser=False)"
    )
    with open(tmp_path / "errors", "w") as errors, running(code, stderr=errors) as own:
        asked = own.request(
            "/api/drawings?sample=coins", more="Content-Length: 0\r\n", method="POST"
        )
        line, _ = own.said(asked)
        answer = b""
        while b"}" not in answer:
            answer += line.recv(1000)
        line.close()
        key = json.loads(answer[answer.index(b"{") :])["key"]
        events = f"/api/drawings/{key}/events"

        # sockets that are refused
        for request, status in (
            (f"GET {events} HTTP/1.1\r\n{own.host}{UPGRADE}\r\n".encode(), b"403"),
            (own.request(events, more="Origin: http://x\r\n" + UPGRADE), b"403"),
            (own.request(events, more=UPGRADE).replace(b"Host: ", b"Host: x"), b"421"),
            (own.request("/nowhere", more=UPGRADE), b"403"),
        ):
            line, answer = own.said(request)
            line.close()
            assert answer.startswith(b"HTTP/1.1 " + status)
        # bad UTF-8: in addresses, headers, bodies, and in messages that are whole or in parts
        for request in (
            own.request("/%ff"),
            own.request("/\xff"),
            own.request("/api/drawings/%ff?x=%ed%a0%80"),
            own.request("/").replace(b"token=", b"token=%ff"),
            own.request("/nowhere", more="Cookie: \xff\r\n"),
            own.request("/", more="Origin: \xff\r\n"),
            own.request("/%ff", more=UPGRADE),
            own.request("/api/drawings", more="Content-Length: 3\r\n", method="POST") + b"{\xff}",
        ):
            line, answer = own.said(request)
            line.close()
            assert answer.startswith(b"HTTP/1.1 4")
        for frames in (
            b"\x81\x82\0\0\0\0\xff\xfe",
            b"\x01\x81\0\0\0\0\xc3\x80\x81\0\0\0\0\xff",
        ):
            line, answer = own.said(own.request(events, more=UPGRADE))
            assert answer.startswith(b"HTTP/1.1 101")
            line.sendall(frames)
            answer = b""
            while part := line.recv(10_000):
                answer += part
            line.close()
            assert answer.endswith(b"\x88\x02" + (1007).to_bytes(2, "big"))
        # a client that goes away in the middle of a body, and half of a request
        half = own.request("/api/drawings", more="Content-Length: 9\r\n", method="POST") + b"ab"
        with socket.create_connection(("127.0.0.1", own.port)) as line:
            line.sendall(half)
        late = [b"", b"GET / HTTP/1.1\r\nHo", half]
        late += [own.request("/nowhere", more="Content-Length: 9\r\n") + b"ab"]
        held = [socket.create_connection(("127.0.0.1", own.port), timeout=60) for _ in late]
        for line, request in zip(held, late, strict=True):
            line.sendall(request)
        for line in held:
            with line, suppress(ConnectionResetError):
                while line.recv(10_000):
                    pass
        # a body that is under way at the end
        with socket.create_connection(("127.0.0.1", own.port)) as line:
            line.sendall(half)
            own.page.send_signal(signal.SIGINT)
            assert own.page.wait(60) == 0
    said = (tmp_path / "errors").read_text()
    assert "Traceback" not in said
    assert "ERROR" not in said


def test_one_ctrl_c_ends_a_long_export(tmp_path):
    code = (
        "import numpy as np, setwise as sw; from setwise.app import _exports\n"
        "def pieces(mask):\n"
        "    print('begun', flush=True)\n"
        "    while True: _exports._core.poll()\n"
        "_exports.pieces = pieces\n"
        "sw.app.serve(np.zeros((9, 9)), open_browser=False)"
    )
    a_line = line(1, (2.0, 2.0), (5.0, 5.0))
    with open(tmp_path / "errors", "w") as errors, running(code, stderr=errors) as own:
        page, answer = own.said(
            f"GET / HTTP/1.1\r\n{own.host}x-setwise-token: {own.token}\r\n\r\n".encode()
        )
        while b"data-first" not in answer or not answer.endswith(b"</html>\n"):
            answer += page.recv(10_000)
        page.close()
        key = re.search(rb'data-first="([^"]+)"', answer)[1].decode()
        events, _ = own.said(own.request(f"/api/drawings/{key}/events", more=UPGRADE))
        stroke = json.dumps({"type": "stroke", "stroke": a_line.as_json()}).encode()
        assert len(stroke) < 2**16
        size = len(stroke).to_bytes(2, "big")
        events.sendall(b"\x81\xfe" + size + bytes(4) + stroke)
        asked = own.request(f"/api/drawings/{key}/export/polygons.json")
        while True:
            with socket.create_connection(("127.0.0.1", own.port), timeout=60) as export:
                export.sendall(asked)
                if select.select([export, own.page.stdout], [], [])[0][0] is export:
                    assert export.recv(12) == b"HTTP/1.1 409"  # nothing is drawn yet
                    continue
                assert own.page.stdout.readline() == "begun\n"
                own.page.send_signal(signal.SIGINT)
                assert own.page.wait(60) == 0
                break
        events.close()
    assert "Traceback" not in (tmp_path / "errors").read_text()


@pytest.mark.parametrize(
    "code",
    [
        "import setwise as sw; sw.app.serve(open_browser=False)",
        # as in a notebook, whose cells run within a loop
        "import asyncio; import setwise as sw\n"
        "async def cell(): sw.app.serve(open_browser=False)\n"
        "asyncio.run(cell())",
    ],
    ids=["alone", "in a loop"],
)
def test_ctrl_c_ends_the_page_and_it_is_there_as_soon_as_its_address_is(code):
    with running(code) as own:
        line, answer = own.said(f"GET / HTTP/1.1\r\n{own.host}\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403")
        own.page.send_signal(signal.SIGINT)
        assert own.page.wait(60) == 0
        line.close()


# ---- what the event loop does


class Noted:
    """A lock that notes which threads take it."""

    def __init__(self, lock, threads):
        self._lock, self._threads = lock, threads

    def __enter__(self):
        self._threads.append(threading.get_ident())
        return self._lock.__enter__()

    def __exit__(self, *raised):
        return self._lock.__exit__(*raised)


def test_the_event_loop_parses_nothing_takes_no_lock_of_a_drawing_and_writes_no_history(
    monkeypatch,
):
    called = {}

    def note(owner, name):
        function = getattr(owner, name)

        def noted(*arguments, **named):
            called.setdefault(name, []).append(threading.get_ident())
            return function(*arguments, **named)

        monkeypatch.setattr(owner, name, noted)

    make, locks = _drawing.Drawing.__init__, []

    def made(drawing, *arguments, **named):
        make(drawing, *arguments, **named)
        drawing._lock = Noted(drawing._lock, locks)

    monkeypatch.setattr(_drawing.Drawing, "__init__", made)
    note(_http_app.json, "loads")
    note(_exports, "_value")
    note(_http_app, "framed")
    note(_http_app, "png")
    note(_decoding, "_three_channels")
    for name in ("begin", "receive", "messages"):
        note(_http_app.Session, name)
    body = json.dumps(as_json(steps=[line(1, (9.0, 9.0), (30.0, 20.0)).as_json()] * 50)).encode()
    with served() as page:
        asked = urllib.request.Request(
            f"http://127.0.0.1:{page.port}/api/drawings?token={page.token}", body, method="POST"
        )
        key = json.load(urllib.request.urlopen(asked))["key"]
        address = f"127.0.0.1:{page.port}/api/drawings/{key}"
        long = [(k % 40 + 0.5, k % 30 + 0.5) for k in range(5000)]
        with connect(f"ws://{address}/events?token={page.token}", max_size=None) as tab:
            sent = ("stroke", "undo", "redo", "clear", "nothing")
            for number, kind in enumerate(sent):
                stroke = line(0, *long).as_json()
                tab.send(json.dumps({"type": kind, "stroke": stroke, "n": number}))
            told = set()
            while not {"labels", "error"} <= told:
                told.add(message(tab.recv(30))[0]["type"])
        for name in ("image.png", "export/drawing.json"):
            with urllib.request.urlopen(f"http://{address}/{name}?token={page.token}") as got:
                assert got.read()
        loop = page._thread.ident
    assert set(called) == {
        *("loads", "_value", "framed", "png", "_three_channels", "begin", "receive", "messages")
    }
    for name, threads in called.items():
        assert loop not in threads, name
    assert locks
    assert loop not in locks


def test_a_mask_that_takes_too_long_or_too_much_is_not_exported(client, monkeypatch):
    key = opened(client, as_png(picture()))
    entry = client.app.state.drawings.get(key)
    entry.drawing.add(line(1, (20.0, 20.0)))
    path = f"/api/drawings/{key}/export/mask.png"
    for error, status in ((TimeoutError("it takes too long"), 503), (MemoryError("too much"), 413)):

        def solve(level, state, error=error):
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(ImageLevel, "solve", solve)
            answer = client.get(path, params={"token": TOKEN})
        assert (answer.status_code, answer.json()) == (status, {"error": str(error)})
    assert client.get(path, params={"token": TOKEN}).status_code == 200


def test_a_drawing_is_read_piece_by_piece_as_json_is(monkeypatch):
    rng = np.random.default_rng(5)
    steps = [random_stroke(rng, (40, 56)).as_json() for _ in range(30)]
    given = as_json(
        steps=[*steps, {"kind": "clear"}, {"no": "step"}], name='a "b" \\ é', extra=[1, {}]
    )
    for text in (
        json.dumps(given),
        json.dumps(given, indent=3),
        json.dumps(given, separators=(",", ":"), ensure_ascii=False),
        json.dumps(dict(reversed(given.items()))),
    ):
        read = _exports._members(text)
        assert [one.as_json() for one in read["steps"][:30]] == steps
        read["steps"][:30] = steps
        assert read == given
    assert _exports._members("{ } ") == {}
    assert _exports._members('{"steps": [ ]}') == {"steps": []}
    members = (
        '{"a"}',
        '{"a": 1,}',
        '{"a" 1}',
        '{"a": 1} 2',
        "{1: 2}",
        '{"a": 1 "b": 2}',
        '{,"a": 1}',
    )
    items = '{"steps": [1,]}', '{"steps": [{}', '{"steps": [{} {}]}', '{"steps": [,]}'
    for wrong in ("", "{", *members, *items):
        with pytest.raises(ValueError, match=r"."):
            json.loads(wrong)
        with pytest.raises(ValueError, match=r"."):
            _exports._members(wrong)
    monkeypatch.setattr(_exports, "MOST_STROKE_BYTES", 20_000)
    for long in ([0] * 9000, {"steps": [line(1, *[(1.5, 1.5)] * 3000).as_json()]}):
        with pytest.raises(ValueError, match="at most 20000 characters"):
            _exports._members(json.dumps(long if isinstance(long, dict) else {"a": long}))


# ---- pictures are decoded in blocks


def whole(data):
    """The picture as Pillow converts it at once."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    if image.mode.startswith(("I", "F")):
        numbers = np.asarray(image).astype(float)
        low, high = numbers.min(), numbers.max()
        if image.mode == "F" and low >= 0 and high <= 1:
            low, high = 0.0, 1.0
        scaled = np.rint((numbers - low) * (255.0 / (high - low))).astype(np.uint8)
        image = Image.fromarray(scaled)
    if image.mode in ("RGBA", "LA", "P"):
        ground = Image.new("RGBA", image.size, "white")
        ground.alpha_composite(image.convert("RGBA"))
        image = ground
    return image.convert("RGB")


def of_mode(rng, mode, size):
    grey = rng.integers(0, 256, size[::-1], np.uint8)
    if mode == "I;16":
        return Image.fromarray(grey.astype(np.uint16) * 200)
    if mode == "F":
        return Image.fromarray(grey.astype(np.float32) / rng.choice([1.0, 255.0]))
    image = Image.merge("RGB", [Image.fromarray(np.roll(grey, k)) for k in range(3)])
    if mode == "RGBA":
        image.putalpha(Image.fromarray(np.roll(grey, 7)))
    return image.convert(mode)


def without_ties(source, target):
    """The places where no pixel's centre is on a border: Pillow rounds those either way."""
    borders = 2 * np.arange(target + 1) * source % (2 * target) == target
    return ~(borders[:-1] | borders[1:])


@pytest.mark.parametrize("mode", ["L", "1", "P", "LA", "RGB", "RGBA", "I;16", "F"])
def test_a_picture_in_blocks_is_the_picture(mode, monkeypatch):
    monkeypatch.setattr(_decoding, "BLOCK_SIDE", 16)
    rng = np.random.default_rng(6)
    for turn in range(12):
        size = tuple(int(side) for side in rng.integers(1, 90, 2))
        image, out, exif = of_mode(rng, mode, size), io.BytesIO(), Image.Exif()
        if turn % 3 == 0 and mode != "F":
            exif[0x0112] = int(rng.integers(1, 9))
        image.save(out, "TIFF" if mode == "F" else "PNG", exif=exif)
        monkeypatch.setattr(_decoding, "WORKING_PIXELS", int(rng.choice([150, 10**6])))
        read, original = decode(out.getvalue())
        wanted = whole(out.getvalue())
        assert original == wanted.size[::-1]
        small = wanted.resize(read.shape[1::-1], Image.Resampling.BOX)
        sure = np.ix_(*map(without_ties, original, read.shape))
        assert np.abs(read.astype(int) - np.asarray(small))[sure].max(initial=0) <= 2
        if read.shape[:2] == original:
            np.testing.assert_array_equal(read, np.asarray(wanted))


@pytest.mark.parametrize("mode", ["1", "P", "RGBA", "I;16"])
def test_decoding_takes_little_beside_the_decoded_picture(mode, monkeypatch):
    converted = []
    convert, load = Image.Image.convert, _decoding._three_channels

    def counted(image, *arguments, **named):
        converted.append(image.width * image.height)
        return convert(image, *arguments, **named)

    def locked(image):
        assert _decoding._ONE_AT_A_TIME.locked()
        assert memory.used == _decoding.CODING_BYTES * 2000 * 3000
        return load(image)

    out = io.BytesIO()
    Image.new("RGB" if mode == "P" else mode, (3000, 2000)).convert(mode).save(out, "PNG")
    monkeypatch.setattr(_decoding, "WORKING_PIXELS", 10_000)
    monkeypatch.setattr(_decoding, "_three_channels", locked)
    monkeypatch.setattr(Image.Image, "convert", counted)
    memory = MemoryBudget(100 * 2**20)
    tracemalloc.start()
    try:
        decode(out.getvalue(), memory)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert max(converted) <= (_decoding.BLOCK_SIDE + 2) ** 2  # blocks may share a pixel
    assert peak < 16 * _decoding.BLOCK_SIDE**2 + 2**20  # of six million pixels
    assert memory.used == 0
    with pytest.raises(MemoryError):
        decode(out.getvalue(), MemoryBudget(10 * 2**20))


def test_a_body_is_counted_before_it_is_there():
    with TestClient(make_app(TOKEN, PORT, 3 * 2**20), base_url=HERE) as client:
        memory = client.app.state.drawings.memory
        parts = (bytes(2**18) for _ in range(20))
        answer = client.post("/api/drawings", params={"token": TOKEN}, content=parts)
        assert answer.status_code == 413
        assert "MiB" in answer.json()["error"]
        assert memory.most <= memory.limit
        assert memory.used == 0
        opened(client, as_png(picture()))
        with client.app.state.drawings._lock:
            (entry,) = client.app.state.drawings._entries.values()
        assert memory.used == entry.drawing.nbytes
