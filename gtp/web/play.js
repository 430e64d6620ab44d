/** The page of `keima play`: shows the state that the server sends, and sends what is done. */

import { colorsOf, indexOf, newGoban, numberOf, vertexOf } from "./goban.js";
import { newHelp } from "./help.js";
import { followKeys } from "./keys.js";
import { newRecord } from "./record.js";
import { newRollout } from "./rollout.js";
import { newSound } from "./sound.js";
import { newStart, remember, remembered } from "./start.js";
import { newTalk } from "./talk.js";

const $ = (id) => document.getElementById(id);
const NAMES = { black: "Black", white: "White" };
const PARTS = ["values", "qValue", "qRollout", "policy", "visits", "line", "tree"];

let state = null, openedFor = null, dismissed = null, isWalk = false, acting = 0, frame = 0;
let layers = [], askedLayers = 0, thinking = null, played = null;
const root = document.documentElement, sound = newSound();

// --- the server -----------------------------------------------------------------------------------------------

const talk = newTalk({
  state: take,
  search(search) {
    if (!state || search.node !== state.node) return;
    help.take(search);
    if (search.thinking && thinking) thinking.show(search.thinking, state.board, state.toMove);
    // Once a frame, and not at all while nobody looks.
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      help.draw(state);
      if (!rollout.isShown) drawBoard();
    });
  },
  connection(text) {
    $("lost").hidden = !text;
    $("lost").textContent = text;
    document.body.classList.toggle("away", Boolean(text));
  },
  wrong: tellWrong,
});

async function act(action, body) {
  acting++;
  try { return await talk.act(action, body); } finally { acting--; follow(); draw(); }
}

function tellWrong(text) {
  $("wrong").textContent = text;
}

/** A new state of the server. */
function take(next) {
  const before = state;
  state = next;
  const isNewPosition = !before || before.id !== next.id || before.node !== next.node;
  if (isNewPosition) {
    help.take(null);
    rollout.stop();
    if (before) tellWrong("");
    // A step in the record is no event of the game, which the server would tell.
    isWalk = before?.id === next.id && before.said === next.said;
    if (before && before.id === next.id && !before.path.some(([node]) => node === next.node)) {
      const captured = (one) => one.captures.black + one.captures.white;
      const isMove = next.number > before.number && isOn("sound");
      if (isMove) sound.move(next.last === -1, captured(next) - captured(before));
    }
  }
  if (before?.said !== next.said) isWalk = false;
  start.offer(next);
  follow();
  draw();
  if (isNewPosition && !$("thinking").hidden && layers.length) showLayer();
}

/** Help that the server switched, or another tab. */
function follow() {
  if (!state || acting) return;
  const { hint, analysis, thinking: thinks } = state.help;
  help.shows.hint = hint;
  if (analysis && !help.wantsAnalysis) help.shows.candidates = true;
  if (!analysis) help.shows.candidates = help.shows.ownership = false;
  if (thinks === $("thinking").hidden) showThinking(thinks);
}

// --- the board ------------------------------------------------------------------------------------------------

const goban = newGoban($("goban"), {
  point: choosePoint,
  waits(i) {
    $("confirm").hidden = i < 0;
    $("confirm-play").textContent = i < 0 ? "" : `Play ${goban.vertex(i)}: tap it again, or here`;
  },
  over: (i) => help.over(i),
  cursor: (text) => { $("cursor-said").textContent = text; },
});
const help = newHelp($, (i) => vertexOf(i, state.size), drawBoard, (number) => record.toMove(number));
const record = newRecord($, (i) => vertexOf(i, state.size), act, () => state, talk.list);
const start = newStart($("start"), startGame, draw);
const rollout = newRollout(
  (colors, last, number) => {
    played = { colors, last };
    drawBoard();
    $("rollout-said").textContent = `Move ${number}`;
  },
  (result, count) => { $("rollout-said").textContent = `${count} moves, ${result}`; },
);

