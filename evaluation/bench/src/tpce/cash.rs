//! The texts of settlements and cash transactions, which trade-update changes and changes back (clause 3.3.11.3).

use ensilo::Text;

/// How a trade is settled, as trade-result writes it.
pub(super) fn cash_type(is_cash: bool) -> Text<40> {
    Text::truncated(if is_cash { "Cash Account" } else { "Margin" })
}

/// The same in other words.
pub(super) fn other_cash_type(is_cash: bool, before: &Text<40>) -> Text<40> {
    Text::truncated(match (is_cash, before.as_str()) {
        (true, "Cash Account") => "Cash",
        (true, _) => "Cash Account",
        (false, "Margin Account") => "Margin",
        (false, _) => "Margin Account",
    })
}

/// What a cash transaction was for.
pub(super) fn cash_name(kind: &str, quantity: i32, security: &str) -> Text<100> {
    Text::truncated(&format!("{kind} {quantity} shares of {security}"))
}

/// The same in other letters.
pub(super) fn other_cash_name(kind: &str, quantity: i32, security: &str, before: &Text<100>) -> Text<100> {
    if before.as_str().contains(" shares of ") {
        Text::truncated(&format!("{kind} {quantity} Shares of {security}"))
    } else {
        cash_name(kind, quantity, security)
    }
}

/// An executor's name with or without a letter in its middle: the other way than before (clause 3.3.11.3).
pub(super) fn other_executor(before: &Text<49>) -> Text<49> {
    let name = before.as_str();
    if let Some((first, last)) = name.split_once(" X ") {
        Text::truncated(&format!("{first} {last}"))
    } else {
        let (first, last) = name.split_once(' ').unwrap_or((name, ""));
        Text::truncated(&format!("{first} X {last}"))
    }
}
