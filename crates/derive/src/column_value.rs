//! `#[derive(ColumnValue)]`.

mod enumeration;
mod newtype;

use proc_macro2::TokenStream;
use syn::{Data, DeriveInput, Error, Path, Result};

use crate::attributes::{crate_path, default_crate, set};

const SHAPE: &str =
    "the type of a column is a struct with one field, or an enum whose variants have no fields";

pub(crate) fn expand(input: DeriveInput) -> Result<TokenStream> {
    let path = traits_path(&input)?;
    if let Some(lifetime) = input.generics.lifetimes().next() {
        return Err(Error::new_spanned(
            lifetime,
            "the type of a column owns what it holds: it has no lifetimes",
        ));
    }
    match &input.data {
        Data::Struct(data) => newtype::expand(&input, data, &path),
        Data::Enum(data) => enumeration::expand(&input, data, &path),
        Data::Union(_) => Err(Error::new(input.ident.span(), SHAPE)),
    }
}

/// Returns where the traits are.
fn traits_path(input: &DeriveInput) -> Result<Path> {
    let mut path = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("column")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("crate") {
                set(&mut path, crate_path(&meta)?, &meta)
            } else if meta.path.is_ident("repr") {
                Err(meta.error(
                    "the number that an enum is stored as is that of its `#[repr(...)]`, `u8` by default",
                ))
            } else {
                Err(meta.error("expected `crate = \"...\"`"))
            }
        })?;
    }
    Ok(path.unwrap_or_else(default_crate))
}
