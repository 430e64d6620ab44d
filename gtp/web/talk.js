/** The conversation with the server: actions by POST, states and searches by server-sent events. */

const RETRY_MS = 1500;
/** Actions that may take long and change nothing. */
const ALONE = { layers: true, rollout: true };
export const ENDED = "Keima has ended. Start keima play again; this page then continues by itself.";
export const ANEW = "Keima was started anew. Open the address that keima play has printed.";

/** Connect to the server.
 *
 * `hears` has `state(STATE)`, `search(SEARCH)`, `connection(text)` ("" = connected) and `wrong(text)`. */
export function newTalk(hears) {
  let rev = -1, stream = null, timer = 0, before = Promise.resolve();

  function take(state) {
    // Replies and events may overtake each other.
    if (!state || state.rev < rev) return;
    rev = state.rev;
    hears.state(state);
  }

  async function connect() {
    clearTimeout(timer);
    stream?.close();
    stream = new EventSource("/events");
    stream.addEventListener("open", () => { rev = -1; hears.connection(""); });
    stream.addEventListener("state", ({ data }) => take(JSON.parse(data)));
    stream.addEventListener("search", ({ data }) => hears.search(JSON.parse(data)));
    stream.addEventListener("error", lost);
  }

  async function lost() {
    stream.close();
    timer = setTimeout(connect, RETRY_MS);
    const answer = await fetch("/api/state", { cache: "no-store" }).catch(() => null);
    if (!answer) hears.connection(ENDED);
    else if (answer.status === 403) hears.connection(ANEW);
    else if (!answer.ok) hears.connection((await answer.json().catch(() => ({}))).error ?? ENDED);
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

  connect();
  return { act, list: async () => (await fetch("/api/games", { cache: "no-store" })).json() };
}
