"use strict";
const BLACK = 1, COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ", CELL = 24;
const ink = (color) => `var(--stone-${color === BLACK ? "b" : "w"})`;

const LAYERS = ["owners", "stones", "marks"];

/** Row and column of the star points, as engine/go/handicap.py has them. */
function starPoints(size) {
  if (size < 7) return [];
  const high = size >= 13 ? 3 : 2, low = size - 1 - high, middle = size >> 1;
  const corners = [[low, high], [high, low], [high, high], [low, low]];
  if (size % 2 === 0 || size === 7) return corners;
  if (size < 13) return [...corners, [middle, middle]];
  return [...corners, [middle, high], [middle, low], [low, middle], [high, middle], [middle, middle]];
}

/** The text of an `svg` element: an empty board with coordinates and layers, the same as boards.py draws. */
function boardText(size, title = "", attributes = "") {
  const side = CELL * (size + 1), left = CELL * 1.5, top = CELL, right = CELL * (size + 0.5), bottom = CELL * size;
  let lines = "", labels = "";
  for (let n = 0; n < size; n++) {
    const x = left + CELL * n, y = top + CELL * n;
    lines += `M${left} ${y}H${right}M${x} ${top}V${bottom}`;
    labels += `<text x="${x}" y="${side - 5}">${COLUMNS[n]}</text><text x="10" y="${y + 3.5}">${size - n}</text>`;
  }
  const stars = starPoints(size).map(([row, column]) =>
    `<circle cx="${left + CELL * column}" cy="${top + CELL * row}" r="2.6" fill="var(--line)"/>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${side} ${side}" font-size="11" role="img" ${attributes}>` +
    `${title && `<title>${title}</title>`}<rect width="${side}" height="${side}" rx="4" fill="var(--board)"/>` +
    `<path d="${lines}" stroke="var(--line)" fill="none"/>${stars.join("")}` +
    '<g class="coordinates" fill="var(--line)" font-size="10" text-anchor="middle" aria-hidden="true">' +
    `${labels}</g>${LAYERS.map((name) => `<g class="${name}"></g>`).join("")}</svg>`;
}

/** A board in an `svg` element with the layers of boards.py; points are policy indices, -1 = a pass. */
function newBoard(element, size) {
  const layers = LAYERS.map((name) => element.querySelector(`.${name}`)), drawn = [];
  const at = (i) => [CELL * ((i % size) + 1.5), CELL * (Math.floor(i / size) + 1)];
  const circle = (i, r, style) => { const [x, y] = at(i); return `<circle cx="${x}" cy="${y}" r="${r}" ${style}/>`; };
  const word = (i, text, fill) => {
    const [x, y] = at(i);
    return `<text x="${x}" y="${y + 4}" font-size="11" text-anchor="middle" fill="${fill}">${text}</text>`;
  };
  const stone = (i, color, text = "") =>
    circle(i, 11.2, `fill="${ink(color)}" stroke="var(--edge)" stroke-width=".7"`) + (text && word(i, text, ink(3 - color)));
  return {
    circle, word, stone,
    vertex: (i) => (i < 0 ? "pass" : COLUMNS[i % size] + (size - Math.floor(i / size))),
    /** Draw the layers: ownership below the stones, the stones, and marks above them. */
    draw(...texts) {
      layers.forEach((layer, n) => { if (drawn[n] !== texts[n]) layer.innerHTML = drawn[n] = texts[n]; });
    },
    /** Squares for the ownership of each point, 1 = Black's, -1 = White's: below living stones, above dead ones. */
    owners(values, colors) {
      let below = "", upon = "";
      values.forEach((owner, i) => {
        if (Math.abs(owner) < 0.1) return;
        const color = owner > 0 ? BLACK : 3 - BLACK, isDead = colors[i] && colors[i] !== color, [x, y] = at(i);
        const wide = (isDead ? 11 : 20) * Math.sqrt(Math.abs(owner)), look = `fill="${ink(color)}"`;
        const square = `<rect x="${x - wide / 2}" y="${y - wide / 2}" width="${wide}" height="${wide}" ${look}`;
        if (isDead) upon += `${square}/>`; else below += `${square} opacity=".55"/>`;
      });
      return [below, upon];
    },
    /** The point of an event; undefined = outside the board. */
    pointAt(event) {
      const box = element.getBoundingClientRect(), view = element.viewBox.baseVal, scale = view.width / box.width;
      const column = Math.round((view.x + (event.clientX - box.left) * scale) / CELL - 1.5);
      const row = Math.round((view.y + (event.clientY - box.top) * scale) / CELL - 1);
      return column < 0 || row < 0 || column >= size || row >= size ? undefined : row * size + column;
    },
  };
}
