//! Workloads with hooks that log their runs, and wait where a test wants.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Writes a line at the begin and a line at the end of a hook; waits for the file `WAIT_FOR`, is blocked without the file
/// `BLOCKED_UNTIL`, prints `SAYS`, and exits
/// with `EXITS`. An undo completes at once.
const SCRIPT: &str = r#"#!/bin/sh
log="$FOLDER/hooks.log"
echo "$ALLCLEAR_VM $ALLCLEAR_WORKLOAD $ALLCLEAR_PHASE begin $ALLCLEAR_INTENT $ALLCLEAR_ATTEMPT" \
    "$ALLCLEAR_TIME_LEFT_MS $ALLCLEAR_DEADLINE $ALLCLEAR_MODE" >> "$log"
[ "$ALLCLEAR_INTENT" != undo ] || exit 0
[ -z "$EXPECTS" ] || echo "expect: $EXPECTS"
[ -z "$WAIT_FOR" ] || while [ ! -e "$FOLDER/$WAIT_FOR" ]; do sleep 0.02; done
[ -z "$BLOCKED_UNTIL" ] || [ -e "$FOLDER/$BLOCKED_UNTIL" ] || { echo "$BLOCKED_UNTIL is closed" >&2; exit 75; }
[ -z "$SAYS" ] || echo "$SAYS" >&2
echo "$ALLCLEAR_VM $ALLCLEAR_WORKLOAD $ALLCLEAR_PHASE end $ALLCLEAR_INTENT $ALLCLEAR_ATTEMPT" >> "$log"
exit ${EXITS:-0}
"#;

/// One hook of the configuration.
#[derive(Clone)]
pub(crate) struct Hook {
    phase: &'static str,
    keys: Vec<String>,
    /// HTTP endpoint instead of the script.
    url: Option<String>,
    can_confirm: bool,
    can_undo: bool,
    env: Vec<(&'static str, String)>,
    runs_every_second: bool,
}

pub(crate) fn hook(phase: &'static str) -> Hook {
    Hook {
        phase,
        keys: vec!["timeout = \"60s\"".into()],
        url: None,
        can_confirm: false,
        can_undo: false,
        env: Vec::new(),
        runs_every_second: false,
    }
}

impl Hook {
    /// Adds a key to the hook's table, replacing a key of the same name.
    pub(crate) fn with(mut self, line: &str) -> Self {
        let name = line.split('=').next().unwrap();
        self.keys.retain(|known| known.split('=').next().unwrap() != name);
        self.keys.push(line.into());
        self
    }

    pub(crate) fn at(self, url: String) -> Self {
        Self { url: Some(url), ..self }
    }

    /// Of a check: runs every second outside of events.
    pub(crate) fn every_second(self) -> Self {
        Self { runs_every_second: true, ..self }
    }

    pub(crate) fn can_confirm(self) -> Self {
        Self { can_confirm: true, ..self }
    }

    pub(crate) fn can_undo(self) -> Self {
        Self { can_undo: true, ..self }
    }

    /// The hook does not end before `Hooks::open` is called with the same name.
    pub(crate) fn waits_for(mut self, gate: &str) -> Self {
        self.env.push(("WAIT_FOR", gate.into()));
        self
    }

    /// The hook is blocked until `Hooks::open` is called with the same name.
    pub(crate) fn blocked_until(mut self, gate: &str) -> Self {
        self.env.push(("BLOCKED_UNTIL", gate.into()));
        self
    }

    /// The hook reports at the begin that the run will take this many seconds.
    pub(crate) fn expects(mut self, seconds: u64) -> Self {
        self.env.push(("EXPECTS", seconds.to_string()));
        self
    }

    pub(crate) fn exits(mut self, code: u8, says: &str) -> Self {
        self.env.push(("EXITS", code.to_string()));
        self.env.push(("SAYS", says.into()));
        self
    }
}

/// The five hooks most tests use, in the order of their phases.
pub(crate) fn usual_hooks() -> Vec<Hook> {
    ["checkpoint", "failover", "drain", "shutdown", "restore"].map(hook).into()
}

/// The folder and the script that the hooks of a test share.
pub(crate) struct Hooks {
    folder: PathBuf,
    script: PathBuf,
    /// Every workload reports a role: see `make_primary`.
    pub(crate) tell_roles: bool,
}

impl Hooks {
    pub(crate) fn new(folder: &Path, text: Option<&str>) -> Self {
        let script = folder.join("hook.sh");
        std::fs::write(&script, text.unwrap_or(SCRIPT)).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(folder.join("hooks.log"), "").unwrap();
        Self { folder: folder.into(), script, tell_roles: false }
    }

