"use strict";
// The 3D view: points with edge shading, cameras and path as thick lines, drawn only when something changes.
GW.scene = (() => {
  const { frames, edges, data, byId, rgb, style } = GW;
  const canvas = byId("scene"), message = byId("scene-message");
  const gl = canvas.getContext("webgl2", { antialias: true, preserveDrawingBuffer: true });
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const say = (words) => { message.textContent = words; message.hidden = false; };

  // ---- where things are ----
  const quantile = (values, q) => { const s = Float32Array.from(values).sort(); return s.length ? s[Math.floor(q * (s.length - 1))] : 0; };
  const axisOf = (array, k) => { const out = []; for (let i = k; i < array.length; i += 3) out.push(array[i]); return out; };
  const cloud = data.cloud;
  const xyz = cloud ? GW.unpack(cloud.xyz, Uint16Array) : new Uint16Array(0);
  const box = (() => {
    const low = [], high = [];
    for (let k = 0; k < 3; k++) {
      const cams = axisOf(frames.centre, k);
      let a = quantile(cams, 0.02), b = quantile(cams, 0.98);
      if (cloud) { const p = axisOf(xyz, k); a = Math.min(a, cloud.low[k] + cloud.step[k] * quantile(p, 0.03)); b = Math.max(b, cloud.low[k] + cloud.step[k] * quantile(p, 0.97)); }
      low.push(a); high.push(b);
    }
    return { low, high, middle: low.map((v, k) => (v + high[k]) / 2), extent: Math.max(...low.map((v, k) => high[k] - v), 1e-9) };
  })();

  // ---- the camera of the view: it turns about a target, z is up ----
  const home = (() => {
    // where all cameras look the same way, so does the view; else it looks across the longest side
    const mean = [0, 1].map((k) => { let sum = 0; for (let f = 0; f < frames.count; f++) sum += frames.axes[9 * f + 6 + k]; return sum / Math.max(frames.count, 1); });
    const alike = Math.hypot(...mean) > 0.5, radius = Math.hypot(...box.low.map((v, k) => box.high[k] - v)) / 2;
    const yaw = alike ? Math.atan2(mean[1], mean[0]) + 0.25 : 1.2, pitch = alike ? -0.45 : -0.72, fov = 0.9;
    return { target: box.middle, distance: Math.max(fitting(yaw, pitch, fov), 0.4 * radius), yaw, pitch, fov };
  })();
  // as near as shows all but the outermost points and cameras, whatever the window's shape
  function fitting(yaw, pitch, fov) {
    const [c, s, d, e] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
    const half = Math.tan(fov / 2), high = 0.75 * half, wide = 0.95 * half * (canvas.clientWidth / canvas.clientHeight || 1.5);
    const needed = (p) => {
      const [x, y, z] = p.map((v, k) => v - box.middle[k]), along = c * x + s * y;
      return Math.max(Math.abs(s * x - c * y) / wide, Math.abs(d * z - e * along) / high) - (d * along + e * z);
    };
    const cameras = [], points = [], every = Math.max(1, Math.floor(xyz.length / 3 / 5000));
    for (let f = 0; f < frames.count; f++) cameras.push(needed([0, 1, 2].map((k) => frames.centre[3 * f + k])));
    for (let i = 0; i < xyz.length / 3; i += every) points.push(needed([0, 1, 2].map((k) => cloud.low[k] + cloud.step[k] * xyz[3 * i + k])));
    return Math.max(quantile(cameras, 0.98), points.length ? quantile(points, 0.97) : 0);
  }
  const view = { ...home, target: [...home.target] };
  let looking = false, flight = 0, asked = false;
  const ask = () => { if (!asked && gl) { asked = true; requestAnimationFrame(() => { asked = false; draw(); }); } };
  const forward = (v = view) => [Math.cos(v.pitch) * Math.cos(v.yaw), Math.cos(v.pitch) * Math.sin(v.yaw), Math.sin(v.pitch)];
  const right = () => [Math.sin(view.yaw), -Math.cos(view.yaw), 0];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const eye = () => { const f = forward(); return view.target.map((t, k) => t - view.distance * f[k]); };
  const clipping = () => [Math.max(view.distance, 0.02 * box.extent) * 0.01, view.distance + 20 * box.extent];

  function matrix() {
    const f = forward(), r = right(), u = cross(r, f), e = eye(), [near, far] = clipping(), aspect = canvas.width / canvas.height;
    // a tall, narrow screen sees the same width as a wide one
    const t = Math.tan(view.fov / 2) * Math.max(1, 0.9 / aspect), sx = 1 / (t * aspect), sy = 1 / t;
    const rows = [[...r.map((v) => v * sx), -dot(r, e) * sx], [...u.map((v) => v * sy), -dot(u, e) * sy]];
    const a = (far + near) / (far - near), b = -2 * far * near / (far - near);
    rows.push([...f.map((v) => v * a), -dot(f, e) * a + b], [...f, -dot(f, e)]);
    const out = new Float32Array(16);
    for (let i = 0; i < 4; i++) for (let j = 0; j < 4; j++) out[4 * j + i] = rows[i][j];
    return out;
  }

  // ---- programs ----
  function program(vertex, fragment) {
    const made = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, "#version 300 es\nprecision highp float;\n" + text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(made, shader);
    }
    gl.linkProgram(made);
    return { made, at: (name) => gl.getUniformLocation(made, name) };
  }
  function buffer(place, values, size, type, normalised, divisor = 0, stride = 0, offset = 0) {
    const made = values instanceof WebGLBuffer ? values : gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, made);
    if (made !== values) gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, size, type, normalised, stride, offset);
    gl.vertexAttribDivisor(place, divisor);
    return made;
  }

  let drawPoints, drawLines, shade, target = null, colours = null, lines = {};
  const see = { points: true, cameras: true, path: true, edges: false, size: 1.6, by: "rgb", cut: Infinity };

  function prepare() {
    drawPoints = program(`
      layout(location=0) in vec3 place; layout(location=1) in vec4 colour;
      uniform mat4 view; uniform vec3 low, step; uniform float size, cut, most; out vec4 paint;
      void main() {
        vec3 p = low + step * place; gl_Position = view * vec4(p, 1.0);
        gl_PointSize = clamp(size / gl_Position.w, 1.0, most);
        if (p.z > cut) gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
        paint = colour;
      }`, `
      in vec4 paint; out vec4 pixel;
      void main() { vec2 d = gl_PointCoord - 0.5; if (dot(d, d) > 0.25) discard; pixel = vec4(paint.rgb, 1.0); }`);
    drawLines = program(`
      layout(location=0) in vec3 a; layout(location=1) in vec3 b; layout(location=2) in vec4 colour;
      uniform mat4 view; uniform vec2 screen; uniform float width, near; out vec4 paint;
      void main() {
        vec4 p = view * vec4(a, 1.0), q = view * vec4(b, 1.0);
        if (p.w < near) p = mix(q, p, clamp((q.w - near) / max(q.w - p.w, 1e-20), 0.0, 1.0));
        if (q.w < near) q = mix(p, q, clamp((p.w - near) / max(p.w - q.w, 1e-20), 0.0, 1.0));
        float end = float(gl_VertexID & 1), side = float(gl_VertexID >> 1) * 2.0 - 1.0;
        vec2 s = p.xy / p.w * screen, t = q.xy / q.w * screen, along = t - s;
        along = length(along) > 1e-6 ? normalize(along) : vec2(1.0, 0.0);
        vec4 here = end < 0.5 ? p : q;
        here.xy += side * vec2(-along.y, along.x) * width / screen * here.w;
        // a hair nearer, so that lines on a surface are seen
        here.z -= 0.0004 * here.w;
        gl_Position = p.w < near || q.w < near ? vec4(2.0, 2.0, 2.0, 1.0) : here;
        paint = colour;
      }`, "in vec4 paint; out vec4 pixel; void main() { pixel = paint; }");
    // edges stand out where the depth jumps: shape becomes visible without normals
    shade = program(`
      void main() { vec2 p = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 1.0; gl_Position = vec4(p, 0.0, 1.0); }`, `
      uniform sampler2D colour, depth; uniform vec2 clip; uniform float radius, strength; out vec4 pixel;
      float away(ivec2 p) { float d = texelFetch(depth, p, 0).r * 2.0 - 1.0; return log2(2.0 * clip.x * clip.y / (clip.x + clip.y - d * (clip.y - clip.x))); }
      void main() {
        ivec2 p = ivec2(gl_FragCoord.xy), most = textureSize(depth, 0) - 1; float own = texelFetch(depth, p, 0).r;
        if (own >= 1.0) discard;
        float here = away(p), sum = 0.0; int r = int(radius);
        for (int k = 0; k < 8; k++) {
          ivec2 q = ivec2(k % 3, k / 3) - 1; if (k >= 4) q = ivec2((k + 1) % 3, (k + 1) / 3) - 1;
          ivec2 n = clamp(p + q * r, ivec2(0), most);
          sum += texelFetch(depth, n, 0).r < 1.0 ? min(max(0.0, here - away(n)), 0.25) : 0.0;
        }
        pixel = vec4(texelFetch(colour, p, 0).rgb * exp(-strength * sum), 1.0); gl_FragDepth = own;
      }`);
    if (cloud) {
      drawPoints.array = gl.createVertexArray();
      gl.bindVertexArray(drawPoints.array);
      buffer(0, xyz, 3, gl.UNSIGNED_SHORT, false);
      colours = buffer(1, new Uint8Array(4 * cloud.count), 4, gl.UNSIGNED_BYTE, true);
    }
    shade.array = gl.createVertexArray();
    paint();
  }

  // ---- colours ----
  const INFERNO = ["#000004", "#1b0c41", "#4a0c6b", "#781c6d", "#a52c60", "#cf4446", "#ed6925", "#fb9b06", "#f7d13d", "#fcffa4"].map(rgb);
  const ramp = (share) => { const t = Math.min(Math.max(share, 0), 1) * 8.999, i = Math.floor(t); return INFERNO[i].map((v, k) => v + (t - i) * (INFERNO[i + 1][k] - v)); };
  const trustColour = (f) => rgb(style(f < 0 ? "grey" : frames.trusted[f] ? "blue" : "vermilion"));
  let pointData = null;
  function paint() {
    if (!gl) return;
    if (cloud) {
      pointData = pointData || { rgb: GW.unpack(cloud.rgb, Uint8Array), sure: GW.unpack(cloud.confidence, Uint8Array), frame: GW.unpack(cloud.frame, Int32Array) };
      const out = new Uint8Array(4 * cloud.count).fill(255), cache = new Map();
      const look = (frame) => {
        if (!cache.has(frame)) cache.set(frame, see.by === "trust" ? trustColour(frame) : rgb(GW.chunkColour(frame < 0 ? -1 : frames.chunk[frame])));
        return cache.get(frame);
      };
      for (let i = 0; i < cloud.count; i++) {
        const c = see.by === "rgb" ? pointData.rgb.subarray(3 * i, 3 * i + 3) : see.by === "confidence" ? ramp(pointData.sure[i] / 255) : look(pointData.frame[i]);
        out[4 * i] = c[0]; out[4 * i + 1] = c[1]; out[4 * i + 2] = c[2];
      }
      gl.bindBuffer(gl.ARRAY_BUFFER, colours);
      gl.bufferData(gl.ARRAY_BUFFER, out, gl.STATIC_DRAW);
    }
    lines.cameras = segments(cameraLines()); lines.path = segments(pathLines()); lines.edges = segments(loopLines());
    mark(GW.picked());
    describe();
    ask();
  }
  function describe() {
    const entries = {
      rgb: [["var(--blue)", "camera, trusted", "line"], ["var(--vermilion)", "camera, not trusted", "line"]],
      trust: [["var(--blue)", "seen by a trusted frame", "dot"], ["var(--vermilion)", "seen by a frame that is not trusted", "dot"], ["var(--grey)", "unknown", "dot"]],
      confidence: [["#f7d13d", "sure", "dot"], ["#cf4446", "in between", "dot"], ["#4a0c6b", "unsure", "dot"]],
      chunk: [...new Set(frames.chunk)].filter((k) => k >= 0).sort((a, b) => a - b).slice(0, 14).map((k) => [GW.chunkColour(k), "chunk " + k, "dot"]),
    }[see.by];
    if (see.edges) entries.push(["var(--green)", "pair believed", "line"], ["var(--purple)", "pair rejected", "line"]);
    GW.legend(byId("scene-legend"), entries);
  }

  // ---- lines: two ends and a colour each ----
  const centre = (f) => [frames.centre[3 * f], frames.centre[3 * f + 1], frames.centre[3 * f + 2]];
  const cameraColour = (f) => (see.by === "chunk" ? rgb(GW.chunkColour(frames.chunk[f])) : trustColour(f));
  const shown = (() => { const all = []; for (let f = 0; f < frames.count; f++) if (frames.keyframe[f]) all.push(f); const every = Math.ceil(all.length / 400); return all.filter((_, i) => i % every === 0); })();
  const reach = 0.022 * box.extent;
  function frustum(f, depth) {
    const c = centre(f), a = (k) => [0, 1, 2].map((i) => frames.axes[9 * f + 3 * k + i]), [x, y, z] = [a(0), a(1), a(2)];
    const corner = (u, v) => c.map((o, k) => o + depth * (z[k] + u * frames.half[2 * f] * x[k] + v * frames.half[2 * f + 1] * y[k]));
    const p = [corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1)], out = [];
    p.forEach((q, k) => out.push([c, q], [q, p[(k + 1) % 4]]));
    return out;
  }
  function cameraLines() { return shown.flatMap((f) => frustum(f, reach).map(([a, b]) => [a, b, cameraColour(f)])); }
  function pathLines() { const out = []; for (let f = 1; f < frames.count; f++) out.push([centre(f - 1), centre(f), cameraColour(frames.keyframe[f] || see.by === "chunk" ? f : lastKeyframe(f))]); return out; }
  function lastKeyframe(f) { while (f > 0 && !frames.keyframe[f]) f--; return f; }
  function loopLines() {
    const out = [], good = rgb(style("green")), bad = rgb(style("purple"));
    for (let e = 0; e < edges.kind.length; e++) if (edges.kind[e] === 2) out.push([centre(edges.pair[2 * e]), centre(edges.pair[2 * e + 1]), edges.rejected[e] ? bad : good]);
    return out;
  }
  function segments(list) {
    const bytes = new ArrayBuffer(28 * list.length), floats = new Float32Array(bytes), small = new Uint8Array(bytes);
    list.forEach(([a, b, c], i) => { floats.set([...a, ...b], 7 * i); small.set([...c, 255], 28 * i + 24); });
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    const made = buffer(0, floats, 3, gl.FLOAT, false, 1, 28, 0);
    buffer(1, made, 3, gl.FLOAT, false, 1, 28, 12);
    buffer(2, made, 4, gl.UNSIGNED_BYTE, true, 1, 28, 24);
    return { array, made, count: list.length };
  }
  function mark(frame) {
    if (!gl || frame < 0) return;
    if (lines.picked) { gl.deleteBuffer(lines.picked.made); gl.deleteVertexArray(lines.picked.array); }
    const ink = rgb(GW.isDark() ? "#ffffff" : "#000000");
    lines.picked = segments(frustum(frame, 2.2 * reach).map(([a, b]) => [a, b, ink]));
    ask();
  }

  // ---- drawing ----
  function resize() {
    const scale = Math.min(devicePixelRatio || 1, 2), w = Math.max(Math.round(canvas.clientWidth * scale), 1), h = Math.max(Math.round(canvas.clientHeight * scale), 1);
    if (target && target.w === w && target.h === h) return;
    canvas.width = w; canvas.height = h;
    if (target) { gl.deleteTexture(target.colour); gl.deleteTexture(target.depth); gl.deleteFramebuffer(target.frame); }
    const texture = (inner, format, type) => {
      const made = gl.createTexture();
      gl.bindTexture(gl.TEXTURE_2D, made);
      gl.texImage2D(gl.TEXTURE_2D, 0, inner, w, h, 0, format, type, null);
      for (const side of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, side, gl.NEAREST);
      return made;
    };
    target = { w, h, colour: texture(gl.RGBA8, gl.RGBA, gl.UNSIGNED_BYTE), depth: texture(gl.DEPTH_COMPONENT24, gl.DEPTH_COMPONENT, gl.UNSIGNED_INT), frame: gl.createFramebuffer() };
    gl.bindFramebuffer(gl.FRAMEBUFFER, target.frame);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, target.colour, 0);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, target.depth, 0);
  }
  function draw() {
    if (!gl || gl.isContextLost()) return;
    resize();
    const m = matrix(), [near, far] = clipping(), scale = Math.min(devicePixelRatio || 1, 2), [r, g, b] = rgb(style("stage"));
    gl.enable(gl.DEPTH_TEST);
    gl.viewport(0, 0, target.w, target.h);
    if (cloud && see.points) {
      gl.bindFramebuffer(gl.FRAMEBUFFER, target.frame);
      gl.clearColor(0, 0, 0, 0); gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
      gl.useProgram(drawPoints.made);
      gl.uniformMatrix4fv(drawPoints.at("view"), false, m);
      gl.uniform3fv(drawPoints.at("low"), cloud.low); gl.uniform3fv(drawPoints.at("step"), cloud.step);
      gl.uniform1f(drawPoints.at("size"), see.size * 0.0034 * box.extent * target.h / 2 / Math.tan(view.fov / 2));
      gl.uniform1f(drawPoints.at("cut"), see.cut); gl.uniform1f(drawPoints.at("most"), 24 * scale);
      gl.bindVertexArray(drawPoints.array);
      gl.drawArrays(gl.POINTS, 0, cloud.count);
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.clearColor(r / 255, g / 255, b / 255, 1); gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    if (cloud && see.points) shaded(near, far, scale);
    // through a camera the cloud alone is seen, to be compared with that camera's image
    if (looking) return;
    if (see.path) stroke(lines.path, m, near, 1.3 * scale);
    if (see.cameras) stroke(lines.cameras, m, near, 0.6 * scale);
    if (see.edges) stroke(lines.edges, m, near, 0.6 * scale);
    if (see.cameras && lines.picked) stroke(lines.picked, m, near, 1.2 * scale);
  }
  function shaded(near, far, scale) {
    gl.useProgram(shade.made);
    gl.activeTexture(gl.TEXTURE0); gl.bindTexture(gl.TEXTURE_2D, target.colour);
    gl.activeTexture(gl.TEXTURE1); gl.bindTexture(gl.TEXTURE_2D, target.depth);
    gl.uniform1i(shade.at("colour"), 0); gl.uniform1i(shade.at("depth"), 1);
    gl.uniform2f(shade.at("clip"), near, far); gl.uniform1f(shade.at("radius"), Math.max(1, Math.round(1.2 * scale))); gl.uniform1f(shade.at("strength"), 1.1);
    gl.bindVertexArray(shade.array);
    gl.depthFunc(gl.ALWAYS); gl.drawArrays(gl.TRIANGLES, 0, 3); gl.depthFunc(gl.LEQUAL);
    gl.activeTexture(gl.TEXTURE1); gl.bindTexture(gl.TEXTURE_2D, null);
    gl.activeTexture(gl.TEXTURE0); gl.bindTexture(gl.TEXTURE_2D, null);
  }
  function stroke(what, m, near, width) {
    if (!what || !what.count) return;
    gl.useProgram(drawLines.made);
    gl.uniformMatrix4fv(drawLines.at("view"), false, m);
    gl.uniform2f(drawLines.at("screen"), target.w / 2, target.h / 2);
    gl.uniform1f(drawLines.at("width"), width); gl.uniform1f(drawLines.at("near"), near);
    gl.bindVertexArray(what.array);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, what.count);
  }

  // ---- moving ----
  function turn(dx, dy) { leave(); view.yaw -= dx; view.pitch = Math.min(1.55, Math.max(-1.55, view.pitch - dy)); ask(); }
  function move(dx, dy) {
    leave();
    const step = 2 * view.distance * Math.tan(view.fov / 2) / canvas.clientHeight, r = right(), u = cross(r, forward());
    view.target = view.target.map((t, k) => t - step * (dx * r[k] - dy * u[k]));
    ask();
  }
  function zoom(factor) { leave(); view.distance = Math.min(Math.max(view.distance * factor, 1e-3 * box.extent), 20 * box.extent); ask(); }
  function leave() { flight++; if (looking) { looking = false; byId("look").setAttribute("aria-pressed", "false"); } }
  function fly(goal) {
    const mine = ++flight, from = { ...view, target: [...view.target] }, begun = performance.now();
    const round = goal.yaw - 2 * Math.PI * Math.round((goal.yaw - from.yaw) / (2 * Math.PI));
    const tick = (now) => {
      if (mine !== flight) return;
      const t = still ? 1 : Math.min((now - begun) / 450, 1), s = t * t * (3 - 2 * t), mix = (a, b) => a + s * (b - a);
      view.target = from.target.map((v, k) => mix(v, goal.target[k]));
      view.distance = Math.exp(mix(Math.log(from.distance), Math.log(goal.distance)));
      view.yaw = mix(from.yaw, round); view.pitch = mix(from.pitch, goal.pitch); view.fov = mix(from.fov, goal.fov);
      draw();
      if (t < 1) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }
  function lookThrough(f) {
    const z = [0, 1, 2].map((k) => frames.axes[9 * f + 6 + k]), distance = 0.12 * box.extent;
    fly({ target: centre(f).map((v, k) => v + distance * z[k]), distance, yaw: Math.atan2(z[1], z[0]), pitch: Math.asin(Math.max(-1, Math.min(1, z[2]))), fov: Math.min(2 * Math.atan(frames.half[2 * f + 1]) * 1.08, 2.2) });
  }

  function pickAt(event) {
    const area = canvas.getBoundingClientRect(), m = matrix();
    let best = -1, away = 18;
    for (const f of shown) {
      const c = [...centre(f), 1], at = [0, 1, 3].map((i) => c.reduce((sum, v, j) => sum + m[4 * j + i] * v, 0));
      if (at[2] <= 0) continue;
      const d = Math.hypot((at[0] / at[2] + 1) / 2 * area.width - (event.clientX - area.left), (1 - at[1] / at[2]) / 2 * area.height - (event.clientY - area.top));
      if (d < away) { away = d; best = f; }
    }
    if (best >= 0) GW.pick(best, "scene");
  }

  function listen() {
    const fingers = new Map();
    let dragged = 0;
    canvas.addEventListener("contextmenu", (e) => e.preventDefault());
    canvas.addEventListener("pointerdown", (e) => { canvas.focus({ preventScroll: true }); canvas.setPointerCapture(e.pointerId); fingers.set(e.pointerId, e); if (fingers.size === 1) dragged = 0; });
    canvas.addEventListener("pointermove", (e) => {
      const before = fingers.get(e.pointerId);
      if (!before) return;
      const dx = e.clientX - before.clientX, dy = e.clientY - before.clientY;
      dragged += Math.abs(dx) + Math.abs(dy);
      if (fingers.size === 2) {
        const other = [...fingers.values()].find((o) => o.pointerId !== e.pointerId), span = (p) => Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY);
        move(dx / 2, dy / 2);
        if (span(e) > 10) zoom(span(before) / span(e));
      } else if (e.buttons & 6 || e.shiftKey) move(dx, dy);
      else turn(dx * 0.006, dy * 0.006);
      fingers.set(e.pointerId, e);
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (e) => { if (name === "pointerup" && dragged < 5 && fingers.size === 1) pickAt(e); fingers.delete(e.pointerId); });
    const hint = GW.element("div", { class: "hint" }, "Click the view, then zoom with the wheel");
    canvas.parentElement.append(hint);
    let fade = 0;
    canvas.addEventListener("wheel", (e) => {
      // the wheel belongs to the page until the view was chosen
      if (document.activeElement !== canvas && !e.ctrlKey) { hint.classList.add("on"); clearTimeout(fade); fade = setTimeout(() => hint.classList.remove("on"), 1200); return; }
      e.preventDefault();
      zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * (e.deltaMode ? 30 : 1) / 400))));
    }, { passive: false });
    canvas.addEventListener("keydown", (e) => {
      const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
      if (arrow) e.shiftKey ? move(-40 * arrow[0], -40 * arrow[1]) : turn(-0.09 * arrow[0], -0.09 * arrow[1]);
      else if (e.key === "+" || e.key === "=") zoom(0.85);
      else if (e.key === "-" || e.key === "_") zoom(1 / 0.85);
      else if (e.key === "0") reset();
      else return;
      e.preventDefault();
    });
    canvas.addEventListener("webglcontextlost", (e) => { e.preventDefault(); say("The browser took the 3D view's memory away. Reload the page to see it again."); });
    new ResizeObserver(ask).observe(canvas);
  }
  function reset() { leave(); fly(home); }

  // ---- controls ----
  function controls() {
    for (const [id, name] of [["show-points", "points"], ["show-cameras", "cameras"], ["show-path", "path"], ["show-edges", "edges"]]) byId(id).addEventListener("change", (e) => { see[name] = e.target.checked; describe(); ask(); });
    for (const radio of document.querySelectorAll('input[name="colour-by"]')) radio.addEventListener("change", () => { see.by = radio.value; paint(); });
    byId("point-size").addEventListener("input", (e) => { see.size = Number(e.target.value); ask(); });
    byId("reset-view").addEventListener("click", reset);
    const cut = byId("cut");
    const setCut = () => { see.cut = Number(cut.value) >= 100 ? Infinity : box.low[2] + Number(cut.value) / 100 * (1.02 * (cloudTop() - box.low[2])); ask(); };
    cut.addEventListener("input", setCut);
    if (cloud && cloud.ceiling !== null) { cut.value = Math.round(100 * (cloud.ceiling - box.low[2]) / (1.02 * (cloudTop() - box.low[2]))); setCut(); }
    GW.listeners.theme.push(paint);
  }
  const cloudTop = () => (cloud ? cloud.low[2] + 65535 * cloud.step[2] : box.high[2]);

  // ---- the picked frame ----
  function inspector() {
    const scrub = byId("scrub"), play = byId("play"), look = byId("look"), picture = byId("picked-picture");
    scrub.max = Math.max(frames.count - 1, 0);
    scrub.addEventListener("input", () => GW.pick(Number(scrub.value), "scrub"));
    look.setAttribute("aria-pressed", "false");
    look.addEventListener("click", () => {
      if (looking) { reset(); return; }
      looking = true; look.setAttribute("aria-pressed", "true");
      lookThrough(GW.picked());
    });
    let timer = 0;
    const stop = () => { clearInterval(timer); timer = 0; play.textContent = "▶"; play.setAttribute("aria-pressed", "false"); };
    play.addEventListener("click", () => {
      if (timer) { stop(); return; }
      play.textContent = "❚❚"; play.setAttribute("aria-pressed", "true");
      const pace = Math.max(1, Math.round(frames.count / 400));
      timer = setInterval(() => { const next = GW.picked() + pace; next >= frames.count ? stop() : GW.pick(next, "play"); }, 100);
    });
    GW.listeners.pick.push((frame) => {
      scrub.value = frame;
      scrub.setAttribute("aria-valuetext", `frame ${frame}`);
      byId("picked-name").textContent = `${frame} · ${frames.names[frame]}`;
      byId("picked-words").textContent = GW.verdict(frame);
      const found = GW.pictureOf(frame);
      picture.hidden = !found;
      if (found) {
        picture.src = found.image.src; picture.alt = `Image of frame ${found.frame}`;
        picture.style.setProperty("--ratio", found.image.getAttribute("width") / 3 / found.image.getAttribute("height"));
      }
      mark(frame);
      if (looking) lookThrough(frame);
    });
    GW.pick(Math.floor(frames.count / 2), "start");
  }

  let ready = false;
  if (!gl) say("This browser does not offer WebGL 2, which the 3D view needs. Everything else on this page works.");
  else { prepare(); listen(); controls(); ready = true; if (!cloud) byId("show-points").disabled = true; }
  inspector();
  ask();
  return { view, see, ready, draw };
})();
