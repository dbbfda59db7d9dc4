// What the replica tells, and whether it still does.

const AGAIN_AFTER = 2000;
// The replica gives a sign of life every 2 s.
const SILENCE = 10_000;

// Calls tells(status), lives(time) with the cluster's time, and loses() when nothing is heard any more.
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

// The closed events, newest first; undefined where they could not be read.
export async function closedEvents() {
  try {
    const answer = await fetch("/v1/events", { signal: AbortSignal.timeout(SILENCE) });
    const { events } = await answer.json();
    return events.filter((event) => event.stage === "closed").reverse();
  } catch {
    return undefined;
  }
}
