//! Rows and keys allocate nothing in a steady state.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ensilo_derive::{Columns, Row};
use ensilo_row::{Columns as _, Decimal, Key, KeyBuf, KeyedRow as _, Row as _, RowBuf, Text};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// Counts the allocations of each thread.
struct Counting;

// SAFETY: every call is passed on to the system's allocator, whose contract is the same.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and `ptr` comes from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Clone, Debug, PartialEq, Row)]
#[row(crate = "ensilo_row", index(name = "by_name", columns(name, balance desc)))]
struct Account {
    #[row(key)]
    branch: u16,
    #[row(key)]
    number: u32,
    name: Text<16>,
    balance: Decimal<2>,
    limit: Option<i32>,
    note: String,
}

#[derive(Columns)]
#[columns(of = Account, crate = "ensilo_row")]
struct Balance {
    balance: Decimal<2>,
    limit: Option<i32>,
}

#[derive(Columns)]
#[columns(of = Account, crate = "ensilo_row")]
struct Renamed {
    name: Text<16>,
}

fn account() -> Account {
    let name = Text::new("BARBARBAR").unwrap();
    Account { branch: 1, number: 2, name, balance: Decimal::from_int(3), limit: None, note: "x".repeat(100) }
}

/// The allocations of `run`, after it has run once.
fn allocations(mut run: impl FnMut()) -> usize {
    run();
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1]))), 1);
}

#[test]
fn encoding_reuses_its_buffers() {
    let (account, mut row, mut key) = (account(), RowBuf::new(), KeyBuf::new());
    let count = allocations(|| {
        account.encode(&mut row);
        account.key().encode(&mut key);
        account.index_key(&account.key(), 0, &mut key);
    });
    assert_eq!(count, 0);
}

#[test]
fn updates_by_columns_allocate_nothing() {
    let (account, mut row, mut rewritten) = (account(), RowBuf::new(), RowBuf::new());
    let (mut primary_key, mut index_key) = (KeyBuf::new(), KeyBuf::new());
    account.encode(&mut row);
    account.key().encode(&mut primary_key);
    let schema = Account::schema();
    let count = allocations(|| {
        let key = <(u16, u32)>::decode(primary_key.as_bytes()).unwrap();
        let mut part = Balance::decode(&key, &row).unwrap();
        part.balance += Decimal::from_int(1);
        part.limit = Some(5);
        let mut patch = Balance::patch_base(&row);
        part.patch(&mut patch);
        let renamed = Renamed::decode(&key, &row).unwrap();
        renamed.rewrite(&row, &mut rewritten).unwrap();
        schema.index_key(&schema.indexes()[0], primary_key.as_bytes(), &rewritten, &mut index_key).unwrap();
    });
    assert_eq!(count, 0);
    assert_eq!(rewritten, row);
}
