/** How the engine thinks: the six panels of AlphaGo's Figure 5, the tree's most visited lines, a network's layers.
 *
 * Numbers are those of engine/insight/thinking.py and layers.py. Boards are drawn by board.js. Colours are CSS variables
 * of page.css and thinking.css. */

const PANELS = [
  ["values", "Value network", "the network's win rate after each move, without search"],
  ["qValue", "Tree, by values", "Q with λ = 0: mean of the network's values below each move"],
  ["qRollout", "Tree, by rollouts", "Q with λ = 1: mean result of the rollouts below each move"],
  ["policy", "Policy network", "probability of each move, before the search"],
  ["visits", "Visits", "share of the search that went into each move"],
  ["line", "Principal variation", "the most visited line"],
];
const RATES = new Set(["values", "qValue", "qRollout"]);
const INTERVAL_MS = 250, STEP_MS = 16, NUMBERS = 16, COLOURED = 40, SPANS = [0.02, 0.15], LINE = 20, SPOKEN = 3;
const LEAST_SHARE = 0.001, NUMBERED_SHARE = 0.005, PASS_SHARE = 0.01;
/* SPANS: win rates that are not among the best COLOURED, or this far below the best one, are not coloured. */
const NEGATIVE = [47, 127, 209], POSITIVE = [232, 89, 12], GAP = [128, 128, 128, 110], ZERO = 128, STEPS = 127, MAP_PX = 44;

const percent = (rate) => `${Math.round(100 * rate)}%`;
const made = (name, className = "", text = "") => {
  const element = document.createElement(name);
  element.className = className;
  element.textContent = text;
  return element;
};
/** Set an element's text, or its drawing, if it differs from the last one. */
const setText = (element, text) => { if (element.textContent !== text) element.textContent = text; };
const drawn = new WeakMap();
function setDrawing(layer, text) {
  if (drawn.get(layer) === text) return;
  drawn.set(layer, text);
  layer.innerHTML = text;
}

/** One panel: a board with numbers in percent, and its caption, a button that makes it as wide as all of them. */
function newPanel(letter, title, about, size) {
  const figure = made("figure", "panel"), head = document.createElement("figcaption");
  const button = made("button", "panel-title"), place = made("div"), note = made("p", "soft");
  button.type = "button";
  button.append(made("b", "", letter), ` ${title}`);
  button.title = `${about}; larger or smaller`;
  place.innerHTML = boardText(size);
  const svg = place.firstElementChild, { circle, word, stone, vertex } = newBoard(svg, size);
  const whole = svg.getAttribute("viewBox"), lean = [CELL * 0.85, CELL * 0.35, CELL * (size + 0.3), CELL * (size + 0.3)].join(" ");
  /** Small panels have no coordinates, nor their margin. */
  const widen = (isWide) => {
    button.setAttribute("aria-pressed", String(figure.classList.toggle("wide", isWide)));
    svg.setAttribute("viewBox", isWide ? whole : lean);
  };
  widen(false);
  button.addEventListener("click", () => widen(!figure.classList.contains("wide")));
  const [below, stones, marks] = ["owners", "stones", "marks"].map((name) => svg.querySelector(`.${name}`));
  svg.removeAttribute("role");
  svg.setAttribute("aria-hidden", "true");
  head.append(button);
  figure.append(head, place, note);
  place.setAttribute("role", "img");

  const square = (i, side, opacity) => {
    const x = CELL * ((i % size) + 1.5) - side / 2, y = CELL * (Math.floor(i / size) + 1) - side / 2;
    return `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${side.toFixed(1)}" height="${side.toFixed(1)}" ` +
      `fill="var(--heat)" opacity="${opacity.toFixed(2)}"/>`;
  };
  const ring = (i) => circle(i, 12.3, 'fill="none" stroke="var(--ring-edge)" stroke-width="5"') +
    circle(i, 12.3, 'fill="none" stroke="var(--ring)" stroke-width="3"');
  const placeOf = (i) => (i < 0 ? "pass" : vertex(i));

  /** The squares of some points: those with a number are as large as a point, the others by their heat. */
  function heat(points, heatOf, isNumbered) {
    let squares = "", numbers = "";
    points.forEach(([i, number], rank) => {
      const hot = heatOf(number);
      if (i < 0 || hot <= 0) return;
      if (rank >= NUMBERS || !isNumbered(number)) { squares += square(i, 4 + 10 * hot, 0.45 + 0.4 * hot); return; }
      squares += square(i, 21, 0.74 + 0.26 * hot);
      numbers += word(i, Math.round(100 * number), "var(--heat-ink)");
    });
    return [squares, numbers];
  }

  /** What a screen reader says, and the note below the board. */
  function tell(sentence, text) {
    const label = `${letter}, ${title}: ${sentence}`;
    if (place.getAttribute("aria-label") !== label) place.setAttribute("aria-label", label);
    setText(note, text);
  }
  tell("nothing yet.", about);

  return {
    figure,
    /** Draw the stones on which the panel's numbers stand. */
    stones(text) { setDrawing(stones, text); },
    clear() {
      setDrawing(below, "");
      setDrawing(marks, "");
      tell("nothing yet.", about);
    },
    /** Draw win rates or shares; `best` is the index of the circle. */
    numbers({ points, text, missing }, best, isRate) {
      if (missing) { this.clear(); tell(`${missing}.`, missing); return; }
      const sorted = points.slice().sort((a, b) => b[1] - a[1]), top = sorted.length ? sorted[0][1] : 0;
      const last = sorted.length ? sorted[Math.min(COLOURED, sorted.length - 1)][1] : 0;
      const span = Math.min(SPANS[1], Math.max(SPANS[0], 1.1 * (top - last)));
      const [squares, words] = isRate
        ? heat(sorted, (rate) => 1 - (top - rate) / span, () => true)
        : heat(sorted.filter(([, share]) => share >= LEAST_SHARE), (share) => Math.sqrt(share / top), (share) => share >= NUMBERED_SHARE);
      setDrawing(below, squares);
      setDrawing(marks, words + (best >= 0 ? ring(best) : ""));
      const first = sorted.find(([i]) => i === best) ?? sorted[0];
      const spoken = first ? [first, ...sorted.filter((one) => one !== first)].slice(0, SPOKEN) : [];
      const pass = sorted.find(([i, number]) => i < 0 && (i === best || (!isRate && number >= PASS_SHARE)));
      tell(spoken.length ? `${spoken.map(([i, number]) => `${placeOf(i)} ${percent(number)}`).join(", ")}.` : "nothing yet.",
        `${about} (${text})${pass ? `; pass ${percent(pass[1])}` : ""}`);
    },
    /** Draw a line of numbered moves; `toMove` is the colour of the first. */
    line(moves, toMove) {
      const seen = new Set();
      let text = "";
      moves.slice(0, LINE).forEach((i, n) => {
        if (i < 0 || seen.has(i)) return;
        seen.add(i);
        text += stone(i, n % 2 ? 3 - toMove : toMove, n + 1);
      });
      setDrawing(marks, text + (moves[0] >= 0 ? ring(moves[0]) : ""));
      const words = moves.slice(0, LINE).map(placeOf).join(" ");
      tell(words ? `${words}.` : "nothing yet.", words ? `${about}: ${words}` : about);
    },
  };
}

