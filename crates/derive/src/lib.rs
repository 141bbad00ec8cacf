//! Internal to `ensilo`, not to be used by itself: the derive macros `#[derive(Row)]` and `#[derive(Columns)]`.
//!
//! Both write implementations of the traits of `ensilo_row`, in which every offset is a constant. Generated code names the
//! traits by the path `::ensilo::row`; `crate = "..."` names another.

#![forbid(unsafe_code)]

mod attributes;
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
/// - `index(name = "name", columns(a, b desc), unique)`: a secondary index, as often as needed; `unique` is optional.
/// - `crate = "path"`: where the traits are.
///
/// On a field:
/// - `key`: part of the primary key, in the order of the fields. `key, desc`: in descending order; the key then has
///   `std::cmp::Reverse` of the field's type. Without any key field, the table invents row ids.
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
/// ```compile_fail
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
