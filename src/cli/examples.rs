//! Examples below the help of a command.

/// Examples for a new user of this program.
pub(super) const FIRST: &str = "\
When the cloud wants to take a machine down:
  allclear explain       why that is not approved yet, what happens next and when, and what can be done
  allclear status        whether the cluster can act at all, and who answers
  allclear watch         the same as it changes
On any machine with a replica, as root or as the user that the replica runs as.
The page at `status.listen` shows the same.

To see it all without a cloud: allclear demo";

pub(super) const STATUS: &str = "\
Examples:
  allclear status                  whether the cluster can act, and what the open events wait for
  allclear status --json | jq .quorum
  allclear status --endpoint /run/allclear/operator.sock

Exit status: 0 answered, 3 no replica answers";

pub(super) const EVENTS: &str = "\
Examples:
  allclear events                  open ones first, then the most recent
  allclear events --open
  allclear events --since 2h --limit 10
  allclear events --json | jq -r '.events[].id'    the newest last
  Everything that the cluster keeps (the last 1,000 closed events, for 90 days), asked of any replica:
    allclear events --export > events.jsonl
  What is new since yesterday, for an archive (an event that is open is told again, whole, when it is over):
    allclear events --export --since 1d >> archive.jsonl
  How long approvals took, and how long VMs stood still, in milliseconds:
    allclear events --export | jq -c '[.id, .measures.all_clear_ms, .measures.impact_observed_ms]'";

pub(super) const EXPLAIN: &str = "\
Examples:
  allclear explain                 the only open event, or a list of them
  allclear explain 7B4C33D2-0D4F-4E5B-9C8E-2F6A1D0B7E11
  allclear explain --json          the open events as {\"events\": [...]}; with EVENT that event alone

It ends with the commands to hold, release, approve or skip, filled in.";

pub(super) const WATCH: &str = "\
Examples:
  allclear watch                   on a terminal: drawn anew each second
  allclear watch --json | jq -c '.events[] | [.id, .stage, .blocker.code]'    a line for each change";

pub(super) const HOLD: &str = "\
Examples:
  allclear hold 7B4C33D2-0D4F-4E5B-9C8E-2F6A1D0B7E11 --until 2h --reason 'backup running'
  allclear hold 7B4C33D2-0D4F-4E5B-9C8E-2F6A1D0B7E11 --until 2026-01-31T12:00:00Z --reason 'night shift'

`allclear explain` shows the event's id and this command, filled in. What its notice starts cannot be held: see `notice \
ends` there.";

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

pub(super) const SKIP: &str = "\
Examples:
  allclear skip 7B4C33D2-0D4F-4E5B-9C8E-2F6A1D0B7E11 postgres/drain --reason 'clients are gone'
  allclear skip 7B4C33D2-0D4F-4E5B-9C8E-2F6A1D0B7E11 'db-0/postgres/drain#2' --reason 'clients are gone'";

pub(super) const DRILL: &str = "\
Examples:
  allclear drill Reboot --vm db-1                what a reboot of db-1 would do, with its real hooks
  allclear drill Reboot --vm db-1 --dry-run      only hooks that declare dry_run, and the others named
  allclear drill --end drill-1                   ends one before its time

It goes on when this command is interrupted; `allclear explain` shows how far it is. A real event ends it.

Exit status: 0 every hook ended well, 1 not every one did, 4 refused";

pub(super) const HOOK_RUN: &str = "\
Examples:
  allclear hook run --config FILE db-0/orders/check               whether the hooks of orders could do their work
  allclear hook run --config FILE --dry-run db-0/orders/failover  where the primary would go
  allclear hook run --config FILE --intent undo db-0/orders/drain

The replica need not run. What the hook does is not put back: it is no event, and nobody restores afterwards.

Exit status: 0 done or not applicable, 1 anything else, 2 there is no such hook";

pub(super) const DOCTOR: &str = "\
Examples:
  allclear doctor --config /etc/allclear/allclear.toml
  allclear doctor --config /etc/allclear/allclear.toml --json | jq '.findings[] | select(.verdict != \"ok\")'

It runs before the replica was ever started and beside a running one, and changes nothing: it posts no approval and \
starts no event. It reads the scheduled-events document, though, and the first time that is read the platform switches \
the feature on for this VM; that may take two minutes. Run it as the user that the replica runs as.

Exit status: 0 nothing failed (warnings do not count), 1 something failed, 2 the configuration is wrong";

pub(super) const CERTS: &str = "\
Examples, on a machine that is no replica's:
  allclear certs init --dir orders-ca --cluster orders
  allclear certs issue --dir orders-ca --replica db-0     the same for db-1, db-2, and again before a year is over
  scp -r orders-ca/db-0/. db-0:/etc/allclear/tls/

And in the configuration of each replica:
  [cluster.tls]
  cert = \"/etc/allclear/tls/node.pem\"
  key = \"/etc/allclear/tls/node.key\"
  ca = \"/etc/allclear/tls/ca.pem\"

Files that change are taken over within seconds, without a restart, once they belong together and are valid. A new \
authority in a folder of its own takes three steps, each on every replica before the next: both ca.pem in one file, new \
certificates, the new ca.pem alone.

With a PKI of your own: a certificate for TLS clients and servers, for each replica, with the URI \
allclear://CLUSTER/replica/NAME among its alternative names. Where the authority signs for this one cluster only, \
cluster.tls.names = \"dns\" makes a DNS name that is the replica's own enough.

Exit status: 0 done, 1 failed, 2 wrong usage";

pub(super) const COMPLETIONS: &str = "\
Examples:
  allclear completions bash > /etc/bash_completion.d/allclear
  allclear completions zsh > /usr/local/share/zsh/site-functions/_allclear
  allclear completions fish > ~/.config/fish/completions/allclear.fish";

pub(super) const MAN: &str = "\
Examples:
  allclear man --out /usr/local/share/man/man1    one page for each command
  allclear man | man -l -";
