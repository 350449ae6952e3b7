"""A page that shows a widget as a notebook does: a model that sends messages and hands them out."""

from setwise.app._http_app import static

MODULE, STYLE = static("segment.js"), static("segment.css")
PAGE = """<!doctype html><html><head><link rel="stylesheet" href="segment.css">
<script type="module" src="host.js"></script></head><body><div id="cell"></div></body></html>"""
HOST = """
import widget from "./segment.js";
const listeners = new Set();
const model = {
  send: (message) => window.toPython(message),
  on: (name, call) => { if (name === "msg:custom") listeners.add(call); },
  off: (name, call) => listeners.delete(call),
};
window.deliver = (message, packed) => {
  const buffers = packed.map((text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new DataView(bytes.buffer);
  });
  for (const call of listeners) call(message, buffers);
};
window.leave = widget.render({ model, el: document.getElementById("cell") });
"""