const isEmpty = () => state.phase === "play" && !state.path.length && !state.handicap && !state.placing;
const isFresh = () => isEmpty() && !state.resumes && dismissed !== state.id;
const isPanelOpen = () => openedFor === state.id || isFresh();
const isPreview = () => isFresh() && openedFor !== state.id;
const isHuman = () => !state.players[state.toMove].engine;

/** Whether a stone may be put on the shown position. */
function playsNow() {
  if (rollout.isShown) return false;
  if (state.phase === "play") return !state.atEnd || isHuman();
  return state.phase === "over" && !state.atEnd;
}

/** The move that led to the shown position, in words. */
function moveText() {
  const { number, path, size } = state, [, color, i] = path.find(([node]) => node === state.node) ?? [];
  if (color) return `Move ${number}: ${color === "b" ? "Black" : "White"} ${vertexOf(i, size)}`;
  return number ? `After move ${number}` : "The start";
}

function positionText() {
  const { size, phase, toMove } = state, turn = phase === "play" ? ` ${NAMES[toMove]} to move.` : "";
  return `Board of ${size} by ${size}. ${moveText()}.${turn}`;
}

function drawBoard() {
  if (!state) return;
  if (isPreview()) {
    const size = start.isValid() ? start.size() : state.size, { color, handicap } = start.settings();
    const plays = ["black", "both"].includes(color) && !handicap, label = `Empty board of ${size} by ${size}.`;
    const colors = new Array(size * size).fill(0);
    return goban.show({ size, colors, toMove: 1, last: -1, plays, label }, () => ({}));
  }
  const { size, toMove, last, ko, phase, dead } = state, isScored = phase !== "play" && state.atEnd;
  const view = {
    size, colors: colorsOf(state.board), toMove: numberOf(toMove), last: last ?? -1, ko: phase === "play" ? ko : null,
    dead: isScored ? dead : [], plays: playsNow(), toggles: phase === "scoring", label: positionText(),
  };
  if (rollout.isShown && played) {
    goban.show({ ...view, colors: played.colors, last: played.last, dead: [], plays: false }, () => ({}));
  } else goban.show(view, isScored && state.owners ? territoryMarks : help.marks);
}

/** Squares of the owners on empty points and dead stones; a mark for ko is among the marks of help. */
function territoryMarks(board, view) {
  let marks = "";
  state.owners.forEach((owner, i) => {
    if (!owner || (view.colors[i] && !view.dead.includes(i))) return;
    const x = CELL * ((i % view.size) + 1.5), y = CELL * (Math.floor(i / view.size) + 1);
    const look = `fill="${ink(owner > 0 ? 1 : 2)}" stroke="var(--edge)" stroke-width=".8"`;
    marks += `<rect class="owner" x="${x - 4}" y="${y - 4}" width="8" height="8" ${look}/>`;
  });
  return { marks };
}

async function choosePoint(i) {
  if (!state) return;
  if (isPreview()) {
    if (!["black", "both"].includes(start.color()) || !start.isValid()) return;
    start.save();
    return (await startGame(start.settings())) && act("play", { point: i });
  }
  if (state.phase === "scoring") return act("dead", { point: i });
  if (playsNow()) return act("play", { point: i });
  const isOver = state.phase === "over";
  tellWrong(isOver ? "The game is over. Go back in the record to try other moves." : "It is Keima's turn.");
}

async function startGame(settings) {
  const reply = await act("new", { ...settings, rev: undefined });
  if (!reply) return false;
  openedFor = null;
  dismissed = reply.state.id;
  draw();
  return true;
}

// --- what is said beside the board ----------------------------------------------------------------------------

function draw() {
  if (!state) return;
  drawBoard();
  drawPlayers();
  drawPhase();
  record.draw(state);
  help.draw(state);
  for (const [name, isShown] of Object.entries(help.shows)) $(name).setAttribute("aria-pressed", String(isShown));
  $("thinks").setAttribute("aria-pressed", String(!$("thinking").hidden));
  if ($("as-text").open) drawTable();
}

