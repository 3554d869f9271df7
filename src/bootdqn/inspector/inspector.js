"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const steps = data.steps;
const byId = (id) => document.getElementById(id);
const SHAPES = ["●", "■", "▲", "◆", "✚", "★"];
let now = 0, timer = null, filter = "all";

const top20 = new Set(steps.map((s, i) => [Math.max(...s.evoi), i]).sort((a, b) => b[0] - a[0]).slice(0, 20).map((p) => p[1]));
const FILTERS = {
  all: ["all", () => true],
  flips: ["flips", (i) => steps[i].flip !== null],
  evoi: ["20 highest EVOI", (i) => top20.has(i)],
  rewards: ["rewards", (i) => steps[i].reward !== 0],
};
const shownBy = (name) => steps.map((_, i) => i).filter(FILTERS[name][1]);

function element(parent, name, attributes = {}, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}

function picture(parent, width, height) {
  parent.replaceChildren();
  return element(parent, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
}

const number = (x) => (Number.isInteger(x) ? String(x) : Math.abs(x) < 1e-9 ? "0" : Math.abs(x) >= 100 ? x.toFixed(1) : Math.abs(x) < 0.01 ? x.toPrecision(2) : x.toFixed(3));

function roundTicks(low, high) {
  const most = (high - low) / 3, power = 10 ** Math.floor(Math.log10(most));
  const unit = power * [5, 2, 1].find((m) => m * power <= most), small = unit < 1e-4 || unit >= 1e6;
  const text = (v) => (small ? String(Number(v.toPrecision(10))) : v.toFixed(Math.max(0, -Math.floor(Math.log10(unit) + 1e-9))));
  const first = Math.ceil(low / unit), count = Math.floor(high / unit) - first + 1;
  return Array.from({ length: count }, (_, k) => [(first + k) * unit, text((first + k) * unit)]);
}

const PLOT = { width: 820, left: 52 };

function drawAxis(svg, values, top, bottom) {
  let low = Math.min(...values), high = Math.max(...values);
  if (low > 0 && (low < 0.5 * high || low === high)) low = 0;
  if (high < 0 && (high > 0.5 * low || low === high)) high = 0;
  const pad = 0.06 * (high - low || 1);
  low -= pad; high += pad;
  const y = (v) => top + (bottom - top) * (high - v) / (high - low);
  const hasZero = low <= 0 && high >= 0;
  roundTicks(low, high).forEach(([value, text]) => {
    element(svg, "line", { x1: PLOT.left, x2: PLOT.width, y1: y(value), y2: y(value), stroke: "#8883" });
    element(svg, "text", { x: PLOT.left - 6, y: y(value) + 4, "text-anchor": "end", "data-tick": text }, text);
  });
  if (!hasZero) element(svg, "text", { x: PLOT.width, y: bottom - 3, "text-anchor": "end", "data-no-zero": "" }, "bars do not begin at 0");
  if (hasZero) element(svg, "line", { x1: PLOT.left, x2: PLOT.width, y1: y(0), y2: y(0), stroke: "currentColor", "stroke-width": 1, "data-zero": "" });
  return { y, floor: hasZero ? 0 : low };
}

function drawBars(step) {
  const { width, left } = PLOT, height = 340, bottom = 74, top = 14;
  const svg = picture(byId("bars"), width, height);
  const own = step.q[step.head], count = own.length;
  const withGain = own.map((q, a) => q + step.gain[a]), withEvoi = own.map((q, a) => q + step.evoi[a]);
  const { y, floor } = drawAxis(svg, [...step.q.flat(), ...withGain, ...withEvoi], top, height - bottom);
  const slot = (width - left - 8) / count, bar = Math.min(34, slot * 0.36);
  const gap = Math.min(13, slot / data.methods.length);
  for (let a = 0; a < count; a++) {
    const centre = left + slot * (a + 0.5);
    [["gain", withGain, -1], ["evoi", withEvoi, 1]].forEach(([name, sum, side]) => {
      const x = centre + side * (bar / 2 + 1) - bar / 2;
      element(svg, "rect", { x, width: bar, y: Math.min(y(own[a]), y(floor)), height: Math.abs(y(own[a]) - y(floor)), fill: data.colours.q, "data-q": a });
      element(svg, "rect", { x, width: bar, y: Math.min(y(sum[a]), y(own[a])), height: Math.max(0.5, Math.abs(y(sum[a]) - y(own[a]))), fill: data.colours[name], "data-bar": `${name}-${a}`, "data-value": name === "gain" ? step.gain[a] : step.evoi[a] });
    });
    step.q.forEach((head, k) => element(svg, "circle", { cx: centre, cy: y(head[a]), r: k === step.head ? 4 : 2.4, fill: "currentColor", opacity: k === step.head ? 1 : 0.45 }));
    element(svg, "line", { x1: centre - bar - 3, x2: centre + bar + 3, y1: y(step.mean[a]), y2: y(step.mean[a]), stroke: "currentColor", "stroke-width": 1.5 });
    const done = a === step.action;
    const label = element(svg, "text", { x: centre, y: height - bottom + 18, "text-anchor": count > 8 ? "end" : "middle", "font-weight": done ? "700" : "400", transform: count > 8 ? `rotate(-35 ${centre} ${height - bottom + 18})` : "" }, step.names[a]);
    if (done) label.style.fill = "#d55e00";
    data.methods.forEach((method, m) => {
      const x = centre + gap * (m - (data.methods.length - 1) / 2);
      if (step.choices[m] === a) element(svg, "text", { x, y: height - 8, "text-anchor": "middle", style: `fill:${method.colour};font-size:${Math.min(14, gap + 3)}px`, "data-choice": method.name, "data-action": a }, SHAPES[m]);
    });
  }
  [["gain", withGain], ["evoi", withEvoi]].forEach(([name, sum]) => element(svg, "line", { x1: left, x2: width, y1: y(Math.max(...sum)), y2: y(Math.max(...sum)), stroke: data.colours[name], "stroke-dasharray": "5 4" }));
}

function drawScores(step) {
  if (!data.scoreTitle) return;
  const { width, left } = PLOT, height = 150, top = 34, bottom = 142;
  const svg = picture(byId("scores"), width, height), scores = step.scores.map(Number), finite = scores.filter(Number.isFinite);
  element(svg, "text", { x: left, y: 11, id: "score-title" }, data.scoreTitle);
  const { y, floor } = drawAxis(svg, data.scoresFromZero || !finite.length ? [0, ...finite] : finite, top, bottom);
  const slot = (width - left - 8) / scores.length, bar = Math.min(34, slot * 0.36);
  scores.forEach((score, a) => {
    const centre = left + slot * (a + 0.5), end = Number.isFinite(score) ? y(score) : y(floor), done = a === step.action;
    element(svg, "rect", { x: centre - bar / 2, width: bar, y: Math.min(end, y(floor)), height: Math.abs(end - y(floor)), fill: data.colours.scores, opacity: done ? 1 : 0.55, "data-score": a, "data-value": score });
    element(svg, "text", { x: centre, y: Math.min(end, y(floor)) - 4, "text-anchor": "middle", "font-weight": done ? "700" : "400" }, Number.isFinite(score) ? number(score) : String(score).replace("Infinity", "∞"));
  });
}

function drawScene(step) {
  const scene = byId("scene");
  if (step.frame) {
    let image = scene.querySelector("img");
    if (!image) { scene.replaceChildren(); image = document.createElement("img"); image.alt = "what the agent saw"; scene.appendChild(image); }
    image.src = step.frame;
    return;
  }
  if (step.cell) drawGrid(scene, data.size, (row, column) => (column > row ? "#8886" : "#56b4e933"), step.cell);
}

function drawGrid(parent, size, colour, mark) {
  const svg = picture(parent, size, size);
  for (let row = 0; row < size; row++) for (let column = 0; column < size; column++)
    element(svg, "rect", { x: column, y: row, width: 0.94, height: 0.94, fill: colour(row, column) });
  if (mark) element(svg, "circle", { cx: mark[1] + 0.47, cy: mark[0] + 0.47, r: 0.33, fill: "#d55e00" });
}

function drawFacts(step) {
  const rows = [["step", `${now}`], ["episode", `${step.episode + 1}`], ...(data.followsHead ? [["active head", `${step.head}`]] : [["active head", "none"], ["head of the bars", `${step.head}`]]), ["action", step.names[step.action]],
    ["reward", number(step.reward)], ["largest EVOI", number(Math.max(...step.evoi))], ["vote entropy", `${number(step.vote_entropy)} nats`]];
  data.methods.forEach((method, m) => rows.push([`${SHAPES[m]} ${method.name}`, step.names[step.choices[m]]]));
  byId("facts").replaceChildren(...rows.map(([name, value]) => {
    const row = document.createElement("tr");
    [name, value].forEach((text) => { const cell = document.createElement("td"); cell.textContent = text; row.appendChild(cell); });
    return row;
  }));
}

const TIMELINE = { width: 1200, height: 132, left: 80 };
const at = (i) => TIMELINE.left + (TIMELINE.width - TIMELINE.left - 6) * (steps.length > 1 ? i / (steps.length - 1) : 0);

function drawTimeline() {
  const svg = picture(byId("timeline"), TIMELINE.width, TIMELINE.height);
  const series = [["value", (s) => s.value, data.colours.greedy], ["largest EVOI", (s) => Math.max(...s.evoi), data.colours.evoi], ["vote entropy", (s) => s.vote_entropy, data.colours.gain]];
  const shown = new Set(shownBy(filter));
  series.forEach(([label, of, colour], row) => {
    const values = steps.map(of), low = Math.min(...values), high = Math.max(...values), base = 30 + 32 * row;
    const points = values.map((v, i) => `${at(i).toFixed(1)},${(base - 24 * (high > low ? (v - low) / (high - low) : 0.5)).toFixed(1)}`);
    element(svg, "polyline", { points: points.join(" "), fill: "none", stroke: colour, "stroke-width": 1.3 });
    element(svg, "text", { x: TIMELINE.left - 6, y: base - 6, "text-anchor": "end" }, label);
  });
  element(svg, "text", { x: TIMELINE.left - 6, y: 112, "text-anchor": "end" }, "flips");
  element(svg, "text", { x: TIMELINE.left - 6, y: 128, "text-anchor": "end" }, "rewards");
  steps.forEach((s, i) => {
    if (s.flip) element(svg, "line", { x1: at(i), x2: at(i), y1: 102, y2: 114, stroke: "#d55e00", "stroke-width": 1.5 });
    if (s.reward !== 0) element(svg, "line", { x1: at(i), x2: at(i), y1: 118, y2: 130, stroke: s.reward > 0 ? "#009e73" : "#cc79a7", "stroke-width": 1.5 });
    if (filter !== "all" && shown.has(i)) element(svg, "circle", { cx: at(i), cy: 4, r: 2.5, fill: "currentColor" });
    if (i && s.episode !== steps[i - 1].episode) element(svg, "line", { x1: at(i), x2: at(i), y1: 0, y2: 132, stroke: "#8888", "stroke-dasharray": "2 3" });
  });
  element(svg, "line", { id: "cursor", y1: 0, y2: TIMELINE.height, stroke: "currentColor", "stroke-width": 1.2 });
}

function show(i) {
  now = Math.max(0, Math.min(steps.length - 1, i));
  const step = steps[now];
  drawScene(step); drawBars(step); drawScores(step); drawFacts(step);
  byId("flip").textContent = step.flip || "";
  byId("flip").className = step.flip ? "on" : "";
  byId("scrub").value = now;
  byId("where").textContent = `step ${now} of ${steps.length - 1}`;
  const cursor = document.getElementById("cursor");
  cursor.setAttribute("x1", at(now)); cursor.setAttribute("x2", at(now));
  document.body.dataset.step = now;
  history.replaceState(null, "", `#${now}`);
}

function showAddressed() {
  const asked = /^#\d+$/.test(location.hash) ? Number(location.hash.slice(1)) : steps.length;
  show(asked < steps.length ? asked : Math.max(0, steps.findIndex((step) => step.flip !== null)));
}

function move(direction, name = filter) {
  const places = shownBy(name);
  const next = direction > 0 ? places.find((i) => i > now) : places.reverse().find((i) => i < now);
  if (next !== undefined) show(next);
}

function play() {
  if (timer) { clearInterval(timer); timer = null; } else timer = setInterval(() => { const before = now; move(1); if (now === before) play(); }, 120);
  byId("play").textContent = timer ? "❚❚" : "▶";
}

function drawMaps(index) {
  const maps = data.maps[index], size = data.size;
  const when = `after ${maps.step.toLocaleString("en")} steps`, inspected = maps.step === data.weightsStep;
  byId("map-step").textContent = `${when} of training${inspected ? ", with the weights inspected above" : ""}`;
  const largest = (grid) => Math.max(...grid.flat(), 1e-12);
  const blues = (t) => `rgba(0,114,178,${(0.06 + 0.94 * t).toFixed(3)})`, reds = (t) => `rgba(213,94,0,${(0.06 + 0.94 * t).toFixed(3)})`;
  const between = (t) => (t >= 0.5 ? `rgba(0,158,115,${(2 * t - 1).toFixed(3)})` : `rgba(204,121,167,${(1 - 2 * t).toFixed(3)})`);
  const reachable = (paint) => (row, column) => (column > row ? "#8883" : paint(row, column));
  const most = largest(maps.visits), highest = largest(maps.evoi);
  drawGrid(byId("map-visits"), size, reachable((r, c) => blues(Math.sqrt(maps.visits[r][c] / most))));
  drawGrid(byId("map-evoi"), size, reachable((r, c) => reds(maps.evoi[r][c] / highest)));
  drawGrid(byId("map-votes"), size, reachable((r, c) => between(maps.votes[r][c])));
  byId("map-visits-title").textContent = `visits, 200 episodes of the agent ${when}`;
  byId("map-evoi-title").textContent = `largest EVOI ${when} (darkest: ${number(highest)})`;
  byId("map-votes-title").textContent = `heads ${when} that want right (green) or left (pink)`;
}

function setUpMaps() {
  if (!data.maps.length) return;
  byId("maps").innerHTML = `<h2>The grid from above, <span id="map-step"></span></h2><input id="map-scrub" type="range" min="0" aria-label="snapshot">
    <div class="grids"><div><h3 id="map-visits-title"></h3><div id="map-visits"></div></div><div><h3 id="map-evoi-title"></h3><div id="map-evoi"></div></div>
    <div><h3 id="map-votes-title"></h3><div id="map-votes"></div></div></div>`;
  const scrub = byId("map-scrub"), inspected = data.maps.findIndex((one) => one.step === data.weightsStep);
  scrub.max = data.maps.length - 1;
  scrub.value = inspected;
  scrub.hidden = data.maps.length < 2;
  scrub.addEventListener("input", () => drawMaps(Number(scrub.value)));
  drawMaps(inspected);
}

byId("title").textContent = `${data.title}: why it chose that action`;
byId("about").textContent = `Strategy ${data.strategy}; ${steps[0].q.length} heads; bars: Q, ${data.bars}; weights after ${data.weightsStep.toLocaleString("en")} steps.`;
const HEAD = data.followsHead ? "the active head" : "one head, which BootDQN, BootDQN-Gain and BootDQN-EVOI would follow";
byId("legend").textContent = `Grey bars: Q of ${HEAD}; on top its gain (green) and EVOI (orange), dashed at their highest. Dots: every head, ${data.followsHead ? "the active one" : "that one"} larger; line: their mean. ${data.methods.map((method, m) => `${SHAPES[m]} ${method.name}`).join(", ")}.`;
byId("scrub").max = steps.length - 1;
byId("scrub").addEventListener("input", (event) => show(Number(event.target.value)));
byId("play").addEventListener("click", play);
byId("timeline").addEventListener("click", (event) => {
  const box = byId("timeline").getBoundingClientRect();
  const x = (event.clientX - box.left) / box.width * TIMELINE.width;
  const place = Math.round((x - TIMELINE.left) / (TIMELINE.width - TIMELINE.left - 6) * (steps.length - 1));
  const places = shownBy(filter);
  if (places.length) show(places.reduce((best, i) => (Math.abs(i - place) < Math.abs(best - place) ? i : best)));
});
Object.entries(FILTERS).forEach(([name, [label]]) => {
  const button = document.createElement("button");
  button.textContent = `${label} (${shownBy(name).length})`;
  button.dataset.filter = name;
  button.setAttribute("aria-pressed", name === filter);
  button.disabled = shownBy(name).length === 0;
  button.addEventListener("click", () => {
    filter = name;
    document.querySelectorAll("[data-filter]").forEach((b) => b.setAttribute("aria-pressed", b.dataset.filter === name));
    drawTimeline();
    show(shownBy(name).includes(now) ? now : shownBy(name)[0]);
  });
  byId("filters").appendChild(button);
});
document.addEventListener("keydown", (event) => {
  const keys = { ArrowRight: () => move(1), ArrowLeft: () => move(-1), Home: () => show(shownBy(filter)[0]), End: () => show(shownBy(filter).at(-1)),
    n: () => move(1, "flips"), p: () => move(-1, "flips"), " ": play };
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});
drawTimeline();
setUpMaps();
showAddressed();
window.addEventListener("hashchange", showAddressed);
