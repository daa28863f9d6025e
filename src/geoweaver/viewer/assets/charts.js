"use strict";
// Line charts: drawn at the size they have on the screen, so that letters stay readable on a phone.
GW.charts = (() => {
  const { element, style } = GW;
  const HEIGHT = 250, LEFT = 54, RIGHT = 14, TOP = 18, BOTTOM = 42;

  function niceTicks(low, high, count) {
    const span = high - low || Math.abs(high) || 1, rough = span / count, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((s) => s * power >= rough) * power, ticks = [];
    for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + 1e-9 * span; t += step) ticks.push(Math.abs(t) < step * 1e-6 ? 0 : t);
    return ticks;
  }
  function logTicks(low, high) {
    const ticks = [];
    for (let p = Math.ceil(Math.log10(low) - 1e-9); p <= Math.log10(high) + 1e-9; p++) ticks.push(10 ** p);
    return ticks;
  }
  // with a step, as many digits as tell neighbouring ticks apart
  function words(value, step) {
    if (value === 0) return "0";
    const size = Math.abs(value), digits = step ? Math.max(3, Math.floor(Math.log10(size) + 1e-9) - Math.floor(Math.log10(step) + 1e-9) + 1) : 3;
    if (size >= 1e5 || size < 1e-4) return value.toExponential(step ? digits - 1 : 0).replace(/\.?0*e\+?/, "e");
    return String(Number(value.toPrecision(Math.min(digits, 12))));
  }
  const gap = (ticks) => (ticks.length > 1 ? ticks[1] - ticks[0] : 0);

  function ranges(spec) {
    const xs = [], ys = [];
    for (const s of spec.series) s.x.forEach((x, i) => { if (x !== null && s.y[i] !== null) { xs.push(x); ys.push(s.y[i]); } });
    let [x0, x1] = [Math.min(...xs), Math.max(...xs)], [y0, y1] = [Math.min(...ys), Math.max(...ys)];
    if (spec.y.zero) y0 = Math.min(0, y0);
    if (spec.rule !== undefined) { y0 = Math.min(y0, spec.rule); y1 = Math.max(y1, spec.rule); }
    if (spec.y.high !== undefined) y1 = spec.y.high;
    else { const pad = 0.06 * (y1 - y0 || Math.abs(y1) * 0.02 || 1); y1 += pad; if (!spec.y.zero) y0 -= pad; }
    if (x0 === x1) x1 = x0 + 1;
    return { x0, x1, y0, y1 };
  }

  function draw(host, spec) {
    const width = Math.max(host.clientWidth, 240), r = ranges(spec), log = spec.x.log;
    const at = log ? Math.log10 : (v) => v;
    const px = (x) => LEFT + (at(x) - at(r.x0)) / (at(r.x1) - at(r.x0)) * (width - LEFT - RIGHT);
    const py = (y) => HEIGHT - BOTTOM - (y - r.y0) / (r.y1 - r.y0) * (HEIGHT - TOP - BOTTOM);
    const svg = element("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, "aria-hidden": "true" });
    const rows = niceTicks(r.y0, r.y1, 5), columns = log ? logTicks(r.x0, r.x1) : niceTicks(r.x0, r.x1, width > 420 ? 7 : 4);
    for (const y of rows) {
      svg.append(element("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: py(y), y2: py(y) }));
      svg.append(element("text", { x: LEFT - 8, y: py(y) + 4, "text-anchor": "end" }, words(y, gap(rows))));
    }
    for (const x of columns) {
      svg.append(element("line", { class: "axis", x1: px(x), x2: px(x), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 5 }));
      svg.append(element("text", { x: px(x), y: HEIGHT - BOTTOM + 19, "text-anchor": "middle" }, words(x, log ? 0 : gap(columns))));
    }
    svg.append(element("text", { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, spec.x.label));
    svg.append(element("text", { x: 0, y: 0, "text-anchor": "middle", transform: `translate(12 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)` }, spec.y.label));
    for (const mark of spec.marks || []) svg.append(element("line", { class: "mark", x1: px(mark.x), x2: px(mark.x), y1: TOP, y2: HEIGHT - BOTTOM }));
    if (spec.rule !== undefined) svg.append(element("line", { class: "rule", x1: LEFT, x2: width - RIGHT, y1: py(spec.rule), y2: py(spec.rule) }));
    for (const s of spec.series) svg.append(curve(s, px, py));
    const cross = element("line", { class: "rule", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    svg.append(cross);
    const tip = element("div", { class: "tip" });
    host.replaceChildren(...(spec.series.length > 1 ? [key(spec)] : []), svg, tip);
    listen(host, svg, spec, { px, py, cross, tip, width });
  }

  function curve(s, px, py) {
    let path = "", pen = false;
    s.x.forEach((x, i) => {
      if (x === null || s.y[i] === null) { pen = false; return; }
      path += (pen ? "L" : "M") + px(x).toFixed(1) + " " + py(s.y[i]).toFixed(1);
      pen = true;
    });
    return element("path", { class: "series", d: path, stroke: `var(--${s.colour})`, "stroke-dasharray": s.dash || "none" });
  }

  function key(spec) {
    const host = element("div", { class: "chart-legend" });
    const seen = new Map(spec.series.map((s) => [s.name, s]));
    GW.legend(host, [...seen.values()].map((s) => [`var(--${s.colour})`, s.name, s.dash === "6 3" ? "dash" : s.dash ? "dot-dash" : "line"]));
    return host;
  }

  function listen(host, svg, spec, on) {
    const nearest = (event) => {
      const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * on.width;
      return spec.series.map((s) => {
        let best = -1;
        s.x.forEach((v, i) => { if (v !== null && s.y[i] !== null && (best < 0 || Math.abs(on.px(v) - x) < Math.abs(on.px(s.x[best]) - x))) best = i; });
        return { s, i: best, away: best < 0 ? Infinity : Math.abs(on.px(s.x[best]) - x) };
      });
    };
    svg.addEventListener("pointermove", (event) => {
      const found = nearest(event), closest = Math.min(...found.map((f) => f.away)), shown = found.filter((f) => f.away <= closest + 2);
      if (!shown.length || closest === Infinity) return;
      const x = shown[0].s.x[shown[0].i], at = on.px(x);
      on.cross.setAttribute("x1", at); on.cross.setAttribute("x2", at); on.cross.setAttribute("visibility", "visible");
      on.tip.textContent = [`${spec.x.label}: ${words(x)}`, ...shown.map((f) => `${f.s.name}: ${words(f.s.y[f.i])}`)].join("\n");
      on.tip.classList.add("on");
      const left = at > on.width / 2 ? at - on.tip.offsetWidth - 12 : at + 12;
      on.tip.style.left = `${Math.max(0, left)}px`; on.tip.style.top = `${svg.offsetTop || 20}px`;
    });
    svg.addEventListener("pointerleave", () => { on.cross.setAttribute("visibility", "hidden"); on.tip.classList.remove("on"); });
    if (spec.x.label === "frame") svg.addEventListener("click", (event) => { const f = nearest(event)[0]; if (f.i >= 0) GW.pick(f.s.x[f.i], "chart"); });
  }

  const hosts = [...document.querySelectorAll("[data-chart]")];
  const widths = new Map();
  const redraw = (host) => { const spec = GW.data.charts[host.dataset.chart]; if (spec) draw(host, spec); };
  const watcher = new ResizeObserver((entries) => {
    for (const { target } of entries) if (widths.get(target) !== target.clientWidth) { widths.set(target, target.clientWidth); redraw(target); }
  });
  for (const host of hosts) watcher.observe(host);
  return { redraw };
})();
