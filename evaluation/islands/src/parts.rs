//! Transactions as they are put together of parts.

use std::collections::BTreeMap;

use ensilo::{Database, Error, Result, Row, Table};
use ensilo_islands::InstanceNumber;
use ensilo_islands::commit::{Request, SiteId};
use serde::{Deserialize, Serialize};

/// Opens a table, or makes it.
pub(crate) fn open_or_create<T: Row>(db: &Database) -> Result<Table<T>> {
    match db.open_table() {
        Err(Error::UnknownTable(_)) => db.create_table(),
        opened => opened,
    }
}

pub(crate) fn to_bytes(part: &impl Serialize) -> Vec<u8> {
    let Ok(bytes) = postcard::to_allocvec(part) else {
        unreachable!("numbers have bytes");
    };
    bytes
}

pub(crate) fn from_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|error| Error::rollback(format!("this is no part: {error}")))
}

/// Returns a transaction of one part, where it begins.
pub(crate) fn local(part: &impl Serialize) -> Request {
    local_bytes(to_bytes(part))
}

/// The same of the bytes of a part.
pub(crate) fn local_bytes(part: Vec<u8>) -> Request {
    Request::new(Some(part), Vec::new())
}

/// Returns a transaction of a worker with these parts, by the instance that each is for.
pub(crate) fn request<P: Serialize>(of: SiteId, parts: BTreeMap<u64, P>) -> Request {
    let mut request = Request::default();
    for (instance, part) in parts {
        if instance == u64::from(of.instance) {
            request.local = Some(to_bytes(&part));
        } else {
            let site = SiteId { instance: instance as u16, worker: of.worker };
            request.remote.push((site, to_bytes(&part)));
        }
    }
    request
}

/// Returns which of `count` things belong to the site of a worker.
pub(crate) fn site_share(
    count: u64,
    (number, workers): (InstanceNumber, u16),
    of: SiteId,
) -> std::ops::Range<u64> {
    let own = crate::shares::share(count, of.instance.into(), number.instances.into());
    let of_worker = crate::shares::share(own.end - own.start, of.worker.into(), workers.into());
    own.start + of_worker.start..own.start + of_worker.end
}
