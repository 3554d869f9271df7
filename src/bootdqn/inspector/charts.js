"use strict";
// Drawing: each function fills one element of the page with a picture of one step, or of all of them.
const data = JSON.parse(document.getElementById("data").textContent);
const steps = data.steps;
const byId = (id) => document.getElementById(id);
const SHAPES = ["●", "■", "▲", "◆", "✚", "★"];
const MARK = "var(--mark)";
const largest = (values) => values.reduce((most, value) => Math.max(most, value), -Infinity);
const smallest = (values) => values.reduce((least, value) => Math.min(least, value), Infinity);

function element(parent, name, attributes = {}, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}

function html(parent, name, attributes = {}, text) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}

function picture(parent, width, height) {
  parent.replaceChildren();
  return element(parent, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
}

const widthOf = (node) => Math.max(280, node.clientWidth);

function number(x) {
  if (Number.isInteger(x)) return String(x);
  const size = Math.abs(x);
  return size < 1e-9 ? "0" : size >= 100 ? x.toFixed(1) : size < 0.01 ? x.toPrecision(2) : x.toFixed(3);
}

function roundTicks(low, high) {
  const most = (high - low) / 3, power = 10 ** Math.floor(Math.log10(most));
  const unit = power * [5, 2, 1].find((m) => m * power <= most), small = unit < 1e-4 || unit >= 1e6;
  const decimals = Math.max(0, -Math.floor(Math.log10(unit) + 1e-9));
  const text = (v) => (small ? String(Number(v.toPrecision(10))) : v.toFixed(Math.min(20, decimals)));
  const first = Math.ceil(low / unit), count = Math.floor(high / unit) - first + 1;
  return Array.from({ length: count }, (_, k) => [(first + k) * unit, text((first + k) * unit)]);
}

function scaleFromZero(values) {
  let low = smallest(values), high = largest(values);
  if (low > 0 && (low < 0.5 * high || low === high)) low = 0;
  if (high < 0 && (high > 0.5 * low || low === high)) high = 0;
  const pad = 0.06 * (high - low || 1);
  low -= pad; high += pad;
  return { low, high, floor: low <= 0 && high >= 0 ? 0 : low };
}

// Where Q less the value of the state is drawn: at a scale at which the largest bonus is seen, however bad other actions are.
function scaleOfBonuses(q, own, withBonus, bonus) {
  const high = largest([...q, ...withBonus]), all = smallest([...q, ...own]);
  const low = bonus > 0 ? Math.max(all, Math.min(0, largest(own)) - 6 * bonus) : all;
  const pad = 0.06 * (high - low || 1);
  return { low: low - pad, high: high + pad, floor: low - pad };
}

const LEFT = 56;

function drawAxis(svg, width, { low, high, floor }, top, bottom) {
  const y = (v) => top + (bottom - top) * (high - v) / (high - low);
  roundTicks(low, high).forEach(([value, text]) => {
    element(svg, "line", { x1: LEFT, x2: width, y1: y(value), y2: y(value), stroke: "#8883" });
    element(svg, "text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end", "data-tick": text }, text);
  });
  if (floor !== 0) element(svg, "text", { x: width, y: top - 14, "text-anchor": "end", "data-no-zero": "" }, "bars do not begin at 0");
  if (low <= 0 && high >= 0) element(svg, "line", { x1: LEFT, x2: width, y1: y(0), y2: y(0), stroke: "currentColor", "data-zero": "" });
  return y;
}

const areTurned = (names, slot) => slot < 7 * largest(names.map((name) => name.length));

function drawActionNames(svg, step, centre, turned, y) {
  step.names.forEach((name, a) => {
    const x = centre(a), done = a === step.action;
    const label = element(svg, "text", { x, y, "text-anchor": turned ? "end" : "middle", "font-weight": done ? 700 : 400 }, name);
    if (turned) label.setAttribute("transform", `rotate(-40 ${x} ${y})`);
    if (done) label.style.fill = MARK;
  });
}

