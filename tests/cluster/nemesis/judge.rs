//! The judge: whether the facts of a round keep the properties of `SPEC.md` 18. Each property is a function over
//! the record alone, without knowledge of how replicas decide.

use std::collections::{BTreeMap, BTreeSet};

use allclear::wire::pb::allclear::operator::v1::{Approval, Event, Hook};

use super::hooks_judge::{is_excused, s4_of_hooks, s6, s7, s8};
use super::record::{Announced, Moment, Post, Record, Run, Strike};

/// A lease counts from the leader's decision, and a claim bears the time of the proposal, which is later on a busy
/// machine.
const STAMPED_WITHIN_MS: Moment = 500;

/// The clocks of two replicas agree to this much about a span of a few seconds, also over slow links.
const SLACK_MS: Moment = 1_500;

/// A property that does not hold, the event, and the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Finding {
    pub(super) property: &'static str,
    pub(super) event: String,
    pub(super) why: String,
}

pub(super) type Property = fn(&Record) -> Vec<Finding>;

pub(super) const PROPERTIES: [Property; 14] =
    [s1, s2, s3, s4, s4_of_hooks, s5, held, s6, s7, s8, one_story, alive, l2, l3];

pub(super) fn judge(record: &Record) -> Vec<Finding> {
    PROPERTIES.iter().flat_map(|property| property(record)).collect()
}

pub(super) fn finding(property: &'static str, event: &str, why: impl Into<String>) -> Finding {
    Finding { property, event: event.into(), why: why.into() }
}

/// No approval is posted before every hook that holds the event has ended well, unless the replicas name an overriding
/// reason.
fn s1(record: &Record) -> Vec<Finding> {
    let mut found = Vec::new();
    for post in &record.posts {
        let Some(event) = record.event(&post.event) else { continue };
        let reasons: BTreeSet<&str> = behind(record, post).into_iter().map(|it| it.reason.as_str()).collect();
        let by = |why: String| finding("S1", &post.event, format!("posted by {} at {}: {why}", post.vm, post.at));
        // S5 judges approvals without a quorum.
        let reason = reasons.first().copied().filter(|reason| reasons.len() == 1 && *reason != "takeover");
        match reason {
            None => {}
            Some("budget_spent") if !event.is_users => found.push(by("only a user's events have a budget".into())),
            Some("budget_spent") => {
                let taken = post.at - event.at;
                if taken + SLACK_MS < record.user_budget_ms && !clock_was_wrong(record, event.at, post.at) {
                    found.push(by(format!("its budget is said to be spent after {taken} ms")));
                }
            }
            Some("nothing_to_prepare") => {
                found.extend(required(record, event).first().map(|hook| by(format!("{hook:?} had to run"))));
            }
            Some("prepared") => {
                let missing = required(record, event).into_iter().find(|hook| !is_settled(record, event, hook, post));
                found.extend(missing.map(|hook| by(format!("{hook:?} had not ended well"))));
            }
            Some(reason) => found.push(by(format!("nobody gave the reason {reason:?}"))),
        }
    }
    found
}

/// VM, workload and phase of each hook that holds an event.
fn required<'a>(record: &'a Record, event: &'a Announced) -> Vec<(&'a str, &'static str, &'static str)> {
    let phases: &[&str] = match event.kind.as_str() {
        "Freeze" if !event.is_users && (0..9).contains(&event.duration_s) => &[],
        "Freeze" => &["checkpoint", "failover", "drain"],
        "Preempt" => &["failover", "drain"],
        "Terminate" => &["failover", "drain", "shutdown"],
        _ => &["checkpoint", "failover", "drain", "shutdown"],
    };
    let duties = || record.duties.iter().filter(|duty| duty.holds && phases.contains(&duty.phase));
    record.members(event).into_iter().flat_map(|vm| duties().map(move |it| (vm, it.workload, it.phase))).collect()
}

