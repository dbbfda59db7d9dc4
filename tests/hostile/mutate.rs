//! Mutated input: real input with a fault inside.

use serde_json::{Map, Value};

use crate::hostile::dice::Dice;

/// Bytes cut, doubled, flipped, or mixed with other bytes.
pub(crate) fn bytes(dice: &mut Dice, whole: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + dice.below(16)).min(bytes.len());
        match dice.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let part = bytes[at..end].repeat(1 + dice.below(40));
                bytes.splice(at..at, part);
            }
            4 => bytes.insert(at, dice.next().to_le_bytes()[0]),
            5 => {
                let from = dice.below(other.len() + 1);
                let to = from + dice.below(other.len() + 1 - from);
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            _ => {
                // A number that announces a great length.
                bytes.splice(at..at, [0xff, 0xff, 0xff, 0xff, 0x0f]);
            }
        }
    }
    bytes
}

/// Text of unexpected kinds.
pub(crate) fn text(dice: &mut Dice) -> String {
    const ODD: [&str; 22] = [
        "",
        " ",
        "\0",
        "\n",
        "\u{1b}[31m",
        "é",
        "語",
        "\u{202e}",
        "\u{feff}",
        "null",
        "true",
        "-1",
        "1e309",
        "18446744073709551616",
        "../../etc",
        "%s%n",
        "{}",
        "[",
        "\"",
        "9999-12-31T23:59:59Z",
        "Scheduled",
        "drill-1",
    ];
    match dice.below(12) {
        0 => "x".repeat(1 << dice.below(17)),
        1 => "語".repeat(dice.below(2_000)),
        2 => (0..dice.below(40))
            .filter_map(|_| char::from_u32(u32::try_from(dice.next() % 0x11_0000).unwrap()))
            .collect(),
        _ => (*dice.one(&ODD)).to_owned(),
    }
}

/// A value with a part added, removed, replaced, doubled or moved.
pub(crate) fn json(dice: &mut Dice, value: &mut Value) {
    for _ in 0..=dice.below(3) {
        let place = dice.below(count(value));
        change(dice, nth(value, &mut { place }).unwrap());
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0_usize,
    }
}

fn nth<'v>(value: &'v mut Value, left: &mut usize) -> Option<&'v mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, left)),
        Value::Object(fields) => fields.values_mut().find_map(|item| nth(item, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn change(dice: &mut Dice, value: &mut Value) {
    match value {
        Value::Array(items) if !items.is_empty() && !dice.once_in(3) => {
            let at = dice.below(items.len());
            match dice.below(4) {
                0 => drop(items.remove(at)),
                1 => items.extend(std::iter::repeat_n(items[at].clone(), dice.below(1_100 / items.len() + 1))),
                2 => items.push(odd(dice)),
                _ => items.reverse(),
            }
        }
        Value::Object(fields) if !fields.is_empty() && !dice.once_in(3) => {
            let key = fields.keys().nth(dice.below(fields.len())).unwrap().clone();
            match dice.below(3) {
                0 => drop(fields.remove(&key)),
                1 => {
                    let value = fields.remove(&key).unwrap();
                    fields.insert(text(dice), value);
                }
                _ => drop(fields.insert(text(dice), odd(dice))),
            }
        }
        _ => *value = odd(dice),
    }
}

fn odd(dice: &mut Dice) -> Value {
    match dice.below(9) {
        0 => Value::Null,
        1 => Value::Bool(dice.once_in(2)),
        2 => dice.number().into(),
        3 => dice.number().cast_signed().into(),
        4 => (*dice.one(&[0.5, -0.0, 1e300, f64::MIN_POSITIVE])).into(),
        5 => Value::Array((0..dice.below(4)).map(|_| odd(dice)).collect()),
        6 => Value::Object(Map::from_iter([(text(dice), odd(dice))])),
        7 => (0..dice.below(200)).fold(Value::Null, |inner, _| Value::Array(vec![inner])),
        _ => text(dice).into(),
    }
}
