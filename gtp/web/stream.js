/** The server's events, which all tabs of a browser share: it has six connections to a server, and a stream takes one.
 *
 * The tab that was last seen holds a lock and the stream; it sends the events to the others. A tab that comes into view
 * steals the lock, since browsers slow hidden tabs down; if the holder closes, another tab follows. */

const LOCK = "keima-events", RETRY_MS = 1500;

/** Follow the events.
 *
 * `hears` is told by kind: `open()` (connected), `state(text)` and `search(text)`, JSON, and `lost()` in the tab with the
 * stream, which returns the kind and the value that all tabs hear, or nothing. */
export function followEvents(hears) {
  // Other machines reach the page without encryption, where browsers give no locks: each tab has a stream.
  const tabs = navigator.locks ? new BroadcastChannel(LOCK) : null;
  let stream = null, timer = 0, waiting = null;

  function share(kind, value) {
    hears[kind](value);
    tabs?.postMessage([kind, value]);
  }

  function connect() {
    stop();
    const own = stream = new EventSource("/events");
    own.addEventListener("open", () => share("open"));
    for (const kind of ["state", "search"]) own.addEventListener(kind, ({ data }) => share(kind, data));
    own.addEventListener("error", async () => {
      own.close();
      timer = setTimeout(connect, RETRY_MS);
      const told = await hears.lost();
      // Another tab may have the stream by now.
      if (told && own === stream) share(...told);
    });
  }
  function stop() {
    clearTimeout(timer);
    stream?.close();
    stream = null;
  }

  /** Connect as soon as this tab holds the lock, and until another tab steals it. */
  async function hold(options) {
    let isHeld = false;
    const held = () => {
      isHeld = true;
      connect();
      return new Promise(() => {});
    };
    await navigator.locks.request(LOCK, options, held).catch(() => {});
    if (!isHeld) return;
    stop();
    waitInLine();
  }
  function waitInLine() {
    waiting = new AbortController();
    hold({ signal: waiting.signal });
  }
  function come() {
    if (document.hidden || stream) return;
    waiting?.abort();
    hold({ steal: true });
  }

  if (!tabs) return connect();
  tabs.onmessage = ({ data: [kind, value] }) => hears[kind](value);
  document.addEventListener("visibilitychange", come);
  if (document.hidden) waitInLine(); else come();
}
