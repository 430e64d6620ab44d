"use strict";
const GAME_WIDTH = 640, GAME_HEIGHT = 150, GAME_LEFT = 48, GAME_RIGHT = 6, GAME_TOP = 8, GAME_BOTTOM = 18;

/** The text of an `svg` element, the same as game_chart of charts.py draws: values over the moves of a game.
 *
 * `marks` are pairs of value and label of a horizontal line, `values` pairs of a number of moves and a value. */
function gameChart(title, last, [low, high], marks, values, attributes = "") {
  const right = GAME_WIDTH - GAME_RIGHT, bottom = GAME_HEIGHT - GAME_BOTTOM;
  const placed = (number) => number.toFixed(1);
  const x = (value) => GAME_LEFT + ((right - GAME_LEFT) * value) / Math.max(1, last);
  const y = (value) => bottom - ((bottom - GAME_TOP) * (Math.min(high, Math.max(low, value)) - low)) / (high - low);
  const text = (left, top, words, anchor) =>
    `<text x="${left}" y="${top}" text-anchor="${anchor}" fill="var(--ink)">${words}</text>`;
  let drawn = marks.map(([value, words]) =>
    `<path d="M${GAME_LEFT} ${placed(y(value))}H${right}" stroke="var(--grid)"/>` +
    text(GAME_LEFT - 4, placed(y(value) + 4), words, "end")).join("");
  const step = last > 120 ? 50 : last > 40 ? 20 : 10;
  for (let n = 0; n <= last; n += step) drawn += text(placed(x(n)), bottom + 14, n, "middle");
  if (values.length) {
    const curve = "M" + values.map(([n, value]) => `${placed(x(n))} ${placed(y(value))}`).join("L");
    const base = placed(y(marks[marks.length >> 1][0])), ends = [values[values.length - 1], values[0]];
    const back = ends.map(([n]) => `L${placed(x(n))} ${base}`).join("");
    drawn += `<path d="${curve}${back}Z" fill="var(--shade)"/>`;
    drawn += `<path d="${curve}" fill="none" stroke="var(--accent)" stroke-width="1.6"/>`;
  }
  drawn += `<path class="cursor" d="M0 ${GAME_TOP}V${bottom}" stroke="var(--ink)" visibility="hidden"/>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${GAME_WIDTH} ${GAME_HEIGHT}" font-size="11" role="img"` +
    ` data-left="${GAME_LEFT}" data-right="${right}" ${attributes}>` +
    `${title && `<title>${title}</title>`}${drawn}</svg>`;
}

/** The chart's cursor at a number of moves. */
function moveCursor(chart, number, last) {
  const left = Number(chart.dataset.left), wide = chart.dataset.right - left, cursor = chart.querySelector(".cursor");
  cursor.setAttribute("transform", `translate(${left + (wide * number) / Math.max(1, last)} 0)`);
  cursor.setAttribute("visibility", "visible");
}
