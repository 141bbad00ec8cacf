//! Reading the struct and its attributes.

use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{DeriveInput, Error, Field, Ident, LitStr, Path, Result, Token, Type, parenthesized, token};

use crate::attributes::{crate_path, default_crate, expect_no_value, ident, name, named_fields, set, unraw};

/// The most columns of a key, as tuples implement `Key` up to this length.
const KEY_COLUMNS_MAX: usize = 8;
/// The most indexes of a table.
const INDEXES_MAX: usize = 64;

const AUTO_KEY: &str = "`auto` is for one key field of a row, in ascending order: `#[row(key, auto)]`";

const NULLS: &str = "nulls come first in ascending order and last in descending order; the other is `nulls_last`, or `desc nulls_first`";

/// How an index is written.
const INDEX: &str = "index(name = \"by_field\", columns(field))";

/// How a unique one is.
const UNIQUE_INDEX: &str = "index(name = \"by_field\", columns(field), unique)";

/// What the struct and its attributes say.
pub(super) struct RowInput {
    pub(super) ident: Ident,
    pub(super) path: Path,
    pub(super) table: String,
    pub(super) columns: Vec<Column>,
    pub(super) indexes: Vec<Index>,
}

pub(super) struct Column {
    pub(super) field: Ident,
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) key: Option<Order>,
    /// Whether the table gives its values.
    pub(super) auto: bool,
}

pub(super) struct Index {
    pub(super) name: String,
    pub(super) unique: bool,
    pub(super) parts: Vec<(usize, Order)>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Order {
    Ascending,
    Descending,
    AscendingNullsLast,
    DescendingNullsFirst,
}

impl Order {
    /// Returns the order, and where its nulls come if that is said.
    fn of(is_descending: bool, nulls: Option<&Ident>) -> Result<Self> {
        match (is_descending, nulls) {
            (false, None) => Ok(Self::Ascending),
            (true, None) => Ok(Self::Descending),
            (false, Some(nulls)) if nulls == "nulls_last" => Ok(Self::AscendingNullsLast),
            (true, Some(nulls)) if nulls == "nulls_first" => Ok(Self::DescendingNullsFirst),
            (_, Some(nulls)) => Err(Error::new(nulls.span(), NULLS)),
        }
    }
}

impl RowInput {
    /// Returns the key columns with their positions in the row, in key order.
    pub(super) fn key_columns(&self) -> impl Iterator<Item = (usize, Order)> {
        self.columns.iter().enumerate().filter_map(|(index, column)| Some((index, column.key?)))
    }

    pub(super) fn parse(input: &DeriveInput) -> Result<Self> {
        let fields = named_fields(input, "a row")?;
        let columns = fields.iter().map(Column::parse).collect::<Result<Vec<_>>>()?;
        check_columns(&columns)?;
        let mut path = None;
        let mut table = None;
        let mut indexes: Vec<Index> = Vec::new();
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("row")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("table") {
                    set(&mut table, name(&meta)?, &meta)
                } else if meta.path.is_ident("crate") {
                    set::<Path>(&mut path, crate_path(&meta)?, &meta)
                } else if meta.path.is_ident("index") {
                    expect_parentheses(&meta, INDEX)?;
                    let index = Index::parse(&meta, &columns)?;
                    if indexes.iter().any(|other| other.name == index.name) {
                        return Err(meta.error(format!("two indexes are named `{}`", index.name)));
                    }
                    indexes.push(index);
                    if indexes.len() > INDEXES_MAX {
                        return Err(meta.error("a table has at most 64 indexes"));
                    }
                    Ok(())
                } else if meta.path.is_ident("key") {
                    Err(meta.error("a key stands at its fields: `#[row(key)]` before each of them"))
                } else {
                    Err(meta.error("expected `table = \"...\"`, `index(...)` or `crate = \"...\"`"))
                }
            })?;
        }
        Ok(Self {
            ident: input.ident.clone(),
            path: path.unwrap_or_else(default_crate),
            table: table.unwrap_or_else(|| snake_case(&unraw(&input.ident))),
            columns,
            indexes,
        })
    }
}

impl Column {
    fn parse(field: &Field) -> Result<Self> {
        let field_ident = ident(field)?;
        let (mut key, mut descending, mut nulls, mut auto, mut column_name) = (None, None, None, None, None);
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("row")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("key") {
                    expect_no_value(&meta, "key")?;
                    set(&mut key, (), &meta)
                } else if meta.path.is_ident("desc") {
                    set(&mut descending, (), &meta)
                } else if let Some(place) = meta.path.get_ident().filter(|ident| is_place_of_nulls(ident)) {
                    set(&mut nulls, place.clone(), &meta)
                } else if meta.path.is_ident("auto") {
                    set(&mut auto, (), &meta)
                } else if meta.path.is_ident("name") {
                    set(&mut column_name, name(&meta)?, &meta)
                } else if meta.path.is_ident("index") {
                    Err(meta.error(format!("an index stands at the struct: `#[row({INDEX})]`")))
                } else if meta.path.is_ident("unique") {
                    Err(meta.error(format!("a unique index stands at the struct: `#[row({UNIQUE_INDEX})]`")))
                } else {
                    Err(meta.error(
                        "expected `key`, `key, desc`, `key, nulls_last`, `key, auto` or `name = \"...\"`",
                    ))
                }
            })?;
        }
        let key = match key {
            Some(()) => Some(Order::of(descending.is_some(), nulls.as_ref())?),
            None if descending.is_some() => {
                return Err(Error::new(field_ident.span(), "`desc` is for key fields: `#[row(key, desc)]`"));
            }
            None if nulls.is_some() => {
                return Err(Error::new(
                    field_ident.span(),
                    "the place of nulls is for key fields: `#[row(key, nulls_last)]`",
                ));
            }
            None => None,
        };
        if auto.is_some() && key != Some(Order::Ascending) {
            return Err(Error::new(field_ident.span(), AUTO_KEY));
        }
        Ok(Self {
            field: field_ident.clone(),
            name: column_name.unwrap_or_else(|| unraw(field_ident)),
            ty: field.ty.clone(),
            key,
            auto: auto.is_some(),
        })
    }
}

