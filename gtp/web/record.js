/** The record of the game: walking through it, variations, files, the list of games. */

/** The text of an SGF file in its own encoding: UTF-8, else the one that its CA property names, else Latin-1. */
export function textOf(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    const latin = new TextDecoder("latin1").decode(bytes), name = /CA\s*\[([^\]]+)\]/.exec(latin)?.[1].trim();
    try { return new TextDecoder(name ?? "latin1").decode(bytes); } catch { return latin; }
  }
}

/** The record's elements; `act` does an action, `stateNow()` is the shown state. */
export function newRecord($, vertex, act, stateNow, listGames) {
  let timer = 0, aim = null;

  /** Place of the shown node in the line, 0 = the root. A line may have set-ups, which are no moves. */
  const placeOf = ({ path, node }) => path.findIndex(([one]) => one === node) + 1;

  /** Go to a place in the line: the newest of many that are asked for while one is on the way. */
  async function walkTo(place) {
    const isRunning = aim !== null;
    aim = Math.max(0, Math.min(stateNow().path.length, place));
    if (isRunning) return;
    while (aim !== placeOf(stateNow())) {
      const wanted = aim, { path } = stateNow();
      const isDone = await act("goto", { node: wanted ? path[Math.min(wanted, path.length) - 1][0] : 0 });
      if (!isDone || wanted === aim) break;
    }
    aim = null;
  }
  const walk = (step) => walkTo((aim ?? placeOf(stateNow())) + step);

  for (const [id, step] of [["first", -Infinity], ["back", -1], ["forward", 1], ["last", Infinity]]) {
    $(id).addEventListener("click", () => walk(step));
  }
  $("slider").addEventListener("input", () => walkTo(Number($("slider").value)));
  $("branches").addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (button) act("goto", { node: Number(button.dataset.node) });
  });

  function open(sgf) {
    if (sgf.trim()) act("open", { sgf, rev: undefined });
  }
  async function openFile(file) {
    if (file) open(textOf(await file.arrayBuffer()));
  }

  $("open").addEventListener("click", () => {
    $("pasted").value = $("file").value = "";
    $("opening").showModal();
  });
  $("file").addEventListener("change", async () => { $("opening").close(""); await openFile($("file").files[0]); });
  $("opening").addEventListener("close", () => {
    if ($("opening").returnValue === "open") open($("pasted").value);
    $("opening").returnValue = "";
  });
  addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
    clearTimeout(timer);
  });
  addEventListener("dragleave", () => { timer = setTimeout(() => document.body.classList.remove("dropping"), 80); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    const { files } = event.dataTransfer;
    if (files.length) openFile(files[0]); else open(event.dataTransfer.getData("text"));
  });
  document.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text");
    if (!event.target.closest?.("input, textarea") && /^\s*\(\s*;/.test(text)) open(text);
  });

  $("games-open").addEventListener("click", async () => {
    const games = (await listGames().catch(() => null))?.games ?? [];
    $("games-none").hidden = games.length > 0;
    $("games-rows").replaceChildren(...games.map((game) => {
      const row = document.createElement("tr"), button = document.createElement("button");
      button.type = "button";
      button.textContent = game.date;
      button.addEventListener("click", () => { $("games").close(); act("load", { id: game.id, rev: undefined }); });
      const players = `${game.players.black} – ${game.players.white}`, size = `${game.size}×${game.size}`;
      const cells = [button, players, size, game.moves, game.result || "–"].map((content) => {
        const cell = document.createElement("td");
        cell.append(content);
        return cell;
      });
      row.append(...cells);
      return row;
    }));
    $("games").showModal();
  });

  return {
    walk,
    /** Go to a position by its number of moves. */
    toMove(number) {
      let moves = 0;
      walkTo(number ? stateNow().path.findIndex(([, color]) => color && ++moves === number) + 1 : 0);
    },
    draw(state) {
      const { number, path, branches, review } = state, slider = $("slider"), place = placeOf(state);
      const moves = path.filter(([, color]) => color).length;
      slider.max = path.length;
      if (aim === null) slider.value = place;
      slider.setAttribute("aria-valuetext", `move ${number} of ${moves}`);
      $("number").textContent = `${number} / ${moves}`;
      $("first").disabled = $("back").disabled = !place;
      $("last").disabled = $("forward").disabled = place >= path.length;
      const shown = branches.map(([child, color, i]) => {
        const button = document.createElement("button");
        button.type = "button";
        button.dataset.node = child;
        const sign = { b: "●", w: "○" }[color] ?? "+", name = { b: "Black", w: "White" }[color] ?? "";
        button.textContent = `${sign} ${vertex(i)}`;
        button.setAttribute("aria-label", `Variation: ${name} ${vertex(i)}`);
        button.setAttribute("aria-pressed", String(path[place]?.[0] === child));
        return button;
      });
      $("branches").hidden = !shown.length;
      const focus = document.activeElement?.dataset.node;
      $("branches").replaceChildren(...shown);
      if (focus) shown.find((button) => button.dataset.node === focus)?.focus();
      const [text, link] = $("review").children;
      $("review").hidden = !review || review.state === "none";
      const about = review?.text ?? "", words = { running: `Review: ${about}`, failed: `The review failed: ${about}` };
      text.textContent = words[review?.state] ?? "The review is ready.";
      link.hidden = review?.state !== "done";
      if (review?.url?.startsWith("/review/")) link.href = review.url;
    },
  };
}
