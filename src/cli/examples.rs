//! Examples below the help of a command.

/// Examples for a new user of this program.
pub(super) const FIRST: &str = "\
When Azure announces maintenance of a VM:
  allclear explain       shows why the event is not approved yet, the next step, and the commands that help
  allclear status        shows whether the cluster can act, and which replicas answer
  allclear watch         shows the status again after each change
Run these commands on any machine with a replica, as root or as the replica's user.
The page at `status.listen` shows the same information.

To watch a whole event without Azure: allclear demo";

pub(super) const STATUS: &str = "\
Examples:
  allclear status                  shows whether the cluster can act, and why open events wait
  allclear status --json | jq .quorum
  allclear status --endpoint /run/allclear/operator.sock
  allclear status --check          one line for a monitoring system

Exit status: 0 answered, 3 no replica answers. With --check: 0 good, 1 warning, 2 critical, 3 no replica answers";

pub(super) const EVENTS: &str = "\
Examples:
  allclear events                  lists the open events first, then the most recent closed events
  allclear events --open
  allclear events --since 2h --limit 10
  allclear events --vm db-1 --type Reboot
  allclear events --failed         lists what went wrong: failed hooks, and events that started unapproved
  allclear events --json | jq -r '.events[].id'    prints the ids, the newest last
  All events that the cluster keeps (the last 1,000 closed events, for 90 days), from any replica:
    allclear events --export > events.jsonl
  All changes since yesterday, for an archive (an open event appears again, in full, after the end of the event):
    allclear events --export --since 1d >> archive.jsonl
  The time until each approval and the observed impact, in milliseconds:
    allclear events --export | jq -c '[.id, .measures.all_clear_ms, .measures.impact_observed_ms]'";

