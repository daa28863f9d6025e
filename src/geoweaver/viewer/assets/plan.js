"use strict";
// The path from above (SVG) and the view graph as a matrix (canvas).
GW.plan = (() => {
  const { frames, edges, data, element, byId, style } = GW;
  const host = byId("plan"), MARGIN = 28;
  const on = (id) => { const box = byId(id); return box ? box.checked : false; };
  const pairs = (text) => (text ? GW.unpack(text, Float32Array) : null);
  const stages = data.stages.map((s) => ({ name: s.name, xy: pairs(s.xy) })), reference = pairs(data.reference);
  let place = null, dot = null;

  function bounds() {
    const xs = [], ys = [];
    for (let i = 0; i < frames.count; i++) { xs.push(frames.centre[3 * i]); ys.push(frames.centre[3 * i + 1]); }
    if (reference) for (let i = 0; i < reference.length; i += 2) { xs.push(reference[i]); ys.push(reference[i + 1]); }
    const min = (a) => a.reduce((p, q) => Math.min(p, q), Infinity), max = (a) => a.reduce((p, q) => Math.max(p, q), -Infinity);
    return [min(xs), max(xs), min(ys), max(ys)];
  }

  function draw() {
    const width = Math.max(host.clientWidth, 240), [x0, x1, y0, y1] = bounds();
    const span = Math.max(x1 - x0, y1 - y0, 1e-12);
    const height = Math.round(Math.min(Math.max((y1 - y0) / (x1 - x0 || span) * width, 220), Math.min(Math.max(0.62 * width, 300), 600)));
    const zoom = Math.min((width - 2 * MARGIN) / Math.max(x1 - x0, span * 1e-3), (height - 2 * MARGIN) / Math.max(y1 - y0, span * 1e-3));
    place = (x, y) => [width / 2 + (x - (x0 + x1) / 2) * zoom, height / 2 - (y - (y0 + y1) / 2) * zoom];
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" });
    if (on("plan-stages")) stages.forEach((s, k) => svg.append(line(s.xy, `var(--${["vermilion", "orange"][k % 2]})`, k ? "2 3" : "6 3", 1.5)));
    if (reference && on("plan-reference")) svg.append(line(reference, "var(--grey)", "none", 6, 0.45));
    svg.append(loops(false), loops(true), way());
    if (on("plan-borders")) svg.append(borders());
    dot = element("circle", { r: 7, fill: "none", stroke: "var(--ink)", "stroke-width": 2.5, visibility: "hidden" });
    svg.append(ends(), dot);
    host.replaceChildren(svg, element("div", { class: "tip" }));
    listen(svg, width);
    mark(GW.picked());
    describe();
  }

  function line(xy, colour, dash, thick, opacity = 0.9) {
    let path = "";
    for (let i = 0; i < xy.length; i += 2) { const [x, y] = place(xy[i], xy[i + 1]); path += (i ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1); }
    return element("path", { d: path, fill: "none", stroke: colour, "stroke-width": thick, "stroke-dasharray": dash, opacity, "stroke-linejoin": "round" });
  }

  const spot = (f) => place(frames.centre[3 * f], frames.centre[3 * f + 1]);

  // runs of equal verdict, each one path
  function way() {
    const group = element("g");
    let path = "", begun = 0;
    const flush = (trusted) => { if (path) group.append(element("path", { d: path, fill: "none", stroke: trusted ? "var(--blue)" : "var(--vermilion)", "stroke-width": trusted ? 3 : 4.5, "stroke-linecap": "round", "stroke-linejoin": "round" })); };
    // frames between keyframes are interpolated: they take the verdict of the keyframe before them
    const good = new Uint8Array(frames.count);
    for (let f = 0, last = 1; f < frames.count; f++) { if (frames.keyframe[f]) last = frames.trusted[f]; good[f] = frames.keyframe[f] ? frames.trusted[f] : last; }
    for (let f = 0; f < frames.count; f++) {
      const [x, y] = spot(f);
      path += (path ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1);
      if (f + 1 < frames.count && good[f + 1] !== good[f]) { flush(good[f]); path = "M" + x.toFixed(1) + " " + y.toFixed(1); }
    }
    if (frames.count) flush(good[frames.count - 1]);
    return group;
  }

  function loops(rejected) {
    const group = element("g");
    if (!on(rejected ? "plan-rejected" : "plan-accepted")) return group;
    let path = "";
    for (let e = 0; e < edges.kind.length; e++) {
      if (edges.kind[e] !== 2 || Boolean(edges.rejected[e]) !== rejected) continue;
      const [a, b] = spot(edges.pair[2 * e]), [c, d] = spot(edges.pair[2 * e + 1]);
      path += `M${a.toFixed(1)} ${b.toFixed(1)}L${c.toFixed(1)} ${d.toFixed(1)}`;
    }
    group.append(element("path", { d: path, fill: "none", stroke: rejected ? "var(--purple)" : "var(--green)", "stroke-width": 1.2, "stroke-dasharray": rejected ? "4 3" : "none", opacity: rejected ? 0.9 : 0.5 }));
    return group;
  }

  function borders() {
    const group = element("g");
    let before = -1;
    for (let f = 0; f < frames.count; f++) {
      const chunk = frames.chunk[f];
      if (chunk < 0) continue;
      if (before >= 0 && chunk !== before) { const [x, y] = spot(f); group.append(element("rect", { x: x - 4, y: y - 4, width: 8, height: 8, transform: `rotate(45 ${x} ${y})`, fill: "var(--panel)", stroke: "var(--ink)", "stroke-width": 1.6 })); }
      before = chunk;
    }
    return group;
  }

  function ends() {
    const group = element("g");
    if (!frames.count) return group;
    for (const [f, word] of [[0, "start"], [frames.count - 1, "end"]]) {
      const [x, y] = spot(f);
      group.append(element("circle", { cx: x, cy: y, r: 5, fill: word === "start" ? "var(--ink)" : "var(--panel)", stroke: "var(--ink)", "stroke-width": 2 }));
      const left = x > host.clientWidth - 60;
      group.append(element("text", { x: x + (left ? -9 : 9), "text-anchor": left ? "end" : "start", y: y + (word === "start" ? -8 : 16), style: "font-weight:600;fill:var(--ink);paint-order:stroke;stroke:var(--panel);stroke-width:4px" }, word));
    }
    return group;
  }

  function nearest(event, svg, width) {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * width, y = (event.clientY - box.top) / box.width * width;
    let best = 0, away = Infinity;
    for (let f = 0; f < frames.count; f++) { const [a, b] = spot(f), d = (a - x) ** 2 + (b - y) ** 2; if (d < away) { away = d; best = f; } }
    return { frame: best, away: Math.sqrt(away), x, y };
  }

  function listen(svg, width) {
    const tip = host.querySelector(".tip");
    svg.addEventListener("pointermove", (event) => {
      const { frame, away, x, y } = nearest(event, svg, width);
      tip.classList.toggle("on", away < 24);
      if (away < 24) { tip.textContent = `frame ${frame}\n${frames.trusted[frame] ? "trusted" : "not trusted"}`; tip.style.left = `${x > width - 140 ? x - tip.offsetWidth - 14 : x + 14}px`; tip.style.top = `${y + 10}px`; }
    });
    svg.addEventListener("pointerleave", () => tip.classList.remove("on"));
    svg.addEventListener("click", (event) => GW.pick(nearest(event, svg, width).frame, "plan"));
  }

  function mark(frame) {
    if (frame < 0 || !dot) return;
    const [x, y] = spot(frame);
    dot.setAttribute("cx", x); dot.setAttribute("cy", y); dot.setAttribute("visibility", "visible");
  }

  function describe() {
    const entries = [["var(--blue)", "trusted", "line"], ["var(--vermilion)", "not trusted", "line"]];
    if (on("plan-accepted")) entries.push(["var(--green)", "long-range pair, believed", "line"]);
    if (on("plan-rejected")) entries.push(["var(--purple)", "long-range pair, rejected", "dash"]);
    if (on("plan-borders")) entries.push(["var(--ink)", "chunk border", "diamond"]);
    if (on("plan-stages")) stages.forEach((s, k) => entries.push([`var(--${["vermilion", "orange"][k % 2]})`, "after " + s.name, k ? "dot-dash" : "dash"]));
    if (reference && on("plan-reference")) entries.push(["var(--grey)", "reference", "line"]);
    GW.legend(byId("plan-legend"), entries);
  }

  for (const id of ["plan-accepted", "plan-rejected", "plan-borders", "plan-stages", "plan-reference"]) if (byId(id)) byId(id).addEventListener("change", draw);
  GW.listeners.pick.push(mark);
  let drawn = 0;
  new ResizeObserver(() => { if (host.clientWidth !== drawn) { drawn = host.clientWidth; draw(); } }).observe(host);

  // the matrix: later kinds lie over earlier ones, rejected pairs on top
  const canvas = byId("matrix");
  const KINDS = [["grey", "close in time"], ["sky", "across a chunk border"], ["green", "far apart, believed"], ["purple", "rejected"]];
  function matrix() {
    const scale = devicePixelRatio || 1, size = Math.max(Math.round(canvas.clientWidth * scale), 64);
    canvas.width = canvas.height = size;
    const pen = canvas.getContext("2d"), cell = size / Math.max(frames.count, 1), mark = Math.max(cell, 1.6 * scale);
    pen.strokeStyle = style("line"); pen.lineWidth = scale;
    let before = -1;
    for (let f = 0; f < frames.count; f++) {
      const chunk = frames.chunk[f];
      if (chunk < 0) continue;
      if (before >= 0 && chunk !== before) { pen.beginPath(); pen.moveTo(f * cell, 0); pen.lineTo(f * cell, size); pen.moveTo(0, f * cell); pen.lineTo(size, f * cell); pen.stroke(); }
      before = chunk;
    }
    KINDS.forEach(([colour], kind) => {
      pen.fillStyle = style(colour);
      for (let e = 0; e < edges.kind.length; e++) {
        if ((edges.rejected[e] ? 3 : edges.kind[e]) !== kind) continue;
        const i = edges.pair[2 * e] * cell, j = edges.pair[2 * e + 1] * cell;
        pen.fillRect(i, j, mark, mark); pen.fillRect(j, i, mark, mark);
      }
    });
    GW.legend(byId("matrix-legend"), KINDS.map(([colour, text]) => [`var(--${colour})`, text, "dot"]));
  }
  new ResizeObserver(matrix).observe(canvas);
  GW.listeners.theme.push(matrix);
  return { draw };
})();
