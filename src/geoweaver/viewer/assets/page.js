"use strict";
// What all parts of the page share: the data, the picked frame, the theme.
const GW = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);

  function unpack(text, Type) {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Type(bytes.buffer);
  }

  const f = data.frames;
  const frames = {
    count: f.count, names: f.names, reasons: f.reasons,
    times: unpack(f.times, Float64Array), chunk: unpack(f.chunk, Int32Array), trusted: unpack(f.trusted, Uint8Array),
    keyframe: unpack(f.keyframe, Uint8Array), centre: unpack(f.centre, Float32Array), axes: unpack(f.axes, Float32Array),
    half: unpack(f.half, Float32Array), sigma: unpack(f.sigma, Float32Array),
  };
  const edges = {
    pair: unpack(data.edges.pair, Uint32Array), kind: unpack(data.edges.kind, Uint8Array), rejected: unpack(data.edges.rejected, Uint8Array),
  };

  // neighbouring chunks differ in lightness as well as in hue
  const CHUNKS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a900", "#6f4fa0", "#7fbf9a", "#8c564b"];
  const chunkColour = (k) => (k < 0 ? "#8a929a" : CHUNKS[k % CHUNKS.length]);
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

  const listeners = { pick: [], theme: [] };
  let picked = -1;
  function pick(frame, source) {
    if (frame === picked || frame < 0 || frame >= frames.count) return;
    picked = frame;
    for (const hear of listeners.pick) hear(frame, source);
  }

  function keep(name, value) {
    // a page opened from disk may have no storage
    try { if (value !== undefined) localStorage.setItem(name, value); return localStorage.getItem(name); } catch { return null; }
  }
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const themed = () => {
    byId("theme").textContent = isDark() ? "Light" : "Dark";
    for (const hear of listeners.theme) hear();
  };
  const kept = keep("geoweaver-theme");
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    keep("geoweaver-theme", root.dataset.theme);
    themed();
  });
  dark.addEventListener("change", themed);
  byId("theme").textContent = isDark() ? "Light" : "Dark";

  function element(name, attributes = {}, text) {
    const svg = "svg g path line text circle rect polyline".split(" ").includes(name);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // a legend: [colour, text, "dot" | "line" | "dash"]
  function legend(host, entries) {
    host.replaceChildren(...entries.map(([colour, text, form]) => {
      const item = element("span"), svg = element("svg", { width: 22, height: 10, "aria-hidden": "true" });
      if (form === "dot") svg.append(element("circle", { cx: 11, cy: 5, r: 5, fill: colour }));
      else if (form === "diamond") svg.append(element("path", { d: "M11 0.8L15.2 5L11 9.2L6.8 5Z", fill: "none", stroke: colour, "stroke-width": 1.6 }));
      else svg.append(element("line", { x1: 0, x2: 22, y1: 5, y2: 5, stroke: colour, "stroke-width": 3, "stroke-dasharray": form === "dash" ? "5 3" : form === "dot-dash" ? "2 3" : "none" }));
      item.append(svg, text);
      return item;
    }));
  }

  function verdict(frame) {
    const alone = frames.keyframe[frame] ? "in no chunk" : "between keyframes";
    const words = [frames.chunk[frame] < 0 ? alone : "chunk " + frames.chunk[frame]];
    if (frames.trusted[frame]) {
      words.push("trusted");
      if (frames.sigma[2 * frame + 1] >= 0) words.push("± " + frames.sigma[2 * frame + 1].toPrecision(2) + "°");
    } else words.push("not trusted: " + (frames.reasons[frame] || "no reason was given"));
    return words.join(" · ");
  }

  // the gallery
  const gallery = byId("gallery");
  if (gallery) {
    for (const radio of document.querySelectorAll('input[name="pictures-show"]')) {
      radio.addEventListener("change", () => {
        gallery.classList.remove("show-all", "show-image", "show-depth", "show-confidence");
        gallery.classList.add("show-" + radio.value);
      });
    }
    byId("only-untrusted").addEventListener("change", (e) => gallery.classList.toggle("only-untrusted", e.target.checked));
    gallery.addEventListener("click", (event) => {
      const card = event.target.closest(".card");
      if (card) pick(Number(card.dataset.frame), "gallery");
    });
    listeners.pick.push((frame) => {
      for (const old of gallery.querySelectorAll(".picked")) old.classList.remove("picked");
      const card = byId("card-" + frame);
      if (card) card.classList.add("picked");
    });
  }

  // the frame with a picture that is nearest in time
  function pictureOf(frame) {
    let best = null;
    for (const other of data.pictures) if (best === null || Math.abs(other - frame) < Math.abs(best - frame)) best = other;
    return best === null ? null : { frame: best, image: byId("card-" + best).querySelector("img") };
  }

  return { data, frames, edges, unpack, chunkColour, style, rgb, pick, picked: () => picked, listeners, element, legend, verdict, pictureOf, byId, isDark };
})();