fn is_settled(record: &Record, event: &Announced, hook: &(&str, &str, &str), post: &Post) -> bool {
    let (vm, workload, phase) = *hook;
    // A hook done for another event, while both events kept the member out, is done for this event.
    let is_it = |run: &&Run| {
        let is_same = run.vm == vm && run.workload == workload && run.phase == phase && run.intent != "undo";
        is_same && (run.event == event.id || run.disrupts())
    };
    let ended_well = |run: &Run| run.went_well() && run.ended.is_some_and(|(at, _)| at <= post.at);
    let waived = format!("{phase} of {workload} on {vm}: waived, unreachable");
    let is_waived = || record.told(&event.id).any(|told| told.timeline.iter().any(|step| step.what == waived));
    record.runs.iter().filter(is_it).any(ended_well) || (event.is_users && is_waived())
}

fn clock_was_wrong(record: &Record, from: Moment, to: Moment) -> bool {
    let near = |strike: &&Strike| strike.from <= to && strike.to + SLACK_MS >= from;
    record.strikes.iter().filter(near).any(|strike| strike.kind == "clock jumps")
}

/// Without faults there is one post at most. With faults each further post is another claim, made when the previous
/// claim was over and not accepted. No post is for an event that was not announced to the cluster.
fn s2(record: &Record) -> Vec<Finding> {
    let mut found = Vec::new();
    for post in &record.posts {
        match record.event(&post.event) {
            None => found.push(finding("S2", &post.event, format!("{} posted for an event that never was", post.vm))),
            Some(event) if record.members(event).is_empty() => {
                found.push(finding("S2", &post.event, format!("{} posted for strangers", post.vm)));
            }
            Some(_) => {}
        }
    }
    for event in &record.events {
        let count = record.posts_of(&event.id).count();
        if event.is_calm && count > 1 {
            found.push(finding("S2", &event.id, format!("posted {count} times though nothing was wrong")));
        }
        let mut claims: Vec<_> = record.approvals(&event.id).collect();
        claims.sort_by_key(|claim| moment(&claim.claimed_at));
        for pair in claims.windows(2) {
            let (first, next) = (pair[0], pair[1]);
            let next_at = moment(&next.claimed_at);
            let is_over = first.outcome.is_some() && moment(&first.at) <= next_at;
            let is_accepted = is_over && first.outcome.as_deref() == Some("accepted") && moment(&first.at) < next_at;
            if is_accepted
                || (!is_over && next_at - moment(&first.claimed_at) < record.claim_lease_ms - STAMPED_WITHIN_MS)
            {
                found.push(finding("S2", &event.id, format!("{} follows {}", next.attempt, first.attempt)));
            }
        }
    }
    found
}

/// Every post is a claim in the log in the end: no replica posts without a claim.
fn s3(record: &Record) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for post in record.posts.iter().filter(|post| seen.insert((&post.event, &post.vm))) {
        let posts = record.posts_of(&post.event).filter(|other| other.vm == post.vm).count();
        let known = sent(record, post).count();
        if posts > known {
            let why = format!("{} posted {posts} times, and the log knows of {known}", post.vm);
            found.push(finding("S3", &post.event, why));
        }
    }
    found
}

/// The cluster's approvals together never take more members of a group away than the group may lose: from the approval
/// until the workload is restored, by the platform's and the hooks' records.
/// An event that is too big by itself is approved when no other event is under way.
fn s4(record: &Record) -> Vec<Finding> {
    let is_brief = |event: &Announced| event.kind == "Freeze" && (0..10).contains(&event.duration_s);
    let ours = |event: &&Announced| {
        let is_ours = event.accepted.as_ref().is_some_and(|(_, by)| record.vms.contains(by));
        is_ours && !is_brief(event) && !is_excused(record, &event.id)
    };
    let mut found = Vec::new();
    for event in record.events.iter().filter(ours) {
        let Some((at, by)) = &event.accepted else { continue };
        let others = record.events.iter().filter(ours).filter(|other| other.id != event.id);
        let groups: BTreeSet<&str> = record.duties.iter().map(|duty| duty.workload).collect();
        for workload in groups {
            let is_away = |other: &&Announced, vm: &str| {
                other.accepted.as_ref().is_some_and(|(since, _)| since <= at)
                    && put_back(record, other, vm, workload).is_none_or(|back| *at < back)
            };
            let taken: BTreeSet<&str> = others
                .clone()
                .flat_map(|other| record.members(other).into_iter().filter(move |vm| is_away(&other, vm)))
                .collect();
            let together: BTreeSet<&str> = taken.iter().copied().chain(record.members(event)).collect();
            // A second event of the same VM takes nothing more away.
            let adds = !record.members(event).is_subset(&taken);
            if adds && !taken.is_empty() && together.len() > record.max_unavailable {
                let why = format!("approved by {by} at {at} while {workload} was away from {taken:?}");
                found.push(finding("S4", &event.id, why));
            }
        }
    }
    found
}

