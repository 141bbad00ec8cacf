//! `#[derive(Row)]`.

mod generate;
mod indexes;
mod parse;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Ident, Path, Result, Type, Visibility};

/// What the struct and its attributes say.
struct RowInput {
    ident: Ident,
    vis: Visibility,
    path: Path,
    table: String,
    columns: Vec<Column>,
    indexes: Vec<Index>,
}

struct Column {
    field: Ident,
    name: String,
    ty: Type,
    key: Option<Order>,
}

struct Index {
    name: String,
    unique: bool,
    parts: Vec<(usize, Order)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Ascending,
    Descending,
}

pub(crate) fn expand(input: DeriveInput) -> Result<TokenStream> {
    Ok(generate::generate(&RowInput::parse(&input)?))
}