function drawBars(step, relative) {
  const parent = byId("bars"), width = widthOf(parent), height = Math.min(460, Math.max(320, 0.42 * innerHeight));
  const slot = (width - LEFT - 4) / step.names.length, turned = areTurned(step.names, slot);
  const svg = picture(parent, width, height), top = 26, bottom = height - (turned ? 86 : 44);
  const shift = relative ? step.value : 0, count = step.names.length, under = (values) => values.map((v) => v - shift);
  const q = step.q.map(under), own = q[step.head], mean = under(step.mean);
  const sums = { gain: own.map((v, a) => v + step.gain[a]), evoi: own.map((v, a) => v + step.evoi[a]) };
  const withBonus = [...sums.gain, ...sums.evoi];
  const scale = relative ? scaleOfBonuses(q.flat(), own, withBonus, largest([...step.gain, ...step.evoi])) : scaleFromZero([...q.flat(), ...withBonus]);
  const title = relative ? `Q less the value of the state, ${number(step.value)}` : "Q";
  element(svg, "text", { x: 0, y: 12, "data-scale": relative ? "relative" : "absolute" }, title);
  const y = drawAxis(svg, width, scale, top, bottom), inside = (v) => Math.max(v, scale.low);
  const bar = Math.min(34, slot * 0.36), centre = (a) => LEFT + slot * (a + 0.5);
  for (let a = 0; a < count; a++) {
    for (const [name, side] of [["gain", -1], ["evoi", 1]]) {
      const x = centre(a) + side * (bar / 2 + 1) - bar / 2, end = y(inside(own[a])), stacked = y(inside(sums[name][a])), base = y(scale.floor);
      element(svg, "rect", { x, width: bar, y: Math.min(end, base), height: Math.abs(end - base), fill: data.colours.q, "data-q": a });
      const visible = sums[name][a] < scale.low ? 0 : Math.max(0.5, Math.abs(stacked - end));
      element(svg, "rect", { x, width: bar, y: Math.min(stacked, end), height: visible, fill: data.colours[name], "data-bar": `${name}-${a}`, "data-value": step[name][a] });
    }
    q.forEach((values, k) => {
      const active = k === step.head;
      if (values[a] >= scale.low) element(svg, "circle", { cx: centre(a), cy: y(values[a]), r: active ? 4 : 2.4, fill: "currentColor", opacity: active ? 1 : 0.45 });
    });
    if (mean[a] >= scale.low) element(svg, "line", { x1: centre(a) - bar - 3, x2: centre(a) + bar + 3, y1: y(mean[a]), y2: y(mean[a]), stroke: "currentColor", "stroke-width": 1.5 });
    if (own[a] < scale.low) element(svg, "text", { x: centre(a), y: bottom - 4, "text-anchor": "middle", style: "font-size:10px", "data-below": a }, `▼${own[a].toPrecision(2)}`);
  }
  for (const [name, sum] of Object.entries(sums)) {
    const highest = y(largest(sum));
    element(svg, "line", { x1: LEFT, x2: width, y1: highest, y2: highest, stroke: data.colours[name], "stroke-dasharray": "5 4" });
  }
  drawActionNames(svg, step, centre, turned, bottom + 17);
  drawChoices(svg, step, centre, Math.min(13, slot / data.methods.length), height - 5);
}

function drawChoices(svg, step, centre, gap, y) {
  step.names.forEach((_, a) => {
    const chosenBy = data.methods.map((_, m) => m).filter((m) => step.choices[m] === a);
    chosenBy.forEach((m, place) => {
      const { name, colour } = data.methods[m], x = centre(a) + gap * (place - (chosenBy.length - 1) / 2);
      const style = `fill:${colour};font-size:${Math.min(14, gap + 4)}px`;
      element(svg, "text", { x, y, "text-anchor": "middle", style, "data-choice": name, "data-action": a }, SHAPES[m]);
    });
  });
}

function drawScores(step) {
  if (!data.scoreTitle) return;
  const parent = byId("scores"), width = widthOf(parent), height = 150, svg = picture(parent, width, height);
  const scores = step.scores.map(Number), finite = scores.filter(Number.isFinite);
  element(svg, "text", { x: 0, y: 11, id: "score-title" }, data.scoreTitle);
  const scale = scaleFromZero(data.scoresFromZero || !finite.length ? [0, ...finite] : finite);
  const y = drawAxis(svg, width, scale, 34, 142), base = y(scale.floor);
  const slot = (width - LEFT - 4) / scores.length, bar = Math.min(34, slot * 0.36);
  scores.forEach((score, a) => {
    const centre = LEFT + slot * (a + 0.5), end = Number.isFinite(score) ? y(score) : base, done = a === step.action;
    element(svg, "rect", { x: centre - bar / 2, width: bar, y: Math.min(end, base), height: Math.abs(end - base), fill: data.colours.scores, opacity: done ? 1 : 0.55, "data-score": a, "data-value": score });
    const text = Number.isFinite(score) ? number(score) : String(score).replace("Infinity", "∞");
    element(svg, "text", { x: centre, y: Math.min(end, base) - 4, "text-anchor": "middle", "font-weight": done ? "700" : "400" }, text);
  });
}

