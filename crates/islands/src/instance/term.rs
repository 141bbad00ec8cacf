//! The terms of a cluster, which tell an older copy of one instance from what belongs beside the others.
//!
//! A term is a time in the life of all instances of a directory. It has a number, one more than the term before, and an identity that is drawn when it
//! begins: so two copies of a cluster that both go on have different terms. One begins with each opening of all instances, two with each copy of
//! all, and one when they are closed. Each instance notes it in its own database, and the file beside them says which one all have noted last. An
//! instance in another term is not opened: what was committed there since would be missing, and transactions would be there by halves.
//!
//! # Crash
//! ```text
//! begin        the file says which term begins, beside the last one
//! note         each instance stores that it is in it
//! end          the file says that it is the last one
//! ```
//! After a crash in between some instances are in the last term, and some in the one that has begun: both are opened, and the next opening goes on
//! with the term that has begun.
//!
//! # Limits
//! A copy of one instance is not told from it in the term in which it was taken. Since an orderly closing begins another one, that matters after a crash
//! of all instances alone, for a copy taken since they were last opened, or copied as a whole.

use std::fmt;
use std::str::FromStr;

use ensilo::{Database, Durability, Error, Result, Row};
use serde::{Deserialize, Serialize};

use super::cluster_id::random_number;
use super::notes::open_table;
use super::program::InstanceNumber;

/// A term of a cluster. See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Term {
    number: u64,
    id: u128,
}

/// The terms that the instances of a cluster may be in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Terms {
    /// The last one that all have noted; `None` before there was one: then instances may be in any.
    pub(crate) last: Option<Term>,
    /// One that has begun, and that some may not have noted.
    pub(crate) begun: Option<Term>,
}

/// Where it stands which terms an instance may be in that is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TermsOf {
    /// In the file beside the instances. It is read when the instance is open: from then on nobody else begins a term. Where its own cluster does, as one
    /// that opens it again may, the file has both terms that the instance can be in until it has answered.
    File,
    /// Here, since there is no file.
    Instance(Terms),
}

/// The term that the instance is in, one row.
#[derive(Clone, Debug, Row)]
#[row(table = "islands_term")]
struct TermNote {
    #[row(key)]
    key: u8,
    /// A [`Term`] as a text.
    term: String,
}

impl Terms {
    /// Returns the terms of instances that are all in this one.
    pub(crate) fn all_in(term: Term) -> Self {
        Terms { last: Some(term), begun: None }
    }

    /// Returns these with a term that has begun: the one that had, or a new one.
    pub(crate) fn with_begun(self) -> (Self, Term) {
        let new = || Term { number: self.last.map_or(0, |last| last.number) + 1, id: random_number() };
        let begun = self.begun.unwrap_or_else(new);
        (Terms { begun: Some(begun), ..self }, begun)
    }

    /// Returns what is wrong with an instance that is in this term, if something is.
    fn problem_of(&self, found: Option<Term>) -> Option<String> {
        let last = self.last?;
        if found.is_some_and(|found| found == last || self.begun == Some(found)) {
            return None;
        }
        let number = found.map_or(0, |found| found.number);
        let latest = self.begun.unwrap_or(last).number;
        Some(if number > latest {
            format!(
                "are of term {number} of the cluster, and the file instances beside it knows no later one than {latest}: \
                 that file, or the other instances, are an older copy: put the newer ones back, or restore a copy of all"
            )
        } else if found.is_none() || number < last.number {
            format!(
                "are an older copy, of term {number} of the cluster, and the others are in term {latest}: {LOSS}"
            )
        } else {
            format!(
                "are of a copy of the cluster that has gone on by itself: both had a term {number}: {LOSS}"
            )
        })
    }
}

const LOSS: &str = "what was committed at this instance since then would be lost, and transactions that it has part in \
                    would be there by halves: put its own newer files back, or restore a copy of all";

/// Returns the term that an instance says it is in, if it says so.
pub(crate) fn stored_term(db: &Database) -> Result<Option<Term>> {
    let terms = match db.open_table::<TermNote>() {
        Err(Error::UnknownTable(_)) => return Ok(None),
        opened => opened?,
    };
    let Some(TermNote { term, .. }) = db.read(|tx| terms.get(tx, 0))? else { return Ok(None) };
    let unreadable = |()| Error::rollback(format!("the note of the cluster's term cannot be read: {term:?}"));
    term.parse().map(Some).map_err(unreadable)
}

/// Checks that an instance is in one of the terms that it may be in, before anything of it is changed.
pub(crate) fn check_term(db: &Database, number: InstanceNumber, terms: &Terms) -> Result<()> {
    match terms.problem_of(stored_term(db)?) {
        None => Ok(()),
        Some(problem) => Err(Error::rollback(format!("the files of instance {} {problem}", number.instance))),
    }
}

/// Notes the term that an instance is in, and returns when that is stored.
pub(crate) fn note_term(db: &Database, term: Term) -> Result<()> {
    let terms = open_table::<TermNote>(db)?;
    let note = TermNote { key: 0, term: term.to_string() };
    db.request().durability(Durability::Stored).transact(|tx| terms.upsert(tx, &note))
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:032x}", self.number, self.id)
    }
}

impl FromStr for Term {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let (number, id) = text.split_once(' ').filter(|(_, id)| id.len() == ID_DIGITS).ok_or(())?;
        let id = u128::from_str_radix(id, 16).map_err(|_| ())?;
        Ok(Term { number: number.parse().map_err(|_| ())?, id })
    }
}

const ID_DIGITS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn term(number: u64, id: u128) -> Term {
        Term { number, id }
    }

    #[test]
    fn an_instance_is_in_the_last_term_or_in_one_that_has_begun() {
        let terms = Terms { last: Some(term(4, 7)), begun: Some(term(5, 8)) };
        for fits in [term(4, 7), term(5, 8)] {
            assert_eq!(terms.problem_of(Some(fits)), None);
        }
        let cases = [
            (None, "older copy, of term 0"),
            (Some(term(3, 7)), "older copy, of term 3"),
            (Some(term(6, 7)), "the file instances"),
            (Some(term(4, 8)), "gone on by itself: both had a term 4"),
            (Some(term(5, 7)), "gone on by itself: both had a term 5"),
        ];
        for (found, word) in cases {
            let problem = terms.problem_of(found).unwrap();
            assert!(problem.contains(word), "{problem}");
        }
        assert_eq!(Terms::default().problem_of(Some(term(3, 3))), None);
        assert_eq!(Terms::default().problem_of(None), None);
    }

    #[test]
    fn a_term_that_has_begun_is_gone_on_with() {
        let (terms, begun) = Terms::all_in(term(4, 7)).with_begun();
        assert_eq!((begun.number, terms.last), (5, Some(term(4, 7))));
        assert_eq!(terms.with_begun(), (terms, begun));
        assert_ne!(Terms::all_in(term(4, 7)).with_begun().1, begun);
    }

    #[test]
    fn a_term_is_read_as_it_was_written() {
        let written = term(12, 0xabc);
        assert_eq!(written.to_string().parse(), Ok(written));
        for damaged in
            ["", "12", "12 abc", "x 00000000000000000000000000000abc", "12 0000000000000000000000000000zabc"]
        {
            assert_eq!(damaged.parse::<Term>(), Err(()), "{damaged}");
        }
    }
}
