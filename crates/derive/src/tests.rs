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

fn column_value(input: TokenStream) -> String {
    refusal(crate::column_value::expand, input)
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
        "a row has no type parameters: its fields have the types of columns, such as `u32`"
    );
    assert_eq!(
        row(quote!(
            struct S<'a> {
                a: &'a str,
            }
        )),
        "a row owns its values and has no lifetimes: `String` instead of `&str`, `Vec<u8>` instead of `&[u8]`"
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
    let expected = "expected `key`, `key, desc`, `key, nulls_last`, `key, auto` or `name = \"...\"`";
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
fn a_table_gives_the_numbers_of_one_key_column() {
    let expected = "`auto` is for one key field of a row, in ascending order: `#[row(key, auto)]`";
    let refused = [
        quote!(#[row(auto)] a: u32),
        quote!(#[row(key, desc, auto)] a: u32),
        quote!(#[row(key, auto)] a: u32, #[row(key, auto)] b: u32),
        quote!(#[row(key)] a: u32, #[row(auto)] b: u32),
    ];
    for fields in refused {
        assert_eq!(row(quote!(struct S { #fields })), expected);
    }
    assert_eq!(
        row(quote!(
            struct S {
                #[row(key, auto, auto)]
                a: u32,
            }
        )),
        "given twice"
    );
    assert_eq!(
        row(quote!(
            struct S {
                a: u8,
                #[row(auto, key)]
                b: u32,
            }
        )),
        ""
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
    assert_eq!(
        index(quote!(name = "i", columns(a up))),
        "expected `asc` or `desc`, and `nulls_first` or `nulls_last`"
    );
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
        "of which row? add `#[columns(of = Account)]`, with the name of the struct that is the row"
    );
    let expected = "expected `of = Account`, the struct that is the row, or `crate = \"...\"`";
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
    assert_eq!(
        columns(twice),
        "two fields are `a` of the row; `#[columns(field = other)]` names another one"
    );
    let unknown = quote!(
        #[columns(of = S)]
        struct P {
            #[columns(name = "a")]
            b: u8,
        }
    );
    assert_eq!(columns(unknown), "expected `field = balance`, the name of the row's field");
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

#[test]
fn columns_are_structs_with_one_field_or_enums_without_fields() {
    let shape = "the type of a column is a struct with one field, or an enum whose variants have no fields";
    let accepted = [
        quote!(
            struct S(u8);
        ),
        quote!(
            struct S {
                a: u8,
            }
        ),
        quote!(
            struct S<T, const N: usize>(Text<N>, std::marker::PhantomData<T>);
        ),
        quote!(
            enum E {
                A,
                B = 7,
            }
        ),
    ];
    assert!(accepted.map(column_value).iter().all(String::is_empty));
    let refused = [
        quote!(
            struct S;
        ),
        quote!(
            struct S(u8, u8);
        ),
        quote!(
            struct S {
                a: u8,
                b: u16,
            }
        ),
        quote!(
            struct S<T>(PhantomData<T>);
        ),
        quote!(
            union U {
                a: u8,
            }
        ),
    ];
    assert!(refused.map(column_value).iter().all(|message| message == shape));
    assert_eq!(
        column_value(quote!(
            enum E {
                A,
                B(u8),
            }
        )),
        format!("{shape}; give the fields columns of their own")
    );
    assert_eq!(
        column_value(quote!(
            enum E {}
        )),
        "an enum without variants has no value to store"
    );
}

#[test]
fn columns_own_what_they_hold() {
    assert_eq!(
        column_value(quote!(
            struct S<'a>(Cow<'a, str>);
        )),
        "the type of a column owns what it holds: it has no lifetimes"
    );
    assert_eq!(
        column_value(quote!(
            enum E<T> {
                A,
            }
        )),
        "an enum that is a column has no parameters"
    );
}

#[test]
fn enums_say_how_their_numbers_are_stored_as_rust_does() {
    let with = |attribute: TokenStream| column_value(quote!(#attribute enum E { A }));
    assert_eq!(with(quote!(#[repr(u16)])), "");
    assert_eq!(with(quote!(#[repr(i64)])), "");
    for other in [quote!(u128), quote!(usize), quote!(C)] {
        let message = "the number of a variant is stored as u8 to u64 or i8 to i64";
        assert_eq!(with(quote!(#[repr(#other)])), message);
    }
    let message = "the number that an enum is stored as is that of its `#[repr(...)]`, `u8` by default";
    assert_eq!(with(quote!(#[column(repr = "u16")])), message);
    assert_eq!(with(quote!(#[column(name = "a")])), "expected `crate = \"...\"`");
    assert_eq!(with(quote!(#[column(crate = "a", crate = "b")])), "given twice");
}

#[test]
fn the_place_of_nulls_is_said_where_it_is_another() {
    let nulls = "nulls come first in ascending order and last in descending order; the other is `nulls_last`, or `desc nulls_first`";
    for fields in
        [quote!(#[row(key, nulls_first)] a: Option<u8>), quote!(#[row(key, desc, nulls_last)] a: Option<u8>)]
    {
        assert_eq!(row(quote!(struct S { #fields })), nulls);
    }
    let of_no_key = "the place of nulls is for key fields: `#[row(key, nulls_last)]`";
    assert_eq!(
        row(quote!(
            struct S {
                #[row(nulls_last)]
                a: Option<u8>,
            }
        )),
        of_no_key
    );
    for (columns, expected) in [
        (quote!(a nulls_first), nulls),
        (quote!(a desc nulls_last), nulls),
        (quote!(a last), "expected `asc` or `desc`, and `nulls_first` or `nulls_last`"),
        (quote!(a desc asc), "expected `asc` or `desc`, and `nulls_first` or `nulls_last`"),
        (quote!(a nulls_last), ""),
        (quote!(a asc nulls_last), ""),
        (quote!(a desc nulls_first), ""),
    ] {
        let said = row(quote!(
            #[row(index(name = "i", columns(#columns)))]
            struct S {
                a: Option<u8>,
            }
        ));
        assert_eq!(said, expected, "{columns}");
    }
}

#[test]
fn what_stands_elsewhere_or_in_another_form_is_shown_as_it_is_to_be() {
    let with = |of_struct: TokenStream, of_field: TokenStream| {
        row(quote!(
            #of_struct
            struct S {
                #of_field
                a: u8,
            }
        ))
    };
    let key = "a key stands at its fields: `#[row(key)]` before each of them";
    assert_eq!(with(quote!(#[row(key(a))]), quote!()), key);
    let index = "index(name = \"by_field\", columns(field))";
    let expected = format!("an index stands at the struct: `#[row({index})]`");
    assert_eq!(with(quote!(), quote!(#[row(index)])), expected);
    let unique = "index(name = \"by_field\", columns(field), unique)";
    let expected = format!("a unique index stands at the struct: `#[row({unique})]`");
    assert_eq!(with(quote!(), quote!(#[row(unique)])), expected);
    assert_eq!(with(quote!(#[row(index = "a")]), quote!()), format!("expected `{index}`"));
    let in_parentheses = "expected `columns(first_field, second_field)`";
    assert_eq!(with(quote!(#[row(index(name = "i", columns = "a"))]), quote!()), in_parentheses);
    let quoted = "an index names fields, without quotes: `columns(a)`";
    assert_eq!(with(quote!(#[row(index(name = "i", columns("a")))]), quote!()), quoted);
    let of_column = "an index names fields: `a`, whose column is `b`";
    assert_eq!(with(quote!(#[row(index(name = "i", columns(b)))]), quote!(#[row(name = "b")])), of_column);
    assert_eq!(with(quote!(), quote!(#[row(key = true)])), "`key` stands alone, without a value");
    let part = |of_struct: TokenStream, of_field: TokenStream| {
        columns(quote!(
            #of_struct
            struct P {
                #of_field
                a: u8,
            }
        ))
    };
    assert_eq!(part(quote!(#[columns(of = "m::S")]), quote!()), "without quotes: `of = m::S`");
    let field = part(quote!(#[columns(of = S)]), quote!(#[columns(field = "b")]));
    assert_eq!(field, "without quotes: `field = b`");
}
