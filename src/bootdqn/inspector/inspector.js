// The state of the page, and how it answers to keys, clicks and filters.
const state = { step: 0, filter: "all", rewards: "other", relative: data.relative, timer: null };

function mostCommon(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) || 0) + 1);
  return [...counts].reduce((best, one) => (one[1] > best[1] ? one : best))[0];
}

const usualReward = mostCommon(steps.map((s) => s.reward));
const highestReward = largest(steps.map((s) => s.reward));
const REWARDS = {
  other: [`reward other than ${number(usualReward)}`, (reward) => reward !== usualReward],
  above: [`reward above ${number(usualReward)}`, (reward) => reward > usualReward],
  below: [`reward below ${number(usualReward)}`, (reward) => reward < usualReward],
  highest: [`highest reward, ${number(highestReward)}`, (reward) => reward === highestReward && reward !== usualReward],
};
const top20 = new Set(steps.map((s, i) => [largest(s.evoi), i]).sort((a, b) => b[0] - a[0]).slice(0, 20).map((p) => p[1]));
const FILTERS = {
  all: ["all", () => true],
  flips: ["flips", (i) => steps[i].flip !== null],
  evoi: ["20 highest EVOI", (i) => top20.has(i)],
  rewards: ["rewards", (i) => REWARDS[state.rewards][1](steps[i].reward)],
};
const shownBy = (name) => steps.map((_, i) => i).filter(FILTERS[name][1]);
const KEYS = [
  ["→", "next step", { ArrowRight: () => move(1) }],
  ["←", "previous step", { ArrowLeft: () => move(-1) }],
  ["n", "next flip", { n: () => move(1, "flips") }],
  ["p", "previous flip", { p: () => move(-1, "flips") }],
  ["Home", "first step", { Home: () => show(shownBy(state.filter)[0]) }],
  ["End", "last step", { End: () => show(shownBy(state.filter).at(-1)) }],
  ["space", "play or pause", { " ": play }],
  ["r", "relative or absolute Q", { r: () => setRelative(!state.relative) }],
  ["?", "these keys", { "?": () => byId("help").showModal() }],
];
const ACTIONS = Object.assign({}, ...KEYS.map((key) => key[2]));

function drawFacts(step) {
  const heads = data.followsHead ? [["active head", `${step.head}`]] : [["active head", "none"], ["head of the bars", `${step.head}`]];
  const rows = [["step", `${state.step}`], ["episode", `${step.episode + 1}`], ...heads, ["action", step.names[step.action]], ["reward", number(step.reward)],
    ["value of the state", number(step.value)], ["largest gain", number(largest(step.gain))], ["largest EVOI", number(largest(step.evoi))],
    ["vote entropy", `${number(step.vote_entropy)} nats`]];
  data.methods.forEach((method, m) => rows.push([`${SHAPES[m]} ${method.name}`, step.names[step.choices[m]]]));
  byId("facts").replaceChildren();
  for (const [name, value] of rows) {
    const row = html(byId("facts"), "tr");
    html(row, "td", {}, name);
    html(row, "td", {}, value);
  }
}

