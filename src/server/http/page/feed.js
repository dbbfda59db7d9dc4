// The status stream of the replica, and its health.

const AGAIN_AFTER = 2000;
// The replica sends a keep-alive every 2 s.
const SILENCE = 10_000;

// Calls tells(status) with each status, lives(time) with the cluster time, and loses() when the connection is lost.
export function listen({ tells, lives, loses }) {
  let source;
  let heard = performance.now();
  let again;

  const open = () => {
    clearTimeout(again);
    again = undefined;
    heard = performance.now();
    source = new EventSource("/v1/watch");
    source.onmessage = ({ data }) => hear(() => tells(JSON.parse(data)));
    source.addEventListener("alive", ({ data }) => hear(() => lives(data)));
    source.onerror = lose;
  };
  const hear = (then) => {
    heard = performance.now();
    then();
  };
  const lose = () => {
    source.close();
    loses();
    again ??= setTimeout(open, AGAIN_AFTER);
  };
  setInterval(() => {
    if (again === undefined && performance.now() - heard > SILENCE) lose();
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
