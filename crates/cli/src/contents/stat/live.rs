//! The statistics of the process that has a database open.

use std::path::Path;
use std::thread;
use std::time::Duration;

use ensilo::Timestamp;
use serde_json::{Value, json};

use super::super::ShownAs;
use super::{aligned, bytes_text};

/// How long it is between the two looks of which one line is made.
const ONE_INTERVAL: Duration = Duration::from_secs(1);

/// What is counted, in words, by its place in the statistics, and whether it is bytes. What it has grown by in a second is shown as well.
const COUNTERS: [(&str, &str, bool); 7] = [
    ("commits", "/commits", false),
    ("snapshots", "/snapshots", false),
    ("aborts", ABORTS, false),
    ("rows expired", "/expired_rows", false),
    ("transactions logged", "/durability/logged_transactions", false),
    ("log", "/durability/log_bytes", true),
    ("syncs of the log", "/durability/log_syncs", false),
];

/// Not one number, but one for each reason.
const ABORTS: &str = "/aborts";

/// What a process said of its database at one moment.
struct Look(Value);

/// Asks the process that has a database open, twice at least, and gives `show` what it says and how fast that grows: once, or again and again
/// with so much time in between, until the process answers no more.
pub(super) fn watch(
    directory: &Path,
    every: Option<Duration>,
    format: ShownAs,
    mut show: impl FnMut(&str),
) -> Result<(), String> {
    let mut before = Look::at(directory)?;
    loop {
        thread::sleep(every.unwrap_or(ONE_INTERVAL));
        let now = Look::at(directory)?;
        match format {
            ShownAs::Text => show(&now.text(&before)),
            ShownAs::Json => show(&format!("{}\n", now.json(&before))),
        }
        if every.is_none() {
            return Ok(());
        }
        before = now;
    }
}

impl Look {
    fn at(directory: &Path) -> Result<Look, String> {
        let answer = ensilo::live_statistics::read(directory).map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        match answer["format"].as_u64() {
            Some(1) => Ok(Look(answer)),
            _ => Err("the process that has the database open is of a later version".to_owned()),
        }
    }

    fn statistics(&self) -> &Value {
        &self.0["statistics"]
    }

    /// Returns a number of the statistics, 0 if it is not there.
    fn number(&self, place: &str) -> u64 {
        let found = self.statistics().pointer(place).unwrap_or(&Value::Null);
        match found.as_object() {
            Some(by_reason) => by_reason.values().filter_map(Value::as_u64).sum(),
            None => found.as_u64().unwrap_or(0),
        }
    }

    /// Returns how much time has gone by since another look at the same opening of the database; `None` if it is another one now.
    fn seconds_since(&self, before: &Look) -> Option<f64> {
        let open = |look: &Look| look.0["open_seconds"].as_f64().unwrap_or(0.0);
        let seconds = open(self) - open(before);
        let is_same = ["process", "opened"].iter().all(|name| self.0[name] == before.0[name]);
        (is_same && seconds > 0.0).then_some(seconds)
    }

    /// Returns by how much a number has grown in a second.
    fn rate(&self, before: &Look, place: &str) -> Option<f64> {
        let grown = self.number(place).checked_sub(before.number(place))?;
        Some(grown as f64 / self.seconds_since(before)?)
    }

    fn json(&self, before: &Look) -> Value {
        let rates = COUNTERS.iter().map(|&(_, place, _)| {
            let name = place.rsplit('/').next().unwrap_or(place);
            (name.to_owned(), json!(self.rate(before, place)))
        });
        json!({
            "format": self.0["format"],
            "process": self.0["process"],
            "opened": self.0["opened"],
            "time": self.0["time"],
            "open_seconds": self.0["open_seconds"],
            "interval_seconds": self.seconds_since(before),
            "per_second": serde_json::Map::from_iter(rates),
            "statistics": self.statistics(),
        })
    }

    fn text(&self, before: &Look) -> String {
        let float = |value: &Value| value.as_f64().unwrap_or(0.0);
        let time = Timestamp::from_micros((float(&self.0["time"]) * 1e6) as i64);
        let mut text = format!(
            "process {}, database open for {:.1} s, at {time}\n",
            self.0["process"],
            float(&self.0["open_seconds"])
        );
        let head = ["", "since it was opened", "in a second"].map(str::to_owned);
        let counters = COUNTERS.iter().flat_map(|&(name, place, is_bytes)| {
            let reasons = self.reasons(place).map(|(name, place)| self.line(before, &name, &place, false));
            std::iter::once(self.line(before, name, place, is_bytes)).chain(reasons.collect::<Vec<_>>())
        });
        text += &aligned(std::iter::once(head).chain(counters));
        text.push('\n');
        text += &aligned(self.table_lines());
        text += &self.memory_text();
        text += &self.durability_text(float);
        text
    }

