//! Writing the implementations.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Index as Member};

use super::indexes::in_order;
use super::parse::{Column, Order, RowInput};
use crate::attributes::unraw;

pub(super) fn generate(row: &RowInput) -> TokenStream {
    let fields = row.fields();
    let layout = row.layout();
    let row_impl = row.row_impl();
    let keyed_row_impl = row.keyed_row_impl();
    let columns_impl = row.columns_impl();
    let auto_key_impl = row.auto_key_impl();
    let has_column_impls = (0..row.columns.len()).map(|index| row.has_column_impl(index));
    quote! {
        #[automatically_derived]
        const _: () = {
            #fields
            #layout
            #row_impl
            #keyed_row_impl
            #auto_key_impl
            #columns_impl
            #(#has_column_impls)*
        };
    }
}

impl RowInput {
    fn has_key(&self) -> bool {
        self.key_columns().next().is_some()
    }

    /// Returns the name of the type that has a constant for each field. Errors about fields that are not there tell it.
    fn fields_ident(&self) -> Ident {
        format_ident!("FieldsOf{}", unraw(&self.ident), span = self.ident.span())
    }

    fn fields(&self) -> TokenStream {
        let fields_ident = self.fields_ident();
        let names = self.columns.iter().map(|column| &column.field);
        let indexes = 0..self.columns.len();
        quote! {
            #[doc(hidden)]
            #[allow(non_camel_case_types, reason = "named after the row")]
            #[derive(::core::fmt::Debug)]
            pub struct #fields_ident;

            #[allow(non_upper_case_globals, dead_code, reason = "named after the fields, for derived parts of the row")]
            impl #fields_ident {
                #(#[doc(hidden)] pub const #names: usize = #indexes;)*
            }
        }
    }

    fn layout(&self) -> TokenStream {
        let (p, count) = (&self.path, self.columns.len());
        let description = self.description();
        let specs = self.columns.iter().map(|column| {
            let (ty, in_key) = (&column.ty, column.key.is_some());
            quote_spanned! {ty.span()=>
                #p::ColumnSpec {
                    column_type: <#ty as #p::ColumnValue>::TYPE,
                    nullable: <#ty as #p::ColumnValue>::NULLABLE,
                    in_key: #in_key,
                }
            }
        });
        quote! {
            const COLUMNS: [#p::ColumnSpec; #count] = [#(#specs),*];
            const LAYOUT: #p::Layout<#count> = #p::Layout::new(&COLUMNS);
            const DESCRIPTION: #p::RowDescription = #description.checked();
        }
    }

    fn key_type(&self) -> TokenStream {
        let p = &self.path;
        let types: Vec<TokenStream> = self
            .key_columns()
            .map(|(index, order)| {
                let ty = &self.columns[index].ty;
                match order {
                    Order::Ascending => quote!(#ty),
                    Order::Descending => quote!(::core::cmp::Reverse<#ty>),
                    Order::AscendingNullsLast => quote!(#p::NullsLast<#ty>),
                    Order::DescendingNullsFirst => quote!(::core::cmp::Reverse<#p::NullsLast<#ty>>),
                }
            })
            .collect();
        match &types[..] {
            [] => quote!(#p::RowId),
            [single] => single.clone(),
            several => quote!((#(#several),*)),
        }
    }

    fn parts(&self, parts: impl Iterator<Item = (usize, Order)>) -> TokenStream {
        let p = &self.path;
        let parts = parts.map(|(column, order)| match order {
            Order::Ascending => quote!((#column, #p::Order::Ascending)),
            Order::Descending => quote!((#column, #p::Order::Descending)),
            Order::AscendingNullsLast => quote!((#column, #p::Order::AscendingNullsLast)),
            Order::DescendingNullsFirst => quote!((#column, #p::Order::DescendingNullsFirst)),
        });
        quote!(&[#(#parts),*])
    }

    fn description(&self) -> TokenStream {
        let (p, table) = (&self.path, &self.table);
        let names = self.columns.iter().map(|column| &column.name);
        let key = self.parts(self.key_columns());
        let indexes = self.indexes.iter().map(|index| {
            let (name, unique) = (&index.name, index.unique);
            let parts = self.parts(index.parts.iter().copied());
            quote!(#p::IndexDescription { name: #name, parts: #parts, unique: #unique })
        });
        quote! {
            #p::RowDescription {
                table: #table,
                names: &[#(#names),*],
                columns: &COLUMNS,
                key: #key,
                indexes: &[#(#indexes),*],
            }
        }
    }

    fn row_impl(&self) -> TokenStream {
        let (p, ident) = (&self.path, &self.ident);
        let key_type = self.key_type();
        let fields_ident = self.fields_ident();
        let invents_row_id = !self.has_key();
        let auto_key = self.auto_key();
        let insert_key = if self.has_key() { quote!(#p::KeyedRow::key(self)) } else { quote!(row_id()) };
        let encode = self.encode_body();
        let arms = self.index_key_arms();
        quote! {
            impl #p::Row for #ident {
                type Key = #key_type;
                type Fields = #fields_ident;
                const DESCRIPTION: #p::RowDescription = DESCRIPTION;
                const SLOTS: &'static [#p::Slot] = &LAYOUT.slots;
                const FIXED_LEN: usize = LAYOUT.fixed_len;
                const INVENTS_ROW_ID: bool = #invents_row_id;
                #auto_key

                fn schema() -> &'static #p::Schema {
                    static SCHEMA: ::std::sync::LazyLock<#p::Schema> =
                        ::std::sync::LazyLock::new(|| #p::Schema::of(&DESCRIPTION));
                    &SCHEMA
                }

                #[inline]
                #[allow(unused_variables, reason = "only rows without key fields need a row id")]
                fn insert_key(&self, row_id: impl ::core::ops::FnOnce() -> #p::RowId) -> Self::Key {
                    #insert_key
                }

                #[inline]
                fn encode(&self, row: &mut #p::RowBuf) {
                    #encode
                }

                #[inline]
                #[allow(unused_variables, reason = "a unique index may not need the primary key")]
                fn index_key(&self, key: &Self::Key, index: usize, out: &mut #p::KeyBuf) {
                    out.clear();
                    match index {
                        #(#arms)*
                        _ => ::core::panic!("the row declares no index number {index}"),
                    }
                }
            }
        }
    }

    /// Returns the constant that says at which place of the key the table's numbers are.
    fn auto_key(&self) -> Option<TokenStream> {
        let place = self.key_columns().position(|(index, _)| self.columns[index].auto)?;
        Some(quote!(const AUTO_KEY: ::core::option::Option<usize> = ::core::option::Option::Some(#place);))
    }

    fn auto_key_impl(&self) -> Option<TokenStream> {
        let (p, ident) = (&self.path, &self.ident);
        let (index, column) = self.columns.iter().enumerate().find(|(_, column)| column.auto)?;
        Some(quote_spanned! {column.ty.span()=>
            const _: #p::ColumnSpec = COLUMNS[#index].checked_auto();
            impl #p::AutoKey for #ident {}
        })
    }

    fn encode_body(&self) -> TokenStream {
        let p = &self.path;
        let stored = || self.columns.iter().enumerate().filter(|(_, column)| column.key.is_none());
        let writes = stored().map(|(index, Column { field, ty, .. })| {
            quote!(<#ty as #p::ColumnValue>::write(&self.#field, &mut words, const { LAYOUT.slots[#index] });)
        });
        let appends = stored().map(|(index, Column { field, ty, .. })| {
            quote! {
                if const { <#ty as #p::ColumnValue>::TYPE.is_variable() } {
                    row.append_variable(
                        const { LAYOUT.slots[#index] },
                        <#ty as #p::ColumnValue>::variable_bytes(&self.#field),
                    );
                }
            }
        });
        quote! {
            #[allow(unused_mut, reason = "a row of key columns alone has no words")]
            let mut words = [0u64; LAYOUT.fixed_len.div_ceil(8)];
            #(#writes)*
            row.set_fixed(&words, LAYOUT.fixed_len);
            #(#appends)*
        }
    }

    fn keyed_row_impl(&self) -> Option<TokenStream> {
        let (p, ident) = (&self.path, &self.ident);
        let parts: Vec<TokenStream> = self
            .key_columns()
            .map(|(index, order)| {
                let field = &self.columns[index].field;
                in_order(p, order, quote!(::core::clone::Clone::clone(&self.#field)))
            })
            .collect();
        let key = match &parts[..] {
            [] => return None,
            [single] => single.clone(),
            several => quote!((#(#several),*)),
        };
        Some(quote! {
            impl #p::KeyedRow for #ident {
                #[inline]
                fn key(&self) -> Self::Key {
                    #key
                }
            }
        })
    }

    fn columns_impl(&self) -> TokenStream {
        let (p, ident) = (&self.path, &self.ident);
        let indexes: Vec<usize> = (0..self.columns.len()).collect();
        let fields: Vec<_> = self.columns.iter().map(|column| &column.field).collect();
        let (key_indexes, key_fields): (Vec<_>, Vec<_>) =
            self.key_columns().map(|(index, _)| (index, &self.columns[index].field)).unzip();
        quote! {
            impl #p::Columns<#ident> for #ident {
                type Patch = [#p::WordPatch; 0];
                const PATCHABLE: bool = false;
                const COLUMNS: &'static [usize] = &[#(#indexes),*];

                #[inline]
                fn decode(
                    key: &<#ident as #p::Row>::Key,
                    row: &impl #p::Words,
                ) -> ::core::result::Result<Self, #p::Malformed> {
                    if #p::Words::len_bytes(row) < LAYOUT.fixed_len {
                        return ::core::result::Result::Err(#p::Malformed);
                    }
                    ::core::result::Result::Ok(Self {
                        #(#fields: <#ident as #p::HasColumn<#indexes>>::read_column(key, row)?,)*
                    })
                }

                #[inline]
                fn keeps_key(&self, key: &<#ident as #p::Row>::Key) -> bool {
                    true #(&& !<#ident as #p::HasColumn<#key_indexes>>::differs_from_key(key, &self.#key_fields))*
                }

                fn patch_base(_row: &impl #p::Words) -> Self::Patch {
                    []
                }

                fn patch(&self, _words: &mut Self::Patch) {
                    ::core::panic!("a whole row is rewritten, not patched");
                }

                #[inline]
                fn rewrite(
                    &self,
                    _base: &impl #p::Words,
                    out: &mut #p::RowBuf,
                ) -> ::core::result::Result<(), #p::Malformed> {
                    #p::Row::encode(self, out);
                    ::core::result::Result::Ok(())
                }
            }
        }
    }

    fn has_column_impl(&self, index: usize) -> TokenStream {
        let (p, ident) = (&self.path, &self.ident);
        let ty = &self.columns[index].ty;
        let (read, differs) = match self.key_access(index) {
            Some(access) => (
                quote!(::core::result::Result::Ok(::core::clone::Clone::clone(#access))),
                quote!(!#p::ColumnValue::is_same(#access, value)),
            ),
            None => {
                (quote!(<#ty as #p::ColumnValue>::read(row, const { LAYOUT.slots[#index] })), quote!(false))
            }
        };
        quote! {
            #[allow(unused_variables, reason = "a column is read either from the key or from the row")]
            impl #p::HasColumn<#index> for #ident {
                type Value = #ty;

                #[inline(always)]
                fn read_column(
                    key: &<#ident as #p::Row>::Key,
                    row: &impl #p::Words,
                ) -> ::core::result::Result<#ty, #p::Malformed> {
                    #read
                }

                #[inline(always)]
                fn differs_from_key(key: &<#ident as #p::Row>::Key, value: &#ty) -> bool {
                    #differs
                }
            }
        }
    }

    /// Returns a reference to the value of a key column in `key`.
    fn key_access(&self, index: usize) -> Option<TokenStream> {
        let position = self.key_columns().position(|(column, _)| column == index)?;
        let member = Member::from(position);
        let column = if self.key_columns().count() == 1 { quote!(key) } else { quote!(key.#member) };
        Some(match self.columns[index].key? {
            Order::Ascending if self.key_columns().count() == 1 => column,
            Order::Ascending => quote!(&#column),
            Order::Descending | Order::AscendingNullsLast => quote!(&#column.0),
            Order::DescendingNullsFirst => quote!(&#column.0.0),
        })
    }
}
