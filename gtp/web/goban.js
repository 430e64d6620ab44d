/** The board that one plays on: stones and marks, the stone under the pointer, the cursor of the keyboard, touch. */

const TOUCH_PX = 24, LABEL_PX = 14, MOST_LABEL = 13;
const MARGIN = 18, LABELLED = 30;
/** Paint of the stones, which page.css's colours are for smaller drawings. */
const PAINT = `<defs>
<radialGradient id="shine-b" cx=".36" cy=".3" r=".75"><stop offset="0" stop-color="#686868"/>
<stop offset=".35" stop-color="#2e2e2e"/><stop offset="1" stop-color="#0c0c0c"/></radialGradient>
<radialGradient id="shine-w" cx=".38" cy=".32" r=".8"><stop offset="0" stop-color="#fff"/>
<stop offset=".6" stop-color="#f6f4ef"/><stop offset="1" stop-color="#d5d1c6"/></radialGradient>
<linearGradient id="wood" x2=".35" y2="1"><stop stop-color="#fff" stop-opacity=".16"/>
<stop offset="1" stop-color="#000" stop-opacity=".04"/></linearGradient>
</defs>`;

/** Colours of a board's text, row by row from the top: 0 = empty, 1 = Black, 2 = White. */
export const colorsOf = (text) => Array.from(text, (letter) => ".bw".indexOf(letter));
export const numberOf = (color) => (color === "black" || color === "b" ? 1 : 2);

/** The index of a vertex such as d4, -1 = pass; undefined = none on this board. */
export function indexOf(text, size) {
  const word = text.trim().toUpperCase();
  if (word === "PASS") return -1;
  const found = /^([A-HJ-Z])(\d{1,2})$/.exec(word);
  if (!found) return undefined;
  const column = COLUMNS.indexOf(found[1]), row = size - Number(found[2]);
  return column < size && row >= 0 && row < size ? row * size + column : undefined;
}

/** The text of an index: a vertex, a pass, or stones that were set up. */
export function vertexOf(i, size) {
  if (i === null) return "set up";
  return i < 0 ? "pass" : COLUMNS[i % size] + (size - Math.floor(i / size));
}

/** Show boards in an element.
 *
 * `hears` has `point(index)`: a point was chosen; `waits(index)`: a tap has to be confirmed (-1 = no more);
 * `over(index)`: the pointer is over a point (-1 = none); `cursor(text)`: the point under the cursor, to be said. */
