//! A section of the page.

use maud::{Markup, PreEscaped, html};

use crate::verdict::Ruling;

/// A word and what it stands for: what was measured with.
pub type Fact = (&'static str, String);

/// One subject: what it is, what it says, plots, a table, and how it was measured.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// The name that links lead to.
    pub id: String,
    /// Where the subject comes from.
    pub source: String,
    /// The heading.
    pub title: String,
    /// What was done.
    pub about: String,
    /// What has to be known before one looks at the figures: runs that are missing, and why.
    pub notes: Vec<String>,
    /// Statements and what became of them.
    pub claims: Vec<ClaimRow>,
    /// The plots, each an `<svg>` element.
    pub plots: Vec<String>,
    /// The figures.
    pub table: Option<Table>,
    /// The file with every single run.
    pub runs_file: Option<String>,
    /// How it was measured.
    pub commands: Vec<String>,
    /// With what, where and when.
    pub facts: Vec<Fact>,
}

/// A statement of a paper beside the figures here.
#[derive(Debug, Clone)]
pub struct ClaimRow {
    /// The statement.
    pub text: String,
    /// The paper's number.
    pub paper: String,
    /// When it counts as holding.
    pub holds_if: String,
    /// The number here.
    pub here: String,
    /// What follows.
    pub ruling: Ruling,
}

/// Figures in rows.
#[derive(Debug, Clone)]
pub struct Table {
    /// The names of the columns.
    pub header: Vec<String>,
    /// The rows; the first column is text, the others are numbers.
    pub rows: Vec<Vec<String>>,
}

impl Section {
    /// How many claims hold, do not hold, and are undecided.
    pub(super) fn rulings(&self) -> [usize; 3] {
        let count = |is: fn(&Ruling) -> bool| self.claims.iter().filter(|claim| is(&claim.ruling)).count();
        [
            count(|ruling| *ruling == Ruling::Holds),
            count(|ruling| *ruling == Ruling::DoesNotHold),
            count(|ruling| matches!(ruling, Ruling::Undecided(_))),
        ]
    }

    /// `above` are facts that the page tells already.
    pub(super) fn to_markup(&self, above: &[Fact]) -> Markup {
        let own: Vec<Fact> = self.facts.iter().filter(|fact| !above.contains(fact)).cloned().collect();
        html! {
            section id=(self.id) {
                h2 { (self.title) }
                p.source { (self.source) " (" (self.id) ")" }
                p { (self.about) }
                (facts(&own))
                @for note in &self.notes { p.note { (note) } }
                @if !self.claims.is_empty() { (claims(&self.claims)) }
                div.plots { @for plot in &self.plots { figure style="margin:0" { (PreEscaped(plot)) } } }
                @if let Some(table) = &self.table { (details("Figures", &table.to_markup())) }
                @if !self.commands.is_empty() {
                    (details("Commands of the first repetition", &html! { pre { (self.commands.join("\n")) } }))
                }
                @if let Some(file) = &self.runs_file { p { "Every single run: " a href=(file) { (file) } } }
            }
        }
    }
}

pub(super) fn facts(facts: &[Fact]) -> Markup {
    let known = || facts.iter().filter(|(_, what)| !what.is_empty());
    html! { dl { @for (word, what) in known() { dt { (word) } dd { (what) } } } }
}

fn details(summary: &str, content: &Markup) -> Markup {
    html! { details { summary { (summary) } div.wide { (content) } } }
}

fn claims(rows: &[ClaimRow]) -> Markup {
    html! {
        div.wide { table {
            tr { th { "the paper says" } th { "paper" } th { "holds if" } th { "here" } th { "ruling" } }
            @for row in rows {
                tr {
                    td { (row.text) }
                    td.number { (row.paper) }
                    td.number { (row.holds_if) }
                    td.number { (row.here) }
                    td class=(class_of(&row.ruling)) { (row.ruling) }
                }
            }
        } }
    }
}

fn class_of(ruling: &Ruling) -> &'static str {
    match ruling {
        Ruling::Holds => "holds",
        Ruling::DoesNotHold => "not",
        Ruling::Undecided(_) => "undecided",
    }
}

impl Table {
    fn to_markup(&self) -> Markup {
        html! {
            table {
                tr { @for name in &self.header { th { (name) } } }
                @for row in &self.rows {
                    tr { @for (at, cell) in row.iter().enumerate() {
                        @if at == 0 { td { (cell) } } @else { td.number { (cell) } }
                    } }
                }
            }
        }
    }
}
