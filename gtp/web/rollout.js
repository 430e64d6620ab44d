/** A rollout played out on the board, move by move. */

const STEP_MS = 45;

/** The colours after a stone is placed: chains of the other colour, then its own, without liberties are taken off. */
export function placed(colors, size, at, color) {
  const next = colors.slice();
  next[at] = color;
  const beside = (i) => [i % size ? i - 1 : -1, i % size < size - 1 ? i + 1 : -1, i - size, i + size]
    .filter((j) => j >= 0 && j < size * size);
  const takeIfDead = (start) => {
    const chain = new Set([start]), open = [start], own = next[start];
    while (open.length) {
      for (const j of beside(open.pop())) {
        if (next[j] === 0) return;
        if (next[j] === own && !chain.has(j)) { chain.add(j); open.push(j); }
      }
    }
    for (const i of chain) next[i] = 0;
  };
  for (const j of beside(at)) if (next[j] === 3 - color) takeIfDead(j);
  if (next[at]) takeIfDead(at);
  return next;
}

/** Plays rollouts out; `draws(colors, last, moves)` shows each position, `ends(result)` is told after the last. */
export function newRollout(draws, ends) {
  let timer = 0, isShown = false;
  return {
    get isShown() { return isShown; },
    play(colors, size, toMove, { moves, result }) {
      this.stop();
      isShown = true;
      const hurries = matchMedia("(prefers-reduced-motion: reduce)").matches;
      let number = 0, color = toMove;
      const step = () => {
        do {
          const at = moves[number++];
          if (at >= 0) colors = placed(colors, size, at, color);
          color = 3 - color;
        } while (hurries && number < moves.length);
        draws(colors, moves[number - 1] ?? -1, number);
        if (number < moves.length) timer = setTimeout(step, STEP_MS);
        else ends(result, moves.length);
      };
      if (moves.length) step(); else ends(result, 0);
    },
    stop() {
      clearTimeout(timer);
      isShown = false;
    },
  };
}
