//! The words that users, logs and metrics know our own closed sets by, said once for both directions.

/// The words of a closed set, both ways.
#[macro_export]
macro_rules! words {
    ($type:ident { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $type {
            pub const ALL: [Self; Self::WORDS.len()] = [$(Self::$variant),+];

            /// The word users write and read (`contract.md`); `None` for any other.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            pub const WORDS: &'static [&'static str] = &[$($word),+];

            pub const fn as_word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.as_word())
            }
        }
    };
}
