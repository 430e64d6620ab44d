/** Help with a position: a hint, candidates coloured by points lost, ownership, and the graphs of the game. */

/** Points lost where the colours change: the kinds of moves of `keima review`. */
const THRESHOLDS = [0.2, 0.6, 1.2, 4, 10];
const PERCENT_A_POINT = 4, SHOWN = 8, LISTED = 6, LINE = 12, OWNER_STEPS = 62;
const OWNER_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+";
const RATES = [[0, "W"], [50, "50%"], [100, "B"]];

const percent = (winrate) => `${Math.round(100 * winrate)}%`;
const leadText = (lead) => (Math.abs(lead) < 0.05 ? "even" : (lead > 0 ? "B+" : "W+") + Math.abs(lead).toFixed(1));

/** End of the axis of leads: the 98th percentile of their sizes, rounded up. */
function scaleOf(leads) {
  const sizes = leads.map(Math.abs).sort((a, b) => a - b);
  const most = Math.max(10, sizes[Math.ceil(0.98 * sizes.length) - 1] ?? 0), step = most <= 50 ? 5 : 10;
  return step * Math.ceil(most / step);
}

/** The help's elements; `changes()` is told of other marks on the board, `walks(number)` of a click on a graph. */
export function newHelp($, vertex, changes, walks) {
  const shows = { hint: false, candidates: false, ownership: false, graph: false };
  let found = null, line = null, rows = [], isSmall = false;

  /** What a move loses against the best: its colour's number, and the text on its mark. */
  function lossOf(move, toMove) {
    const best = found.moves[0], sign = toMove === 1 ? 1 : -1;
    if (move.lost !== null && move.lost !== undefined) {
      const lost = Math.max(0, move.lost);
      const kind = THRESHOLDS.filter((t) => lost >= t).length;
      return { kind, text: lost.toFixed(lost < 9.95 ? 1 : 0), unit: "points" };
    }
    const lost = Math.max(0, 100 * sign * (best.winrateBlack - move.winrateBlack));
    const kind = THRESHOLDS.filter((t) => lost / PERCENT_A_POINT >= t).length;
    return { kind, text: `${lost.toFixed(0)}%`, unit: "of the win rate" };
  }

  /** A candidate's mark: what it loses, or its number in the list where points are too small for that. */
  function candidateMark(board, size, move, toMove, rank) {
    const { kind, text } = lossOf(move, toMove), isBest = move === found.moves[0];
    const x = CELL * ((move.i % size) + 1.5), y = CELL * (Math.floor(move.i / size) + 1) + (rank ? 5 : 3.4);
    const look = `class="candidate" fill="var(--k${kind})" stroke="var(--line)" stroke-width="${isBest ? 1.3 : 0.6}"`;
    const font = `font-size="${rank ? 14 : 9.5}" font-weight="600" text-anchor="middle" fill="var(--paper)"`;
    return `${board.circle(move.i, isBest ? 11 : 10, look)}<text x="${x}" y="${y}" ${font}>${rank || text}</text>`;
  }

  function lineStones(board, move, toMove) {
    const seen = new Set();
    return move.pv.slice(0, LINE).map((i, n) => {
      if (i < 0 || seen.has(i)) return "";
      seen.add(i);
      return board.stone(i, n % 2 ? 3 - toMove : toMove, n + 1);
    }).join("");
  }

  function drawRows(toMove) {
    const moves = shows.candidates && found ? found.moves.slice(0, LISTED) : [];
    $("lines").hidden = $("lines-head").hidden = !moves.length;
    while (rows.length < moves.length) {
      const item = document.createElement("li"), button = document.createElement("button");
      button.type = "button";
      for (const name of ["dot", "vertex", "lost", "rate", "lead", "visits", "moves"]) {
        const part = document.createElement(name === "vertex" ? "b" : "span");
        part.className = name;
        button.append(part);
      }
      item.append(button);
      rows.push(item);
      $("lines").append(item);
    }
    rows.forEach((item, n) => {
      const move = moves[n], button = item.firstElementChild;
      item.hidden = !move;
      if (!move) return;
      const { kind, text, unit } = lossOf(move, toMove), pv = move.pv.slice(0, LINE).map(vertex).join(" ");
      const lead = move.leadBlack === null ? "" : leadText(move.leadBlack);
      const rank = isSmall ? n + 1 : "", lost = Number.parseFloat(text) ? `−${text}` : text;
      const rate = percent(move.winrateBlack), visits = move.visits.toLocaleString("en");
      const texts = [rank, vertex(move.i), lost, rate, lead, visits, pv];
      texts.forEach((words, k) => { button.children[k].textContent = words; });
      button.children[0].className = `dot k${kind}`;
      button.dataset.move = move.i;
      button.setAttribute("aria-pressed", String(move.i === line));
      const loss = `${vertex(move.i)}: loses ${text} ${unit}`;
      const said = [loss, `Black ${rate} ${lead}`, `${visits} visits`, `line ${pv}`];
      button.setAttribute("aria-label", said.join(", "));
    });
  }

  function drawText() {
    const isShown = found && (shows.candidates || shows.ownership || shows.hint);
    $("search").hidden = !(shows.candidates || shows.ownership || shows.hint);
    if (!isShown) { $("search").textContent = "Thinking…"; return; }
    const parts = [];
    if (shows.hint && !shows.candidates) parts.push(`Hint: ${vertex(found.moves[0]?.i ?? -1)}`);
    if (shows.candidates || shows.ownership) {
      parts.push(`Black ${percent(found.winrateBlack)}`);
      if (found.leadBlack !== null) parts.push(leadText(found.leadBlack));
      parts.push(`${found.visits.toLocaleString("en")} visits`);
      if (found.visitsPerSecond) parts.push(`${Math.round(found.visitsPerSecond).toLocaleString("en")}/s`);
    }
    $("search").textContent = parts.join(" · ");
  }

  function drawGraphs({ graph, number, path }) {
    $("graphs").hidden = !shows.graph;
    if (!shows.graph) return;
    const last = path.length, values = new Map(graph.map(([n, ...both]) => [n, both]));
    if (found) values.set(number, [found.winrateBlack, found.leadBlack]);
    const points = (k, factor) => Array.from(values).filter(([, both]) => both[k] !== null && both[k] !== undefined)
      .map(([n, both]) => [n, factor * both[k]]).sort((a, b) => a[0] - b[0]);
    const rates = points(0, 100), leads = points(1, 1), most = scaleOf(leads.map(([, lead]) => lead));
    const [lastRate, lastLead] = [rates.at(-1)?.[1], leads.at(-1)?.[1]];
    const rateSaid = lastRate === undefined ? "" : `, at the end ${lastRate.toFixed(0)}%`;
    const leadSaid = lastLead === undefined ? "" : `, at the end ${leadText(lastLead)}`;
    draw("g-winrate", `Black's win rate over ${last} moves${rateSaid}`, [0, 100], RATES, rates);
    draw("g-lead", `Black's lead in points over ${last} moves${leadSaid}`, [-most, most],
      [[most, `B+${most}`], [0, "0"], [-most, `W+${most}`]], leads);
    $("g-lead").closest("figure").hidden = !leads.length;

    function draw(id, title, ys, marks, shown) {
      const text = gameChart(title, last, ys, marks, shown);
      if ($(id).dataset.drawn !== text) { $(id).innerHTML = text; $(id).dataset.drawn = text; }
      moveCursor($(id).firstElementChild, number, last);
      $(id).dataset.last = last;
    }
  }

  for (const id of ["g-winrate", "g-lead"]) {
    const jump = (event) => {
      const chart = $(id).firstElementChild, box = chart.getBoundingClientRect(), left = Number(chart.dataset.left);
      const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
      const last = Number($(id).dataset.last);
      walks(Math.max(0, Math.min(last, Math.round(((x - left) / (chart.dataset.right - left)) * last))));
    };
    $(id).addEventListener("pointerdown", jump);
    $(id).addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });
  }

  function showLine(i) {
    if (i === line) return;
    line = i;
    changes();
  }
  const lineUnder = (event) => {
    const button = event.target.closest("button");
    return button ? Number(button.dataset.move) : null;
  };
  const onLines = (name, act) => $("lines").addEventListener(name, act);
  for (const name of ["pointerover", "focusin", "click"]) onLines(name, (event) => showLine(lineUnder(event)));
  for (const name of ["pointerleave", "focusout"]) onLines(name, () => showLine(null));

  return {
    shows,
    get wantsAnalysis() { return shows.candidates || shows.ownership; },
    /** A search's values for the shown position; null = none yet. */
    take(search) { found = search; if (!search) line = null; },
    /** The pointer is over a point of the board: a candidate there shows its line. */
    over(i) {
      const isOne = shows.candidates && i >= 0 && found?.moves.slice(0, SHOWN).some((move) => move.i === i);
      showLine(isOne ? i : null);
    },
    /** What is drawn on the board. */
    marks(board, view) {
      let below = "", stones = "", marks = "";
      if (!found) return { below, stones, marks };
      isSmall = view.isSmall;
      const { toMove, size } = view;
      if (shows.ownership && found.owners) {
        const values = Array.from(found.owners, (letter) => (OWNER_LETTERS.indexOf(letter) / OWNER_STEPS) * 2 - 1);
        [below, marks] = board.owners(values, view.colors);
      }
      const shown = line === null ? null : found.moves.find((move) => move.i === line);
      if (shown && shows.candidates) stones = lineStones(board, shown, toMove);
      else if (shows.candidates) {
        const shownMoves = found.moves.slice(0, isSmall ? LISTED : SHOWN);
        for (const [n, move] of Array.from(shownMoves.entries()).reverse()) {
          if (move.i >= 0) marks += candidateMark(board, size, move, toMove, isSmall ? n + 1 : 0);
        }
      } else if (shows.hint && found.moves[0]?.i >= 0) {
        const i = found.moves[0].i;
        marks += board.circle(i, 9, 'class="hint" fill="var(--accent)" stroke="var(--line)" stroke-width="1.5"') +
          board.circle(i, 3, 'fill="var(--paper)"');
      }
      return { below, stones, marks };
    },
    draw(state) {
      drawText();
      drawRows(state.toMove === "black" ? 1 : 2);
      drawGraphs(state);
    },
  };
}
