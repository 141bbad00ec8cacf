//! `#[derive(Row)]`.

mod generate;
mod indexes;
mod parse;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

use parse::RowInput;

pub(crate) fn expand(input: DeriveInput) -> Result<TokenStream> {
    Ok(generate::generate(&RowInput::parse(&input)?))
}