function drawPlayers() {
  for (const color of ["black", "white"]) {
    const { name, engine, about } = state.players[color], isTurn = state.phase === "play" && state.toMove === color;
    const card = $(`player-${color}`), part = (of) => card.querySelector(`.${of}`);
    const isThinking = engine && isTurn && state.engine.state === "thinking";
    card.classList.toggle("turn", isTurn && !isPreview());
    part("name").textContent = name;
    card.title = engine ? about ?? "" : "";
    part("about").textContent = isThinking ? "thinking…" : engine ? about ?? "" : "";
    const count = state.captures[color];
    part("captures").textContent = count ? `${count} captured` : "";
  }
  const { text, state: stage } = state.engine;
  const words = { loading: `Getting ready: ${text || "loading"}`, failed: `Keima cannot play: ${text}` }[stage];
  // Compilation in the background, which help may wait for.
  const about = words ?? (text && text[0].toUpperCase() + text.slice(1));
  say($("engine"), about || (state.network ?? ""));
  $("engine").classList.toggle("k5", stage === "failed");
  $("engine").classList.toggle("busy", Boolean(about));
  drawClocks();
}

let clockAt = 0;
function drawClocks() {
  clockAt = performance.now();
  tick();
}
function tick() {
  if (!state) return;
  for (const color of ["black", "white"]) {
    const clock = state.clock?.[color], shown = $(`player-${color}`).querySelector(".clock");
    const [text, isLow] = clock ? clockText(clock, clock.running ? (performance.now() - clockAt) / 1000 : 0) : ["", false];
    say(shown, text);
    shown.classList.toggle("low", isLow);
  }
}

/** A clock's text, and whether its time is nearly over, some seconds after the server told it. */
function clockText({ seconds, periods, inPeriod, periodSeconds, increment, running }, passed) {
  let left = seconds - passed, isInPeriod = inPeriod, further = inPeriod ? periods - 1 : periods;
  for (; left < 0 && further > 0; further--) { left += periodSeconds; isInPeriod = true; }
  left = Math.max(0, left);
  const rest = further ? ` + ${further}×${periodSeconds} s` : isInPeriod ? ", last period" : "";
  const added = increment ? ` + ${increment} s` : "";
  const time = `${Math.floor(left / 60)}:${String(Math.floor(left % 60)).padStart(2, "0")}`;
  return [time + rest + added, running && left < 10];
}
setInterval(tick, 250);

