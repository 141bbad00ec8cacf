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
            claim(Ruling::Undecided("too few".to_owned())),
        ],
        plots: vec!["<svg></svg>".to_owned()],
        table: Some(Table {
            header: vec!["series".to_owned(), "n".to_owned()],
            rows: vec![vec!["A".to_owned(), "1".to_owned()]],
        }),
        commands: vec!["ensilo bench tpcc".to_owned()],
        facts: vec![("machine", "a & b".to_owned())],
        ..Section::default()
    };
    Page { sections: vec![section] }
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
fn facts_stand_once_if_all_sections_share_them() {
    let section = |machine: &str, seconds: &str| Section {
        facts: vec![("machine", machine.to_owned()), ("sizes", seconds.to_owned())],
        ..Section::default()
    };
    let page = |sections: Vec<Section>| Page { sections }.to_html();
    let count = |html: &str, text: &str| html.matches(text).count();
    let model = Section { facts: vec![("costs of", "elsewhere".to_owned())], ..Section::default() };
    let shared = page(vec![section("here", "1 second"), model, section("here", "2 seconds")]);
    assert!(shared.find("elsewhere") > shared.find("<section"));
    assert_eq!([count(&shared, "<dd>here"), count(&shared, "1 second"), count(&shared, "2 seconds")], [1; 3]);
    assert!(shared.find("<dd>here") < shared.find("<section"));
    let apart = page(vec![section("here", "1 second"), section("there", "1 second")]);
    assert_eq!([count(&apart, "<dd>here"), count(&apart, "<dd>there"), count(&apart, "1 second")], [1; 3]);
    assert!(apart.find("<dd>here") > apart.find("<section"));
}

#[test]
fn rulings_are_counted() {
    assert_eq!(page().sections[0].rulings(), [1, 1, 1]);
}
