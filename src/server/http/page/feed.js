// The status stream of the replica, and its health.

const AGAIN_AFTER = 2000;
// The replica sends a keep-alive every 2 s.
const SILENCE = 10_000;

// Calls tells(status) with each status, lives(time) with the cluster time, and loses() when the connection is lost.
export function listen({ tells, lives, loses }) {
  let source;
  let again;
  let heard;
  // On some systems the first clock stands still while the machine sleeps, and the other is wrong at times.
  const hears = () => { heard = { steady: performance.now(), wall: Date.now() }; };
  const silence = () => Math.max(performance.now() - heard.steady, Date.now() - heard.wall);

  const open = () => {
    clearTimeout(again);
    again = undefined;
    hears();
    source = new EventSource("/v1/watch");
    source.onmessage = ({ data }) => hear(() => tells(JSON.parse(data)));
    source.addEventListener("alive", ({ data }) => hear(() => lives(data)));
    source.onerror = lose;
  };
  const hear = (then) => {
    hears();
    then();
  };
  const lose = () => {
    source.close();
    loses();
    again ??= setTimeout(open, AGAIN_AFTER);
  };
  setInterval(() => {
    if (again === undefined && silence() > SILENCE) lose();
  }, 1000);
  open();
}

// The closed events, newest first; undefined if the request failed.
export async function closedEvents() {
  try {
    const answer = await fetch("/v1/events", { signal: AbortSignal.timeout(SILENCE) });
    const { events } = await answer.json();
    return events.filter((event) => event.stage === "closed").reverse();
  } catch {
    return undefined;
  }
}
