"use strict";
const BLACK = 1, COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ", CELL = 24;
const ink = (color) => `var(--stone-${color === BLACK ? "b" : "w"})`;

/** A board in an `svg` element with the layers of boards.py; points are policy indices, -1 = a pass. */
function newBoard(element, size) {
  const layers = ["owners", "stones", "marks"].map((name) => element.querySelector(`#${name}`));
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
    draw(...texts) { layers.forEach((layer, n) => { layer.innerHTML = texts[n]; }); },
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
      const box = element.getBoundingClientRect(), scale = (CELL * (size + 1)) / box.width;
      const column = Math.round(((event.clientX - box.left) * scale) / CELL - 1.5);
      const row = Math.round(((event.clientY - box.top) * scale) / CELL - 1);
      return column < 0 || row < 0 || column >= size || row >= size ? undefined : row * size + column;
    },
  };
}