    /// Returns in words, and by their places, the reasons for which something at this place has happened at all.
    fn reasons(&self, place: &str) -> impl Iterator<Item = (String, String)> {
        let by_reason = self.statistics().pointer(place).and_then(Value::as_object).into_iter().flatten();
        let happened = by_reason.filter(|(_, count)| count.as_u64().is_some_and(|count| count > 0));
        happened.map(move |(name, _)| (format!("  {name}"), format!("{place}/{name}")))
    }

    fn line(&self, before: &Look, name: &str, place: &str, is_bytes: bool) -> [String; 3] {
        let shown = |number: u64| if is_bytes { bytes_text(number) } else { number.to_string() };
        let rate = self.rate(before, place).map_or("-".to_owned(), |rate| shown(rate.round() as u64));
        [name.to_owned(), shown(self.number(place)), rate]
    }

    fn table_lines(&self) -> impl Iterator<Item = [String; 3]> {
        let tables = self.statistics()["tables"].as_array().into_iter().flatten();
        let line = |name: String, of: &Value| {
            let number = |name| of[name].as_u64().unwrap_or(0);
            [name, number("records").to_string(), bytes_text(number("memory_bytes"))]
        };
        let lines_of = move |table: &Value| {
            let name = |of: &Value| of["name"].as_str().unwrap_or_default().escape_debug().to_string();
            let mut lines = vec![line(format!("table {} ({})", name(table), table["number"]), table)];
            let indexes = table["indexes"].as_array().into_iter().flatten();
            lines.extend(indexes.map(|index| line(format!("  index {}", name(index)), index)));
            lines
        };
        std::iter::once(["in memory", "rows", "bytes"].map(str::to_owned)).chain(tables.flat_map(lines_of))
    }

    fn memory_text(&self) -> String {
        let bytes = |place| bytes_text(self.number(place));
        let limit = match self.number("/memory/limit_bytes") {
            0 => "no limit".to_owned(),
            limit => format!("a limit of {}", bytes_text(limit)),
        };
        let (live, mapped) = (bytes("/memory/live_bytes"), bytes("/memory/mapped_bytes"));
        format!("{live} in use, of {mapped} taken from the system, with {limit}\n")
    }

    fn durability_text(&self, float: impl Fn(&Value) -> f64) -> String {
        let durability = &self.statistics()["durability"];
        let checkpoints = &durability["checkpoints"];
        let under_way = if checkpoints["is_under_way"] == true { ", another under way" } else { "" };
        let mut text = format!(
            "everything up to epoch {} is stored; {} checkpoints made, {} failed{under_way}; a recovery would take {:.2} s\n",
            durability["durable_epoch"],
            checkpoints["made"],
            checkpoints["failed"],
            float(&durability["next_recovery"]["duration"])
        );
        if !durability["degraded"].is_null() {
            text += &format!("something is wrong: {}\n", durability["degraded"]);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(seconds: u32, conflicts: u32) -> Look {
        Look(json!({
            "format": 1, "process": 7, "opened": 1.0, "time": 1.0, "open_seconds": seconds,
            "statistics": {
                "commits": 10 * seconds,
                "aborts": { "a row was changed": conflicts, "memory is full": 0 },
                "tables": [{
                    "name": "account", "number": 17, "records": 3, "memory_bytes": 300,
                    "indexes": [{ "name": "by_owner", "records": 2, "memory_bytes": 200 }],
                }],
            },
        }))
    }

    #[test]
    fn aborts_are_shown_by_their_reasons_and_indexes_below_their_tables() {
        let text = look(4, 9).text(&look(2, 3));
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        for line in [
            &["aborts", "9", "3"][..],
            &["a", "row", "was", "changed", "9", "3"],
            &["table", "account", "(17)", "3", "300", "B"],
            &["index", "by_owner", "2", "200", "B"],
        ] {
            assert!(lines.iter().any(|shown| shown == line), "{line:?}: {text}");
        }
        assert!(!text.contains("memory is full"), "{text}");
    }
}