function drawGrid(parent, size, colour, mark) {
  const svg = picture(parent, size, size);
  for (let row = 0; row < size; row++) for (let column = 0; column < size; column++)
    element(svg, "rect", { x: column, y: row, width: 0.94, height: 0.94, fill: colour(row, column) });
  if (mark) element(svg, "circle", { cx: mark[1] + 0.47, cy: mark[0] + 0.47, r: 0.33, fill: MARK });
}

function drawScene(step) {
  const scene = byId("scene");
  scene.hidden = !step.frame && !step.cell;
  if (step.cell) drawGrid(scene, data.size, (row, column) => (column > row ? "#8886" : "#56b4e933"), step.cell);
  if (!step.frame) return;
  const image = scene.querySelector("img") || html(scene, "img", { alt: "rendered state" });
  image.src = step.frame;
}

const timelineWidth = () => widthOf(byId("timeline"));
const TIMELINE_HEIGHT = 150;
const TIMELINE_LEFT = 84;
const at = (i) => TIMELINE_LEFT + (timelineWidth() - TIMELINE_LEFT - 6) * (steps.length > 1 ? i / (steps.length - 1) : 0);
const stepAt = (x) => Math.round((x - TIMELINE_LEFT) / (timelineWidth() - TIMELINE_LEFT - 6) * (steps.length - 1));

function drawTimeline(shown, usualReward) {
  const svg = picture(byId("timeline"), timelineWidth(), TIMELINE_HEIGHT), places = steps.map((_, i) => at(i));
  const label = (text, y) => element(svg, "text", { x: TIMELINE_LEFT - 6, y, "text-anchor": "end" }, text);
  const tick = (i, y1, y2, stroke, of) => element(svg, "line", { x1: places[i], x2: places[i], y1, y2, stroke, "stroke-width": 1.5, [`data-${of}`]: i });
  const series = [["value", (s) => s.value, data.colours.greedy], ["largest EVOI", (s) => largest(s.evoi), data.colours.evoi], ["vote entropy", (s) => s.vote_entropy, data.colours.gain]];
  series.forEach(([name, of, stroke], row) => {
    const values = steps.map(of), low = smallest(values), high = largest(values), base = 34 + 36 * row;
    const points = values.map((v, i) => `${places[i].toFixed(1)},${(base - 28 * (high > low ? (v - low) / (high - low) : 0.5)).toFixed(1)}`);
    element(svg, "polyline", { points: points.join(" "), fill: "none", stroke, "stroke-width": 1.3 });
    label(name, base - 8);
  });
  label("flips", 128);
  label(usualReward === 0 ? "rewards" : "other rewards", 145);
  steps.forEach((s, i) => {
    if (s.flip) tick(i, 118, 130, MARK, "flip");
    if (s.reward !== usualReward) tick(i, 135, 147, s.reward > usualReward ? "#009e73" : "#cc79a7", "reward");
    if (shown && shown.has(i)) element(svg, "circle", { cx: places[i], cy: 3, r: 2.5, fill: "currentColor" });
    if (i && s.episode !== steps[i - 1].episode) element(svg, "line", { x1: places[i], x2: places[i], y1: 0, y2: TIMELINE_HEIGHT, stroke: "#8888", "stroke-dasharray": "2 3" });
  });
  element(svg, "line", { id: "cursor", y1: 0, y2: TIMELINE_HEIGHT, stroke: "currentColor", "stroke-width": 1.2 });
}

const share = (rgb) => (t) => `rgba(${rgb},${(0.06 + 0.94 * t).toFixed(3)})`;
const RIGHT = "0,158,115", LEFTWARDS = "204,121,167";
const towards = (t) => (t >= 0.5 ? `rgba(${RIGHT},${(2 * t - 1).toFixed(3)})` : `rgba(${LEFTWARDS},${(1 - 2 * t).toFixed(3)})`);

function drawMaps(index) {
  const maps = data.maps[index], when = `after ${maps.step.toLocaleString("en")} steps`, visited = share("0,114,178"), valued = share("213,94,0");
  const most = largest([...maps.visits.flat(), 1e-12]), highest = largest([...maps.evoi.flat(), 1e-12]);
  const paint = (name, colour) => drawGrid(byId(`map-${name}`), data.size, (row, column) => (column > row ? "#8883" : colour(maps[name][row][column])));
  byId("map-step").textContent = `${when} of training${maps.step === data.weightsStep ? ", with the weights inspected above" : ""}`;
  paint("visits", (count) => visited(Math.sqrt(count / most)));
  paint("evoi", (value) => valued(value / highest));
  paint("votes", towards);
  byId("map-visits-title").textContent = `visits, 200 episodes of the agent ${when}`;
  byId("map-evoi-title").textContent = `largest EVOI ${when} (strongest colour: ${number(highest)})`;
  byId("map-votes-title").textContent = `heads ${when} that want right (green) or left (pink)`;
}
