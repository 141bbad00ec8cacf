//! What must hold for any bytes that somebody takes for the file `CHANGES`.

use ensilo_log::Manifest;
use ensilo_log::fuzzing::change_history_again;

use crate::plain::{self, take_counted, take_u64, take_varint};

/// Section 5: the format that such a file has.
const FORMAT: u32 = 4;

/// Section 5: the end of all epochs, and of numbers in names.
const EPOCH_END: u64 = 1 << 44;

/// A history of changes, and one with this body.
///
/// Bytes are accepted if and only if they are valid by the document, and are written again as the same bytes.
pub fn changes(bytes: &[u8]) {
    check(bytes);
    // Of all formats, those that there are not among them, with a checksum that is right.
    (0..=FORMAT + 1).for_each(|format| check(&plain::changes_of_format(format, bytes)));
}

fn check(bytes: &[u8]) {
    let is_valid = plain::changes_body(FORMAT, bytes).is_some_and(is_body);
    match change_history_again(bytes) {
        Some(again) => {
            assert!(is_valid, "a malformed history of changes was accepted");
            assert_eq!(again, bytes, "a history of changes has one form");
        }
        None => assert!(!is_valid, "a valid history of changes was refused"),
    }
}

/// Returns a history of changes that goes with this manifest, and keeps a log file of each logger.
pub(crate) fn seed_of(manifest: &Manifest) -> Vec<u8> {
    let opening = manifest.opening.0.to_le_bytes();
    let mut body = [manifest.database.0.to_le_bytes(), opening].concat();
    put_varint(&mut body, 1);
    body.extend(opening);
    put_varint(&mut body, 1);
    body.extend(manifest.previous_opening.0.to_le_bytes());
    put_varint(&mut body, manifest.durable_epoch.get());
    put_varint(&mut body, manifest.first_epoch.get());
    put_varint(&mut body, manifest.loggers.len() as u64);
    for (number, logger) in manifest.loggers.iter().enumerate() {
        let name = format!("log-{}-{number}-{}-e7.log", manifest.generation, logger.first_sequence);
        for text in [&logger.directory, &name] {
            put_varint(&mut body, text.len() as u64);
            body.extend(text.as_bytes());
        }
        put_varint(&mut body, 0);
        put_varint(&mut body, manifest.durable_epoch.get());
        body.extend(opening);
        put_varint(&mut body, manifest.durable_epoch.get());
        put_varint(&mut body, 1 << 20);
    }
    plain::changes_of_format(FORMAT, &body)
}

fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Section 5: whether these bytes are a body to their last one.
fn is_body(mut bytes: &[u8]) -> bool {
    take_body(&mut bytes).is_some() && bytes.is_empty()
}

fn take_body(bytes: &mut &[u8]) -> Option<()> {
    take_id(bytes)?;
    take_id(bytes)?;
    for _ in 0..take_varint(bytes)? {
        take_id(bytes)?;
    }
    for _ in 0..take_varint(bytes)? {
        take_id(bytes)?;
        take_epoch(bytes)?;
    }
    take_epoch(bytes)?;
    for _ in 0..take_varint(bytes)? {
        take_kept(bytes)?;
    }
    Some(())
}

/// A file that is kept: directory, name, valid bytes, durable epoch, opening, largest epoch, and bytes.
fn take_kept(bytes: &mut &[u8]) -> Option<()> {
    take_text(bytes)?;
    let name = take_text(bytes)?;
    take_varint(bytes)?;
    take_epoch(bytes)?;
    take_id(bytes)?;
    take_epoch(bytes)?;
    take_varint(bytes)?;
    is_log_name(&name).then_some(())
}

/// Section 1: whether a log file may be called so.
fn is_log_name(name: &str) -> bool {
    let is_below = |text: &str, end: u64| {
        let is_spelled =
            text == "0" || !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
        is_spelled && text.parse::<u64>().is_ok_and(|number| number < end)
    };
    let Some(rest) = name.strip_prefix("log-") else { return false };
    let (numbers, is_epoch_right) = match rest.strip_suffix(".open") {
        Some(numbers) => (numbers, true),
        None => match rest.strip_suffix(".log").and_then(|rest| rest.rsplit_once("-e")) {
            Some((numbers, epoch)) => (numbers, is_below(epoch, EPOCH_END)),
            None => return false,
        },
    };
    let numbers: Vec<_> = numbers.split('-').collect();
    let [generation, logger, sequence] = numbers[..] else { return false };
    let is_from_1 = |text: &str| text != "0" && is_below(text, EPOCH_END);
    is_epoch_right && is_from_1(generation) && is_below(logger, 1 << 32) && is_from_1(sequence)
}

fn take_id(bytes: &mut &[u8]) -> Option<(u64, u64)> {
    Some((take_u64(bytes)?, take_u64(bytes)?))
}

fn take_epoch(bytes: &mut &[u8]) -> Option<u64> {
    take_varint(bytes).filter(|&epoch| epoch < EPOCH_END)
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    take_counted(bytes).and_then(|text| String::from_utf8(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_log_files_are_what_the_document_says() {
        for name in ["log-1-0-1.open", "log-17-4294967295-2-e0.log", "log-1-0-17592186044415-e4.log"] {
            assert!(is_log_name(name), "{name}");
        }
        for name in [
            "log-0-0-1.open",
            "log-1-0-0.open",
            "log-01-0-1.open",
            "log-1-4294967296-1.open",
            "log-1-0-1.log",
            "log-1-0-1-e.log",
            "log-1-0-1-e17592186044416.log",
            "log-1-0-1-1.open",
            "log-+1-0-1.open",
        ] {
            assert!(!is_log_name(name), "{name}");
        }
    }
}
