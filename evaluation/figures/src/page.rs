//! The page that gathers everything: one HTML file without outside resources, its plots inside.
//!
//! It is made of [`Section`]s, which are plain text, tables and SVG: a further table and plot is a further section.

mod section;

pub use section::{ClaimRow, Fact, Section, Table};

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The page.
#[derive(Debug, Clone)]
pub struct Page {
    /// From top to bottom.
    pub sections: Vec<Section>,
}

const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;color:#222;background:#fff;max-width:1420px;margin:0 auto;padding:1.5rem}\
h1{font-size:1.6rem;margin:0}h2{font-size:1.25rem;margin:0}section{border-top:1px solid #ddd;margin-top:2rem;padding-top:1.2rem}\
p,dl,nav{max-width:60rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem}dt{color:#666}dd{margin:0;overflow-wrap:anywhere;white-space:pre-line}\
.source{color:#666;margin:.1rem 0 .6rem}.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,620px),1fr));gap:.8rem}\
.plots svg{width:100%;height:auto;border:1px solid #eee}table{border-collapse:collapse;margin:.6rem 0}\
.wide{overflow-x:auto}th,td{border-bottom:1px solid #ddd;padding:.25rem .8rem .25rem 0;text-align:left;vertical-align:top}\
td.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.holds{color:#00694c;font-weight:600}\
.not{color:#a33c00;font-weight:600}.undecided{color:#666}.note{background:#fff6e5;padding:.3rem .6rem}\
pre{background:#f6f6f6;padding:.6rem;overflow-x:auto;font-size:.8rem}summary{cursor:pointer;color:#0072b2}";

impl Page {
    /// The page as HTML.
    pub fn to_html(&self) -> String {
        let common = self.common_facts();
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { "Ensilo: the papers' figures, measured again" }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    h1 { "The papers' figures, measured again" }
                    (preface())
                    (section::facts(&common))
                    (self.overview())
                    @for section in &self.sections { (section.to_markup(&common)) }
                }
            }
        };
        page.into_string()
    }

    /// The facts that several sections have and none has otherwise: they stand once, above.
    fn common_facts(&self) -> Vec<Fact> {
        let all = || self.sections.iter().flat_map(|section| &section.facts);
        let is_common = |fact: &Fact| {
            let mut same_word = all().filter(|other| other.0 == fact.0);
            same_word.all(|other| other == fact) && all().filter(|&other| other == fact).count() > 1
        };
        let mut common: Vec<Fact> = Vec::new();
        for fact in all().filter(|fact| is_common(fact)) {
            if !common.contains(fact) {
                common.push(fact.clone());
            }
        }
        common
    }

    /// All claims by ruling, and where to find them.
    fn overview(&self) -> Markup {
        html! {
            table {
                tr { th { "section" } th { "holds" } th { "does not hold" } th { "cannot be told" } }
                @for section in &self.sections {
                    tr {
                        td { a href={ "#" (section.id) } { (section.source) ": " (section.title) } }
                        @for count in section.rulings() {
                            td.number { @if count > 0 { (count) } }
                        }
                    }
                }
            }
        }
    }
}

fn preface() -> Markup {
    html! {
        p {
            "Points are medians; error bars go from the least to the most of the runs. Each run is a process of its own, on a database that it \
             loads anew, and systems that are compared take turns. Where the papers' points are known they are shown relative to \
             their first point beside ours relative to our first point, since machines differ: shapes compare, heights do not. "
            "A claim holds if it holds in every repetition, and does not if it holds in none; otherwise, and where the machine has too few \
             processors or there are too few runs, it cannot be told. A claim about a maximum over points is judged at each point by itself: \
             that something is at most so much does not hold if it fails at one point in every repetition. \
             Points with more workers than processors are on grey and judge nothing."
        }
    }
}

#[cfg(test)]
mod tests;
