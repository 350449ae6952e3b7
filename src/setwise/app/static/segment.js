// The code of the page and of the notebook widget: a canvas to scribble on, and the certificate.
// `mount` needs a host: {send(message), image(): Promise<Blob>, exports?, open?}; a host calls
// the `receive(message, buffers)` that mount returns. This code is independent of the host.

const LABELS = 9;
const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#7a52c7", "#8a5a3c"];
const RGB = COLORS.map((c) => [1, 3, 5].map((k) => parseInt(c.slice(k, k + 2), 16)));
// Each label also has a pattern of 16 x 16 pixels, so that labels differ by more than colour.
const PATTERNS = [
  () => false,
  (x, y) => (x + y) % 8 < 2,
  (x, y) => x % 8 < 3 && y % 8 < 3,
  (x, y) => (x - y + 16) % 8 < 2,
  (x, y) => y % 8 < 2,
  (x, y) => x % 8 < 2,
  (x, y) => x % 8 < 1 || y % 8 < 1,
  (x, y) => ((x >> 2) + (y >> 2)) % 2 === 0,
  (x, y) => (y + Math.abs((x % 8) - 4)) % 8 < 2,
].map((inside) => Uint8Array.from({ length: 256 }, (_, k) => (inside(k & 15, k >> 4) ? 1 : 0)));
const EXPORTS = [
  ["mask.png", "PNG mask"], ["mask.npy", "NPY mask"], ["coco.json", "COCO RLE"],
  ["polygons.json", "Polygons"], ["alternatives.zip", "Alternatives"], ["drawing.json", "Drawing"],
];
const KEYS = [
  ["1–9", "label"], ["b e x", "brush, eraser, box"], ["[ ]", "brush size"], ["z y", "undo, redo"],
  ["arrows", "move the cursor"], ["space", "pen down and up"], ["+ − 0", "zoom, fit"],
  ["h j k l", "pan"], ["u", "uncertainty"], ["g", "inner and outer mask"], ["Alt 1–6", "take an alternative"],
];
const PREVIEW_WAIT = 150; // ms that a growing stroke waits for the mask of its last part

const little = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;
const pack = ([r, g, b], a) => (little ? (a << 24) | (b << 16) | (g << 8) | r : (r << 24) | (g << 16) | (b << 8) | a) >>> 0;
const shade = (c, t) => c.map((v) => Math.round(t > 0 ? v + (255 - v) * t : v * (1 + t)));
// Three colours per label: plain, in the pattern, and on the border.
const PAINT = Uint32Array.from(RGB.flatMap((c) => [pack(c, 165), pack(shade(c, 0.45), 215), pack(shade(c, -0.55), 255), 0]));
// A colour scale from transparent (certain) over violet to bright yellow (uncertain).
const ZONES = Uint32Array.from([[0, 0, 0, 0], [230, 159, 0, 150], [0, 114, 178, 150]], ([r, g, b, a]) => pack([r, g, b], a));
const HEAT = Uint32Array.from({ length: 256 }, (_, k) => {
  const t = k / 255;
  return pack([110 + 145 * Math.min(1, 2 * t), 20 + 220 * t * t, 140 * (1 - t)].map(Math.round), Math.round(225 * t ** 1.5));
});

function element(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name === "style") made.style.cssText = value; // the page's policy allows styles by script
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
const svg = (tag, given = {}) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(given)) made.setAttribute(name, value);
  return made;
};
const whole = (number) => Math.round(number).toLocaleString("en");

// Paint labels (h, w) with colour, pattern and border into a canvas of that size. A label covers
// `step` pixels per side. Only the changed box [top, left, height, width] and its border are painted.
function paintLabels(canvas, labels, height, width, step = 1, box = [0, 0, height, width]) {
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  // A pixel belongs to a border if the label to its right or below differs.
  const top = Math.max(0, box[0] - 1), left = Math.max(0, box[1] - 1), bottom = box[0] + box[2], right = box[1] + box[3];
  if (bottom <= top || right <= left) return;
  const context = canvas.getContext("2d", { willReadFrequently: false });
  const image = context.createImageData(right - left, bottom - top);
  const out = new Uint32Array(image.data.buffer);
  for (let y = top, at = 0; y < bottom; y++) {
    const row = ((y * step) & 15) << 4, last = y + 1 === height;
    for (let x = left, k = y * width + left; x < right; x++, k++, at++) {
      const label = labels[k];
      if (label >= LABELS) continue;
      const border = (x + 1 < width && labels[k + 1] !== label) || (!last && labels[k + width] !== label);
      out[at] = PAINT[4 * label + (border ? 2 : PATTERNS[label][row | ((x * step) & 15)])];
    }
  }
  context.putImageData(image, left, top);
}

// Turn a canvas into an image, because a browser copies every canvas for each frame.
function pictured(canvas, given) {
  const made = element("img", { alt: "", width: String(canvas.width), height: String(canvas.height), ...given });
  made.src = canvas.toDataURL();
  return made;
}