    /// The table of a workload.
    pub(crate) fn table(&self, name: &str, after: &[&str], hooks: &[Hook]) -> String {
        let mut toml = format!("[[workload]]\nname = \"{name}\"\ngroup = \"{name}s\"\nafter = {after:?}\n");
        if self.tell_roles {
            let primary = self.folder.join("primary").display().to_string();
            let [slow, mute] = ["slow", "mute"].map(|gate| self.folder.join(gate).display().to_string());
            let is_primary = format!("[ \"$(cat {primary})\" = $ALLCLEAR_VM ]");
            let ask = format!(
                "[ -e {mute} -o -e {mute}-$ALLCLEAR_VM ] && exit 3; [ -e {slow} ] && sleep 3; {is_primary} && echo primary || echo replica"
            );
            writeln!(toml, "role = {{ command = [\"/bin/sh\", \"-c\", {ask:?}] }}\nrole_every = \"100ms\"").unwrap();
        }
        if hooks.iter().any(|hook| hook.phase == "ready") {
            toml += "ready_interval = \"200ms\"\n";
        }
        if hooks.iter().any(|hook| hook.runs_every_second) {
            toml += "check_interval = \"1s\"\n";
        }
        for hook in hooks {
            let script = format!("[\"{}\"]", self.script.display());
            let way = hook.url.as_ref().map_or(format!("command = {script}"), |url| format!("http = {url:?}"));
            writeln!(toml, "[[workload.hook]]\nphase = \"{}\"\n{way}", hook.phase).unwrap();
            if hook.can_confirm {
                writeln!(toml, "confirm = {script}").unwrap();
            }
            if hook.can_undo {
                writeln!(toml, "undo = {script}").unwrap();
            }
            writeln!(toml, "{}", hook.keys.join("\n")).unwrap();
            let env = hook.env.iter().map(|(name, value)| format!("{name} = {value:?}"));
            let env: Vec<_> = env.chain([format!("FOLDER = \"{}\"", self.folder.display())]).collect();
            let names: Vec<_> = hook.env.iter().map(|(name, _)| *name).chain(["FOLDER"]).collect();
            writeln!(toml, "env_shown = {names:?}\nenv = {{ {} }}", env.join(", ")).unwrap();
        }
        toml
    }

    /// Runs the hooks' script once, for no attempt in particular.
    pub(crate) fn run_script(&self, facts: &[(&str, &str)]) {
        let known = [("FOLDER", self.folder.to_str().unwrap()), ("HOME", "/nowhere/nobody")];
        let unnamed = [("ALLCLEAR_INTENT", "run"), ("ALLCLEAR_ATTEMPT", "none")];
        let facts = known.into_iter().chain(unnamed).chain(facts.iter().copied());
        let status = std::process::Command::new(&self.script).envs(facts).status().unwrap();
        assert!(status.success(), "{status}");
    }

    /// Sets the workloads' roles from now on, if the workloads report roles.
    pub(crate) fn make_primary(&self, vm: &str) {
        std::fs::write(self.folder.join("next"), vm).unwrap();
        std::fs::rename(self.folder.join("next"), self.folder.join("primary")).unwrap();
    }

    /// A file of the hooks' folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Releases the hooks that wait for this gate.
    pub(crate) fn open(&self, gate: &str) {
        std::fs::write(self.folder.join(gate), "").unwrap();
    }

    pub(crate) fn shut(&self, gate: &str) {
        std::fs::remove_file(self.folder.join(gate)).unwrap();
    }

    /// The hooks' log so far.
    pub(crate) fn written(&self) -> String {
        std::fs::read_to_string(self.folder.join("hooks.log")).unwrap()
    }

    /// The phases that began on any VM, in the order of time.
    pub(crate) fn begun(&self) -> Vec<String> {
        self.log("begin")
    }

    /// The intent and the phase of each hook that began.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.lines("begin").into_iter().map(|words| format!("{} {}", words[4], words[2])).collect()
    }

    pub(crate) fn ended(&self) -> Vec<String> {
        self.log("end")
    }

    /// The facts for each hook that began: the VM, the milliseconds left, and the deadline.
    pub(crate) fn times(&self) -> Vec<(String, u64, jiff::Timestamp)> {
        let lines = self.lines("begin").into_iter();
        lines.map(|words| (words[0].clone(), words[6].parse().unwrap(), words[7].parse().unwrap())).collect()
    }

    /// The phase and the mode of each hook that began.
    pub(crate) fn modes(&self) -> Vec<(String, String)> {
        self.lines("begin").into_iter().map(|words| (words[2].clone(), words[8].clone())).collect()
    }

    fn log(&self, what: &str) -> Vec<String> {
        self.lines(what).into_iter().map(|words| words[2].clone()).collect()
    }

    fn lines(&self, what: &str) -> Vec<Vec<String>> {
        let text = self.written();
        let words = text.lines().map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        words.filter(|words| words.get(3).is_some_and(|word| word == what)).collect()
    }
}
