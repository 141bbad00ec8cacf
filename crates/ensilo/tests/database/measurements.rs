//! Rows with columns of all types that are not stored as they are.

use ensilo::{ColumnValue, Json, Row};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ColumnValue)]
pub(crate) struct SensorId(pub(crate) u32);

#[derive(Clone, Debug, PartialEq, Eq, ColumnValue)]
pub(crate) struct Label(pub(crate) String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ColumnValue)]
pub(crate) enum State {
    Raw,
    Checked = 10,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) gain: f64,
    pub(crate) filters: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "measurement", index(name = "by_state", columns(state, price desc)))]
#[row(index(name = "by_wide", columns(wide, date)), index(name = "by_id", columns(id), unique))]
pub(crate) struct Measurement {
    #[row(key)]
    pub(crate) sensor: SensorId,
    #[row(key, desc)]
    pub(crate) at: jiff::Timestamp,
    #[row(key)]
    pub(crate) run: u128,
    pub(crate) id: Uuid,
    pub(crate) state: State,
    pub(crate) wide: i128,
    pub(crate) price: Option<Decimal>,
    pub(crate) date: jiff::civil::Date,
    pub(crate) time: jiff::civil::Time,
    pub(crate) local: Option<jiff::civil::DateTime>,
    pub(crate) replaced_by: Option<SensorId>,
    pub(crate) label: Label,
    pub(crate) settings: Json<Settings>,
}

/// The measurement with this number: sensors, states and prices come again and again.
pub(crate) fn measurement(number: u64) -> Measurement {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let at = jiff::Timestamp::from_nanosecond(i128::from(mixed.cast_signed()) / 5).unwrap();
    let local = jiff::tz::Offset::UTC.to_datetime(at);
    let settings = Settings { gain: mixed as f64 / 3.0, filters: vec![format!("filter {}", number % 3)] };
    Measurement {
        sensor: SensorId((number % 7) as u32),
        at,
        run: u128::from(mixed) << 32 | u128::from(number),
        id: Uuid::from_u128(u128::from(mixed) << 64 | u128::from(number)),
        state: [State::Raw, State::Checked, State::Failed][(number % 3) as usize],
        wide: (i128::from(mixed.cast_signed()) << 40) / 3,
        price: (!number.is_multiple_of(4))
            .then(|| Decimal::new((mixed >> 40).cast_signed() - (1 << 23), (number % 5) as u32).normalize()),
        date: local.date(),
        time: local.time(),
        local: (!number.is_multiple_of(2)).then_some(local),
        replaced_by: number.is_multiple_of(5).then_some(SensorId(u32::MAX)),
        label: Label("label ".repeat((number % 3) as usize)),
        settings: Json::new(settings).unwrap(),
    }
}
