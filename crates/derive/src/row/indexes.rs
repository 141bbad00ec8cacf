//! The code that makes index keys.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Index as Member;

use super::parse::{Index, Order, RowInput};

/// The most columns that tuples as keys have.
const TUPLE_MAX: usize = 8;

impl RowInput {
    /// One arm for each index.
    pub(super) fn index_key_arms(&self) -> impl Iterator<Item = TokenStream> {
        self.indexes.iter().enumerate().map(|(number, index)| {
            let body = self.index_key(index);
            quote!(#number => { #body })
        })
    }

    fn index_key(&self, index: &Index) -> TokenStream {
        let columns: Vec<TokenStream> = index.parts.iter().map(|part| self.append_column(*part)).collect();
        let rest: Vec<TokenStream> =
            self.rest_of_key(index).map(|part| self.append_key_part(&part)).collect();
        let by_column = if index.unique {
            let nullable = index.parts.iter().map(|(column, _)| {
                let (p, field) = (&self.path, &self.columns[*column].field);
                quote!(#p::ColumnValue::is_null(&self.#field))
            });
            quote! {
                #(#columns)*
                if false #(|| #nullable)* {
                    #(#rest)*
                }
            }
        } else {
            quote!(#(#columns)* #(#rest)*)
        };
        self.as_tuple(index).map_or(by_column.clone(), |(all_words, append)| {
            quote! {
                if const { #all_words } {
                    #append
                } else {
                    #by_column
                }
            }
        })
    }

    /// Numbers alone are put together as a tuple, which a short key stores at once: the condition, and the code.
    fn as_tuple(&self, index: &Index) -> Option<(TokenStream, TokenStream)> {
        let p = &self.path;
        let columns = index.parts.iter().map(|(column, order)| {
            let column = &self.columns[*column];
            let field = &column.field;
            (column.ty.clone(), in_order(p, *order, quote!(::core::clone::Clone::clone(&self.#field))))
        });
        let rest = self.rest_of_key(index).filter(|_| !index.unique).map(|part| {
            (part.column_type(self), {
                let access = part.access;
                quote!(::core::clone::Clone::clone(#access))
            })
        });
        let (types, values): (Vec<_>, Vec<_>) = columns.chain(rest).unzip();
        if types.len() > TUPLE_MAX {
            return None;
        }
        let condition = quote!(true #(&& <#types as #p::ColumnValue>::KEY_IS_WORD)*);
        Some((condition, quote!(#p::Key::append(&(#(#values,)*), out);)))
    }

    fn append_column(&self, (column, order): (usize, Order)) -> TokenStream {
        let (p, field) = (&self.path, &self.columns[column].field);
        match order {
            Order::Ascending => quote!(#p::ColumnValue::encode_value_key(&self.#field, out);),
            Order::Descending => quote!(#p::ColumnValue::encode_value_key_descending(&self.#field, out);),
            Order::AscendingNullsLast => quote!(#p::NullsLast::encode_value(&self.#field, out);),
            Order::DescendingNullsFirst => quote!(#p::NullsLast::encode_value_descending(&self.#field, out);),
        }
    }

    fn append_key_part(&self, part: &RestOfKey) -> TokenStream {
        let (p, access) = (&self.path, &part.access);
        quote!(#p::KeyColumn::encode_key(#access, out);)
    }

    /// Returns the columns of the primary key that are not among those of the index, or the row id.
    fn rest_of_key(&self, index: &Index) -> impl Iterator<Item = RestOfKey> {
        let keys: Vec<usize> = self.key_columns().map(|(column, _)| column).collect();
        let in_index: Vec<usize> = index.parts.iter().map(|(column, _)| *column).collect();
        let row_id = keys.is_empty().then(|| RestOfKey { column: None, access: quote!(key) });
        let single = keys.len() == 1;
        let columns = keys.into_iter().enumerate().filter(move |(_, column)| !in_index.contains(column));
        let columns = columns.map(move |(position, column)| {
            let member = Member::from(position);
            let access = if single { quote!(key) } else { quote!(&key.#member) };
            RestOfKey { column: Some(column), access }
        });
        row_id.into_iter().chain(columns)
    }
}

/// A column of the primary key that follows those of an index.
struct RestOfKey {
    /// Which; none for the row id.
    column: Option<usize>,
    /// A reference to its value in `key`.
    access: TokenStream,
}

impl RestOfKey {
    fn column_type(&self, row: &RowInput) -> syn::Type {
        let p = &row.path;
        match self.column {
            Some(column) => row.columns[column].ty.clone(),
            None => syn::parse_quote!(#p::RowId),
        }
    }
}

/// Returns the value as a column of a key in this order.
pub(super) fn in_order(p: &syn::Path, order: Order, value: TokenStream) -> TokenStream {
    match order {
        Order::Ascending => value,
        Order::Descending => quote!(::core::cmp::Reverse(#value)),
        Order::AscendingNullsLast => quote!(#p::NullsLast(#value)),
        Order::DescendingNullsFirst => quote!(::core::cmp::Reverse(#p::NullsLast(#value))),
    }
}
