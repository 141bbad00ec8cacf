//! A struct with one field: stored as its field is.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    DataStruct, DeriveInput, Error, Field, Generics, Index, Member, Path, Result, Type, parse_quote_spanned,
};

use super::SHAPE;

pub(super) fn expand(input: &DeriveInput, data: &DataStruct, p: &Path) -> Result<TokenStream> {
    let (member, ty) = stored_field(input, data)?;
    let ident = &input.ident;
    let inner = quote_spanned!(ty.span()=> <#ty as #p::ColumnValue>);
    let of_inner = constructor(data, &member);
    let methods = methods(p, &inner, &member);
    let generics = bounded(&input.generics, ty, p);
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #p::ColumnValue for #ident #ty_generics #where_clause {
            const TYPE: #p::ColumnType = #inner::TYPE;
            const NULLABLE: bool = #inner::NULLABLE;
            const IS_SUMMABLE: bool = #inner::IS_SUMMABLE;
            const KEY_LEN: ::core::option::Option<usize> = #inner::KEY_LEN;
            const KEY_IS_WORD: bool = #inner::KEY_IS_WORD;

            #[inline(always)]
            fn read(
                row: &impl #p::Words,
                slot: #p::Slot,
            ) -> ::core::result::Result<Self, #p::Malformed> {
                #inner::read(row, slot).map(#of_inner)
            }

            #[inline(always)]
            fn decode_value_key(
                key: &mut #p::KeyReader<'_>,
            ) -> ::core::result::Result<Self, #p::Malformed> {
                #inner::decode_value_key(key).map(#of_inner)
            }

            #methods
        }
    })
}

/// Returns the methods that read the field alone.
fn methods(p: &Path, inner: &TokenStream, member: &Member) -> TokenStream {
    quote! {
        #[inline(always)]
        fn write(&self, words: &mut [u64], slot: #p::Slot) {
            #inner::write(&self.#member, words, slot);
        }

        #[inline(always)]
        fn variable_bytes(&self) -> &[u8] {
            #inner::variable_bytes(&self.#member)
        }

        #[inline(always)]
        fn is_null(&self) -> bool {
            #inner::is_null(&self.#member)
        }

        #[inline(always)]
        fn is_same(&self, other: &Self) -> bool {
            #inner::is_same(&self.#member, &other.#member)
        }

        #[inline(always)]
        fn value_key_bits(&self) -> u64 {
            #inner::value_key_bits(&self.#member)
        }

        #[inline(always)]
        fn encode_value_key(&self, key: &mut #p::KeyBuf) {
            #inner::encode_value_key(&self.#member, key);
        }

        #[inline(always)]
        fn encode_value_key_descending(&self, key: &mut #p::KeyBuf) {
            #inner::encode_value_key_descending(&self.#member, key);
        }
    }
}

/// Returns the one field that is stored. Others may be `PhantomData`.
fn stored_field<'d>(input: &DeriveInput, data: &'d DataStruct) -> Result<(Member, &'d Type)> {
    let mut stored = data.fields.iter().enumerate().filter(|(_, field)| !is_phantom(&field.ty));
    match (stored.next(), stored.next()) {
        (Some((index, field)), None) => Ok((member(index, field), &field.ty)),
        (_, Some((_, second))) => Err(Error::new(second.span(), SHAPE)),
        (None, _) => Err(Error::new(input.ident.span(), SHAPE)),
    }
}

/// Returns a closure that makes the struct of its field.
fn constructor(data: &DataStruct, stored: &Member) -> TokenStream {
    let fields = data.fields.iter().enumerate().map(|(index, field)| {
        let member = member(index, field);
        if member == *stored { quote!(#member: value) } else { quote!(#member: ::core::marker::PhantomData) }
    });
    quote!(|value| Self { #(#fields),* })
}

fn member(index: usize, field: &Field) -> Member {
    field.ident.clone().map_or_else(|| Member::Unnamed(Index::from(index)), Member::Named)
}

fn is_phantom(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "PhantomData"))
}

/// Returns the parameters of the type, with what makes it a column: where there are none, the compiler checks it by itself.
fn bounded(generics: &Generics, ty: &Type, p: &Path) -> Generics {
    let mut generics = generics.clone();
    if generics.params.is_empty() {
        return generics;
    }
    let predicates = &mut generics.make_where_clause().predicates;
    predicates.push(parse_quote_spanned!(ty.span()=> #ty: #p::ColumnValue));
    predicates.push(
        parse_quote_spanned!(ty.span()=> Self: ::core::clone::Clone + ::core::cmp::PartialEq + 'static),
    );
    generics
}
