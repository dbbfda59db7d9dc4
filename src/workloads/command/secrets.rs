//! Values that a hook was given in confidence, taken out of what it says.

use super::Command;

/// Shorter ones stand in many words by chance.
const SHORTEST: usize = 4;
const INSTEAD: &str = "***";

/// The longest first: one may be part of another.
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    pub(super) fn of(command: &Command) -> Self {
        let values = command.env.iter().filter(|(name, _)| command.secret.contains(*name));
        let values = values.flat_map(|(_, value)| [Some(value.as_str()), password(value)]).flatten();
        let mut values: Vec<_> = values.map(|value| value.trim().to_owned()).collect();
        values.retain(|value| value.len() >= SHORTEST);
        values.sort_by_key(|value| core::cmp::Reverse(value.len()));
        Self(values)
    }

    pub(super) fn hidden_in(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), INSTEAD))
    }
}

/// Of an address that has one.
fn password(address: &str) -> Option<&str> {
    let (user, _) = address.split_once("://")?.1.rsplit_once('@')?;
    Some(user.split_once(':')?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_the_password_alone_is_a_secret_too() {
        assert_eq!(password("postgres://me:p:w@rd@db-0:5432/orders"), Some("p:w@rd"));
        assert_eq!(password("postgres://me@db-0"), None);
    }

    #[test]
    fn what_was_given_in_confidence_is_not_repeated_not_even_in_part() {
        let secrets = Secrets(vec!["wordlong".into(), "word".into()]);
        assert_eq!(secrets.hidden_in("no word of wordlong, wordy"), "no *** of ***, ***y");
    }
}
