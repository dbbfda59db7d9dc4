// The state of the cluster: the leader, and the reachability, metadata channel and clock of each replica.

import { cell, fill, outside, rowHead, state, table, tree } from "./tree.js";
import { list, many, shortTimes, span } from "./words.js";

// The clock difference in milliseconds from which the leader warns.
const CLOCK_LIMIT = 2000;

const names = (replicas) => replicas.map((replica) => replica.name);

export function ability(status, now) {
  const members = status.replicas.filter((replica) => replica.member);
  const voters = members.filter((replica) => replica.voter);
  const reached = voters.filter((replica) => replica.reachable);
  const healthy = members.filter((replica) => replica.reachable && replica.metadata === "healthy");
  const lost = status.replicas.filter((replica) => (replica.member || replica.configured) && !replica.reachable);
  const mute = members.filter((replica) => replica.reachable && replica.metadata !== "healthy");
  const off = members.filter((replica) => Math.abs(replica.clock_difference_ms ?? 0) > CLOCK_LIMIT);
  // A reachable suspect reconciles the journal automatically within seconds.
  const suspects = lost.filter((replica) => replica.suspect);
  const worries = [];
  const told = (which, one, more) => which.length > 0 &&
    worries.push(outside(`${list(names(which))} ${which.length === 1 ? one : more}`));
  // The leader has not noticed the loss of the quorum yet.
  const isThin = status.quorum && reached.length * 2 <= voters.length;
  if (isThin) worries.push("too few voters answer at this moment: the cluster decides nothing until more than half of the voters answer");
  if (status.quorum && !status.leader) worries.push("there is no leader at this moment; an election takes a second or two");
  told(lost, "is unreachable", "are unreachable");
  told(mute, "gets no documents from its metadata endpoint", "get no documents from their metadata endpoints");
  told(off, "has a clock more than 2 s off", "have clocks more than 2 s off");
  // One of three or more approves alone only for an operator.
  if (voters.length === 2) told(suspects, "might approve a user-initiated event alone", "might approve user-initiated events alone");
  for (const { text } of status.warnings) worries.push(outside(shortTimes(text, now)));
  if (healthy.length === 0) worries.push("no metadata channel works, so the cluster can approve nothing and receives no new events");
  const leads = status.leader ? [outside(status.leader), " leads"] : "there is no leader";
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
    table("replicas", "The replicas of the cluster, by the status of this replica", columns,
      status.replicas.map((replica) => row(replica, status, silentFor))),
    tree("p", { class: "aside" }, "Clock: the lead of the replica's wall clock over the cluster's time. "
      + `Term ${status.term}; ${status.quorum ? "there is a quorum" : "there is no quorum"}.`));
}

function row(replica, status, silentFor) {
  const part = !replica.member ? "not a member" : replica.voter ? "voter" : "learner";
  const what = [replica.name === status.leader && "leader", replica.name === status.replica && "shows this page", !replica.configured && "not configured here"];
  return [
    replica.name,
    rowHead(replica.name, [part, ...what.filter(Boolean)].join(", ")),
    state(replica.reachable, replica.reachable ? "reachable" : "unreachable", replica.suspect ? beside(replica.reachable ? "reconciliation pending" : "may be approving alone") : ""),
    channel(replica, silentFor),
    clock(replica),
  ];
}

const beside = (text) => tree("span", { class: "beside" }, text);

function channel({ metadata, reachable, last_document_age_ms: age }, silentFor) {
  if (!reachable) return cell("unknown: unreachable");
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