/// The latest time, by outside evidence, at which a workload was restored; `None` while the workload is not restored.
fn put_back(record: &Record, event: &Announced, vm: &str, workload: &str) -> Option<Moment> {
    let ended = event.ended?;
    let runs = || record.runs.iter().filter(|run| run.vm == vm && run.workload == workload);
    // An event that shares the member's slot restores the member for all events.
    let restored = runs().filter(|run| run.phase == "restore" && run.went_well()).filter_map(|run| run.ended);
    let restored = restored.map(|(at, _)| at).filter(|at| *at >= ended).min();
    let is_touched = runs().any(|run| run.disrupts() && run.event == event.id);
    if is_touched { restored } else { Some(ended) }
}

/// A single replica of three approves nothing by itself, and no operator requests an isolated approval.
fn s5(record: &Record) -> Vec<Finding> {
    let approvals = record.events.iter().flat_map(|event| record.approvals(&event.id).map(|it| (&event.id, it)));
    let alone = approvals.filter(|(_, it)| it.attempt.contains("/alone-"));
    alone.map(|(id, it)| finding("S5", id, format!("{} approved it without a quorum", it.approver))).collect()
}

/// No replica approves an event under an operator's hold.
fn held(record: &Record) -> Vec<Finding> {
    let of = |post: &Post| {
        let halt = record.halts.iter().find(|halt| halt.is_against(post))?;
        Some(finding("held", &post.event, format!("{} posted at {} against {halt:?}", post.vm, post.at)))
    };
    record.posts.iter().filter_map(of).collect()
}

/// The replicas agree: in the end all replicas have equal entries of every event, and meanwhile no replica showed an
/// attempt or a claim otherwise than another replica, or than before.
fn one_story(record: &Record) -> Vec<Finding> {
    let mut found = Vec::new();
    let Some((first, story)) = record.stories.first() else { return found };
    for (other, told) in &record.stories[1..] {
        let differs = |event: &&Event| told.iter().filter(|same| same.id == event.id).all(|same| same != *event);
        if let Some(event) = story.iter().find(differs) {
            found.push(finding("one story", &event.id, format!("{first} and {other} tell it differently")));
        } else if story.len() != told.len() {
            found.push(finding("one story", "", format!("{other} knows other events than {first}")));
        }
    }
    let mut known = BTreeMap::new();
    for sighting in &record.sightings {
        for event in &sighting.events {
            let hooks = event.hooks.iter().map(|hook| {
                let what = format!("{} {} {} {} on {}", hook.vm, hook.workload, hook.phase, hook.intent, hook.on);
                (hook.attempt.clone(), what, hook.outcome.clone())
            });
            let claims = event.approvals.iter().map(|claim| {
                (claim.attempt.clone(), format!("{} {}", claim.approver, claim.reason), claim.outcome.clone())
            });
            for (attempt, what, outcome) in hooks.chain(claims) {
                let (before, ended) = known.entry(attempt.clone()).or_insert_with(|| (what.clone(), outcome.clone()));
                if *before != what || (ended.is_some() && outcome.is_some() && *ended != outcome) {
                    let why = format!("{attempt} was {before}: {ended:?}; {} shows {what}: {outcome:?}", sighting.by);
                    found.push(finding("one story", &event.id, why));
                }
                *ended = outcome.or(ended.take());
            }
        }
    }
    found
}

