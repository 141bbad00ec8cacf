//! A workload of one thread that changes its tables while it uses them: columns, indexes and truncations, numbers that tables and
//! sequences give, and a consumer of the change feed.
//!
//! As for [`serial`](crate::serial), every state that ever was is kept, with what becomes of each row by each change of the columns. There is no
//! way of loading rows in bulk other than transactions of many rows, which are among those of the workload.

mod columns;
mod copy;
mod history;
mod shifting;
mod state;
mod workload;

pub use columns::ColumnChange;
pub use copy::TableCopy;
pub use history::{ChangingHistory, Given};
pub use shifting::{Rows, Shape, ShiftingColumn};
pub use state::ChangingState;
pub use workload::{ChangingPlan, run};

use ensilo::{Columns, Row};

/// The worker whose marks acknowledge moments.
pub const WORKER: u32 = 0;

/// The worker whose marks say which copies the consumer has stored.
pub const CONSUMER: u32 = 1;

/// The worker whose marks say which numbers were answered by requests that wrote nothing.
pub const ANSWERED: u32 = 2;

/// The name of the table whose columns change. Its key is a number.
pub const SHIFTING: &str = "shifting";

/// The name of the sequence.
pub const TICKETS: &str = "ticket";

/// A row under a number that its table gives.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "numbered", index(name = "numbered_by_step", columns(step)))]
pub struct Numbered {
    /// The table's number.
    #[row(key, auto)]
    pub id: u64,
    /// A number of the sequence.
    pub ticket: u64,
    /// The transaction that wrote it.
    pub step: u64,
}

/// The column of [`Numbered`] that changes.
#[derive(Clone, Debug, PartialEq, Eq, Columns)]
#[columns(of = Numbered)]
pub struct NumberedStep {
    /// See [`Numbered::step`].
    pub step: u64,
}
