//! Tables of conversions. One row has both directions, so the directions cannot disagree.

/// `field: stored` names a field of the core and the message field of its value. `required` after `stored` marks a
/// message field with a message type of its own, which must be present.
macro_rules! store {
    ($field:ident) => {
        $crate::log::stored::Stored::store($field)
    };
    ($field:ident required) => {
        Some($crate::log::stored::Stored::store($field))
    };
}

macro_rules! take {
    ($message:ident . $stored:ident at $place:expr) => {
        $crate::log::stored::restored($message.$stored, $place)?
    };
    ($message:ident . $stored:ident required at $place:expr) => {
        $crate::log::stored::required($message.$stored, $place)?
    };
}

/// A struct, and the message of its fields.
macro_rules! message {
    ($type:ty as $message:ident { $($field:ident: $stored:ident $($must:ident)?),+ $(,)? }) => {
        impl Stored for $type {
            type Message = pb::$message;

            fn store(&self) -> pb::$message {
                let Self { $($field),+ } = self;
                pb::$message { $($stored: store!($field $($must)?)),+ }
            }

            fn restore(message: pb::$message) -> Result<Self, Undecodable> {
                Ok(Self { $($field: take!(message.$stored $($must)? at stringify!($stored))),+ })
            }
        }
    };
}

/// Two values, or a value and the fields of a struct, in one message.
macro_rules! pair {
    ($key:ty, $value:ty as $message:ident { $k:ident: $k_stored:ident $($k_must:ident)?, $v:ident: $v_stored:ident }) => {
        pair!(@ $key, $value, $message, $k, { $v }, { $k: $k_stored $($k_must)?, $v: $v_stored });
    };
    ($key:ty, $value:ident as $message:ident { $k:ident: $k_stored:ident, { $($field:ident: $stored:ident),+ $(,)? } }) => {
        pair!(@ $key, $value, $message, $k, { $value { $($field),+ } }, { $k: $k_stored, $($field: $stored),+ });
    };
    (@ $key:ty, $value:ty, $message:ident, $k:ident, { $($v:tt)+ }, { $($field:ident: $stored:ident $($must:ident)?),+ }) => {
        impl Paired<$key> for $value {
            type Message = pb::$message;

            fn store_with(&self, $k: &$key) -> pb::$message {
                let $($v)+ = self;
                pb::$message { $($stored: store!($field $($must)?)),+ }
            }

            fn restore_pair(message: pb::$message) -> Result<($key, Self), Undecodable> {
                $(let $field = take!(message.$stored $($must)? at stringify!($stored));)+
                Ok(($k, $($v)+))
            }
        }
    };
}

/// An enum, and the message with a `oneof` of variants with the same names and at most one value each.
macro_rules! one_of {
    ($type:ident as $module:ident { $($variant:ident $(($content:ident))?),+ $(,)? }) => {
        impl Stored for $type {
            type Message = pb::$type;

            fn store(&self) -> pb::$type {
                let variant = match self {
                    $(Self::$variant $(($content))? => pb::$module::Variant::$variant(one_of!(@store $($content)?)),)+
                };
                pb::$type { variant: Some(variant) }
            }

            fn restore(message: pb::$type) -> Result<Self, Undecodable> {
                Ok(match message.variant.ok_or(DecodeFault::UnknownVariant)? {
                    $(pb::$module::Variant::$variant(content) => one_of!(@restore content $variant $($content)?),)+
                })
            }
        }
    };
    (@store) => { pb::Nothing {} };
    (@store $content:ident) => { store!($content) };
    (@restore $message:ident $variant:ident) => {{
        let pb::Nothing {} = $message;
        Self::$variant
    }};
    (@restore $message:ident $variant:ident $content:ident) => {
        Self::$variant($crate::log::stored::restored($message, stringify!($content))?)
    };
}

/// An enum of the core, and the numbers of the proto enum with the same variants.
macro_rules! numbered {
    ($type:ident as $message:ident { $($variant:ident),+ $(,)? }) => {
        impl Stored for $type {
            type Message = i32;

            fn store(&self) -> i32 {
                match self {
                    $(Self::$variant => pb::$message::$variant.into(),)+
                }
            }

            fn restore(number: i32) -> Result<Self, Undecodable> {
                match pb::$message::try_from(number) {
                    $(Ok(pb::$message::$variant) => Ok(Self::$variant),)+
                    Ok(pb::$message::Unspecified) => Err(DecodeFault::Unspecified.into()),
                    Err(_) => Err(DecodeFault::UnknownNumber(number).into()),
                }
            }
        }
    };
}

pub(super) use {message, numbered, one_of, pair, store, take};
