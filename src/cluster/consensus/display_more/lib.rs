//! The part of the crate `display-more` that openraft calls: options, results, slices and sets in log lines.
//!
//! The published crate also prints dates in a time zone, and its dependencies build tables of all time zones: a
//! twentieth of the time of a first build, for lines that a replica writes at the level `debug`.

use std::collections::BTreeSet;
use std::fmt::{Display, Formatter, Result as Written};

/// Without a limit by the caller, a list shows so many elements.
const SHOWN: usize = 5;

pub struct DisplayOption<'a, T>(&'a Option<T>);

pub trait DisplayOptionExt<'a, T: Display> {
    fn display(&'a self) -> DisplayOption<'a, T>;
}

impl<'a, T: Display> DisplayOptionExt<'a, T> for Option<T> {
    fn display(&'a self) -> DisplayOption<'a, T> {
        DisplayOption(self)
    }
}

impl<T: Display> Display for DisplayOption<'_, T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Written {
        match self.0 {
            Some(value) => value.fmt(formatter),
            None => formatter.write_str("None"),
        }
    }
}

pub struct DisplayResult<'a, T, E>(&'a Result<T, E>);

pub trait DisplayResultExt<'a, T: Display, E: Display> {
    fn display(&'a self) -> DisplayResult<'a, T, E>;
}

impl<'a, T: Display, E: Display> DisplayResultExt<'a, T, E> for Result<T, E> {
    fn display(&'a self) -> DisplayResult<'a, T, E> {
        DisplayResult(self)
    }
}

impl<T: Display, E: Display> Display for DisplayResult<'_, T, E> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Written {
        match self.0 {
            Ok(value) => write!(formatter, "Ok({value})"),
            Err(error) => write!(formatter, "Err({error})"),
        }
    }
}

/// The first elements of a list, and the last one.
pub struct DisplayList<'a, T> {
    elements: Vec<&'a T>,
    shown: usize,
    braces: [&'static str; 2],
}

pub trait DisplaySliceExt<'a, T: Display> {
    fn display(&'a self) -> DisplayList<'a, T>;

    fn display_n(&'a self, shown: usize) -> DisplayList<'a, T> {
        DisplayList { shown, ..self.display() }
    }
}

impl<'a, T: Display> DisplaySliceExt<'a, T> for [T] {
    fn display(&'a self) -> DisplayList<'a, T> {
        DisplayList { elements: self.iter().collect(), shown: SHOWN, braces: ["[", "]"] }
    }
}

pub trait DisplayBTreeSetExt<'a, T: Display> {
    fn display(&'a self) -> DisplayList<'a, T>;

    fn display_n(&'a self, shown: usize) -> DisplayList<'a, T> {
        DisplayList { shown, ..self.display() }
    }
}

impl<'a, T: Display> DisplayBTreeSetExt<'a, T> for BTreeSet<T> {
    fn display(&'a self) -> DisplayList<'a, T> {
        DisplayList { elements: self.iter().collect(), shown: SHOWN, braces: ["{", "}"] }
    }
}

impl<T: Display> Display for DisplayList<'_, T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Written {
        let [open, close] = self.braces;
        formatter.write_str(open)?;
        let last = self.elements.len().saturating_sub(1);
        let first_hidden = if self.elements.len() > self.shown { self.shown.saturating_sub(1) } else { last };
        for (at, element) in self.elements.iter().enumerate() {
            match at {
                _ if at < first_hidden || at == last => {
                    let comma = if at == 0 { "" } else { "," };
                    write!(formatter, "{comma}{element}")?;
                }
                _ if at == first_hidden => formatter.write_str(if at == 0 { ".." } else { ",.." })?,
                _ => {}
            }
        }
        formatter.write_str(close)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_shows_its_first_elements_and_the_last() {
        let list = |length: u8| DisplaySliceExt::display((0..length).collect::<Vec<_>>().as_slice()).to_string();
        assert_eq!([0, 1, 5, 6].map(list), ["[]", "[0]", "[0,1,2,3,4]", "[0,1,2,3,..,5]"]);
        let set = BTreeSet::from([3, 1, 2]);
        assert_eq!(set.display().to_string(), "{1,2,3}");
        assert_eq!(
            [0, 1, 2, 3].map(|shown| set.display_n(shown).to_string()),
            ["{..,3}", "{..,3}", "{1,..,3}", "{1,2,3}"]
        );
    }

    #[test]
    fn an_option_and_a_result_show_their_values() {
        assert_eq!([Some(1), None].map(|option| option.display().to_string()), ["1", "None"]);
        assert_eq!([Ok(1), Err("why")].map(|result| result.display().to_string()), ["Ok(1)", "Err(why)"]);
    }
}
