//! Internal to `ensilo`, not to be used by itself: the derive macros `#[derive(Row)]`, `#[derive(Columns)]` and
//! `#[derive(ColumnValue)]`.
//!
//! They write implementations of the traits of `ensilo_row`, in which every offset is a constant. Generated code names the
//! traits by the path `::ensilo::row`; `crate = "..."` names another.

#![forbid(unsafe_code)]

mod attributes;
mod column_value;
mod columns;
mod row;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct with named fields the row of a table.
///
/// ```
/// use ensilo_derive::Row;
/// use ensilo_row::{Decimal, KeyedRow, Row as _, Text};
///
/// #[derive(Clone, Row)]
/// #[row(crate = "ensilo_row")] // not needed where `ensilo` is a dependency
/// #[row(table = "account", index(name = "by_owner", columns(owner, balance desc)))]
/// struct Account {
///     #[row(key)]
///     branch: u16,
///     #[row(key)]
///     number: u32,
///     owner: Text<16>,
///     balance: Decimal<2>,
///     note: Option<String>,
/// }
///
/// assert_eq!(Account::schema().name(), "account");
/// ```
///
/// On the struct:
/// - `table = "name"`: the table's name; by default the struct's in snake case.
/// - `index(name = "name", columns(a, b desc), unique)`: a secondary index, as often as needed; `unique` is optional. Nulls come first in
///   ascending and last in descending order; `columns(a nulls_last, b desc nulls_first)` has it the other way.
/// - `crate = "path"`: where the traits are.
///
/// A field has any type that is a column: `ensilo` lists them, and [`ColumnValue`](derive@ColumnValue) adds those of a program.
///
/// On a field:
/// - `key`: part of the primary key, in the order of the fields. `key, desc`: in descending order; the key then has
///   `std::cmp::Reverse` of the field's type. Without any key field, the table invents row ids.
/// - `key, nulls_last` and `key, desc, nulls_first`: the place of nulls in the key, which then has `NullsLast` of the field's type, or
///   `Reverse<NullsLast<..>>`.
/// - `key, auto`: a field of the primary key, an integer of up to 64 bits or a struct of one; the table can give its numbers
///   (`Table::insert_auto`), and takes others too. A program gives the other fields of the key, if there are any.
/// - `name = "name"`: the column's name; by default the field's.
#[proc_macro_derive(Row, attributes(row))]
pub fn derive_row(input: TokenStream) -> TokenStream {
    row::expand(parse_macro_input!(input as DeriveInput))
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Makes a struct with named fields a part of the columns of a row, to be read or updated alone.
///
/// ```
/// use ensilo_derive::{Columns, Row};
///
/// #[derive(Row)]
/// #[row(crate = "ensilo_row")]
/// struct Account {
///     #[row(key)]
///     number: u32,
///     balance: i64,
///     note: String,
/// }
///
/// #[derive(Columns)]
/// #[columns(of = Account, crate = "ensilo_row")]
/// struct Balance {
///     balance: i64,
/// }
/// ```
///
/// Every field has the name and type of one of the row's; `#[columns(field = balance)]` names another field of the row.
/// Fields that are part of the key are read from it, and an update that changes them is refused.
///
/// A field that the row does not have is an error, as is one of another type:
/// ```compile_fail,E0599
/// # use ensilo_derive::{Columns, Row};
/// # #[derive(Row)]
/// # #[row(crate = "ensilo_row")]
/// # struct Account { #[row(key)] number: u32, balance: i64 }
/// #[derive(Columns)]
/// #[columns(of = Account, crate = "ensilo_row")]
/// struct Balance { balanse: i64 }
/// ```
/// ```compile_fail,E0277
/// # use ensilo_derive::{Columns, Row};
/// # #[derive(Row)]
/// # #[row(crate = "ensilo_row")]
/// # struct Account { #[row(key)] number: u32, balance: i64 }
/// #[derive(Columns)]
/// #[columns(of = Account, crate = "ensilo_row")]
/// struct Balance { balance: i32 }
/// ```
#[proc_macro_derive(Columns, attributes(columns))]
pub fn derive_columns(input: TokenStream) -> TokenStream {
    columns::expand(parse_macro_input!(input as DeriveInput))
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Makes a type of a program the type of a column: a struct with one field, or an enum whose variants have no fields.
///
/// ```
/// use ensilo_derive::{ColumnValue, Row};
/// use ensilo_row::{ColumnType, Row as _};
///
/// #[derive(Clone, Copy, Debug, PartialEq, ColumnValue)]
/// #[column(crate = "ensilo_row")] // not needed where `ensilo` is a dependency
/// struct CustomerId(u32);
///
/// #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, ColumnValue)]
/// #[column(crate = "ensilo_row")]
/// enum State {
///     Open,
///     Paid,
///     Sent = 10,
/// }
///
/// #[derive(Row)]
/// #[row(crate = "ensilo_row", index(name = "by_state", columns(state)))]
/// struct Order {
///     #[row(key)]
///     customer: CustomerId,
///     #[row(key)]
///     number: u16,
///     state: State,
///     replaced_by: Option<CustomerId>,
/// }
///
/// let types: Vec<_> = Order::schema().columns().iter().map(|column| column.column_type).collect();
/// assert_eq!(types, [ColumnType::U32, ColumnType::U16, ColumnType::U8, ColumnType::U32]);
/// ```
///
/// The type also has `Clone` and `PartialEq`, since the trait asks for them. It can then be wherever its stored type can: in
/// keys, indexes, `Option` and other structs with one field.
///
/// # Structs
/// A struct is stored as its field is, in rows and in keys, and the column has the field's type. So a column can be given such a
/// type, or lose it, while the table stays as it is. The struct may have further fields of type `PhantomData`, and type
/// parameters:
/// ```
/// # use ensilo_derive::ColumnValue;
/// use std::marker::PhantomData;
///
/// #[derive(Clone, PartialEq, ColumnValue)]
/// #[column(crate = "ensilo_row")]
/// struct Id<T>(u64, PhantomData<T>);
/// ```
///
/// # Enums
/// An enum is stored as the number of its variant: those that stand in the code count, and the others follow the one before, from
/// 0 on, as Rust has it. The column is a `u8`, or the integer (`u8` to `u64`, `i8` to `i64`) of the enum's `#[repr(...)]`. Keys
/// have the order of the numbers.
///
/// The numbers lie on the disk: a variant that is put between others, or moved, changes the meaning of rows that are there. Write
/// the numbers down where the order in the code may change, and do not use the number of a removed variant again.
///
/// A row may hold a number that no variant has: one that was written by a newer version of the program, with more variants, or
/// as a dynamic row. A statement that reads such a column as the enum ends with `Error::UnknownValue`, and changes nothing; the row
/// stays as it is, and can be read without the column, or as a dynamic row. So where two versions of a program use one database
/// in turn, first bring out one that knows the new variant, then one that writes it.
///
/// A number that does not fit is an error:
/// ```compile_fail
/// # use ensilo_derive::ColumnValue;
/// #[derive(Clone, PartialEq, ColumnValue)]
/// #[column(crate = "ensilo_row")]
/// enum Code {
///     Gone = 410, // `#[repr(u16)]` is missing
/// }
/// ```
///
/// On the type: `#[column(crate = "path")]` says where the traits are.
#[proc_macro_derive(ColumnValue, attributes(column))]
pub fn derive_column_value(input: TokenStream) -> TokenStream {
    column_value::expand(parse_macro_input!(input as DeriveInput))
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
