use super::*;
use crate::verdict::Ruling;

fn page() -> Page {
    let claim = |ruling| ClaimRow {
        text: "A < B & <script>alert(1)</script>".to_owned(),
        paper: "1.07x".to_owned(),
        holds_if: "at most 1.07x".to_owned(),
        here: "1.10x".to_owned(),
        ruling,
    };
    let section = Section {
        id: "test-1".to_owned(),
        title: "\"Quoted\" & more".to_owned(),
        notes: vec!["A: failed: <nothing>".to_owned()],
        claims: vec![
            claim(Ruling::Holds),
            claim(Ruling::DoesNotHold),
            claim(Ruling::CannotBeTold("too few".to_owned())),
        ],
        plots: vec!["<svg></svg>".to_owned()],
        table: Some(Table {
            header: vec!["series".to_owned(), "n".to_owned()],
            rows: vec![vec!["A".to_owned(), "1".to_owned()]],
        }),
        commands: vec!["ensilo bench tpcc".to_owned()],
        ..Section::default()
    };
    Page { facts: vec![("machine", "a & b".to_owned())], sections: vec![section] }
}

/// Every element that is opened is closed, in order.
fn assert_well_formed(html: &str) {
    const VOID: [&str; 2] = ["meta", "!DOCTYPE"];
    let mut open = Vec::new();
    for part in html.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("a tag ends");
        let name = tag.split_whitespace().next().unwrap_or(tag);
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed.to_owned()), "before {part:.60}");
        } else if !VOID.contains(&name) && !tag.ends_with('/') {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_page_is_well_formed_and_escaped() {
    let html = page().to_html();
    assert_well_formed(&html);
    assert!(!html.contains("<script>") && html.contains("A &lt; B &amp; &lt;script&gt;"));
    assert!(html.contains("&quot;Quoted&quot; &amp; more") && html.contains("<svg></svg>"));
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let html = page().to_html();
    for outside in ["src=", "@import", "url(", "<link", "href=\"http"] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn rulings_are_counted() {
    assert_eq!(page().sections[0].rulings(), [1, 1, 1]);
}