fn check_columns(columns: &[Column]) -> Result<()> {
    for (index, column) in columns.iter().enumerate() {
        if columns[..index].iter().any(|other| other.name == column.name) {
            let message = format!("two columns are named `{}`", column.name);
            return Err(Error::new(column.field.span(), message));
        }
    }
    if let Some(column) = columns.iter().filter(|column| column.key.is_some()).nth(KEY_COLUMNS_MAX) {
        return Err(Error::new(column.field.span(), "a primary key has at most 8 columns"));
    }
    if let Some(column) = columns.iter().filter(|column| column.auto).nth(1) {
        return Err(Error::new(column.field.span(), AUTO_KEY));
    }
    Ok(())
}

impl Index {
    fn parse(meta: &ParseNestedMeta<'_>, columns: &[Column]) -> Result<Self> {
        let (mut index_name, mut parts, mut unique) = (None, None, None);
        meta.parse_nested_meta(|meta| {
            if meta.path.is_ident("name") {
                set(&mut index_name, name(&meta)?, &meta)
            } else if meta.path.is_ident("unique") {
                set(&mut unique, (), &meta)
            } else if meta.path.is_ident("columns") {
                expect_parentheses(&meta, "columns(first_field, second_field)")?;
                let content;
                parenthesized!(content in meta.input);
                let list = Punctuated::<IndexColumn, Token![,]>::parse_terminated(&content)?;
                if list.is_empty() {
                    return Err(meta.error("an index has at least one column"));
                }
                set(&mut parts, resolve(&list, columns)?, &meta)
            } else {
                Err(meta.error("expected `name = \"...\"`, `columns(...)` or `unique`"))
            }
        })?;
        Ok(Self {
            name: index_name.ok_or_else(|| meta.error("an index needs `name = \"...\"`"))?,
            parts: parts.ok_or_else(|| meta.error("an index needs `columns(...)`"))?,
            unique: unique.is_some(),
        })
    }
}

/// Checks that a setting has its value in parentheses.
fn expect_parentheses(meta: &ParseNestedMeta<'_>, expected: &str) -> Result<()> {
    if meta.input.peek(token::Paren) { Ok(()) } else { Err(meta.error(format!("expected `{expected}`"))) }
}

/// Returns whether this says where nulls come.
fn is_place_of_nulls(ident: &Ident) -> bool {
    ident == "nulls_first" || ident == "nulls_last"
}

/// `field`, `field asc` or `field desc`, and where its nulls come.
struct IndexColumn {
    field: Ident,
    order: Order,
}

impl Parse for IndexColumn {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if let Some(name) = input.parse::<Option<LitStr>>()? {
            let message = format!("an index names fields, without quotes: `columns({})`", name.value());
            return Err(Error::new(name.span(), message));
        }
        let field: Ident = input.parse()?;
        let mut word = input.parse::<Option<Ident>>()?;
        let is_descending = word.as_ref().is_some_and(|word| word == "desc");
        if is_descending || word.as_ref().is_some_and(|word| word == "asc") {
            word = input.parse::<Option<Ident>>()?;
        }
        match word {
            Some(word) if !is_place_of_nulls(&word) => {
                Err(Error::new(word.span(), "expected `asc` or `desc`, and `nulls_first` or `nulls_last`"))
            }
            nulls => Ok(Self { field, order: Order::of(is_descending, nulls.as_ref())? }),
        }
    }
}

fn resolve(list: &Punctuated<IndexColumn, Token![,]>, columns: &[Column]) -> Result<Vec<(usize, Order)>> {
    let mut parts: Vec<(usize, Order)> = Vec::new();
    for part in list {
        let Some(column) = columns.iter().position(|column| column.field == part.field) else {
            let named = columns.iter().find(|column| part.field == column.name.as_str());
            let message = match named {
                Some(column) => {
                    format!("an index names fields: `{}`, whose column is `{}`", column.field, column.name)
                }
                None => format!("the row has no field `{}`", part.field),
            };
            return Err(Error::new(part.field.span(), message));
        };
        if parts.iter().any(|(other, _)| *other == column) {
            return Err(Error::new(part.field.span(), "the index names this column twice"));
        }
        parts.push((column, part.order));
    }
    Ok(parts)
}

/// `OrderLine` as `order_line`.
fn snake_case(name: &str) -> String {
    let mut result = String::new();
    for (index, letter) in name.char_indices() {
        if letter.is_uppercase() && index > 0 {
            result.push('_');
        }
        result.extend(letter.to_lowercase());
    }
    result
}
