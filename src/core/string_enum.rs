//! Enums with names for users, logs and metrics: both directions from one list.

/// The names of a closed enum, in both directions.
#[macro_export]
macro_rules! string_enum {
    ($type:ident { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            pub const ALL: [Self; Self::NAMES.len()] = [$(Self::$variant),+];

            /// The value of this name; `None` for any other name.
            pub fn parse(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)+
                    _ => None,
                }
            }

            pub const NAMES: &'static [&'static str] = &[$($name),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

/// The name of a value whose variants have content, and all names. The compiler asks for a name for each variant.
#[macro_export]
macro_rules! variant_names {
    ($type:ident, $name_of:ident, $names:ident { $($variant:pat => $name:literal),+ $(,)? }) => {
        impl $type {
            pub const $names: &'static [&'static str] = &[$($name),+];

            pub const fn $name_of(&self) -> &'static str {
                match self {
                    $($variant => $name,)+
                }
            }
        }
    };
}
