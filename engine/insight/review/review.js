(() => {
  const $ = (id) => document.getElementById(id);
  const D = JSON.parse($("data").textContent);
  const S = D.size, LAST = D.moves.length, NAMES = { 1: "Black", 2: "White" }, LETTERS = "ABCDEF";
  for (const turn of D.turns) {
    for (const move of turn.m) {
      move[0] = move[0].match(/../g).map((p) => (p === ".." ? -1 : (p.charCodeAt(1) - 97) * S + p.charCodeAt(0) - 97));
    }
  }
  let now = 0, shownLine = -1, showOwners = false, showBest = true, thresholds = D.thresholds.slice();

  const board = $("board"), { circle, word, stone, vertex, owners, draw: show, pointAt } = newBoard(board, S);
  const unit = (loss) => {
    const points = loss.toFixed(1);
    return D.unit === "points" ? `${points} point${points === "1.0" ? "" : "s"}` : `${loss.toFixed(0)}% of the win rate`;
  };
  const lead = (s) => (s === null ? "" : Math.abs(s) < 0.05 ? "even" : (s > 0 ? "B+" : "W+") + Math.abs(s).toFixed(1));
  const kindOf = (m) => {
    if (m.l === null) return -1;
    const kind = thresholds.filter((t) => m.l >= t).length;
    return m.l > m.n ? kind : Math.min(kind, 2);
  };

  /** The board before move n + 1, and the move number of each stone. */
  function position(n) {
    const colors = Array.from(D.start, Number), numbers = new Array(S * S).fill(0);
    for (let k = 0; k < n; k++) {
      const m = D.moves[k];
      if (m.i >= 0) { colors[m.i] = m.c; numbers[m.i] = k + 1; }
      for (const gone of m.x) { colors[gone] = 0; numbers[gone] = 0; }
    }
    return { colors, numbers };
  }

  function drawBoard() {
    const turn = D.turns[now], { colors } = position(now), last = now ? D.moves[now - 1] : null, next = D.moves[now];
    let stones = "", [below, marks] = ["", ""];
    if (showOwners && turn.o) {
      [below, marks] = owners(Array.from(turn.o, (letter) => (D.owners.indexOf(letter) / 62) * 2 - 1), colors);
    }
    colors.forEach((c, i) => { if (c) stones += stone(i, c); });
    if (shownLine >= 0 && turn.m[shownLine]) {
      const seen = new Set();
      turn.m[shownLine][0].forEach((i, n) => {
        if (i < 0 || seen.has(i)) return;
        seen.add(i);
        stones += stone(i, n % 2 ? 3 - turn.c : turn.c, n + 1);
      });
    } else {
      if (last && last.i >= 0 && colors[last.i]) {
        marks += circle(last.i, 5, `fill="none" stroke="${ink(3 - last.c)}" stroke-width="2"`);
      }
      if (showBest) {
        turn.m.forEach((m, n) => {
          const i = m[0][0];
          if (i < 0) return;
          marks += circle(i, 10, `fill="var(${n ? "--card" : "--accent"})" stroke="var(--accent)" opacity=".9"`);
          marks += word(i, LETTERS[n], n ? "var(--ink)" : "var(--paper)");
        });
      }
      if (next && next.i >= 0 && !colors[next.i]) {
        marks += circle(next.i, 11.4, `fill="none" stroke="${ink(next.c)}" stroke-width="2"`);
      }
    }
    show(below, stones, marks);
  }

  function said() {
    const turn = D.turns[now], parts = [];
    if (now === 0) parts.push("The start of the game.");
    else {
      const m = D.moves[now - 1], before = D.turns[now - 1], kind = kindOf(m), best = before.m[0];
      parts.push(`Move ${now}: ${NAMES[m.c]} ${vertex(m.i)}.`);
      if (kind >= 0 && m.f) parts.push("The first choice.");
      else if (kind >= 0) {
        const lost = m.l > m.n ? `lost ${unit(m.l)}` : "as good as the first choice, as far as can be told";
        parts.push(`${D.kinds[kind][0].toUpperCase()}${D.kinds[kind].slice(1)}, ${lost}.`);
        if (best) parts.push(`First choice: ${vertex(best[0][0])}.`);
      }
      if (m.x.length) parts.push(`${m.x.length} captured.`);
    }
    parts.push(`Black ${turn.w.toFixed(1)}%${turn.s === null ? "" : ", " + lead(turn.s)}. ${NAMES[turn.c]} to move.`);
    return parts.join(" ");
  }

  function drawLines() {
    const turn = D.turns[now], list = $("lines");
    const held = Array.from(list.children).findIndex((item) => item.contains(document.activeElement));
    list.innerHTML = turn.m.map(([line, visits, rate, s, prior], n) =>
      `<li><button type="button" data-line="${n}" aria-pressed="${n === shownLine}" title="Policy ${prior}%">` +
      `<b>${LETTERS[n]}</b><b>${vertex(line[0])}</b><span>Black ${rate.toFixed(1)}%${s === null ? "" : " " + lead(s)}, ` +
      `${visits} ${visits === 1 ? "visit" : "visits"}</span><span class="moves">${line.map(vertex).join(" ")}</span>` +
      "</button></li>").join("");
    // Keys continue from the element that had the focus, or from the board.
    if (held >= 0) (list.children[held]?.firstElementChild || board).focus({ preventScroll: true });
  }

  const graphs = document.querySelectorAll("svg[data-left]");
  const axis = ({ dataset }) => [Number(dataset.left), dataset.right - dataset.left];
  function drawCursors() {
    for (const graph of graphs) {
      const [left, wide] = axis(graph), cursor = graph.querySelector(".cursor");
      cursor.setAttribute("transform", `translate(${left + (wide * now) / LAST} 0)`);
      cursor.setAttribute("visibility", "visible");
    }
    document.querySelector("#moves tr.now")?.classList.remove("now");
    document.querySelector(`#moves tr[data-move="${now}"]`)?.classList.add("now");
  }

  function go(n, line = -1) {
    now = Math.max(0, Math.min(LAST, n));
    shownLine = line;
    const text = said();
    drawBoard(); drawLines(); drawCursors();
    $("status").textContent = text;
    board.setAttribute("aria-label", `Board of ${S} by ${S}. ${text}`);
    $("slider").value = now;
    $("slider").setAttribute("aria-valuetext", `move ${now} of ${LAST}`);
  }

  function showLine(n) {
    shownLine = n < D.turns[now].m.length ? n : -1;
    drawBoard();
    document.querySelectorAll("#lines button").forEach((b, k) => b.setAttribute("aria-pressed", String(k === shownLine)));
    if (shownLine >= 0) $("status").textContent = `${said()} Line: ${D.turns[now].m[shownLine][0].map(vertex).join(" ")}.`;
  }
  function blamed(step) {
    for (let n = now + step; n >= 1 && n <= LAST; n += step) if (kindOf(D.moves[n - 1]) >= 3) return go(n);
  }
  function toggle(name) {
    if (name === "owners") showOwners = !showOwners; else showBest = !showBest;
    $("t-owners").setAttribute("aria-pressed", showOwners);
    $("t-best").setAttribute("aria-pressed", showBest);
    drawBoard();
  }

  function classify() {
    const counts = { 1: [0, 0, 0, 0, 0, 0], 2: [0, 0, 0, 0, 0, 0] };
    D.moves.forEach((m, k) => {
      const kind = kindOf(m);
      if (kind < 0) return;
      counts[m.c][kind]++;
      document.querySelector(`#g-loss rect[data-move="${k + 1}"]`)?.setAttribute("fill", `var(--k${kind})`);
      const cell = document.querySelector(`#moves tr[data-move="${k + 1}"] .kind`);
      cell.textContent = D.kinds[kind];
      cell.className = `left kind k${kind}`;
    });
    for (const cell of document.querySelectorAll("#kinds td[data-kind]")) {
      cell.textContent = counts[cell.dataset.color][cell.dataset.kind];
    }
  }

  function followHash() {
    const found = /^#([mb])(\d+)$/.exec(location.hash);
    if (!found) return;
    const n = Number(found[2]);
    if (found[1] === "m") go(n); else go(n - 1, 0);
    $("play").scrollIntoView();
  }

  const actions = {
    first: () => go(0), back: () => go(now - 1), next: () => go(now + 1), last: () => go(LAST),
    worse: () => blamed(1), earlier: () => blamed(-1), owners: () => toggle("owners"), best: () => toggle("best"),
    theme: () => {
      const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = (root.dataset.theme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
    },
  };
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("button"), link = target.closest("a");
    if (button?.dataset.do) actions[button.dataset.do]();
    else if (button) showLine(Number(button.dataset.line) === shownLine ? -1 : Number(button.dataset.line));
    // Following a link to the present address causes no event.
    if (link?.hash && link.hash === location.hash) followHash();
  });
  $("slider").addEventListener("input", (event) => go(Number(event.target.value)));
  const KEYS = { ArrowLeft: actions.back, ArrowRight: actions.next, o: actions.owners, b: actions.best, n: actions.worse,
    p: actions.earlier, Escape: () => showLine(-1) };
  const BOARD_KEYS = { Home: actions.first, End: actions.last, PageUp: () => go(now - 10), PageDown: () => go(now + 10) };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input:not([type=range])")) return;
    const act = KEYS[event.key] || ($("play").contains(event.target) ? BOARD_KEYS[event.key] : undefined);
    if (act) act();
    else if (/^[1-6]$/.test(event.key)) showLine(Number(event.key) - 1);
    else return;
    event.preventDefault();
  });

  let begun = null;
  board.addEventListener("pointerdown", (event) => { begun = [event.clientX, event.clientY]; });
  board.addEventListener("pointercancel", () => { begun = null; });
  board.addEventListener("pointerup", (event) => {
    if (!begun) return;
    const dx = event.clientX - begun[0], dy = event.clientY - begun[1];
    begun = null;
    if (Math.abs(dx) > 30 && Math.abs(dx) > Math.abs(dy)) return go(now + (dx < 0 ? 1 : -1));
    if (Math.hypot(dx, dy) > 10) return;
    const i = pointAt(event);
    if (i === undefined) return;
    const line = D.turns[now].m.findIndex((m) => m[0][0] === i), number = position(now).numbers[i];
    if (shownLine >= 0) showLine(-1);
    else if (line >= 0) showLine(line);
    else if (number) go(number);
    else go(now + (i % S > (S - 1) / 2 ? 1 : -1));
  });
  for (const graph of graphs) {
    const jump = (event) => {
      const [left, wide] = axis(graph), box = graph.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * graph.viewBox.baseVal.width;
      go(Math.round(((x - left) / wide) * LAST));
    };
    graph.addEventListener("pointerdown", jump);
    graph.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });
  }
  $("thresholds").addEventListener("change", () => {
    const values = Array.from(document.querySelectorAll("#thresholds input"), (one) => Number(one.value));
    const rises = values.every((v, n) => v > 0 && (n === 0 || v >= values[n - 1]));
    $("t-wrong").hidden = rises;
    if (!rises) return;
    thresholds = values;
    classify();
    go(now, shownLine);
  });
  addEventListener("hashchange", followHash);
  for (const part of document.querySelectorAll("[data-script]")) part.hidden = false;
  go(0);
  followHash();
})();