export function newGoban(element, hears) {
  let size = 0, board = null, svg = null, above = null;
  let view = { colors: [], toMove: 1, plays: false };
  let ghost = -1, waiting = -1, cursor = -1, isTouch = false, hasLabels = true;

  function resize(next) {
    size = next;
    const attributes = 'id="board" tabindex="0" aria-roledescription="Go board" aria-describedby="said"';
    element.innerHTML = boardText(size, "", attributes);
    svg = element.firstElementChild;
    svg.setAttribute("role", "application");
    svg.insertAdjacentHTML("afterbegin", PAINT);
    const wood = svg.querySelector("rect"), light = wood.cloneNode();
    light.setAttribute("fill", "url(#wood)");
    wood.after(light);
    for (const label of svg.querySelectorAll('.coordinates text[x="10"]')) {
      label.setAttribute("x", CELL * 1.5 - LABELLED + 10);
      label.setAttribute("class", "row");
    }
    svg.insertAdjacentHTML("beforeend", '<g class="pointer" pointer-events="none"></g>');
    above = svg.querySelector(".pointer");
    board = newBoard(svg, size);
    ghost = waiting = -1;
    cursor = (size >> 1) * size + (size >> 1);
    const on = (names, act) => { for (const name of names) svg.addEventListener(name, act); };
    // A click must not take the keys to the board: arrows would no longer walk through the record.
    on(["mousedown"], (event) => event.preventDefault());
    on(["pointermove"], (event) => { if (event.pointerType !== "touch") hover(board.pointAt(event) ?? -1); });
    on(["pointerleave", "pointercancel"], (event) => { if (event.pointerType !== "touch") hover(-1); });
    on(["pointerdown"], (event) => { isTouch = event.pointerType === "touch"; });
    on(["click"], (event) => choose(board.pointAt(event)));
    on(["focus", "blur"], () => drawPointer());
    frame();
  }

  /** Margins with room for the coordinates, or without; letters of the same size on every board. */
  function frame() {
    const left = hasLabels ? LABELLED : MARGIN, wide = CELL * (size - 1) + MARGIN + left;
    const box = { x: CELL * 1.5 - left, y: CELL - MARGIN, width: wide, height: wide };
    svg.setAttribute("viewBox", Object.values(box).join(" "));
    for (const wood of svg.querySelectorAll(":scope > rect")) {
      for (const [name, value] of Object.entries({ ...box, rx: 0 })) wood.setAttribute(name, value);
    }
    const units = Math.min(MOST_LABEL, (LABEL_PX * wide) / Math.max(1, element.clientWidth));
    svg.style.setProperty("--label", `${units}px`);
    for (const label of svg.querySelectorAll(".coordinates .row")) label.setAttribute("dy", 0.36 * units - 3.5);
  }

  const hasCursor = () => document.activeElement === svg;
  const cellPx = () => (svg.getBoundingClientRect().width * CELL) / svg.viewBox.baseVal.width;

  function hover(i) {
    if (i === ghost) return;
    ghost = i;
    hears.over(i);
    drawPointer();
  }

  function choose(i) {
    if (i === undefined) return;
    if (isTouch && view.plays && !view.toggles && cellPx() < TOUCH_PX && i !== waiting) {
      waiting = i;
      hears.waits(i);
      return drawPointer();
    }
    confirm(i);
  }

  function confirm(i = waiting) {
    if (waiting >= 0) { waiting = -1; hears.waits(-1); }
    ghost = -1;
    drawPointer();
    if (i >= 0) hears.point(i);
  }

  function shadow(i) {
    const x = CELL * ((i % size) + 1.5) + 0.4, y = CELL * (Math.floor(i / size) + 1) + 1;
    return `<circle class="shadow" cx="${x}" cy="${y}" r="11.5" fill="#000" opacity=".22"/>`;
  }

  function lines(i) {
    const x = CELL * ((i % size) + 1.5), y = CELL * (Math.floor(i / size) + 1);
    const cross = `M${CELL * 1.5} ${y}H${CELL * (size + 0.5)}M${x} ${CELL}V${CELL * size}`;
    return `<path d="${cross}" stroke="var(--accent)" stroke-width="1.6"/>`;
  }

  function drawPointer() {
    let drawn = "";
    const shown = waiting >= 0 ? waiting : ghost;
    if (shown >= 0 && view.plays && !view.colors[shown]) {
      const kind = waiting >= 0 ? "pending" : "ghost";
      drawn += `${waiting >= 0 ? lines(shown) : ""}<g class="${kind}">${board.stone(shown, view.toMove)}</g>`;
    }
    if (hasCursor()) {
      const x = CELL * ((cursor % size) + 0.5) + 1, y = CELL * Math.floor(cursor / size) + 1, wide = CELL - 2;
      // Two colours: seen on wood and on both stones.
      for (const [color, width] of [["--stone-b", 4.5], ["--stone-w", 1.8]]) {
        const look = `rx="3" fill="none" stroke="var(${color})" stroke-width="${width}"`;
        drawn += `<rect x="${x}" y="${y}" width="${wide}" height="${wide}" ${look}/>`;
      }
    }
    above.innerHTML = drawn;
  }

  /** What stands on a point, in words. */
  function pointText(i) {
    const stone = ["empty", "black", "white"][view.colors[i]];
    const marks = [i === view.last && "last move", i === view.ko && "ko", view.dead?.includes(i) && "dead"];
    return [vertexOf(i, size), stone, ...marks.filter(Boolean)].join(", ");
  }

  new ResizeObserver(() => { if (svg) frame(); }).observe(element);

  return {
    get size() { return size; },
    get hasCursor() { return hasCursor(); },
    get cursor() { return cursor; },
    get waiting() { return waiting; },
    vertex: (i) => vertexOf(i, size),
    focus: () => svg.focus({ preventScroll: true }),
    leave: () => svg.blur(),
    confirm,
    unwait() { if (waiting >= 0) { waiting = -1; hears.waits(-1); drawPointer(); } },
    hover,
    label(on) { hasLabels = on; element.classList.toggle("bare", !on); if (svg) frame(); },
    moveCursor(right, down) {
      const column = Math.max(0, Math.min(size - 1, (cursor % size) + right));
      const row = Math.max(0, Math.min(size - 1, Math.floor(cursor / size) + down));
      cursor = row * size + column;
      drawPointer();
      hears.cursor(pointText(cursor));
    },
    /** Show a position: {size, colors, toMove, last, ko, dead, plays, toggles, label} and marks as SVG. */
    show(next, makeMarks) {
      if (next.size !== size) resize(next.size);
      view = next;
      if (waiting >= 0 && (view.colors[waiting] || !view.plays)) { waiting = -1; hears.waits(-1); }
      const { below, stones, marks } = makeMarks(board, { ...view, isSmall: cellPx() < TOUCH_PX });
      const dead = new Set(view.dead ?? []);
      const drawn = view.colors.map((color, i) => {
        if (!color) return "";
        return dead.has(i) ? `<g class="dead">${board.stone(i, color)}</g>` : board.stone(i, color);
      });
      let last = "";
      if (view.last >= 0 && view.colors[view.last]) {
        const color = ink(3 - view.colors[view.last]);
        last = board.circle(view.last, 5, `class="last" fill="none" stroke="${color}" stroke-width="2"`);
      }
      // Circles, as a filter of the whole layer would be computed anew with every mark of a live search.
      const shadows = view.colors.map((color, i) => (color ? shadow(i) : ""));
      board.draw((below ?? "") + shadows.join(""), drawn.join("") + (stones ?? ""), last + (marks ?? ""));
      element.classList.toggle("plays", view.plays || Boolean(view.toggles));
      svg.setAttribute("aria-label", view.label);
      drawPointer();
    },
  };
}