/** The most visited lines as nested lists. */
function newTree(vertex) {
  const section = made("section", "lines-tree"), list = made("ul"), head = made("p", "row soft");
  head.setAttribute("aria-hidden", "true");
  head.append(made("span", "", "move"), made("span", "", "visits N"), made("span", "", "prior P"), made("span", "", "value Q"));
  const scroll = made("div", "scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Most visited lines");
  scroll.append(list);
  section.append(made("h3", "", "The tree: most visited lines"), head, scroll);
  let last = "";

  function items(lines, most) {
    return lines.map(({ move, color, N, P, Q, children }) => {
      const item = made("li"), row = made("div", "row"), visits = made("span", "visits"), bar = made("i");
      const name = made("b", `of-${color === "b" ? "b" : "w"}`, vertex(move));
      bar.style.width = `${(100 * N) / most}%`;
      visits.append(bar, made("span", "", N.toLocaleString("en")));
      row.append(name, visits, made("span", "", percent(P)), made("span", "", percent(Q)));
      item.append(row);
      if (children.length) {
        const below = made("ul");
        below.append(...items(children, most));
        item.append(below);
      }
      return item;
    });
  }
  return {
    section,
    show(lines) {
      const text = JSON.stringify(lines);
      if (text === last) return;
      last = text;
      list.replaceChildren(...items(lines, lines.length ? lines[0].N : 1));
    },
  };
}