export function mount(root, host) {
  const state = {
    width: 0, height: 0, label: 1, tool: "brush", radius: 6, opacity: 0.6, version: -1, empty: true,
    zoom: 1, x: 0, y: 0, stroke: null, waiting: false, cursor: null, uncertain: false, guarantee: true, guaranteed: null, began: null, steps: [],
    alternatives: null, uncertainty: null, sent: 0, echoed: 0, labels: null, last: null, shown: "none",
    pending: [], drawn: new Map(), // strokes that are not among the steps yet; all strokes by key
  };
  const ui = build();
  root.classList.add("setwise");
  root.replaceChildren(ui.head, ui.tools, ui.stage, ui.strip, ui.start, ui.note);
  const fresh = new AbortController();
  const listening = { signal: fresh.signal };

  // ---- display

  function build() {
    const button = (words, key, click, more = {}) =>
      element("button", { type: "button", onclick: click, ...more }, words, ...(key ? [element("kbd", {}, key)] : []));
    const words = element("span", { class: "sw-words" }, "draw a stroke on what you want, and one beside it");
    const figures = element("span", { class: "sw-figures" });
    const statement = element("span", { class: "sw-statement" });
    const proof = element("div", { class: "sw-proof", role: "status", "aria-live": "polite" }, element("div", { class: "sw-line" }, words, figures), statement);
    const undo = button("Undo", "z", () => act({ type: "undo" }), { "aria-keyshortcuts": "z Control+z" });
    const redo = button("Redo", "y", () => act({ type: "redo" }), { "aria-keyshortcuts": "y Control+y" });
    const clear = button("Clear", "", () => act({ type: "clear" }));
    const another = button("Open…", "", () => { begin(); file.focus(); });
    another.hidden = !host.open;
    const head = element("header", { class: "sw-head" }, element("span", { class: "sw-name" }, "setwise"), proof, undo, redo, clear, another);

    const labels = Array.from({ length: LABELS }, (_, k) => {
      const painted = element("canvas");
      paintLabels(painted, new Uint8Array(26 * 20).fill(k), 20, 26);
      const swatch = pictured(painted, { class: "sw-swatch" });
      return element("button", { type: "button", role: "radio", "aria-checked": "false", "aria-label": `label ${k + 1}`, onclick: () => choose(k) }, swatch, `${k + 1}`);
    });
    const tools = Object.fromEntries([["brush", "Brush", "b"], ["erase", "Eraser", "e"], ["box", "Box", "x"]].map(
      ([name, said, key]) => [name, button(said, key, () => pick(name), { "aria-pressed": "false" })]));
    const slider = (said, name, given, change) => {
      const output = element("output");
      const input = element("input", { type: "range", name, ...given, oninput: () => change(+input.value) });
      return { box: element("label", { class: "sw-slider" }, element("span", {}, said), output, input), input, output };
    };
    const size = slider("Brush size", "size", { min: "1", max: "60" }, (v) => resize(v));
    const opacity = slider("Opacity", "opacity", { min: "0", max: "100" }, (v) => seeThrough(v / 100));
    const smooth = slider("Smoothness", "smoothness", { min: "0", max: "100", step: "1" }, (v) => { smooth.output.value = v; });
    smooth.input.addEventListener("change", () => act({ type: "smoothness", value: +smooth.input.value }));
    const uncertain = button("Uncertainty", "u", () => showUncertain(!state.uncertain), { "aria-pressed": "false" });
    const guarantee = button("Guarantee", "g", () => showGuarantee(!state.guarantee), { "aria-pressed": "true", hidden: true });
    const promise = element("p", { class: "sw-next", hidden: true });
    const next = element("ol", { class: "sw-next", hidden: true });
    const zoom = [button("−", "", () => zoomBy(0.8), { "aria-label": "zoom out" }), button("Fit", "0", () => fit()), button("+", "", () => zoomBy(1.25), { "aria-label": "zoom in" })];
    const exports = element("fieldset", {}, element("legend", {}, "Export"),
      element("div", { class: "sw-exports" }, ...EXPORTS.map(([name, said]) =>
        element("a", { class: "sw-button", href: "#", download: "", "data-export": name, onclick: (event) => save(event, name) }, said))));
    exports.hidden = !host.exports;
    const aside = element("aside", { class: "sw-tools", "aria-label": "tools" },
      element("fieldset", {}, element("legend", {}, "Label"), element("div", { class: "sw-labels", role: "radiogroup", "aria-label": "label" }, ...labels)),
      element("fieldset", {}, element("legend", {}, "Tool"), element("div", { class: "sw-row" }, ...Object.values(tools))),
      element("div", {}, size.box, opacity.box, smooth.box),
      element("fieldset", {}, element("legend", {}, "View"), element("div", { class: "sw-row" }, ...zoom), element("div", { class: "sw-row", style: "margin-top:5px" }, uncertain, guarantee), next, promise),
      exports,
      element("details", {}, element("summary", {}, "Keys"), element("div", { class: "sw-keys" }, ...KEYS.map(([k, said]) => element("span", {}, element("kbd", {}, k), ` ${said}`)))));

    const layers = Object.fromEntries(["picture", "mask", "look", "heat", "zones", "marks"].map((name) => [name, element("canvas", { class: `sw-${name}` })]));
    const paper = element("div", { class: "sw-paper" }, ...Object.values(layers));
    const over = svg("svg", { class: "sw-over", "aria-hidden": "true" });
    const regions = svg("g"), cursor = svg("g");
    over.append(regions, cursor);
    const tags = element("div", { "aria-hidden": "true" });
    const busy = element("div", { class: "sw-busy", hidden: true });
    const stage = element("main", { class: "sw-stage", tabindex: "0", role: "application", "aria-label": "picture: arrows move the cursor, space puts the pen down and up, digits choose the label" }, paper, over, tags, busy);
    const strip = element("section", { class: "sw-strip", "aria-label": "alternatives" });

    const file = element("input", { type: "file", accept: "image/png,image/jpeg,image/tiff,application/json", onchange: () => file.files[0] && bring(file.files[0]) });
    const samples = element("div", { class: "sw-samples" }, ...(host.samples || []).map((name) =>
      element("button", { type: "button", "data-sample": name, onclick: () => bring(name) }, element("img", { src: host.thumbnail(name), alt: "" }), name)));
    const start = element("section", { class: "sw-start", hidden: true }, element("div", {},
      element("h1", {}, "Scribble, prove, choose"),
      element("p", {}, "Draw a stroke on what you want and one beside it. The mask is proved to be the best for your strokes; its alternatives are below it."),
      element("label", { class: "sw-drop" }, file, element("strong", {}, "Open a picture"), element("br"), "PNG, JPEG, TIFF, or a drawing you have exported: choose, drop or paste it here"),
      element("div", { class: "sw-caption" }, "Or begin with a photograph"), samples));
    const note = element("div", { class: "sw-note", role: "alert", hidden: true });
    return { head, tools: aside, stage, strip, start, note, words, figures, statement, proof, undo, redo, clear, labels, pens: tools, size, opacity, smooth, uncertain, guarantee, promise, next, layers, paper, over, regions, cursor, tags, busy };
  }

  function say(message) {
    ui.note.replaceChildren(element("span", {}, message), element("button", { type: "button", "aria-label": "close", onclick: () => { ui.note.hidden = true; } }, "×"));
    ui.note.hidden = false;
  }
  // Show the precise statement of the proof in a second line, and in a tooltip if it is cut off.
  function prove(statement) {
    if (ui.statement.textContent === statement) return;
    ui.statement.textContent = ui.proof.title = statement;
  }
  function choose(label) {
    state.label = label;
    if (state.tool === "erase") pick("brush");
    ui.labels.forEach((b, k) => b.setAttribute("aria-checked", String(k === label)));
    ui.labels.forEach((b, k) => { b.tabIndex = k === label ? 0 : -1; });
    drawCursor();
  }
  function pick(tool) {
    state.tool = tool;
    for (const [name, b] of Object.entries(ui.pens)) b.setAttribute("aria-pressed", String(name === tool));
    drawCursor();
  }
  function resize(radius) {
    state.radius = Math.min(60, Math.max(1, radius));
    ui.size.input.value = state.radius;
    ui.size.output.value = `${state.radius} px`;
    drawCursor();
  }
  function seeThrough(share) {
    state.opacity = share;
    ui.opacity.input.value = Math.round(100 * share);
    ui.opacity.output.value = `${Math.round(100 * share)} %`;
    ui.layers.mask.style.opacity = ui.layers.look.style.opacity = share;
  }

  // ---- zoom and pan

  function place() {
    const { zoom, x, y, width, height } = state;
    ui.paper.style.width = `${width}px`;
    ui.paper.style.height = `${height}px`;
    ui.paper.style.transform = `translate(${x}px, ${y}px) scale(${zoom})`;
    ui.paper.dataset.near = String(zoom >= 2);
    drawRegions();
    drawCursor();
  }
  function fit() {
    const box = ui.stage.getBoundingClientRect();
    const room = 16;
    state.zoom = Math.max(0.02, Math.min((box.width - room) / state.width, (box.height - room) / state.height));
    state.x = (box.width - state.zoom * state.width) / 2;
    state.y = (box.height - state.zoom * state.height) / 2;
    place();
  }
  function zoomBy(factor, at) {
    const box = ui.stage.getBoundingClientRect();
    const [x, y] = at || [box.width / 2, box.height / 2];
    const zoom = Math.min(40, Math.max(0.02, state.zoom * factor));
    state.x = x - ((x - state.x) * zoom) / state.zoom;
    state.y = y - ((y - state.y) * zoom) / state.zoom;
    state.zoom = zoom;
    place();
  }
  const pan = (dx, dy) => { state.x += dx; state.y += dy; place(); };
  const inPicture = (event) => {
    const box = ui.stage.getBoundingClientRect();
    return [(event.clientX - box.left - state.x) / state.zoom, (event.clientY - box.top - state.y) / state.zoom];
  };
  const onStage = ([x, y]) => [state.x + state.zoom * x, state.y + state.zoom * y];

  // ---- strokes

  function pen(context, stroke) {
    context.globalCompositeOperation = stroke.kind === "erase" ? "destination-out" : "source-over";
    context.strokeStyle = context.fillStyle = COLORS[stroke.label];
    context.lineCap = context.lineJoin = "round";
  }
  function paintStroke(stroke, from = 0) {
    const context = ui.layers.marks.getContext("2d");
    pen(context, stroke);
    const points = stroke.points;
    if (stroke.kind === "box") {
      const [[x0, y0], [x1, y1]] = [points[0], points[points.length - 1]];
      context.lineWidth = Math.max(2, 2 / state.zoom);
      context.setLineDash([6 / state.zoom, 4 / state.zoom]);
      context.strokeRect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
      context.setLineDash([]);
      return;
    }
    context.lineWidth = 2 * stroke.radius;
    context.beginPath();
    context.moveTo(...points[Math.max(0, from - 1)]);
    for (const point of points.slice(from)) context.lineTo(...point);
    if (points.length === 1) context.lineTo(points[0][0] + 0.01, points[0][1]);
    context.stroke();
    if (stroke.kind !== "erase") number(context, stroke);
  }
  // Draw the number of the label where the stroke began, so that strokes differ by more than colour.
  function number(context, stroke) {
    const size = Math.max(9, Math.min(2 * stroke.radius, 22));
    const [x, y] = stroke.points[0];
    context.font = `700 ${size}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineWidth = size / 6;
    context.strokeStyle = "#000";
    context.fillStyle = "#fff";
    context.strokeText(`${stroke.label + 1}`, x, y);
    context.fillText(`${stroke.label + 1}`, x, y);
  }
  function repaintMarks() {
    const canvas = ui.layers.marks;
    canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
    for (const stroke of [...state.steps, ...state.pending]) paintStep(stroke);
  }
  function paintStep(step) {
    const canvas = ui.layers.marks;
    if (step.kind === "clear") canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
    else if (step.kind !== "take") paintStroke(step);
  }
  let strokes = 0;
  const session = Math.random().toString(36).slice(2, 8);
  function penDown(point) {
    state.stroke = { kind: state.tool, label: state.label, radius: state.radius, points: [point], key: `${session}-${strokes++}` };
    state.drawn.set(state.stroke.key, state.stroke);
    if (state.tool !== "box") paintStroke(state.stroke);
  }
  function penMove(points) {
    const stroke = state.stroke, from = stroke.points.length;
    if (stroke.kind === "box") {
      stroke.points = [stroke.points[0], points[points.length - 1]];
      repaintMarks();
      paintStroke(stroke);
      return;
    }
    for (const point of points) {
      const [x, y] = stroke.points[stroke.points.length - 1];
      if (Math.hypot(point[0] - x, point[1] - y) >= 0.5) stroke.points.push(point);
    }
    if (stroke.points.length > from) {
      paintStroke(stroke, from);
      if (!state.waiting) sendStroke();
    }
  }
  function penUp() {
    const stroke = state.stroke;
    state.stroke = null;
    if (!stroke) return;
    if (stroke.kind === "box" && stroke.points.length < 2) { repaintMarks(); return; }
    sendStroke(stroke, true);
    state.pending.push(stroke);
  }
  function sendStroke(stroke = state.stroke, last = false) {
    state.began = last ? performance.now() : null;
    state.waiting = true;
    clearTimeout(state.timer);
    state.timer = setTimeout(() => { state.waiting = false; }, PREVIEW_WAIT);
    tell({ type: "stroke", stroke, live: !last });
  }
  // Every change has a number, which the core returns with the new version.
  function tell(message) {
    root.dataset.mask = "waiting";
    host.send({ ...message, n: ++state.sent });
  }
  function act(message) {
    penUp();
    state.began = performance.now();
    tell(message);
  }

  // ---- mouse, finger, pen

  let held = null;
  ui.stage.addEventListener("pointerdown", (event) => {
    if (!state.width || state.stroke) return;
    ui.stage.focus({ preventScroll: true });
    ui.stage.setPointerCapture(event.pointerId);
    if (event.button === 1 || event.shiftKey) { held = [event.clientX, event.clientY]; ui.stage.dataset.pan = "true"; }
    else if (event.button === 0) penDown(inPicture(event));
    event.preventDefault();
  });
  ui.stage.addEventListener("pointermove", (event) => {
    if (held) {
      pan(event.clientX - held[0], event.clientY - held[1]);
      held = [event.clientX, event.clientY];
    } else if (state.stroke) {
      const all = event.getCoalescedEvents?.() || [];
      penMove((all.length ? all : [event]).map(inPicture));
    }
    state.cursor = inPicture(event);
    drawCursor();
  });
  for (const name of ["pointerup", "pointercancel"]) {
    ui.stage.addEventListener(name, () => {
      if (held) { held = null; ui.stage.dataset.pan = "false"; } else penUp();
    });
  }
  ui.stage.addEventListener("pointerleave", () => { if (!state.stroke) { state.cursor = null; drawCursor(); } });
  ui.stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = ui.stage.getBoundingClientRect();
    zoomBy(Math.exp(-event.deltaY / 500), [event.clientX - box.left, event.clientY - box.top]);
  }, { passive: false });

  // ---- keys

  root.addEventListener("keydown", (event) => {
    const plain = event.target.closest?.("input:not([type=range]), textarea, select");
    if (event.key === "Escape" && state.width && !ui.start.hidden) { arrive(); return; }
    if (plain || ui.start.contains(event.target)) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const on = ui.stage === event.target || root === event.target;
    const strong = event.ctrlKey || event.metaKey;
    const done = () => { event.preventDefault(); event.stopPropagation(); };
    if (event.altKey && /^Digit[1-6]$/.test(event.code)) { take(+event.code.slice(5) - 1); return done(); }
    if (strong && key === "z") { act({ type: event.shiftKey ? "redo" : "undo" }); return done(); }
    if (strong && key === "y") { act({ type: "redo" }); return done(); }
    if (strong || event.altKey) return;
    if (/^[1-9]$/.test(key)) choose(+key - 1);
    else if (key === "z") act({ type: "undo" });
    else if (key === "y") act({ type: "redo" });
    else if (key === "b") pick("brush");
    else if (key === "e") pick("erase");
    else if (key === "x") pick("box");
    else if (key === "u") showUncertain(!state.uncertain);
    else if (key === "g" && !ui.guarantee.hidden) showGuarantee(!state.guarantee);
    else if (key === "[") resize(state.radius - 1);
    else if (key === "]") resize(state.radius + 1);
    else if (key === "+" || key === "=") zoomBy(1.25);
    else if (key === "-") zoomBy(0.8);
    else if (key === "0") fit();
    else if ("hjkl".includes(key) && key.length === 1) pan(...{ h: [40, 0], l: [-40, 0], k: [0, 40], j: [0, -40] }[key]);
    else if (on && key.startsWith("Arrow")) step(key, event.shiftKey);
    else if (on && (key === " " || key === "Enter")) penKey();
    else if (key === "Escape" && state.stroke) { state.stroke = null; repaintMarks(); }
    else return;
    done();
  });
  function step(key, far) {
    const by = (far ? 20 : 4) / Math.min(1, state.zoom);
    const [dx, dy] = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, -by], ArrowDown: [0, by] }[key];
    const [x, y] = state.cursor || [state.width / 2, state.height / 2];
    state.cursor = [Math.min(state.width - 0.5, Math.max(0.5, x + dx)), Math.min(state.height - 0.5, Math.max(0.5, y + dy))];
    if (state.stroke) penMove([state.cursor]);
    drawCursor();
  }
  function penKey() {
    if (!state.width) return;
    state.cursor ||= [state.width / 2, state.height / 2];
    if (state.stroke) penUp(); else penDown(state.cursor);
    drawCursor();
  }
  function drawCursor() {
    ui.cursor.replaceChildren();
    if (!state.cursor || !state.width) return;
    const [x, y] = onStage(state.cursor), r = Math.max(3, state.radius * state.zoom);
    const look = { class: "sw-cursor", fill: state.stroke ? COLORS[state.label] : "none", "fill-opacity": "0.35" };
    if (state.tool === "box") ui.cursor.append(svg("path", { ...look, d: `M${x - 9} ${y}H${x + 9}M${x} ${y - 9}V${y + 9}` }));
    else ui.cursor.append(svg("circle", { ...look, cx: x, cy: y, r, ...(state.tool === "erase" ? { "stroke-dasharray": "4 3" } : {}) }));
  }

  // ---- alternatives and uncertainty

  function take(number) {
    const listed = state.alternatives;
    if (listed && number > 0 && number < listed.items.length && listed.version === state.version) act({ type: "take", number });
  }
  function showAlternatives(again = false) {
    const listed = state.alternatives;
    ui.strip.dataset.stale = String(Boolean(listed) && listed.version !== state.version);
    if (listed === state.listed && !again) return;
    state.listed = listed;
    if (!listed) {
      ui.strip.replaceChildren(...Array.from({ length: 6 }, (_, k) =>
        element("div", { class: "sw-empty" }, k ? "" : "alternatives come here")));
      return;
    }
    ui.strip.replaceChildren(...listed.items.map((item, k) => {
      const canvas = element("canvas");
      canvas.width = listed.width;
      canvas.height = listed.height;
      const context = canvas.getContext("2d");
      context.drawImage(ui.layers.picture, 0, 0, listed.width, listed.height);
      const mask = document.createElement("canvas");
      paintLabels(mask, item.labels, listed.height, listed.width);
      context.globalAlpha = 0.75;
      context.drawImage(mask, 0, 0);
      const energy = k ? `+${whole(item.above)}` : whole(item.energy);
      const small = listed.done && listed.factor > 1 ? `; all listed at 1/${listed.factor} of its size` : "";
      const what = k ? `${(100 * item.differs).toFixed(1)} %: ${item.words}` : `the mask above${small}`;
      return element("button", { type: "button", "data-alternative": String(k), title: what, "aria-label": k ? `alternative ${k + 1}, energy ${energy}, differs in ${what}` : "the best mask", onclick: () => take(k) },
        pictured(canvas), element("span", { class: "sw-number" }, `${k + 1}`), element("span", { class: "sw-energy" }, `energy ${energy}`), element("span", { class: "sw-what" }, what));
    }));
  }
  function showUncertain(on) {
    state.uncertain = on;
    ui.uncertain.setAttribute("aria-pressed", String(on));
    host.send({ type: "want", what: "uncertainty", on });
    drawUncertainty();
  }
  function drawUncertainty() {
    const shown = state.uncertain && state.uncertainty && state.uncertainty.version === state.version;
    ui.layers.heat.hidden = ui.next.hidden = !shown;
    if (shown) ui.next.replaceChildren(...state.uncertainty.regions.map((region) => element("li", {}, `${region.words} (${Math.round(100 * region.entropy)} %)`)));
    drawRegions();
  }
  function drawRegions() {
    ui.regions.replaceChildren();
    ui.tags.replaceChildren();
    if (!(state.uncertain && state.uncertainty && state.uncertainty.version === state.version)) return;
    ui.regions.setAttribute("transform", `translate(${state.x} ${state.y}) scale(${state.zoom})`);
    state.uncertainty.regions.forEach((region, k) => {
      const d = region.rings.map((ring) => `M${ring.map((p) => p.join(" ")).join("L")}Z`).join("");
      ui.regions.append(svg("path", { class: "sw-region-under", d }), svg("path", { class: "sw-region", d }));
      const points = region.rings[0], top = points.reduce((a, b) => (b[1] < a[1] ? b : a));
      const [x, y] = onStage(top);
      ui.tags.append(element("div", { class: "sw-tag", style: `left:${x}px;top:${Math.max(16, y - 4)}px` }, k ? `${k + 1}` : "1: draw here next"));
    });
  }
  function showGuarantee(on) {
    state.guarantee = on;
    ui.guarantee.setAttribute("aria-pressed", String(on));
    drawGuarantee();
  }
  // Blue is the inner mask, orange the band between it and the outer one.
  function drawGuarantee() {
    const shown = state.guarantee && state.guaranteed && state.guaranteed.version === state.version;
    ui.layers.zones.hidden = ui.promise.hidden = !shown;
    if (state.guaranteed) ui.guarantee.hidden = false;
  }
  function paintHeat(heat, height, width) {
    const canvas = ui.layers.heat;
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d"), image = context.createImageData(width, height);
    const out = new Uint32Array(image.data.buffer);
    for (let k = 0; k < heat.length; k++) out[k] = HEAT[heat[k]];
    context.putImageData(image, 0, 0);
  }

  // ---- messages from the core

  function receive(message, buffers) {
    const act = told[message.type];
    if (act) act(message, buffers);
  }
  const told = {
    async drawing(message, buffers) {
      Object.assign(state, { width: message.width, height: message.height, version: -1, steps: [], pending: [], drawn: new Map(), alternatives: null, uncertainty: null, guaranteed: null, stroke: null, sent: 0, echoed: 0, labels: null, last: null });
      for (const canvas of Object.values(ui.layers)) { canvas.width = message.width; canvas.height = message.height; }
      arrive();
      root.dataset.ready = "false";
      showAlternatives();
      drawUncertainty();
      drawGuarantee();
      fit();
      ui.smooth.input.value = ui.smooth.output.value = message.smoothness;
      const picture = await createImageBitmap(await host.image(message, buffers));
      ui.layers.picture.getContext("2d").drawImage(picture, 0, 0);
      showAlternatives(true);
      root.dataset.ready = "true";
      if (state.uncertain) host.send({ type: "want", what: "uncertainty", on: true });
    },
    history(message) {
      if (root.dataset.version !== String(message.version)) root.dataset.mask = "waiting";
      if (message.echo !== null) state.echoed = message.echo;
      state.version = message.version;
      if (state.alternatives?.version !== message.version) delete root.dataset.alternatives;
      state.empty = message.empty;
      const focused = document.activeElement;
      ui.undo.disabled = !message.undo;
      ui.redo.disabled = !message.redo;
      ui.clear.disabled = message.empty;
      // A disabled button loses the focus, and keys would no longer work.
      if (focused?.disabled && ui.head.contains(focused)) ui.stage.focus({ preventScroll: true });
      ui.smooth.input.value = ui.smooth.output.value = message.smoothness;
      changeSteps(message.keep, message.steps);
      if (message.empty) {
        ui.layers.mask.getContext("2d").clearRect(0, 0, ui.layers.mask.width, ui.layers.mask.height);
        ui.layers.look.hidden = true;
        ui.words.textContent = "draw a stroke on what you want, and one beside it";
        ui.figures.textContent = "";
        prove("");
        state.alternatives = null;
        root.dataset.version = String(message.version);
      }
      settle();
      // If the stroke did not grow any more, its mask is already shown.
      if (message.echo !== null && !message.empty && root.dataset.mask !== "waiting" && state.last?.version === message.version) painted(state.last);
      showAlternatives();
      drawUncertainty();
      drawGuarantee();
    },
    labels(message, [bytes]) {
      state.waiting = false;
      // A preview has its own canvas, which is stretched instead of repainted.
      const { mask, look } = ui.layers, small = message.factor > 1;
      if (small) {
        paintLabels(look, bytes, message.height, message.width, message.factor);
        look.style.width = `${(100 * message.factor * message.width) / state.width}%`;
        look.style.height = `${(100 * message.factor * message.height) / state.height}%`;
      }
      else paintLabels(mask, patched(bytes, message), message.height, message.width, 1, message.box);
      look.hidden = !small;
      mask.hidden = small;
      ui.words.textContent = message.words;
      prove(message.statement);
      const spent = `${Math.max(1, Math.round(message.milliseconds))} ms`;
      if (small) state.looked = { version: message.version, spent };
      const looked = state.looked?.version === message.version && !small;
      ui.figures.textContent = (looked ? `${state.looked.spent}, proved in ${spent}` : spent) + (message.energy === null ? "" : ` · energy ${whole(message.energy)}`);
      root.dataset.version = String(message.version);
      state.shown = small ? "reduced" : message.final ? "final" : "full";
      settle();
      state.last = message;
      painted(message);
    },
    alternatives(message, buffers) {
      if (message.version < state.version) return;
      message.items.forEach((item, k) => { item.labels = buffers[k]; });
      state.alternatives = message;
      root.dataset.alternatives = message.done ? "done" : "reduced";
      ui.busy.hidden = true;
      showAlternatives();
    },
    uncertainty(message, [heat]) {
      if (message.version < state.version) return;
      state.uncertainty = message;
      paintHeat(heat, message.height, message.width);
      root.dataset.uncertainty = String(message.version);
      ui.busy.hidden = true;
      drawUncertainty();
    },
    guaranteed(message, [zones]) {
      if (message.version < state.version) return;
      state.guaranteed = message;
      const canvas = ui.layers.zones;
      canvas.width = message.width;
      canvas.height = message.height;
      const context = canvas.getContext("2d"), image = context.createImageData(message.width, message.height);
      new Uint32Array(image.data.buffer).set(Uint32Array.from(zones, (zone) => ZONES[zone]));
      context.putImageData(image, 0, 0);
      ui.promise.textContent = message.words;
      root.dataset.guaranteed = String(message.version);
      drawGuarantee();
    },
    working(message) {
      ui.busy.hidden = message.share >= 1;
      ui.busy.replaceChildren(`${message.what} `, element("progress", { max: "1", value: String(message.share), "aria-label": message.what }));
    },
    error(message) { state.waiting = false; state.echoed = state.sent; settle(); say(message.words); },
  };
  // Keep the first steps and append the others. For a stroke of this page only its key is sent.
  function changeSteps(keep, told) {
    const steps = told.map((step) => (step.kind ? step : state.drawn.get(step.key) || { kind: "take" }));
    const gone = state.steps.splice(keep);
    for (const step of steps) state.steps.push(step);
    if (state.sent === state.echoed) state.pending = [];
    else state.pending = state.pending.filter((stroke) => !steps.includes(stroke));
    if (gone.some((step, k) => step !== steps[k])) {
      repaintMarks();
      if (state.stroke && state.stroke.kind !== "box") paintStroke(state.stroke);
    } else for (const step of steps.slice(gone.length)) paintStep(step);
  }
  // Return the labels of the whole picture, after applying the changed box of a message.
  function patched(bytes, { height, width, box: [top, left, tall, wide] }) {
    if (tall === height && wide === width) return (state.labels = bytes);
    for (let y = 0; y < tall; y++) state.labels.set(bytes.subarray(y * wide, (y + 1) * wide), (top + y) * width + left);
    return state.labels;
  }
  // Set the state of the mask in the document, once all sent changes have been confirmed.
  function settle() {
    if (state.sent === state.echoed && root.dataset.version === String(state.version)) root.dataset.mask = state.empty ? "none" : state.shown;
  }
  // After the next frame, report how long the stroke has waited for its mask.
  function painted(message) {
    const began = state.sent === state.echoed ? state.began : null;
    requestAnimationFrame(() => {
      const port = new MessageChannel();
      port.port1.onmessage = () => root.dispatchEvent(new CustomEvent("setwise:painted", {
        detail: { version: message.version, factor: message.factor, final: message.final, waited: began === null ? null : performance.now() - began, computed: message.milliseconds },
      }));
      port.port2.postMessage(0);
    });
  }

  // ---- opening and saving

  function begin() { ui.start.hidden = false; }
  // Move the focus from the start page, which disappears, to the picture.
  function arrive() {
    if (ui.start.hidden) return;
    ui.start.hidden = true;
    ui.stage.focus({ preventScroll: true });
  }
  async function bring(what) {
    ui.note.hidden = true;
    root.dataset.ready = root.dataset.mask = "false";
    try { await host.open(what); } catch (error) { say(error.message); }
  }
  async function save(event, name) {
    event.preventDefault();
    try {
      const { blob, called } = await host.exports(name);
      const link = element("a", { href: URL.createObjectURL(blob), download: called });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    } catch (error) { say(error.message); }
  }
  if (host.open) {
    root.addEventListener("dragover", (event) => { event.preventDefault(); root.dataset.over = "true"; });
    root.addEventListener("dragleave", () => { root.dataset.over = "false"; });
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      root.dataset.over = "false";
      if (event.dataTransfer.files[0]) bring(event.dataTransfer.files[0]);
    });
    document.addEventListener("paste", (event) => {
      const file = [...event.clipboardData.files][0];
      if (file) { event.preventDefault(); bring(file); }
    }, listening);
  }
  new ResizeObserver(() => { if (state.width) fit(); }).observe(ui.stage);

  choose(1);
  pick("brush");
  resize(6);
  seeThrough(0.6);
  showAlternatives(true);
  for (const b of [ui.undo, ui.redo, ui.clear]) b.disabled = true;
  return { receive, say, begin, close: () => fresh.abort() };
}

// ---- the page

function split(data) {
  const length = new DataView(data).getUint32(0, true);
  const message = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  let at = 4 + length;
  const buffers = message.buffers.map((size) => { const part = new Uint8Array(data, at, size); at += size; return part; });
  return [message, buffers];
}

function page(root) {
  const { samples, first } = root.dataset;
  let socket = null, key = null, view = null;
  async function asked(path, options) {
    let answer;
    try { answer = await fetch(path, options); } catch { throw new Error("the program behind this page has ended: start it again and open the new address"); }
    if (answer.ok) return answer;
    const told = await answer.json().catch(() => ({}));
    throw new Error(told.error || `the answer was ${answer.status}`);
  }
  function connect(to) {
    socket?.close();
    key = to;
    history.replaceState(null, "", `#${key}`);
    const mine = new WebSocket(`ws://${location.host}/api/drawings/${key}/events`);
    socket = mine;
    mine.binaryType = "arraybuffer";
    mine.onmessage = (event) => { if (socket === mine) view.receive(...split(event.data)); };
    mine.onopen = () => { root.dataset.connection = "open"; };
    mine.onclose = (event) => {
      if (socket !== mine) return;
      root.dataset.connection = "closed";
      if (event.code === 4404) { key = null; history.replaceState(null, "", location.pathname); view.begin(); view.say("that drawing is not there any more: open a picture"); }
      else view.say("the program behind this page has ended: start it again and open the new address");
    };
  }
  const host = {
    samples: samples.split(","),
    thumbnail: (name) => `api/samples/${name}`,
    send(message) { if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message)); },
    image: async () => (await asked(`api/drawings/${key}/image.png`)).blob(),
    async open(what) {
      const path = typeof what === "string" ? `api/drawings?sample=${what}` : `api/drawings?name=${encodeURIComponent(what.name || "image")}`;
      const answer = await asked(path, { method: "POST", body: typeof what === "string" ? null : what });
      connect((await answer.json()).key);
    },
    async exports(name) {
      const answer = await asked(`api/drawings/${key}/export/${name}`);
      const called = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") || "");
      return { blob: await answer.blob(), called: called ? called[1] : name };
    },
  };
  view = mount(root, host);
  const before = location.hash.slice(1) || first;
  if (before) connect(before); else view.begin();
}

// ---- the widget of a notebook (anywidget)

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "setwise-widget";
  el.append(root);
  const view = mount(root, {
    send: (message) => model.send(message),
    image: async (message, buffers) => new Blob([buffers[0]], { type: "image/png" }),
  });
  const listen = (message, buffers) => view.receive(message, (buffers || []).map((b) => (b instanceof DataView ? new Uint8Array(b.buffer, b.byteOffset, b.byteLength) : new Uint8Array(b))));
  model.on("msg:custom", listen);
  model.send({ type: "begin" });
  return () => { model.off("msg:custom", listen); view.close(); };
}

export default { render };

const own = document.getElementById("setwise-page");
if (own) page(own);
