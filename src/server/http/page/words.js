// Texts for times, durations and sentences.

const two = (number) => String(number).padStart(2, "0");

export const instant = (text) => (text ? Date.parse(text) : NaN);

// The time of day in UTC, as 03:12:44, after the date unless the date is today's.
export function time(at, now) {
  if (!Number.isFinite(at)) return "unknown";
  const date = new Date(at);
  const clock = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`;
  const day = date.toISOString().slice(0, 10);
  return `${day === new Date(now).toISOString().slice(0, 10) ? "" : `${day} `}${clock}`;
}

export function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (ms < 1000 && ms > 0) return "less than 1 s";
  if (seconds < 100) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 100) return `${minutes} min ${two(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${two(minutes % 60)} min` : `${Math.floor(hours / 24)} days ${hours % 24} h`;
}

// A past duration.
export const took = (ms) => (ms < 10_000 ? `${(Math.max(0, ms) / 1000).toFixed(1)} s` : span(ms));

export const countdown = (at, now) => (at > now ? `in ${span(at - now)}` : `${span(now - at)} ago`);

// "a", "a and b", "a, b and c"
export function list(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

export const sentence = (text) => {
  const trimmed = text.trim();
  // The first letter of a name stays.
  const first = /^(all|an|another|approve|end|find|hold|look|no|pause|policy|preparation|prepare|repair|run|show|skip|start|the|there|this|when)\b/.test(trimmed)
    ? trimmed.charAt(0).toUpperCase() : trimmed.charAt(0);
  return `${first}${trimmed.slice(1)}${/[.!?]$/.test(trimmed) ? "" : "."}`;
};

export const many = (count, one, more = `${one}s`) => `${count} ${count === 1 ? one : more}`;

// A word of the API without underscores.
export const word = (text) => (text ?? "unknown").replaceAll("_", " ");

// The text with RFC 3339 times in the page's format.
export const shortTimes = (text, now) =>
  text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (at) => `${time(Date.parse(at), now)} UTC`);

// All blockers of the event, the one to act on first in front.
export const blockersOf = ({ blocker, other_blockers: others }) => (blocker ? [blocker, ...others] : []);

// The name of a hook within its workload: hooks of one phase look different.
export const hookLabel = ({ hook }) => hook.split("/").pop();

// What an event under way was not prepared for, or null.
export function unprepared({ missing_hooks: missing, hooks }, now) {
  if (missing.length === 0) return null;
  const own = hooks.find(({ phase, outcome }) => phase === "failover" && !outcome);
  const first = own ? ` when allclear's own failover has ended, at the latest at ${shortTimes(own.deadline, now)}:` : "";
  return `The event started before the ${missing.join(" and the ")} ${missing.length === 1 ? "was" : "were"} done. Check that the other members serve;${first} if none is the primary, fail over by hand.`;
}

// Whether the event waits for a person's action.
export const isStuck = (event) => blockersOf(event).some(({ needs_person: isNeeded }) => isNeeded);

export const title = ({ type, resources, drill }) => `${drill ? "Drill: " : ""}${type} of ${list(resources) || "no machine"}`;

// The blocker as a sentence, without ids of other open events, because the page shows these ids with the events.
export function because({ message }, events, now) {
  return sentence(shortTimes(events.reduce((text, event) => text.replaceAll(` (event ${event.id})`, ""), message), now));
}