/** A layer's channels as small maps on one canvas: orange above 0, blue below. */
function newLayer(vertex) {
  const figure = made("figure", "layer"), canvas = made("canvas"), caption = made("figcaption", "soft");
  figure.hidden = true;
  figure.append(caption, canvas);
  canvas.setAttribute("role", "img");
  let shown = null, bytes = null, columns = 1;

  function draw() {
    const { channels, size } = shown, wide = figure.clientWidth || 320;
    const fits = Math.max(1, Math.floor(wide / MAP_PX));
    columns = Math.min(channels, fits, Math.max(4, Math.ceil(Math.sqrt(2 * channels))));
    const rows = Math.ceil(channels / columns), side = size + 1;
    canvas.width = columns * side - 1;
    canvas.height = rows * side - 1;
    canvas.style.maxWidth = `${columns * 6 * side}px`;
    const image = new ImageData(canvas.width, canvas.height);
    for (let at = 0, n = 0; at < image.data.length; at += 4, n++) {
      const x = n % canvas.width, y = Math.floor(n / canvas.width);
      if (x % side === size || y % side === size) image.data.set(GAP, at);
    }
    for (let c = 0; c < channels; c++) {
      const left = (c % columns) * side, top = Math.floor(c / columns) * side;
      for (let i = 0; i < size * size; i++) {
        const value = bytes[c * size * size + i] - ZERO, [red, green, blue] = value < 0 ? NEGATIVE : POSITIVE;
        const at = 4 * ((top + Math.floor(i / size)) * canvas.width + left + (i % size));
        image.data.set([red, green, blue, Math.round(255 * Math.sqrt(Math.abs(value) / STEPS))], at);
      }
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  /** Tell the channel, the point and the value under the pointer. */
  function point(event) {
    if (!shown) return;
    const box = canvas.getBoundingClientRect(), side = shown.size + 1;
    const x = Math.floor(((event.clientX - box.left) / box.width) * canvas.width);
    const y = Math.floor(((event.clientY - box.top) / box.height) * canvas.height);
    const channel = Math.floor(y / side) * columns + Math.floor(x / side), column = x % side, row = y % side;
    if (x < 0 || y < 0 || x >= canvas.width || channel >= shown.channels || column === shown.size || row === shown.size) {
      setText(caption, shown.about);
      return;
    }
    const value = ((bytes[(channel * shown.size + row) * shown.size + column] - ZERO) / STEPS) * shown.scale[1];
    setText(caption, `${shown.layer}, channel ${channel + 1} of ${shown.channels}, ${vertex(row * shown.size + column)}: ${value.toPrecision(2)}`);
  }
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  canvas.addEventListener("pointerleave", () => { if (shown) setText(caption, shown.about); });
  let width = 0;
  new ResizeObserver(() => {
    if (shown && figure.clientWidth !== width) { width = figure.clientWidth; draw(); }
  }).observe(figure);
  return {
    figure,
    show(reply) {
      figure.hidden = false;
      canvas.hidden = Boolean(reply.missing);
      if (reply.missing) { shown = null; setText(caption, reply.missing); return; }
      shown = { ...reply, about: `${reply.about}. Orange is above 0, blue below.` };
      bytes = Uint8Array.from(atob(reply.picture), (letter) => letter.charCodeAt(0));
      setText(caption, shown.about);
      canvas.setAttribute("aria-label", shown.about);
      draw();
    },
  };
}

/** The pictures of a search's thoughts in an empty element, for boards of one size.
 *
 * `layerFigure` is the picture of a layer, at first the element's last child; it may be moved elsewhere. */
export function newThinking(element, size) {
  const panels = PANELS.map(([, title, about], n) => newPanel("abcdef"[n], title, about, size));
  const pen = newBoard(document.createElementNS("http://www.w3.org/2000/svg", "svg"), size);
  const vertex = (i) => (i < 0 ? "pass" : pen.vertex(i)), tree = newTree(vertex), layer = newLayer(vertex);
  const grid = made("div", "panels");
  grid.append(...panels.map(({ figure }) => figure));
  element.append(grid, tree.section, layer.figure);
  tree.section.hidden = true;
  let latest = null, stones = "", timer = 0, lastMs = -Infinity;

  function drawPanel(n) {
    const [thinking, , toMove] = latest, color = (thinking.toMove ?? toMove) === "black" ? BLACK : 3 - BLACK;
    const [name] = PANELS[n], panel = panels[n], found = thinking[name];
    panel.figure.hidden = !found;
    if (!found) return;
    panel.stones(stones);
    if (name === "line") panel.line(found.moves, color);
    else panel.numbers(found, thinking.best?.[name] ?? -1, RATES.has(name));
  }
  function drawTree() {
    const lines = latest[0].tree;
    tree.section.hidden = !lines;
    if (lines) tree.show(lines);
  }
  const steps = [...PANELS.map((_, n) => () => drawPanel(n)), drawTree];

  /** Draw one part after the other, so that the page answers in between. */
  function drawInTurn(n) {
    if (n === 0) lastMs = performance.now();
    steps[n]();
    timer = n + 1 < steps.length ? setTimeout(drawInTurn, STEP_MS, n + 1) : 0;
  }
  function stop() {
    clearTimeout(timer);
    timer = 0;
  }

  return {
    /** Show a search's thoughts about a board, a string of `.`, `b` and `w`, drawn at most four times a second. */
    show(thinking, board, toMove) {
      const isNew = latest?.[1] !== board;
      latest = [thinking, board, toMove];
      if (isNew) {
        stop();
        const stoneAt = (one, i) => (one === "." ? "" : pen.stone(i, one === "b" ? BLACK : 3 - BLACK));
        stones = Array.from(board, stoneAt).join("");
        lastMs = performance.now();
        for (const step of steps) step();
      } else if (!timer) {
        timer = setTimeout(drawInTurn, Math.max(0, lastMs + INTERVAL_MS - performance.now()), 0);
      }
    },
    /** Show the layer of one reply. */
    showLayer(reply) { layer.show(reply); },
    layerFigure: layer.figure,
    /** Take the numbers off, for a board that the search has not begun with. */
    clear() {
      stop();
      latest = null;
      for (const panel of panels) { panel.stones(""); panel.clear(); }
      tree.show([]);
    },
  };
}
