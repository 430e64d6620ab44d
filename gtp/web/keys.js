/** The keyboard: a cursor on the board, typed points, and keys for what the buttons do. */

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const STEPS = { Home: -Infinity, End: Infinity, PageUp: -10, PageDown: 10 };

/** Follow the keyboard. `does` has the actions; `letters()`: whether letters are keys outside the board too. */
export function followKeys(goban, point, does, letters) {
  const keys = { p: does.pass, z: does.undo, h: does.hint, k: does.coordinates };

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    if (target === point) {
      if (key === "Escape") { point.value = ""; does.typed(); goban.focus(); }
      return;
    }
    const isField = target.closest("input, select, textarea");
    if (key === "Escape") does.stop();
    else if (isField) return;
    else if (key in STEPS) does.walk(STEPS[key]);
    else if (key in ARROWS) {
      const [right, down] = ARROWS[key];
      if (goban.hasCursor && !event.shiftKey) goban.moveCursor(right, down);
      else if (right) does.walk(right);
      else return;
    } else if (key === "Enter" && goban.hasCursor) does.point(goban.cursor);
    else if (key === " " && !target.closest("button, a, summary")) does.candidates();
    else if (!letters() && !goban.hasCursor) return;
    else if (key === "Backspace") does.undo();
    else if (Object.hasOwn(keys, key)) {
      if (!event.repeat) keys[key]();
    } else if (/^[a-z]$/i.test(key)) {
      // The letter itself arrives in the field, which has the focus by then.
      point.value = "";
      point.focus();
      return;
    } else return;
    event.preventDefault();
  });
}
