//! An enum without fields: stored as the number of its variant.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, DataEnum, DeriveInput, Error, Fields, Ident, Path, Result};

use super::SHAPE;

/// The types that a variant's number may have.
const NUMBERS: [&str; 8] = ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"];

pub(super) fn expand(input: &DeriveInput, data: &DataEnum, p: &Path) -> Result<TokenStream> {
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(&input.generics, "an enum that is a column has no parameters"));
    }
    if data.variants.is_empty() {
        return Err(Error::new(input.ident.span(), "an enum without variants has no value to store"));
    }
    if let Some(variant) = data.variants.iter().find(|variant| !matches!(variant.fields, Fields::Unit)) {
        return Err(Error::new(
            variant.ident.span(),
            format!("{SHAPE}; give the fields columns of their own"),
        ));
    }
    let numbers = Numbers::of(input, data)?;
    let definitions = numbers.definitions();
    let column_impl = numbers.column_impl(p);
    Ok(quote! {
        #[automatically_derived]
        #[allow(deprecated, reason = "a variant that is not to be used any more is stored all the same")]
        const _: () = {
            #definitions
            #column_impl
        };
    })
}

/// An enum, and what its variants are stored as.
struct Numbers<'d> {
    ident: &'d Ident,
    variants: Vec<&'d Ident>,
    /// Of each variant, the name of the constant with its number.
    constants: Vec<Ident>,
    /// The type of the numbers.
    number: Ident,
    /// Whether the enum says so.
    is_chosen: bool,
}

impl<'d> Numbers<'d> {
    fn of(input: &'d DeriveInput, data: &'d DataEnum) -> Result<Self> {
        let variants: Vec<&Ident> = data.variants.iter().map(|variant| &variant.ident).collect();
        let constants = (0..variants.len()).map(|index| format_ident!("NUMBER_{index}")).collect();
        let chosen = chosen_number(&input.attrs)?;
        let is_chosen = chosen.is_some();
        let number = chosen.unwrap_or_else(|| Ident::new("u8", Span::call_site()));
        Ok(Self { ident: &input.ident, variants, constants, number, is_chosen })
    }

    /// Returns the numbers as constants, and the ways from a variant to its number and back.
    fn definitions(&self) -> TokenStream {
        let Self { ident, variants, constants, number, .. } = self;
        let numbers =
            variants.iter().zip(constants).map(|(variant, constant)| self.number_of(variant, constant));
        quote! {
            #(#numbers)*

            #[inline(always)]
            fn number_of(value: &#ident) -> #number {
                match value {
                    #(#ident::#variants => #constants,)*
                }
            }

            #[inline(always)]
            fn value_of(number: #number) -> ::core::option::Option<#ident> {
                match number {
                    #(#constants => ::core::option::Option::Some(#ident::#variants),)*
                    #[allow(unreachable_patterns, reason = "each number may have a variant")]
                    _ => ::core::option::Option::None,
                }
            }
        }
    }

    fn number_of(&self, variant: &Ident, constant: &Ident) -> TokenStream {
        let Self { ident, number, is_chosen, .. } = self;
        if *is_chosen {
            return quote!(const #constant: #number = #ident::#variant as #number;);
        }
        let message = format!(
            "the number of `{variant}` is no u8; say which integer it is by `#[repr(u16)]` or another one"
        );
        quote_spanned! {variant.span()=>
            const #constant: #number = {
                let number = #ident::#variant as i128;
                ::core::assert!(number >= 0 && number <= 255, #message);
                number as #number
            };
        }
    }

    fn column_impl(&self, p: &Path) -> TokenStream {
        let Self { ident, number, .. } = self;
        let stored = quote!(<#number as #p::ColumnValue>);
        quote! {
            impl #p::ColumnValue for #ident {
                const TYPE: #p::ColumnType = #stored::TYPE;
                const KEY_LEN: ::core::option::Option<usize> = #stored::KEY_LEN;
                const KEY_IS_WORD: bool = #stored::KEY_IS_WORD;

                #[inline(always)]
                fn read(
                    row: &impl #p::Words,
                    slot: #p::Slot,
                ) -> ::core::result::Result<Self, #p::Malformed> {
                    value_of(#stored::read(row, slot)?).ok_or(#p::Malformed)
                }

                #[inline(always)]
                fn write(&self, words: &mut [u64], slot: #p::Slot) {
                    #stored::write(&number_of(self), words, slot);
                }

                #[inline(always)]
                fn is_same(&self, other: &Self) -> bool {
                    number_of(self) == number_of(other)
                }

                #[inline(always)]
                fn value_key_bits(&self) -> u64 {
                    #stored::value_key_bits(&number_of(self))
                }

                #[inline(always)]
                fn encode_value_key(&self, key: &mut #p::KeyBuf) {
                    #stored::encode_value_key(&number_of(self), key);
                }

                #[inline(always)]
                fn decode_value_key(
                    key: &mut #p::KeyReader<'_>,
                ) -> ::core::result::Result<Self, #p::Malformed> {
                    value_of(#stored::decode_value_key(key)?).ok_or(#p::Malformed)
                }
            }
        }
    }
}

/// Returns the integer of a `#[repr(...)]`, if the enum has one.
fn chosen_number(attributes: &[Attribute]) -> Result<Option<Ident>> {
    let mut chosen = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            let Some(ident) =
                meta.path.get_ident().filter(|ident| NUMBERS.iter().any(|number| ident == number))
            else {
                return Err(meta.error("the number of a variant is stored as u8 to u64 or i8 to i64"));
            };
            chosen = Some(ident.clone());
            Ok(())
        })?;
    }
    Ok(chosen)
}
