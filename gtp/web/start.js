/** The panel of a new game: its settings are remembered in the browser. */

const MEMORY = "keima.start";
const NAMES = { max: "max (full strength)", auto: "auto (follows you)" };

export function remembered(name, otherwise) {
  try { return JSON.parse(localStorage.getItem(name)) ?? otherwise; } catch { return otherwise; }
}
export function remember(name, value) {
  try { localStorage.setItem(name, JSON.stringify(value)); } catch { /* private windows may forbid it */ }
}

/** Komi where no number is given: that which is usual on the board. */
function usualKomi(size, rules, handicap) {
  if (handicap) return 0.5;
  const byTerritory = /japanese|korean/.test(rules);
  return size <= 9 ? (byTerritory ? 6 : 7) : byTerritory ? 6.5 : 7.5;
}

/** The panel; `starts(settings)` is told the words of the action `new`, `changes()` of any change. */
export function newStart(form, starts, changes) {
  const field = (name) => form.elements[name], number = (name) => Number(field(name).value);
  const size = () => (field("size").value === "other" ? Math.round(number("other")) : number("size"));
  let range = [2, 25], isTouched = false;

  for (let n = 2; n <= 9; n++) field("handicap").add(new Option(`${n} stones`, n));

  function fill(select, values, names = {}) {
    const texts = JSON.stringify(values);
    if (select.dataset.values === texts) return;
    const kept = select.value;
    select.dataset.values = texts;
    select.replaceChildren(...values.map((value) => new Option(names[value] ?? value, value)));
    if (values.includes(kept)) select.value = kept;
  }

  function set(values) {
    for (const [name, value] of Object.entries(values)) {
      const one = field(name);
      if (!one || value === null || value === undefined) continue;
      if (name === "size" && !["9", "13", "19", "other"].includes(String(value))) {
        one.value = "other"; field("other").value = value;
      } else if (one instanceof HTMLSelectElement) {
        if (Array.from(one.options).some((option) => option.value === String(value))) one.value = value;
      } else one.value = value;
    }
    follow();
  }

  function follow() {
    form.querySelector("#other").hidden = field("size").value !== "other";
    const time = field("time").value;
    for (const row of form.querySelectorAll("[data-time]")) row.hidden = !row.dataset.time.split(" ").includes(time);
    field("komi").placeholder = usualKomi(size(), field("rules").value, number("handicap"));
    field("handicapStones").closest("label").hidden = !number("handicap");
    const who = field("color").value;
    field("level").closest("label").hidden = who === "both";
    form.querySelector("#start-play").textContent = who === "none" ? "Watch" : "Play";
  }

  /** The words of the action `new`. */
  function settings() {
    const time = field("time").value, rules = field("rules").value, handicap = number("handicap");
    const komi = field("komi").value === "" ? usualKomi(size(), rules, handicap) : number("komi");
    const found = { size: size(), color: field("color").value, level: field("level").value, handicap, komi, rules };
    if (handicap) found.handicapStones = field("handicapStones").value;
    if (time === "seconds") found.seconds = number("seconds");
    if (time === "periods") {
      const period = { byoSeconds: number("periodSeconds"), byoPeriods: number("periods") };
      found.clock = { mainSeconds: 60 * number("minutes"), ...period };
    }
    if (time === "increment") found.clock = { mainSeconds: 60 * number("minutes"), incSeconds: number("increment") };
    return found;
  }

  form.addEventListener("input", () => { isTouched = true; follow(); changes(); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    save();
    starts(settings());
  });

  /** Take the settings as they are. */
  function save() {
    isTouched = true;
    remember(MEMORY, Object.fromEntries(new FormData(form)));
  }

  return {
    size, settings, save,
    color: () => field("color").value,
    level: () => field("level").value,
    isValid: () => form.checkValidity() && size() >= range[0] && size() <= range[1],
    /** The choices that the server has; until one is made, also what was remembered and what the command line gives. */
    offer(state) {
      range = state.sizes ?? range;
      field("other").min = range[0]; field("other").max = range[1];
      fill(field("level"), state.levels?.length ? state.levels : ["max"], NAMES);
      fill(field("rules"), state.ruleSets ?? [state.rules]);
      if (isTouched) return;
      const shown = { size: state.size, color: "black", level: levelOf(state), rules: state.rules };
      set({ ...shown, ...remembered(MEMORY, {}), ...state.given });
    },
  };
}

function levelOf({ players }) {
  return players.white.level ?? players.black.level ?? "max";
}