function markFlip() {
  const list = byId("flip-list");
  list.querySelector("[aria-current]")?.removeAttribute("aria-current");
  const entry = list.querySelector(`[data-step="${state.step}"]`);
  if (!entry) return;
  entry.setAttribute("aria-current", "step");
  const place = entry.offsetTop - list.offsetTop;
  if (place < list.scrollTop || place + entry.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = place - list.clientHeight / 2;
}

function show(i) {
  state.step = Math.max(0, Math.min(steps.length - 1, i));
  const step = steps[state.step], cursor = byId("cursor");
  drawScene(step); drawBars(step, state.relative); drawScores(step); drawFacts(step); markFlip();
  byId("flip").textContent = step.flip || "";
  byId("flip").className = step.flip ? "on" : "";
  byId("scrub").value = state.step;
  byId("where").textContent = `step ${state.step} of ${steps.length - 1}`;
  cursor.setAttribute("x1", at(state.step)); cursor.setAttribute("x2", at(state.step));
  document.body.dataset.step = state.step;
  if (location.protocol !== "about:") history.replaceState(null, "", `#${state.step}`); // a frame of a notebook has no address
}

function showAddressed() {
  const asked = /^#\d+$/.test(location.hash) ? Number(location.hash.slice(1)) : steps.length;
  show(asked < steps.length ? asked : Math.max(0, steps.findIndex((step) => step.flip !== null)));
}

function redraw() {
  drawTimeline(state.filter === "all" ? null : new Set(shownBy(state.filter)), usualReward);
  show(state.step);
}

function move(direction, name = state.filter) {
  const places = shownBy(name);
  const next = direction > 0 ? places.find((i) => i > state.step) : places.reverse().find((i) => i < state.step);
  if (next !== undefined) show(next);
}

function play() {
  clearInterval(state.timer);
  state.timer = state.timer ? null : setInterval(() => { const before = state.step; move(1); if (state.step === before) play(); }, 120);
  byId("play").textContent = state.timer ? "❚❚" : "▶";
}

function setRelative(relative) {
  state.relative = relative;
  byId("relative").setAttribute("aria-pressed", relative);
  show(state.step);
}

function setFilter(name) {
  const places = ((state.filter = name), shownBy(name));
  document.querySelectorAll("[data-filter]").forEach((b) => b.setAttribute("aria-pressed", b.dataset.filter === name));
  if (!places.includes(state.step)) state.step = places[0];
  redraw();
}

function setUpFilters() {
  for (const [name, [label]] of Object.entries(FILTERS)) {
    const count = shownBy(name).length, button = html(byId("filters"), "button", { "data-filter": name, "aria-pressed": name === state.filter }, `${label} (${count})`);
    button.disabled = count === 0;
    button.addEventListener("click", () => setFilter(name));
    if (name === "rewards" && count === 0) button.title = `every reward is ${number(usualReward)}`;
  }
  const rules = Object.entries(REWARDS).map(([rule, [label, holds]]) => [rule, label, steps.filter((s) => holds(s.reward)).length]).filter((rule) => rule[2]);
  if (rules.length < 2) return;
  const select = html(byId("filters"), "select", { id: "reward-rule", "aria-label": "rewards to show" });
  rules.forEach(([value, label, count]) => html(select, "option", { value }, `${label} (${count})`));
  select.addEventListener("change", () => {
    state.rewards = select.value;
    document.querySelector('[data-filter="rewards"]').textContent = `rewards (${shownBy("rewards").length})`;
    setFilter("rewards");
  });
}

function setUpFlips() {
  const flips = shownBy("flips"), several = steps.at(-1).episode > 0;
  byId("flips-title").textContent = flips.length ? `${flips.length} ${flips.length === 1 ? "flip" : "flips"}` : "no flips";
  for (const i of flips) {
    const step = steps[i], button = html(html(byId("flip-list"), "li"), "button", { "data-step": i, title: step.flip });
    html(button, "b", {}, `${i}`);
    button.append(`${step.names[step.alone]} → ${step.names[step.action]}${several ? `, episode ${step.episode + 1}` : ""}`);
    button.addEventListener("click", () => show(i));
  }
}

function setUpLegend() {
  const followed = data.followsHead ? "the active head" : "one head, which BootDQN, BootDQN-Gain and BootDQN-EVOI would follow";
  const entry = (text, colour, kind = "swatch") => html(html(byId("legend"), "span"), "i", { class: kind, style: `color:${colour}` }).after(text);
  entry(`Q of ${followed}`, data.colours.q);
  entry("its gain", data.colours.gain);
  entry("EVOI", data.colours.evoi);
  entry("highest with gain", data.colours.gain, "swatch dashed");
  entry("highest with EVOI", data.colours.evoi, "swatch dashed");
  html(byId("legend"), "span", {}, `• every head, ${data.followsHead ? "the active one" : "that one"} larger`);
  html(byId("legend"), "span", {}, "— their mean");
  data.methods.forEach((method, m) => {
    const span = html(byId("legend"), "span");
    html(span, "i", { style: `color:${method.colour};font-style:normal` }, SHAPES[m]);
    span.append(` ${method.name}`);
  });
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
for (const [key, text] of KEYS) {
  html(html(byId("keys"), "dt"), "kbd", {}, key);
  html(byId("keys"), "dd", {}, text);
}
setUpFilters(); setUpFlips(); setUpLegend(); setUpMaps();
byId("relative").setAttribute("aria-pressed", state.relative);
byId("relative").addEventListener("click", () => setRelative(!state.relative));
byId("help-button").addEventListener("click", ACTIONS["?"]);
byId("scrub").max = steps.length - 1;
byId("scrub").addEventListener("input", (event) => show(Number(event.target.value)));
byId("play").addEventListener("click", play);
byId("timeline").addEventListener("click", (event) => {
  const place = stepAt(event.clientX - byId("timeline").getBoundingClientRect().left), places = shownBy(state.filter);
  if (places.length) show(places.reduce((best, i) => (Math.abs(i - place) < Math.abs(best - place) ? i : best)));
});
document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLSelectElement, pressing = event.key === " " && event.target instanceof HTMLButtonElement;
  if (event.ctrlKey || event.metaKey || event.altKey || typing || pressing || byId("help").open || !ACTIONS[event.key]) return;
  event.preventDefault();
  ACTIONS[event.key]();
});
window.addEventListener("resize", redraw);
window.addEventListener("hashchange", showAddressed);
drawTimeline(null, usualReward);
showAddressed();
