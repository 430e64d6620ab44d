/** The conversation with the server: actions by POST, states and searches by server-sent events. */

import { followEvents } from "./stream.js";

/** Actions that may take long and change nothing. */
const ALONE = { layers: true, rollout: true };
export const ENDED = "Keima has ended. Start keima play again; this page then continues by itself.";
export const ANEW = "Keima was started anew. Open the address that keima play has printed.";

/** Connect to the server.
 *
 * `hears` has `state(STATE)`, `search(SEARCH)`, `connection(text)` ("" = connected) and `wrong(text)`. */
export function newTalk(hears) {
  let rev = -1, isAnew = false, before = Promise.resolve();

  function take(state) {
    // Replies and events may overtake each other; a server that was started anew counts anew.
    if (!state || (state.rev < rev && !isAnew)) return;
    isAnew = false;
    rev = state.rev;
    hears.state(state);
  }

  /** Why there are no events: a text for all tabs. */
  async function whyLost() {
    const answer = await fetch("/api/state", { cache: "no-store" }).catch(() => null);
    if (!answer) return ["connection", ENDED];
    if (answer.status === 403) return ["connection", ANEW];
    return answer.ok ? null : ["connection", (await answer.json().catch(() => ({}))).error ?? ENDED];
  }

  /** Do an action on the state that is shown (on any with `rev: undefined`), after those that are on the way;
   * returns the reply, or null after an error, which is told. */
  function act(action, body = {}) {
    if (action in ALONE) return post(action, body);
    before = before.then(() => post(action, body));
    return before;
  }

  async function post(action, body) {
    try {
      const answer = await fetch(`/api/${action}`, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ rev, ...body }),
      });
      const reply = await answer.json().catch(() => ({}));
      const why = reply.error ?? (answer.status === 403 ? ANEW : `The server answered ${answer.status}.`);
      hears.wrong(answer.ok ? "" : why);
      take(reply.state);
      return answer.ok ? reply : null;
    } catch {
      hears.connection(ENDED);
      return null;
    }
  }

  followEvents({
    open() { isAnew = true; hears.connection(""); },
    state: (text) => take(JSON.parse(text)),
    search: (text) => hears.search(JSON.parse(text)),
    connection: hears.connection,
    lost: whyLost,
  });
  // A tab without the stream hears of the next change only.
  if (document.hidden) fetch("/api/state", { cache: "no-store" }).then((answer) => answer.json()).then(take, () => {});
  return { act, list: async () => (await fetch("/api/games", { cache: "no-store" })).json() };
}
