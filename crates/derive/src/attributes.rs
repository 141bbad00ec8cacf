//! What both macros read alike.

use proc_macro2::Span;
use quote::format_ident;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Ident, LitStr, Path, Result, Token};

/// Returns the named fields of a struct without parameters.
pub(crate) fn named_fields<'a>(
    input: &'a DeriveInput,
    what: &str,
) -> Result<&'a Punctuated<Field, Token![,]>> {
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &input.generics,
            format!("{what} has no lifetimes or type parameters"),
        ));
    }
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(&fields.named),
            _ => Err(Error::new(input.ident.span(), format!("{what} is a struct with named fields"))),
        },
        _ => Err(Error::new(input.ident.span(), format!("{what} is a struct with named fields"))),
    }
}

/// Returns the path of a `crate = "path"`.
pub(crate) fn crate_path(meta: &ParseNestedMeta<'_>) -> Result<Path> {
    let path: LitStr = meta.value()?.parse()?;
    path.parse()
}

/// Returns where the traits are unless the input says otherwise.
pub(crate) fn default_crate() -> Path {
    syn::parse_quote!(::ensilo::row)
}

/// Returns a name given as a string: 1 to 255 bytes.
pub(crate) fn name(meta: &ParseNestedMeta<'_>) -> Result<String> {
    let literal: LitStr = meta.value()?.parse()?;
    let name = literal.value();
    if (1..=255).contains(&name.len()) {
        Ok(name)
    } else {
        Err(Error::new(literal.span(), "a name has 1 to 255 bytes"))
    }
}

/// Stores a setting that may be given once.
pub(crate) fn set<T>(slot: &mut Option<T>, value: T, meta: &ParseNestedMeta<'_>) -> Result<()> {
    if slot.is_some() {
        return Err(meta.error("given twice"));
    }
    *slot = Some(value);
    Ok(())
}

/// Returns the name of the constant that holds the index of the column of a field, spanned where it is used.
pub(crate) fn column_constant(field: &Ident, span: Span) -> Ident {
    format_ident!("column_{}", unraw(field), span = span)
}

/// Returns the name of a field without `r#`.
pub(crate) fn unraw(field: &Ident) -> String {
    let name = field.to_string();
    name.strip_prefix("r#").map_or(name.clone(), str::to_owned)
}

/// Returns the identifier of a named field.
pub(crate) fn ident(field: &Field) -> Result<&Ident> {
    field.ident.as_ref().ok_or_else(|| Error::new(field.span(), "the field has no name"))
}
