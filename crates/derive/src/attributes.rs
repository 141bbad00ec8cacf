//! What both macros read alike.

use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Ident, LitStr, Path, Result, Token, token};

/// Returns the named fields of a struct without parameters.
pub(crate) fn named_fields<'a>(
    input: &'a DeriveInput,
    what: &str,
) -> Result<&'a Punctuated<Field, Token![,]>> {
    if let Some(lifetime) = input.generics.lifetimes().next() {
        let message = format!(
            "{what} owns its values and has no lifetimes: `String` instead of `&str`, `Vec<u8>` instead of `&[u8]`"
        );
        return Err(Error::new_spanned(lifetime, message));
    }
    if !input.generics.params.is_empty() {
        let message =
            format!("{what} has no type parameters: its fields have the types of columns, such as `u32`");
        return Err(Error::new_spanned(&input.generics, message));
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

/// Parses what a setting is, which stands in no quotes.
pub(crate) fn unquoted<T: Parse>(meta: &ParseNestedMeta<'_>, setting: &str) -> Result<T> {
    let value = meta.value()?;
    match value.parse::<Option<LitStr>>()? {
        None => value.parse(),
        Some(literal) => {
            Err(Error::new(literal.span(), format!("without quotes: `{setting} = {}`", literal.value())))
        }
    }
}

/// Refuses a value of a setting that has none.
pub(crate) fn expect_no_value(meta: &ParseNestedMeta<'_>, setting: &str) -> Result<()> {
    if meta.input.peek(Token![=]) || meta.input.peek(token::Paren) {
        return Err(meta.error(format!("`{setting}` stands alone, without a value")));
    }
    Ok(())
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