function resultText(result) {
  if (!result || result === "0" || /^draw/i.test(result)) return result ? "The game is drawn." : "The game is over.";
  const winner = result[0] === "B" ? "Black" : "White", by = result.slice(2);
  if (/^r/i.test(by)) return `${winner} wins by resignation.`;
  if (/^t/i.test(by)) return `${winner} wins on time.`;
  return by ? `${winner} wins by ${by} ${Number(by) === 1 ? "point" : "points"}.` : `${winner} wins.`;
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function drawPhase() {
  const { phase, count, result, atEnd } = state, isPlay = phase === "play", isOpen = isPanelOpen();
  $("start").hidden = !isOpen;
  $("game").hidden = isOpen;
  $("start-cancel").hidden = isFresh();
  $("players").hidden = isPreview();
  say($("said"), isWalk ? moveText() : state.said || (isPlay ? `${NAMES[state.toMove]} to move.` : ""));
  if (state.warning) tellWrong(state.warning);
  $("count").hidden = isPlay || !atEnd;
  const shown = phase === "over" ? [resultText(result), count && `${count.text.split(":")[0]}.`]
    : count ? [`${count.text}.`, "Click stones that are dead, or alive after all."] : ["Keima is counting…"];
  say($("count"), isPlay ? "" : shown.filter(Boolean).join(" "));
  // What the count tells is read aloud, but not shown twice.
  $("said").classList.toggle("unseen", !$("count").hidden);
  $("acts").hidden = !isPlay;
  $("scoring").hidden = phase !== "scoring";
  $("accept").disabled = !count;
  $("ended").hidden = phase !== "over";
  $("undo").disabled = !state.undoes;
  $("pass").disabled = !playsNow() || state.placing > 0;
  $("take-on").hidden = state.players.black.engine || state.players.white.engine;
  $("resign").disabled = !isHuman() || !atEnd;
  $("make-review").disabled = !state.path.length || state.review?.state === "running";
  const isYours = isPlay && isHuman() && state.path.length > 0;
  document.title = `${isYours && document.hidden ? "Your move – " : ""}Keima`;
}

function drawTable() {
  const { size } = state, colors = colorsOf(state.board), names = Array.from(COLUMNS.slice(0, size));
  const cell = (kind, text, scope) => {
    const one = document.createElement(kind);
    one.textContent = text;
    if (scope) one.scope = scope;
    return one;
  };
  const row = (cells) => { const one = document.createElement("tr"); one.append(...cells); return one; };
  const rows = [row([cell("td", ""), ...names.map((name) => cell("th", name, "col"))])];
  for (let n = 0; n < size; n++) {
    const stones = names.map((_, k) => cell("td", ["", "black", "white"][colors[n * size + k]]));
    rows.push(row([cell("th", size - n, "row"), ...stones]));
  }
  $("table").replaceChildren(...rows);
}

// --- buttons and keys -----------------------------------------------------------------------------------------

const isOn = (id) => $(id).getAttribute("aria-pressed") === "true";
const doing = {
  undo: () => state?.undoes && state.phase !== "scoring" && act("undo"),
  pass: () => state && playsNow() && !state.placing && !isPreview() && act("play", { point: -1 }),
  resign: () => $("resigning").showModal(),
  "take-on": () => act("players", { color: state.toMove, level: start.level() }),
  accept: () => act("accept"),
  continue: () => act("continue"),
  new: openStart, again: openStart,
  hint: () => switchHelp("hint"),
  candidates: () => switchHelp("candidates"),
  ownership: () => switchHelp("ownership"),
  graph: () => switchHelp("graph"),
  thinks: () => switchThinking($("thinking").hidden),
  "make-review": () => act("review"), "ended-review": () => act("review"),
  "confirm-play": () => goban.confirm(),
  "start-cancel": () => { openedFor = null; draw(); },
  "keys-open": () => $("keys").showModal(),
  rollout: playRollout,
  "rollout-stop": stopRollout,
  sound: () => showSound(!isOn("sound")),
  theme: () => showTheme(isDark() ? "light" : "dark", true),
};
for (const [id, does] of Object.entries(doing)) $(id).addEventListener("click", does);

function openStart() {
  openedFor = state.id;
  draw();
  $("start").scrollIntoView({ block: "nearest" });
  $("start-play").focus({ preventScroll: true });
}

async function switchHelp(name) {
  if (!state || isPreview()) return;
  const before = help.wantsAnalysis;
  help.shows[name] = !help.shows[name];
  if (name === "hint") await act("hint", { on: help.shows.hint });
  else if (help.wantsAnalysis !== before) await act("analysis", { on: help.wantsAnalysis });
  if (!help.wantsAnalysis && !help.shows.hint) help.take(null);
  draw();
}

function stopHelp() {
  if (help.shows.hint) switchHelp("hint");
  if (!help.wantsAnalysis) return;
  help.shows.candidates = help.shows.ownership = false;
  act("analysis", { on: false }).then(draw);
}

$("resigning").addEventListener("close", () => {
  if ($("resigning").returnValue === "resign") act("resign");
  $("resigning").returnValue = "";
});
$("typed").addEventListener("submit", (event) => {
  event.preventDefault();
  const i = indexOf($("point").value, goban.size), text = $("point").value.trim();
  if (!text) return;
  $("point").value = "";
  goban.hover(-1);
  goban.focus();
  if (i === undefined) tellWrong(`There is no point ${text} on this board: a letter and a number, such as D4.`);
  else if (i < 0) doing.pass();
  else choosePoint(i);
});
const showTyped = () => goban.hover(indexOf($("point").value, goban.size) ?? -1);
$("point").addEventListener("input", showTyped);
$("as-text").addEventListener("toggle", draw);
$("coordinates").addEventListener("change", () => showCoordinates($("coordinates").checked));
$("keys-on").addEventListener("change", () => remember("keima.keys", $("keys-on").checked));
document.addEventListener("visibilitychange", draw);

function showSound(on) {
  $("sound").setAttribute("aria-pressed", String(on));
  remember("keima.sound", on);
}

function showCoordinates(on) {
  $("coordinates").checked = on;
  goban.label(on);
  remember("keima.coordinates", on);
}

followKeys(goban, $("point"), {
  ...doing,
  point: choosePoint,
  walk: (step) => state && record.walk(step),
  coordinates: () => showCoordinates(!$("coordinates").checked),
  typed: showTyped,
  stop() {
    if (goban.waiting >= 0) goban.unwait();
    else if (rollout.isShown) stopRollout();
    else if (openedFor !== null) doing["start-cancel"]();
    else if (goban.hasCursor) goban.leave();
    else stopHelp();
  },
}, () => $("keys-on").checked);

// --- how it thinks --------------------------------------------------------------------------------------------

async function showThinking(on) {
  $("thinking").hidden = !on;
  document.querySelector("main").classList.toggle("thinking", on);
  $("thinks").setAttribute("aria-pressed", String(on));
  if (!on) { stopRollout(); return; }
  if (thinking?.size !== state.size) {
    const { newThinking } = await import("./thinking.js");
    $("panels").replaceChildren();
    thinking = Object.assign(newThinking($("panels"), state.size), { size: state.size });
    $("layer-figure").replaceChildren(thinking.layerFigure);
    layers = [];
    showLayer();
  }
}

async function switchThinking(on) {
  if (!state || isPreview()) return;
  await act("thinking", { on, parts: PARTS });
}

async function playRollout() {
  const reply = await act("rollout");
  if (!reply) return;
  $("rollout-stop").hidden = false;
  rollout.play(colorsOf(state.board), state.size, numberOf(state.toMove), reply.rollout);
}

function stopRollout() {
  rollout.stop();
  $("rollout-stop").hidden = true;
  $("rollout-said").textContent = "";
  draw();
}

async function showLayer() {
  const asked = ++askedLayers, reply = await act("layers", { layer: layers[Number($("layer").value)] ?? "" });
  if (!reply || asked !== askedLayers) return;
  layers = reply.layers;
  $("layer").closest(".walk").hidden = !layers.length;
  $("layer").max = Math.max(0, layers.length - 1);
  $("layer").value = layers.indexOf(reply.layer);
  $("layer").setAttribute("aria-valuetext", reply.layer ?? "");
  $("layer-back").disabled = reply.layer === layers[0];
  $("layer-forward").disabled = reply.layer === layers.at(-1);
  thinking.showLayer(reply);
}
$("layer").addEventListener("change", showLayer);
for (const [id, step] of [["layer-back", -1], ["layer-forward", 1]]) {
  $(id).addEventListener("click", () => { $("layer").value = Number($("layer").value) + step; showLayer(); });
}

// --- light and dark -------------------------------------------------------------------------------------------

const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
function showTheme(theme, isChosen) {
  if (theme) root.dataset.theme = theme;
  if (isChosen) remember("keima.theme", theme);
  $("theme").textContent = isDark() ? "Light" : "Dark";
}
system.addEventListener("change", () => showTheme(remembered("keima.theme", null)));
showTheme(remembered("keima.theme", null));
showCoordinates(remembered("keima.coordinates", true));
$("keys-on").checked = remembered("keima.keys", true);
showSound(remembered("keima.sound", true));
