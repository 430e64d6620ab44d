(() => {
  const $ = (id) => document.getElementById(id);
  const D = JSON.parse($("data").textContent);
  const S = D.size, LAST = D.moves.length, NAMES = { 1: "Black", 2: "White" }, RECENT = 6, MOST_QUESTIONS = 10;
  const BLAMED = D.kinds.indexOf("inaccuracy"), IS_POINTS = D.unit === "points";
  for (const turn of D.turns) {
    for (const move of turn.m) {
      move[0] = move[0].match(/../g).map((p) => (p === ".." ? -1 : (p.charCodeAt(1) - 97) * S + p.charCodeAt(0) - 97));
    }
  }
  let thresholds = D.thresholds.slice(), showOwners = false, showBest = true;
  /** The position of the game that is shown; the line of a candidate that is pinned, or under the pointer; -1 = none. */
  let now = 0, pinned = -1, hovered = -1, ghost = -1;
  /** Moves that the user tries from there, with the boards after them, and how many of them are shown. */
  let tried = [], depth = 0;
  /** The quiz: numbers of the moves asked, index of the question, the answer, number of good answers; null = none. */
  let quiz = null;

  const board = $("board"), { circle, stone, vertex, owners, draw: show, pointAt } = newBoard(board, S);
  const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const capital = (text) => text[0].toUpperCase() + text.slice(1);
  const unit = (loss) => {
    const points = loss.toFixed(1);
    return IS_POINTS ? `${points} point${points === "1.0" ? "" : "s"}` : `${loss.toFixed(0)}% of the win rate`;
  };
  const short = (loss) => (IS_POINTS && loss < 9.95 ? loss.toFixed(1) : loss.toFixed(0));
  const lead = (s) => (s === null ? "" : Math.abs(s) < 0.05 ? "even" : (s > 0 ? "B+" : "W+") + Math.abs(s).toFixed(1));
  const standing = (rate, s) => `Black ${rate.toFixed(1)}%${s === null ? "" : `, ${lead(s)}`}`;
  const led = (rate, s) => lead(s) || standing(rate, s);
  const kindFor = (loss) => thresholds.filter((t) => loss >= t).length;
  const kindOf = (m) => (m.l === null ? -1 : m.l > m.n ? kindFor(m.l) : Math.min(kindFor(m.l), BLAMED - 1));
  const colorOf = (m) => (m.f ? "var(--c)" : `var(--c${kindOf(m)})`);

  /** What a candidate of an analysed position loses against the first choice. */
  function lossOf(turn, n) {
    const value = (m) => ((IS_POINTS ? m[3] : m[2]) ?? 0) * (turn.c === BLACK ? 1 : -1);
    return Math.max(0, value(turn.m[0]) - value(turn.m[n]));
  }
  const colorAt = (turn, n) => (n ? `var(--c${kindFor(lossOf(turn, n))})` : "var(--c)");

  // The rules, as far as moves that are tried need them.

  const beside = (i) => [i - S, i + S, i % S ? i - 1 : -1, i % S < S - 1 ? i + 1 : -1].filter((j) => j >= 0 && j < S * S);
  /** The stones of the chain at a point if it has no liberty, else none. */
  function dead(colors, from) {
    const chain = new Set([from]);
    for (const i of chain) {
      for (const j of beside(i)) {
        if (!colors[j]) return [];
        if (colors[j] === colors[from]) chain.add(j);
      }
    }
    return [...chain];
  }
  /** The board after a move, and the stones that it captures; a text if it is illegal. */
  function played(colors, i, color, before) {
    const next = colors.slice(), taken = [];
    if (i < 0) return { colors: next, taken };
    if (next[i]) return "There is a stone already.";
    next[i] = color;
    for (const j of beside(i)) {
      if (next[j] === 3 - color) for (const gone of dead(next, j)) { next[gone] = 0; taken.push(gone); }
    }
    const own = dead(next, i);
    if (own.length === 1 || (own.length && !D.suicide)) return "Suicide: the stone would have no liberty.";
    for (const gone of own) next[gone] = 0;
    return String(next) === String(before) ? "Ko: the board would be as before." : { colors: next, taken };
  }

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
  const colorsNow = () => (depth ? tried[depth - 1].colors : position(now).colors);
  /** The board before the last move, which simple ko forbids to bring back. */
  const colorsBefore = () => (depth > 1 ? tried[depth - 2].colors : position(depth ? now : Math.max(0, now - 1)).colors);
  const toMove = () => (depth % 2 ? 3 - D.turns[now].c : D.turns[now].c);

  // Analyses: the review's own, and those that a server makes of the moves tried.

  const server = /^https?:$/.test(location.protocol) && document.documentElement.dataset.analyse;
  const answers = new Map(), WAIT_MS = 200;
  let asking = 0;
  const lineNow = () => [...D.moves.slice(0, now).map((m) => [m.c, m.i]), ...tried.slice(0, depth).map((m) => [m.c, m.i])];
  const isOver = () => quiz !== null && quiz.at === quiz.list.length;
  const isAsked = () => quiz !== null && quiz.answer === null && !isOver();
  /** The analysis of the shown position; null = unknown, or to be hidden. */
  function analysis() {
    if (isAsked()) return null;
    return depth ? answers.get(String(lineNow()))?.turn || null : D.turns[now];
  }
  /** The best moves, which are listed, and those that are marks on the board. */
  const candidates = () => analysis()?.m.slice(0, D.lines) || [];
  const marked = () => (showBest ? candidates() : []);
  const candidateAt = (i) => (i < 0 ? -1 : marked().findIndex(([[p]]) => p === i));
  function ask() {
    clearTimeout(asking);
    const moves = lineNow(), key = String(moves), c = toMove();
    if (!server || !depth || (answers.has(key) && !answers.get(key).failed)) return;
    asking = setTimeout(async () => {
      answers.set(key, { text: "Analysing…" });
      draw();
      try {
        const body = JSON.stringify({ size: S, rules: D.rules, komi: D.komi, start: D.start, moves });
        const reply = await fetch(server, { method: "POST", headers: { "Content-Type": "application/json" }, body });
        const found = await reply.json();
        if (!reply.ok) throw new Error(found.error);
        const m = found.moves.map((one) => [
          one.pv.length ? one.pv : [one.i], one.visits, 100 * one.winrateBlack, one.leadBlack, 100 * one.prior]);
        answers.set(key, { turn: { c, w: 100 * found.winrateBlack, s: found.leadBlack, o: found.owners, m, v: found.visits } });
      } catch (error) {
        answers.set(key, { text: `Not analysed: ${error.message}`, failed: true });
      }
      if (key === String(lineNow())) draw();
    }, WAIT_MS);
  }

  // The board

  const label = (i, text, fill) => {
    const [x, y] = [CELL * ((i % S) + 1.5), CELL * (Math.floor(i / S) + 1)];
    return `<text class="label" x="${x}" y="${y + 4.5}" font-size="12" text-anchor="middle" fill="${fill}">${text}</text>`;
  };
  function drawBoard() {
    const turn = analysis(), colors = colorsNow(), { numbers } = position(now);
    const last = now ? D.moves[now - 1] : null, next = depth || isAsked() ? null : D.moves[now];
    let stones = "", [below, marks] = ["", ""];
    if (showOwners && turn?.o) {
      [below, marks] = owners(Array.from(turn.o, (letter) => (D.owners.indexOf(letter) / 62) * 2 - 1), colors);
    }
    const number = new Map();
    tried.slice(0, depth).forEach((m, n) => number.set(m.i, n + 1));
    colors.forEach((c, i) => { if (c) stones += stone(i, c, number.get(i) || ""); });
    const line = turn?.m[pinned >= 0 ? pinned : hovered]?.[0];
    if (line) {
      const seen = new Set();
      line.forEach((i, n) => {
        if (i < 0 || seen.has(i)) return;
        seen.add(i);
        stones += stone(i, n % 2 ? 3 - turn.c : turn.c, n + 1);
      });
    } else {
      if (!depth) {
        for (let k = Math.max(0, now - RECENT); k < now; k++) {
          const m = D.moves[k];
          if (m.i >= 0 && numbers[m.i] === k + 1 && kindOf(m) >= 0) {
            marks += circle(m.i, 4, `class="loss" fill="${colorOf(m)}" stroke="#111" stroke-width=".6"`);
          }
        }
        if (last && last.i >= 0 && colors[last.i]) {
          marks += circle(last.i, 7, `fill="none" stroke="${ink(3 - last.c)}" stroke-width="1.6"`);
        }
      }
      const shown = marked();
      shown.forEach(([[i]], n) => {
        if (i < 0) return;
        marks += circle(i, 10.6, `class="candidate" fill="${colorAt(turn, n)}" stroke="#111" stroke-width=".7"`);
        marks += label(i, short(lossOf(turn, n)), "var(--label)");
      });
      if (next && next.i >= 0 && !colors[next.i]) {
        const isShown = shown.some(([[i]]) => i === next.i);
        marks += circle(next.i, 11.4, `fill="none" stroke="${ink(next.c)}" stroke-width="2"`);
        if (!isShown && next.l !== null) marks += label(next.i, short(next.l), ink(next.c));
      }
      if (quiz && quiz.answer >= 0 && !colors[quiz.answer]) {
        marks += circle(quiz.answer, 11.4, 'fill="none" stroke="var(--accent)" stroke-width="3"');
      }
      if (ghost >= 0 && !colors[ghost]) marks += `<g class="ghost" opacity=".5">${stone(ghost, toMove())}</g>`;
    }
    show(below, stones, marks);
  }

  // The verdict beside the board

  const sentence = (text, look = "") => `<p${look && ` class="${look}"`}>${text}</p> `;
  const state = (turn) => sentence(`${standing(turn.w, turn.s)}. ${NAMES[turn.c]} to move.`, "soft");
  /** "After C6 B+16.4, after C7 B+20.6." of a move of the game. */
  function compared(n) {
    const m = D.moves[n - 1], best = D.turns[n - 1].m[0], after = D.turns[n];
    return `After ${vertex(best[0][0])} ${led(best[2], best[3])}, after ${vertex(m.i)} ${led(after.w, after.s)}.`;
  }
  function verdictOfGame() {
    if (!now) return sentence("The start of the game.", "head") + state(D.turns[0]);
    const m = D.moves[now - 1], kind = kindOf(m), best = D.turns[now - 1].m[0];
    let head = `<b>Move ${now}: ${NAMES[m.c]} ${vertex(m.i)}.</b>`, rest = "";
    if (kind >= 0 && m.f) head += ` <span class="kind k0">The first choice.</span>`;
    else if (kind >= 0 && m.l > m.n) {
      head += ` <span class="kind k${kind}">${capital(D.kinds[kind])}, lost ${unit(m.l)}.</span>`;
      rest = sentence(compared(now)) + (m.y && sentence(m.y));
    } else if (kind >= 0) {
      const same = "as good as the first choice, as far as can be told";
      head += ` <span class="kind k${kind}">${capital(D.kinds[kind])}, ${same}.</span>`;
      rest = best ? sentence(`First choice: ${vertex(best[0][0])}.`) : "";
    }
    if (m.x.length) head += ` ${m.x.length} captured.`;
    return sentence(head, "head") + rest + state(D.turns[now]);
  }
  /** What the review knows of a move in a position of the game, as a sentence. */
  function known(n, i) {
    const turn = D.turns[n], at = turn.m.findIndex(([[p]]) => p === i), m = D.moves[n], best = turn.m[0];
    if (m && m.i === i && m.l !== null) {
      return m.f ? "The first choice, and the move played." : `The move played, lost ${unit(m.l)}. ${compared(n + 1)}`;
    }
    if (at === 0) return "The first choice.";
    if (at < 0) return `Not among the ${turn.m.length} moves that the review looked at.`;
    const lost = lossOf(turn, at), values = `after ${vertex(best[0][0])} ${led(best[2], best[3])}, after ${vertex(i)}`;
    const loses = lost < 0.05 ? "as good as the first choice" : `loses ${unit(lost)}`;
    return `${capital(D.kinds[kindFor(lost)])}, ${loses}: ${values} ${led(turn.m[at][2], turn.m[at][3])}.`;
  }
  function verdictOfTried() {
    const m = tried[depth - 1], line = tried.slice(0, depth).map((one) => vertex(one.i)).join(" ");
    let said = sentence(`<b>Your line after move ${now}: ${NAMES[tried[0].c]} ${line}.</b>` +
      (m.taken.length ? ` ${m.taken.length} captured.` : ""), "head");
    if (depth === 1) said += sentence(known(now, m.i));
    const answer = answers.get(String(lineNow()));
    if (answer?.turn) {
      said += sentence(`Analysed with ${answer.turn.v} visits.`) + state(answer.turn);
    } else if (server) said += sentence(answer ? escaped(answer.text) : "", "soft");
    else said += sentence("Played on this page alone; served by <code>keima play</code>, it is analysed.", "soft");
    return said;
  }
  function verdictOfQuiz() {
    const { list, at, answer, good } = quiz;
    if (isOver()) {
      return sentence(`<b>${good} of ${list.length} moves found.</b>`, "head") + sentence("A move counts that is no inaccuracy.");
    }
    const n = list[at], m = D.moves[n - 1], best = D.turns[n - 1].m[0];
    const asked = sentence(`<b>Question ${at + 1} of ${list.length}, move ${n}: ${NAMES[m.c]} to move.</b>`, "head");
    if (answer === null) return asked + sentence(`${escaped(D.players[m.c])} lost ${unit(m.l)} here. Play a better move.`);
    const own = answer >= 0 ? `<b>${vertex(answer)}:</b> ${known(n - 1, answer)} ` : "";
    const why = answer === m.i ? "" : `${NAMES[m.c]} played ${vertex(m.i)}, lost ${unit(m.l)}. ${compared(n)}`;
    const first = answer === best[0][0] ? "" : `First choice: ${vertex(best[0][0])}. `;
    return asked + sentence(own) + sentence(first + why) + (m.y && sentence(m.y));
  }

  function drawLines() {
    const turn = analysis(), shown = candidates(), list = $("lines");
    $("h-lines").hidden = !shown.length;
    const held = Array.from(list.children).findIndex((item) => item.contains(document.activeElement));
    list.innerHTML = shown.map(([line, visits, rate, s, prior], n) =>
      `<li><button type="button" data-line="${n}" aria-pressed="${n === pinned}" title="Policy ${prior.toFixed(1)}%">` +
      `<span class="lost" style="--fill:${colorAt(turn, n)}">${short(lossOf(turn, n))}</span><b>${vertex(line[0])}</b>` +
      `<span>${standing(rate, s)}, ${visits} ${visits === 1 ? "visit" : "visits"}</span>` +
      `<span class="moves">${line.map(vertex).join(" ")}</span></button></li>`).join("");
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

  function draw(remark = "") {
    const said = quiz && !depth ? verdictOfQuiz() : depth ? verdictOfTried() : verdictOfGame();
    drawBoard(); drawLines(); drawCursors();
    $("status").innerHTML = (said + (remark && sentence(remark))).trim();
    const text = $("status").textContent.replace(/\s+/g, " ").trim();
    board.setAttribute("aria-label", `Board of ${S} by ${S}. ${text}`);
    $("slider").value = now;
    $("slider").setAttribute("aria-valuetext", `move ${now} of ${LAST}`);
    $("t-answer").hidden = !isAsked();
    $("t-following").hidden = !quiz || isAsked() || isOver() || Boolean(depth);
    $("t-pass").hidden = !depth;
    $("t-leave").hidden = !depth && !quiz;
    $("t-leave").textContent = depth ? "Back to the game" : "End the quiz";
  }

  function set(n, line = -1) {
    now = Math.max(0, Math.min(LAST, n));
    [pinned, hovered, ghost, tried, depth] = [line, -1, -1, [], 0];
    draw();
  }
  /** Show a position of the game; ends a quiz. */
  function go(n, line = -1) { quiz = null; set(n, line); }
  /** Step along the moves tried, or along the game. */
  function step(by) {
    if (!depth || depth + by > tried.length) return depth ? undefined : go(now + by);
    depth += by;
    if (!depth) tried = [];
    pinned = -1;
    draw();
    ask();
  }
  function showLine(n) {
    pinned = n < candidates().length ? n : -1;
    draw();
    if (pinned >= 0) $("status").innerHTML += ` <p>Line: ${analysis().m[pinned][0].map(vertex).join(" ")}.</p>`;
  }
  /** Play a move of the user's own; -1 = a pass. */
  function attempt(i) {
    const c = toMove(), found = played(colorsNow(), i, c, colorsBefore());
    if (typeof found === "string") return draw(found);
    tried = [...tried.slice(0, depth), { i, c, ...found }];
    [depth, pinned, hovered, ghost] = [depth + 1, -1, -1, -1];
    draw();
    ask();
  }
  function blamed(by) {
    for (let n = now + by; n >= 1 && n <= LAST; n += by) if (kindOf(D.moves[n - 1]) >= BLAMED) return go(n);
  }
  function toggle(name) {
    if (name === "owners") showOwners = !showOwners; else showBest = !showBest;
    $("t-owners").setAttribute("aria-pressed", showOwners);
    $("t-best").setAttribute("aria-pressed", showBest);
    drawBoard();
  }

  // The quiz asks for the mistakes of the largest consequence, in the order of the game.

  function startQuiz(color) {
    const numbers = D.moves.map((m, k) => k + 1).filter((n) => D.moves[n - 1].c === color && kindOf(D.moves[n - 1]) >= BLAMED);
    const worth = (n) => D.moves[n - 1].l * D.moves[n - 1].k;
    const list = numbers.sort((a, b) => worth(b) - worth(a)).slice(0, MOST_QUESTIONS).sort((a, b) => a - b);
    quiz = { list, at: -1, answer: null, good: 0 };
    following();
    board.focus({ preventScroll: true });
    if (matchMedia("(max-width:900px)").matches) $("play").scrollIntoView();
  }
  function following() {
    quiz.at++;
    quiz.answer = null;
    set(quiz.at < quiz.list.length ? quiz.list[quiz.at] - 1 : now);
  }
  /** Answer the question with a point; -1 = show the answer. */
  function answer(i) {
    if (!isAsked()) return;
    if (i >= 0) {
      const found = played(colorsNow(), i, toMove(), colorsBefore()), turn = D.turns[now], at = turn.m.findIndex(([[p]]) => p === i);
      if (typeof found === "string") return draw(found);
      if (at >= 0 && i !== D.moves[now].i && kindFor(lossOf(turn, at)) < BLAMED) quiz.good++;
    }
    quiz.answer = i;
    ghost = -1;
    draw();
  }

  function classify() {
    const counts = { 1: [0, 0, 0, 0, 0, 0], 2: [0, 0, 0, 0, 0, 0] };
    D.moves.forEach((m, k) => {
      const kind = kindOf(m);
      if (kind < 0) return;
      counts[m.c][kind]++;
      for (const mark of document.querySelectorAll(`.graph [data-move="${k + 1}"]`)) mark.setAttribute("fill", `var(--k${kind})`);
      for (const cell of document.querySelectorAll(`[data-kind-of="${k + 1}"]`)) {
        cell.textContent = D.kinds[kind];
        cell.className = cell.className.replace(/\bk\d/, `k${kind}`);
      }
    });
    for (const cell of document.querySelectorAll("[data-kind]")) {
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

  const leave = () => (depth ? set(now) : go(now));
  const actions = {
    first: () => go(0), back: () => step(-1), next: () => step(1), last: () => go(LAST),
    worse: () => blamed(1), earlier: () => blamed(-1), owners: () => toggle("owners"), best: () => toggle("best"),
    answer: () => answer(-1), following, pass: () => attempt(-1), leave,
    theme: () => {
      const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = (root.dataset.theme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
    },
  };
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("button"), link = target.closest("a");
    if (button?.dataset.do) actions[button.dataset.do]();
    else if (button?.dataset.quiz) startQuiz(Number(button.dataset.quiz));
    else if (button) showLine(Number(button.dataset.line) === pinned ? -1 : Number(button.dataset.line));
    // Following a link to the present address causes no event.
    if (link?.hash && link.hash === location.hash) followHash();
  });
  $("slider").addEventListener("input", (event) => go(Number(event.target.value)));
  $("point").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const text = event.target.value.trim().toUpperCase();
    const i = Array.from({ length: S * S }, (_, n) => n).find((n) => vertex(n) === text);
    if (i === undefined && text !== "PASS") return draw("Type a point of the board, such as D4.");
    event.target.value = "";
    if (isAsked()) answer(i ?? -1); else attempt(i ?? -1);
  });
  const escape = () => (pinned >= 0 ? showLine(-1) : leave());
  const KEYS = { ArrowLeft: actions.back, ArrowRight: actions.next, o: actions.owners, b: actions.best, n: actions.worse,
    p: actions.earlier, Escape: escape };
  const BOARD_KEYS = { Home: actions.first, End: actions.last, PageUp: () => go(now - 10), PageDown: () => go(now + 10) };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input:not([type=range])")) return;
    const act = KEYS[event.key] || ($("play").contains(event.target) ? BOARD_KEYS[event.key] : undefined);
    if (act) act();
    else if (event.key === "Enter" && event.target === board && quiz && !isAsked() && !isOver()) following();
    else if (/^[1-6]$/.test(event.key)) showLine(Number(event.key) - 1);
    else return;
    event.preventDefault();
  });

  let begun = null;
  board.addEventListener("pointerdown", (event) => { begun = [event.clientX, event.clientY]; });
  board.addEventListener("pointercancel", () => { begun = null; });
  board.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "mouse") return;
    const i = pointAt(event) ?? -1, line = candidateAt(i);
    if (line === hovered && (line >= 0 || i === ghost)) return;
    [hovered, ghost] = [line, line >= 0 ? -1 : i];
    drawBoard();
  });
  const unhover = () => { [hovered, ghost] = [-1, -1]; drawBoard(); };
  board.addEventListener("pointerleave", unhover);
  $("lines").addEventListener("pointerleave", unhover);
  $("lines").addEventListener("pointerover", (event) => {
    const button = event.target.closest("button");
    if (!button || event.pointerType !== "mouse") return;
    hovered = Number(button.dataset.line);
    drawBoard();
  });
  board.addEventListener("pointerup", (event) => {
    if (!begun) return;
    const dx = event.clientX - begun[0], dy = event.clientY - begun[1];
    begun = null;
    if (Math.abs(dx) > 30 && Math.abs(dx) > Math.abs(dy)) return step(dx < 0 ? 1 : -1);
    if (Math.hypot(dx, dy) > 10) return;
    const i = pointAt(event);
    if (i === undefined) return;
    const line = candidateAt(i), { numbers } = position(now);
    if (isAsked()) answer(i);
    else if (line >= 0 && line !== pinned) showLine(line);
    else if (pinned >= 0 && line < 0) showLine(-1);
    else if (!colorsNow()[i]) attempt(i);
    else if (!depth && numbers[i]) go(numbers[i]);
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
    draw();
  });
  addEventListener("hashchange", followHash);
  for (const part of document.querySelectorAll("[data-script]")) part.hidden = false;
  for (const button of document.querySelectorAll("[data-quiz]")) {
    button.hidden = !D.moves.some((m) => m.c === Number(button.dataset.quiz) && kindOf(m) >= BLAMED);
  }
  go(0);
  followHash();
})();
