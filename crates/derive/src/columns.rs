//! `#[derive(Columns)]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, Field, Ident, Path, Result, Type};

use crate::attributes::{crate_path, default_crate, ident, named_fields, set, unquoted};

/// What the struct and its attributes say.
struct ColumnsInput {
    ident: Ident,
    path: Path,
    of: Type,
    fields: Vec<Part>,
}

/// A field, and the field of the row that it is.
struct Part {
    field: Ident,
    ty: Type,
    of: Ident,
}

pub(crate) fn expand(input: DeriveInput) -> Result<TokenStream> {
    let columns = ColumnsInput::parse(&input)?;
    let constants = columns.constants();
    let columns_impl = columns.columns_impl();
    Ok(quote! {
        #[automatically_derived]
        const _: () = {
            #constants
            #columns_impl
        };
    })
}

impl ColumnsInput {
    fn parse(input: &DeriveInput) -> Result<Self> {
        let fields = named_fields(input, "a part of a row")?;
        let (mut of, mut path) = (None, None);
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("columns")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("of") {
                    set(&mut of, unquoted(&meta, "of")?, &meta)
                } else if meta.path.is_ident("crate") {
                    set(&mut path, crate_path(&meta)?, &meta)
                } else {
                    Err(meta
                        .error("expected `of = Account`, the struct that is the row, or `crate = \"...\"`"))
                }
            })?;
        }
        let fields = fields.iter().map(Part::parse).collect::<Result<Vec<_>>>()?;
        for (index, part) in fields.iter().enumerate() {
            if fields[..index].iter().any(|other| other.of == part.of) {
                return Err(Error::new(
                    part.field.span(),
                    format!(
                        "two fields are `{0}` of the row; `#[columns(field = other)]` names another one",
                        part.of
                    ),
                ));
            }
        }
        let missing = || {
            Error::new(
                input.ident.span(),
                "of which row? add `#[columns(of = Account)]`, with the name of the struct that is the row",
            )
        };
        Ok(Self {
            ident: input.ident.clone(),
            path: path.unwrap_or_else(default_crate),
            of: of.ok_or_else(missing)?,
            fields,
        })
    }

    /// Returns where the columns lie in the row, and in the words of a patch.
    fn constants(&self) -> TokenStream {
        let (p, of, count) = (&self.path, &self.of, self.fields.len());
        let indexes = self.fields.iter().map(|part| {
            let field = &part.of;
            quote_spanned!(field.span()=> <<#of as #p::Row>::Fields>::#field)
        });
        let positions: Vec<usize> = (0..count).collect();
        quote! {
            const COLUMNS: [usize; #count] = [#(#indexes),*];
            const SLOTS: [#p::Slot; #count] = [#(<#of as #p::Row>::SLOTS[COLUMNS[#positions]]),*];
            const WINDOW: [u32; #p::window_len(&SLOTS)] = #p::window(&SLOTS);
            const PATCHABLE: bool = true #(&& {
                let column = <#of as #p::Row>::DESCRIPTION.columns[COLUMNS[#positions]];
                column.in_key || !column.column_type.is_variable()
            })*;
        }
    }

    fn columns_impl(&self) -> TokenStream {
        let (p, ident, of) = (&self.path, &self.ident, &self.of);
        let decode = self.decode_fn();
        let patch = self.patch_fns();
        let rewrite = self.rewrite_fn();
        // Spanned at the type, so that another type than the row's is reported there.
        let keeps = self.fields.iter().enumerate().map(|(position, Part { field, ty, .. })| {
            quote_spanned! {place_of(ty)=>
                !<#of as #p::HasColumn<{ COLUMNS[#position] }>>::differs_from_key(
                    key,
                    <<#of as #p::HasColumn<{ COLUMNS[#position] }>>::Value as #p::IsType<#ty>>::borrowed(&self.#field),
                )
            }
        });
        let are_summable = self.fields.iter().enumerate().map(|(position, Part { ty, .. })| {
            quote! {
                <#ty as #p::ColumnValue>::IS_SUMMABLE
                    && !<#of as #p::Row>::DESCRIPTION.columns[COLUMNS[#position]].in_key
            }
        });
        quote! {
            impl #p::Columns<#of> for #ident {
                type Patch = [#p::WordPatch; WINDOW.len()];
                const PATCHABLE: bool = PATCHABLE;
                const ARE_SUMMABLE: bool = true #(&& #are_summable)*;
                const COLUMNS: &'static [usize] = &COLUMNS;

                #decode

                #[inline]
                fn keeps_key(&self, key: &<#of as #p::Row>::Key) -> bool {
                    true #(&& #keeps)*
                }

                #patch
                #rewrite
            }
        }
    }

    fn decode_fn(&self) -> TokenStream {
        let (p, of) = (&self.path, &self.of);
        let fields = self.fields.iter().enumerate().map(|(position, Part { field, ty, .. })| {
            let read = quote_spanned! {place_of(ty)=>
                <<#of as #p::HasColumn<{ COLUMNS[#position] }>>::Value as #p::IsType<#ty>>::owned(
                    <#of as #p::HasColumn<{ COLUMNS[#position] }>>::read_column(key, row)?,
                )
            };
            quote!(#field: #read)
        });
        quote! {
            #[inline]
            fn decode(
                key: &<#of as #p::Row>::Key,
                row: &impl #p::Words,
            ) -> ::core::result::Result<Self, #p::Malformed> {
                if #p::Words::len_bytes(row) < <#of as #p::Row>::FIXED_LEN {
                    return ::core::result::Result::Err(#p::Malformed);
                }
                ::core::result::Result::Ok(Self { #(#fields,)* })
            }
        }
    }

    fn patch_fns(&self) -> TokenStream {
        let p = &self.path;
        let writes = self.fields.iter().enumerate().map(|(position, Part { field, ty, .. })| {
            quote! {
                if const { SLOTS[#position].is_stored() } {
                    <#ty as #p::ColumnValue>::write(
                        &self.#field,
                        &mut window,
                        const { SLOTS[#position].within(&WINDOW) },
                    );
                }
            }
        });
        quote! {
            #[inline]
            fn patch_base(row: &impl #p::Words) -> Self::Patch {
                WINDOW.map(|index| (index, #p::Words::word(row, index as usize)))
            }

            #[inline]
            fn patch(&self, words: &mut Self::Patch) {
                ::core::assert!(PATCHABLE, "columns of variable length are rewritten, not patched");
                #[allow(unused_mut, reason = "the struct may have no columns")]
                let mut window = words.map(|(_, word)| word);
                #(#writes)*
                for (patched, word) in words.iter_mut().zip(window) {
                    patched.1 = word;
                }
            }
        }
    }

    fn rewrite_fn(&self) -> TokenStream {
        let (p, of) = (&self.path, &self.of);
        let (writes, bytes): (Vec<_>, Vec<_>) = self
            .fields
            .iter()
            .enumerate()
            .map(|(position, Part { field, ty, .. })| {
                let write = quote! {
                    if const { SLOTS[#position].is_stored() } {
                        <#ty as #p::ColumnValue>::write(&self.#field, words, const { SLOTS[#position] });
                    }
                };
                let bytes = quote! {
                    if column == COLUMNS[#position] {
                        return ::core::option::Option::Some(
                            <#ty as #p::ColumnValue>::variable_bytes(&self.#field),
                        );
                    }
                };
                (write, bytes)
            })
            .unzip();
        quote! {
            #[allow(unused_variables, reason = "the row may have no fixed or no variable columns")]
            fn rewrite(
                &self,
                base: &impl #p::Words,
                out: &mut #p::RowBuf,
            ) -> ::core::result::Result<(), #p::Malformed> {
                #p::rewrite_row::<#of>(
                    base,
                    out,
                    |words| {
                        #(#writes)*
                    },
                    |column| {
                        #(#bytes)*
                        ::core::option::Option::None
                    },
                )
            }
        }
    }
}

impl Part {
    fn parse(field: &Field) -> Result<Self> {
        let mut of = None;
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("columns")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("field") {
                    set(&mut of, unquoted(&meta, "field")?, &meta)
                } else {
                    Err(meta.error("expected `field = balance`, the name of the row's field"))
                }
            })?;
        }
        let field_ident = ident(field)?.clone();
        Ok(Self { of: of.unwrap_or_else(|| field_ident.clone()), field: field_ident, ty: field.ty.clone() })
    }
}

/// Returns the place of a type for errors about it. Names stay the macro's own, also where the type comes from another macro.
fn place_of(ty: &Type) -> Span {
    Span::call_site().located_at(ty.span())
}