pub(super) const EXPLAIN: &str = "\
Examples:
  allclear explain                 shows the only open event, or lists all open events
  allclear explain 7B4C33D2-0D4F-4E5B-9C8E-2F6A1D0B7E11
  allclear explain --json          prints the open events as {\"events\": [...]}; with EVENT, the event alone

The output includes the commands to hold, release, approve or skip, with all arguments.";

pub(super) const WATCH: &str = "\
Examples:
  allclear watch                   on a terminal, updates the screen each second
  allclear watch --json | jq -c '.events[] | [.id, .stage, .blocker.code]'    prints a line per change";

pub(super) const HOLD: &str = "\
Examples:
  allclear hold 7B4C33D2-0D4F-4E5B-9C8E-2F6A1D0B7E11 --until 2h --reason 'backup running'
  allclear hold 7B4C33D2-0D4F-4E5B-9C8E-2F6A1D0B7E11 --until 2026-01-31T12:00:00Z --reason 'night shift'
  allclear hold 7B4C33D2-0D4F-4E5B-9C8E-2F6A1D0B7E11 --until 1h --no-hooks --reason 'move the primary by hand'

Shortly before the notice ends, the hooks run although the event is held; with --no-hooks they do not. \
`allclear explain` shows the event's id, and this command with all arguments. When the notice ends, Azure starts the \
event even if the event is held: see `notice ends` in the output of explain.";

pub(super) const RELEASE: &str = "\
Example:
  allclear release 7B4C33D2-0D4F-4E5B-9C8E-2F6A1D0B7E11 --reason 'backup has ended'";

pub(super) const PAUSE: &str = "\
Example:
  allclear pause --until 2h --reason 'network maintenance'";

pub(super) const RESUME: &str = "\
Example:
  allclear resume --reason 'network is back'";

pub(super) const APPROVE: &str = "\
Example:
  allclear approve 7B4C33D2-0D4F-4E5B-9C8E-2F6A1D0B7E11 --revision 7 --reason 'the drain may be cut short'

`allclear explain 7B4C33D2-0D4F-4E5B-9C8E-2F6A1D0B7E11` shows the revision and the whole command.";

pub(super) const PREPARE: &str = "\
Examples:
  allclear prepare 6C2E9F04-… --reason 'nobody works now'
  allclear prepare 6C2E9F04-… --at 2026-01-31T02:00:00Z --reason 'the quiet hour'

Exit status: 0 done, 1 unknown event, 3 no replica answers, 4 refused";

pub(super) const RETRY: &str = "\
Examples:
  allclear retry 7B4C33D2 postgres/drain --reason 'the disk has room again'
  allclear retry 7B4C33D2 'db-0/postgres/drain#2' --reason 'the disk has room again'";

pub(super) const SKIP: &str = "\
Examples:
  allclear skip 7B4C33D2-0D4F-4E5B-9C8E-2F6A1D0B7E11 postgres/drain --reason 'clients are gone'
  allclear skip 7B4C33D2-0D4F-4E5B-9C8E-2F6A1D0B7E11 'db-0/postgres/drain#2' --reason 'clients are gone'";

pub(super) const DRILL: &str = "\
Examples:
  allclear drill Reboot --vm db-1                rehearses a reboot of db-1 with the real hooks
  allclear drill Reboot --vm db-1 --dry-run      runs only hooks that declare dry_run, and lists the other hooks
  allclear drill Reboot --vm db-0 --yes          also moves a primary without a question
  allclear drill --end drill-1                   ends the drill early

The drill continues if you interrupt this command; `allclear explain` shows the progress. A real event ends the drill.

Exit status: 0 every hook ended well, 1 a hook did not end well, 4 refused";

pub(super) const HOOK_RUN: &str = "\
Examples:
  allclear hook run --config FILE db-0/orders/check               checks whether the hooks of orders can do the work
  allclear hook run --config FILE --dry-run db-0/orders/failover  shows where the primary would go
  allclear hook run --config FILE --intent undo --step STEP db-0/orders/drain   takes an earlier run back

The replica need not run. allclear does not restore the workload afterwards: undo the effects of the hook by hand.

Exit status: 0 done or not applicable, 1 any other outcome, 2 the configuration has no such hook";

pub(super) const DOCTOR: &str = "\
Examples:
  allclear doctor --config /etc/allclear/allclear.toml
  allclear doctor --config /etc/allclear/allclear.toml --json | jq '.findings[] | select(.verdict != \"ok\")'

You can run doctor before the first start of the replica and beside a running replica. Doctor changes nothing: no \
approval is posted, and no event is started. But doctor reads the scheduled-events document: at the first read, Azure \
enables Scheduled Events for this VM, which may take two minutes. Run doctor as the replica's user, or \
as root: if allclear.service starts this configuration, doctor checks as the user of the service.

Exit status: 0 nothing failed (warnings do not count), 1 a check failed, 2 the configuration is wrong";

pub(super) const CERTS: &str = "\
Examples, on a machine without a replica:
  allclear certs init --dir orders-ca --cluster orders
  allclear certs issue --dir orders-ca --replica db-0     repeat for db-1 and db-2, and again within a year
  scp -r orders-ca/db-0/. db-0:/etc/allclear/tls/

And in the configuration of each replica:
  [cluster.tls]
  cert = \"/etc/allclear/tls/node.pem\"
  key = \"/etc/allclear/tls/node.key\"
  ca = \"/etc/allclear/tls/ca.pem\"

A replica loads changed files within seconds, without a restart, as soon as the files belong together and are valid. \
To replace the authority, make the new authority in a folder of its own, and take three steps. Finish each step on \
every replica before the next step: install both ca.pem in one file, then new certificates, then the new ca.pem alone.

With a PKI of your own, each replica needs a certificate for TLS clients and servers, with the URI \
allclear://CLUSTER/replica/NAME among the alternative names. If the authority signs for this cluster only, set \
cluster.tls.names = \"dns\": then the replica's own DNS name is enough.

Exit status: 0 done, 1 failed, 2 wrong usage";

pub(super) const COMPLETIONS: &str = "\
Examples:
  allclear completions bash > /etc/bash_completion.d/allclear
  allclear completions zsh > /usr/local/share/zsh/site-functions/_allclear
  allclear completions fish > ~/.config/fish/completions/allclear.fish";

pub(super) const MAN: &str = "\
Examples:
  allclear man --out /usr/local/share/man/man1    writes one page per command
  allclear man | man -l -";