/// After the faults, every event is closed and no replica has ended without a reason.
fn alive(record: &Record) -> Vec<Finding> {
    let deaths = record.deaths.iter().map(|death| finding("alive", "", death.clone()));
    let is_open = |event: &&Event| event.stage != "closed";
    let open = record.stories.iter().flat_map(|(by, events)| events.iter().filter(is_open).map(move |it| (by, it)));
    let open = open.map(|(by, event)| finding("L1", &event.id, format!("{by} has it {}", event.stage)));
    let unknown = |event: &&Announced| {
        let is_new = event.is_calm && !record.members(event).is_empty();
        is_new && !record.stories.is_empty() && record.told(&event.id).next().is_none()
    };
    let unknown = record.events.iter().filter(unknown).map(|event| finding("L1", &event.id, "nobody saw it"));
    deaths.chain(open).chain(unknown).collect()
}

/// Every attempt that prepares an event has an outcome in the end, regardless of the result.
fn l2(record: &Record) -> Vec<Finding> {
    let prepares = |hook: &Hook| !["restore", "ready"].contains(&hook.phase.as_str());
    let hangs = record.attempts().filter(|(event, hook)| event.stage == "closed" && hook.outcome.is_none());
    let hangs = hangs.filter(|(_, hook)| prepares(hook));
    hangs.map(|(event, hook)| finding("L2", &event.id, format!("{} was never settled", hook.attempt))).collect()
}

/// A user's event without faults is approved before the notice is over, unless hooks went wrong meanwhile: a failed
/// hook holds the event, and a hung hook keeps a member of the group away.
fn l3(record: &Record) -> Vec<Finding> {
    let is_due = |event: &&Announced| event.is_calm && event.is_users && !record.members(event).is_empty();
    let is_ours = |event: &Announced| event.accepted.as_ref().is_some_and(|(_, by)| record.vms.contains(by));
    let went_wrong = |event: &Announced| {
        let in_its_life = |at: Moment| event.at <= at && event.ended.is_none_or(|ended| at <= ended);
        record.runs.iter().any(|run| in_its_life(run.began) && run.intent == "run" && !run.went_well())
    };
    // On a busy machine a hook may be stopped at its deadline before its process has written a line.
    let was_late = |event: &Announced| {
        let is_late = |hook: &Hook| hook.outcome.as_deref() == Some("timed_out");
        record.told(&event.id).any(|told| told.hooks.iter().any(is_late))
    };
    let went_well = |event: &&Announced| !went_wrong(event) && !was_late(event);
    let left = record.events.iter().filter(is_due).filter(|event| !is_ours(event)).filter(went_well);
    left.map(|event| finding("L3", &event.id, "a user asked for it, and nobody approved it")).collect()
}

/// The log's claims that were posted, or perhaps posted, for this event by this replica.
fn sent<'a>(record: &'a Record, post: &'a Post) -> impl Iterator<Item = &'a Approval> {
    let was_sent = |claim: &&Approval| !matches!(claim.outcome.as_deref(), Some("not_sent" | "withdrawn"));
    record.approvals(&post.event).filter(|claim| claim.approver == post.vm).filter(was_sent)
}

/// The possible decisions behind this post. A replica posts in the order of the replica's decisions, each decision at
/// most once, and some posts do not arrive.
fn behind<'a>(record: &'a Record, post: &'a Post) -> Vec<&'a Approval> {
    let mut decisions: Vec<_> = sent(record, post).collect();
    let posts: Vec<&Post> = record.posts_of(&post.event).filter(|other| other.vm == post.vm).collect();
    let (Some(first), Some(last), Some(event)) = (posts.first(), posts.last(), record.event(&post.event)) else {
        return decisions;
    };
    // The decisions' times are of clocks that may have jumped in between.
    if clock_was_wrong(record, event.at.min(first.at), last.at) {
        return decisions;
    }
    decisions.sort_by_key(|decision| moment(&decision.claimed_at));
    let unheard = decisions.len().saturating_sub(posts.len());
    let place = posts.iter().position(|other| *other == post).unwrap_or_default();
    decisions.into_iter().skip(place).take(unheard + 1).collect()
}

/// A time by the clock of the cluster, which faults make differ from other clocks: only for comparison with times of
/// the cluster's clock.
fn moment(text: &str) -> Moment {
    text.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_millisecond)
}
