"""The page over HTTP: who gets in, what is refused, what comes out."""

import base64
import io
import json
import signal
import socket
import struct
import subprocess
import sys
import time
import zipfile
import zlib

import numpy as np
import pytest
from browser import served
from drawings import line, picture, two_strokes
from page_client import TestClient
from PIL import Image, ImageDraw
from starlette.websockets import WebSocketDisconnect

import setwise as sw
from setwise.app import _decoding, _drawing, _drawing_strokes, _server
from setwise.app._decoding import Refused, as_picture, decode, working_picture
from setwise.app._drawing_answers import Answer
from setwise.app._exports import coco, drawing_from_json, polygons, run_lengths
from setwise.app._outlines import outlines
from setwise.app._server import make_app

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
    assert client.get(path).status_code == 403
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
    monkeypatch.setattr("setwise.app._server.MOST_BYTES", 1000)

    parts = (bytes(400) for _ in range(10))  # sent in chunks, without a length
    answer = client.post("/api/drawings", params={"token": TOKEN}, content=parts)
    assert answer.status_code == 413


def test_no_path_of_the_client_is_opened(client):
    for path in (
        "/api/samples/..%2f..%2fetc%2fpasswd",
        "/api/samples/__init__",
        "/static/../_server.py",
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
    assert header["words"] == "no labelling is better"
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
    pieces = [f["geometry"]["coordinates"] for f in polygons(ring)["features"]]
    assert [sorted(len(piece) for piece in label) for label in pieces] == [[1, 2], [2]]


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
        assert len(header["steps"]) == 3
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


@pytest.mark.parametrize("named", [{"smoothness": 10**400}, {"original": [float("inf"), 3]}])
def test_drawings_with_a_number_beyond_all_are_refused(named):
    with pytest.raises(Refused, match="lacks an image, a smoothness or its steps"):
        drawing_from_json(as_json(**named))


@pytest.mark.parametrize("original", [[-5, 100_000], [0, 10], [100_000, 100_000]])
def test_a_size_that_no_image_has_is_not_believed(original):
    drawing = drawing_from_json(as_json(original=original))
    assert drawing.original == drawing.shape


def test_steps_have_a_limit_on_their_memory(monkeypatch):
    monkeypatch.setattr(_drawing, "MOST_STEP_BYTES", 20_000)
    drawing = _drawing.Drawing(picture())
    while drawing.steps[-1:] == () or drawing.steps[-1].total < 20_000:
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
    monkeypatch.setattr(_drawing_strokes, "MOST_WORK", 10_000)
    drawing = _drawing.Drawing(picture())
    drawing.add(line(0, (1.0, 1.0), (9.0, 9.0), key="a"))
    with pytest.raises(ValueError, match="a stroke must be shorter"):
        drawing.add(line(0, *[(1.0, 1.0), (90.0, 90.0)] * 50, key="a"))
    assert (drawing.version, len(drawing.steps)) == (1, 1)


def test_a_socket_that_is_never_read_is_not_written_without_end(monkeypatch):
    framed, sizes = _server.framed, []

    def counted(message, buffers):
        sizes.append(sum(map(len, buffers)))
        return framed(message, buffers)

    monkeypatch.setattr(_server, "framed", counted)
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
            entry.tell(Answer(0, labels, 1, 0.0, 0.0, 0.0, True, True, 0.0))
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
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as page:
        try:
            address = page.stdout.readline()
            port = int(address.split("/?")[0].rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
                line.settimeout(60)
                line.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
                assert line.recv(100).startswith(b"HTTP/1.1 403")
                page.send_signal(signal.SIGINT)
                assert page.wait(60) == 0
        finally:
            page.kill()
