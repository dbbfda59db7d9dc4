//! Messages of the wire as trees of fields without meaning, and changes of these trees.

use crate::hostile::dice::Dice;

const DEEPEST: usize = 6;

/// One field of a message, as bytes without meaning.
#[derive(Clone)]
pub(crate) enum Field {
    Number(u64, u64),
    Fixed(u64, Vec<u8>),
    Bytes(u64, Vec<u8>),
    Message(u64, Vec<Field>),
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for at in 0..10 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(at * 7)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// `None` if the bytes are no message.
pub(crate) fn parse(mut bytes: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let number = tag >> 3;
        fields.push(match tag & 7 {
            0 => Field::Number(number, varint(&mut bytes)?),
            1 => Field::Fixed(number, take(&mut bytes, 8)?.to_vec()),
            2 => {
                let length = varint(&mut bytes)?;
                let inner = take(&mut bytes, usize::try_from(length).ok()?)?;
                match parse(inner, depth + 1).filter(|fields| depth < DEEPEST && !fields.is_empty()) {
                    Some(message) => Field::Message(number, message),
                    None => Field::Bytes(number, inner.to_vec()),
                }
            }
            _ => return None,
        });
    }
    Some(fields)
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

pub(crate) fn write(fields: &[Field]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        let (number, kind, content) = match field {
            Field::Number(number, value) => {
                put(&mut bytes, number << 3);
                put(&mut bytes, *value);
                continue;
            }
            Field::Fixed(number, content) => (number, 1, content.clone()),
            Field::Bytes(number, content) => (number, 2, content.clone()),
            Field::Message(number, fields) => (number, 2, write(fields)),
        };
        put(&mut bytes, number << 3 | kind);
        if kind == 2 {
            put(&mut bytes, content.len() as u64);
        }
        bytes.extend(content);
    }
    bytes
}

pub(crate) fn change(dice: &mut Dice, fields: &mut Vec<Field>, other: &[Field]) {
    if fields.is_empty() {
        return;
    }
    let at = dice.below(fields.len());
    if let Field::Message(_, inner) = &mut fields[at]
        && !dice.once_in(4)
    {
        return change(dice, inner, other);
    }
    match dice.below(7) {
        0 => drop(fields.remove(at)),
        1 => fields.extend(std::iter::repeat_n(fields[at].clone(), dice.below(600 / fields.len() + 1))),
        2 => fields.push(dice.one(other).clone()),
        3 => fields[at] = Field::Number(1 + dice.next() % 40, dice.number()),
        4 => fields[at] = Field::Bytes(1 + dice.next() % 20, vec![b'x'; 1 << dice.below(17)]),
        5 => {
            let deep = (0..dice.below(150)).fold(fields.clone(), |inner, _| vec![Field::Message(1, inner)]);
            fields[at] = Field::Message(1 + dice.next() % 20, deep);
        }
        _ => match &mut fields[at] {
            Field::Number(_, value) => *value = dice.number(),
            Field::Fixed(number, _) | Field::Bytes(number, _) | Field::Message(number, _) => {
                *number = 1 + dice.next() % 40;
            }
        },
    }
}
