//! The environment of a hook for one attempt: its variables, the values from files, and the secret values among these.

use std::collections::BTreeMap;

use super::HookCommand;
use crate::secrets::{self, Secrets};

pub(super) struct Given {
    pub(super) env: BTreeMap<String, String>,
    /// Removed from all output of the hook.
    pub(super) secrets: Secrets,
}

impl Given {
    /// Reads the files with the rights of this process, which are the replica's: a hook of another user needs no
    /// access. An unusable file may become usable later, when the file is replaced.
    pub(super) async fn to(command: &HookCommand) -> Result<Self, String> {
        let mut env = command.env.clone();
        for (name, file) in &command.env_files {
            env.insert(name.clone(), secrets::read(file).await?);
        }
        let secret = env.iter().filter(|(name, _)| !command.shown.contains(*name)).map(|(_, value)| value.as_str());
        let secrets = Secrets::of(secret);
        Ok(Self { env, secrets })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn what_is_not_said_to_be_harmless_is_secret_and_a_file_is_read_anew() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let command = HookCommand {
            env: [pair("PORT", "5432"), pair("PASSWORD", "battery")].into(),
            shown: BTreeSet::from(["PORT".to_owned(), "TOKEN".to_owned()]),
            env_files: [("LATER".to_owned(), file.path().to_owned())].into(),
            ..HookCommand::default()
        };
        for text in ["staple\n", "horse\n"] {
            fs::write(file.path(), text).unwrap();
            let given = Given::to(&command).await.unwrap();
            assert_eq!(given.env["LATER"], text.trim());
            assert_eq!(given.secrets.cut(&format!("5432 battery {text}")), "5432 *** ***\n");
        }
        fs::set_permissions(file.path(), Permissions::from_mode(0o644)).unwrap();
        assert!(Given::to(&command).await.err().unwrap().contains("chmod o= it"));
        assert!(!format!("{command:?}").contains("battery"));
    }
}
