//! What the macros refuse, and how they say so.

use proc_macro2::TokenStream;
use quote::quote;

/// The message of the error, or nothing if the input is accepted.
fn refusal(expand: impl Fn(syn::DeriveInput) -> syn::Result<TokenStream>, input: TokenStream) -> String {
    expand(syn::parse2(input).unwrap()).err().map_or(String::new(), |error| error.to_string())
}

fn row(input: TokenStream) -> String {
    refusal(crate::row::expand, input)
}

fn columns(input: TokenStream) -> String {
    refusal(crate::columns::expand, input)
}

#[test]
fn rows_are_structs_with_named_fields() {
    assert_eq!(
        row(quote!(
            enum E {
                A,
            }
        )),
        "a row is a struct with named fields"
    );
    assert_eq!(
        row(quote!(
            struct S(u8);
        )),
        "a row is a struct with named fields"
    );
    assert_eq!(
        row(quote!(
            struct S<T> {
                a: T,
            }
        )),
        "a row has no lifetimes or type parameters"
    );
    assert_eq!(
        row(quote!(
            struct S {
                a: u8,
            }
        )),
        ""
    );
}

#[test]
fn unknown_or_repeated_attributes_are_refused() {
    let expected = "expected `table = \"...\"`, `index(...)` or `crate = \"...\"`";
    assert_eq!(
        row(quote!(
            #[row(tabel = "t")]
            struct S {
                a: u8,
            }
        )),
        expected
    );
    assert_eq!(
        row(quote!(
            #[row(table = "t", table = "u")]
            struct S {
                a: u8,
            }
        )),
        "given twice"
    );
    assert_eq!(
        row(quote!(
            #[row(table = "")]
            struct S {
                a: u8,
            }
        )),
        "a name has 1 to 255 bytes"
    );
    let expected = "expected `key`, `key, desc` or `name = \"...\"`";
    assert_eq!(
        row(quote!(
            struct S {
                #[row(primary)]
                a: u8,
            }
        )),
        expected
    );
    let expected = "`desc` is for key fields: `#[row(key, desc)]`";
    assert_eq!(
        row(quote!(
            struct S {
                #[row(desc)]
                a: u8,
            }
        )),
        expected
    );
}

#[test]
fn columns_have_distinct_names() {
    let input = quote!(
        struct S {
            a: u8,
            #[row(name = "a")]
            b: u8,
        }
    );
    assert_eq!(row(input), "two columns are named `a`");
    let names = (0..9).map(|number| quote::format_ident!("c{number}"));
    let nine_keys = quote!(struct S { #(#[row(key)] #names: u8),* });
    assert_eq!(row(nine_keys), "a primary key has at most 8 columns");
}

#[test]
fn indexes_name_columns_of_the_row() {
    let index = |index: TokenStream| {
        row(quote!(
            #[row(index(#index))]
            struct S {
                a: u8,
                b: u8,
            }
        ))
    };
    assert_eq!(index(quote!(name = "i", columns(a desc, b asc), unique)), "");
    assert_eq!(index(quote!(name = "i", columns(c))), "the row has no field `c`");
    assert_eq!(index(quote!(name = "i", columns(a, a desc))), "the index names this column twice");
    assert_eq!(index(quote!(name = "i", columns(a up))), "expected `asc` or `desc`");
    assert_eq!(index(quote!(name = "i", columns())), "an index has at least one column");
    assert_eq!(index(quote!(name = "i")), "an index needs `columns(...)`");
    assert_eq!(index(quote!(columns(a))), "an index needs `name = \"...\"`");
    assert_eq!(index(quote!(name = "i", sorted)), "expected `name = \"...\"`, `columns(...)` or `unique`");
    let twice = quote!(
        #[row(index(name = "i", columns(a)), index(name = "i", columns(b)))]
        struct S {
            a: u8,
            b: u8,
        }
    );
    assert_eq!(row(twice), "two indexes are named `i`");
}

#[test]
fn parts_say_of_which_row() {
    assert_eq!(
        columns(quote!(
            struct P {
                a: u8,
            }
        )),
        "of which row? add `#[columns(of = Row)]`"
    );
    let expected = "expected `of = Row` or `crate = \"...\"`";
    assert_eq!(
        columns(quote!(
            #[columns(from = S)]
            struct P {
                a: u8,
            }
        )),
        expected
    );
    let twice = quote!(
        #[columns(of = S)]
        struct P {
            a: u8,
            #[columns(field = a)]
            b: u8,
        }
    );
    assert_eq!(columns(twice), "two fields are `a` of the row");
    let unknown = quote!(
        #[columns(of = S)]
        struct P {
            #[columns(name = "a")]
            b: u8,
        }
    );
    assert_eq!(columns(unknown), "expected `field = name`");
    assert_eq!(
        columns(quote!(
            #[columns(of = m::S)]
            struct P {
                a: u8,
            }
        )),
        ""
    );
}
