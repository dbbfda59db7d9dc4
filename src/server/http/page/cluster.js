// Can the cluster act? Who leads, who answers, whose metadata channel works, whose clock is off.

import { cell, fill, outside, rowHead, state, table, tree } from "./tree.js";
import { list, many, span } from "./words.js";

// Where the leader begins to warn.
const CLOCK_LIMIT = 2000;

const names = (replicas) => replicas.map((replica) => replica.name);

export function ability(status) {
  const members = status.replicas.filter((replica) => replica.member);
  const voters = members.filter((replica) => replica.voter);
  const reached = voters.filter((replica) => replica.reachable);
  const healthy = members.filter((replica) => replica.reachable && replica.metadata === "healthy");
  const lost = status.replicas.filter((replica) => (replica.member || replica.configured) && !replica.reachable);
  const mute = members.filter((replica) => replica.reachable && replica.metadata !== "healthy");
  const off = members.filter((replica) => Math.abs(replica.clock_difference_ms ?? 0) > CLOCK_LIMIT);
  // one that answers gives account by itself within seconds
  const suspects = lost.filter((replica) => replica.suspect);
  const worries = [];
  const told = (which, one, more) => which.length > 0 &&
    worries.push(outside(`${list(names(which))} ${which.length === 1 ? one : more}`));
  // the leader has yet to notice
  const isThin = status.quorum && reached.length * 2 <= voters.length;
  if (isThin) worries.push("too few voters answer at this moment: nothing is decided before more than half of them do");
  if (status.quorum && !status.leader) worries.push("nobody leads at this moment; an election takes a second or two");
  told(lost, "is out of reach", "are out of reach");
  told(mute, "gets no documents from its metadata endpoint", "get no documents from their metadata endpoints");
  told(off, "has a clock more than 2 s off", "have clocks more than 2 s off");
  told(suspects, "might approve alone what a user of the cloud asked for", "might approve alone what a user of the cloud asked for");
  for (const { text } of status.warnings) worries.push(outside(text));
  if (healthy.length === 0) worries.push("no metadata channel works, so nothing can be approved and news is not heard");
  const leads = status.leader ? [outside(status.leader), " leads"] : "nobody leads";
  const all = healthy.length === members.length;
  const channels = all ? "every metadata channel works" : `${healthy.length} of ${members.length} metadata channels work`;
  const sentence = [tree("strong", {}, status.leader && healthy.length > 0 && !isThin ? "The cluster can act: " : "The cluster cannot act now: "), leads,
    `, ${reached.length} of ${many(voters.length, "voter")} can be reached, `, channels, "."];
  return { sentence, worries };
}

export function drawCluster(section, status, silentFor) {
  const columns = ["Replica", "Contact", "Metadata channel", "Clock"];
  fill(section,
    tree("h2", { id: "cluster-title" }, "Replicas"),
    table("replicas", "The replicas of the cluster, as this one sees them", columns,
      status.replicas.map((replica) => row(replica, status, silentFor))),
    tree("p", { class: "aside" }, "Clock: how far it is ahead of the cluster's time. "
      + `Term ${status.term}; ${status.quorum ? "there is a quorum" : "there is no quorum"}.`));
}

function row(replica, status, silentFor) {
  const part = !replica.member ? "no member" : replica.voter ? "voter" : "learner";
  const what = [replica.name === status.leader && "leader", replica.name === status.replica && "shows this page", !replica.configured && "not configured here"];
  return [
    replica.name,
    rowHead(replica.name, [part, ...what.filter(Boolean)].join(", ")),
    state(replica.reachable, replica.reachable ? "reachable" : "out of reach", replica.suspect ? beside(replica.reachable ? "about to give account" : "may be approving alone") : ""),
    channel(replica, silentFor),
    clock(replica),
  ];
}

const beside = (text) => tree("span", { class: "beside" }, text);

function channel({ metadata, reachable, last_document_age_ms: age }, silentFor) {
  if (!reachable) return cell("unknown: out of reach");
  const last = age === null ? "no document yet" : `last document ${span(age + silentFor)} ago`;
  return state(metadata === "healthy", metadata, metadata === "healthy" ? "" : beside(last));
}

function clock({ clock_difference_ms: ahead, reachable }) {
  if (!reachable) return cell("unknown");
  if (ahead === null) return cell("not measured");
  const sign = ahead > 0 ? "+" : ahead < 0 ? "−" : "";
  const size = Math.abs(ahead);
  const text = size < 1000 ? `${sign}${size} ms` : `${sign}${(size / 1000).toFixed(1)} s`;
  return size > CLOCK_LIMIT ? state(false, text) : cell(text);
}
