//! A job queue: producers insert jobs, consumers take the most urgent one that is due and that nobody else
//! works on, and wait where there is none. A job that fails is put back for later, a few times at most.
//! Prints how many jobs went through in a second, and how many attempts met a conflict.
//!
//! `cargo run --release -p ensilo --example job_queue -- 2 4 100000`: so many producers, consumers and jobs

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{
    AbortReason, Arrivals, Columns, Database, Error, Index, Result, Row, Table, Timestamp, Transaction,
};

#[derive(Debug, Row)]
#[row(table = "job", index(name = "by_urgency", columns(urgency, due)))]
struct Job {
    /// A queue should have a key, so that a job that is put back remains the same one.
    #[row(key)]
    id: u64,
    urgency: u8,
    /// Not to be taken before.
    due: Timestamp,
    /// How often it has failed.
    failures: u32,
    work: String,
}

#[derive(Columns)]
#[columns(of = Job)]
struct Due {
    due: Timestamp,
}

/// What has come of a job.
#[derive(Debug, Row)]
#[row(table = "result")]
struct JobResult {
    #[row(key)]
    id: u64,
    /// None if the job was given up.
    length: Option<u64>,
}

type ByUrgency = Index<Job, (u8, Timestamp)>;

/// From 0 to below this.
const URGENCIES: u8 = 3;

/// So often a job may fail.
const FAILURES_MAX: u32 = 3;

/// A job that has failed is due again after so long, times its failures.
const RETRY_AFTER: Duration = Duration::from_millis(10);

/// What consumers share.
struct Queue {
    db: Database,
    jobs: Table<Job>,
    by_urgency: ByUrgency,
    results: Table<JobResult>,
}

/// What has come of an attempt to do a job.
enum Attempt {
    Done,
    PutBack,
    GivenUp,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let mut next = |default: u64| arguments.next().unwrap_or(default);
    let (producers, consumers, jobs) = (next(2), next(4), next(100_000));
    let db = Database::in_memory()?;
    let table: Table<Job> = db.create_table()?;
    let by_urgency = table.index("by_urgency")?;
    let results = db.create_table()?;
    let queue = Queue { db, jobs: table, by_urgency, results };
    let begin = Instant::now();
    thread::scope(|scope| -> Result<()> {
        let (report, attempts) = mpsc::channel();
        for _ in 0..consumers {
            let (queue, report) = (&queue, report.clone());
            scope.spawn(move || match queue.consume(&report) {
                Err(Error::Closed) => (),
                ended => ended.expect("a consumer has failed"),
            });
        }
        drop(report);
        for producer in 0..producers {
            let ids = (producer..jobs).step_by(producers as usize);
            let queue = &queue;
            scope.spawn(move || queue.produce(ids).expect("a producer has failed"));
        }
        let (mut done, mut put_back, mut given_up) = (0, 0, 0);
        while done + given_up < jobs {
            match attempts.recv().expect("consumers go on") {
                Attempt::Done => done += 1,
                Attempt::PutBack => put_back += 1,
                Attempt::GivenUp => given_up += 1,
            }
        }
        let rate = jobs as f64 / begin.elapsed().as_secs_f64() / 1e3;
        let statistics = queue.db.statistics()?;
        let conflicts = statistics.aborts_total() - statistics.aborts_of(AbortReason::User);
        println!("{done} jobs done, {given_up} given up, {put_back} times one was put back");
        println!("{rate:.0} thousand jobs a second; {conflicts} conflicts");
        // This ends the consumers.
        queue.db.close()
    })
}

impl Queue {
    /// Inserts jobs, each in a transaction of its own.
    fn produce(&self, ids: impl Iterator<Item = u64>) -> Result<()> {
        for id in ids {
            let urgency = (id % u64::from(URGENCIES)) as u8;
            let work = format!("work number {id}");
            let job = Job { id, urgency, due: Timestamp::now(), failures: 0, work };
            self.db.transact(|tx| self.jobs.insert(tx, &job))?;
        }
        Ok(())
    }

    /// Works on jobs until the database is closed, and reports each attempt.
    fn consume(&self, report: &mpsc::Sender<Attempt>) -> Result<()> {
        // Before the first look: a job that comes later ends a wait.
        let mut arrivals = self.jobs.watch()?;
        loop {
            // One time for both looks: a job that becomes due in between is seen by the second one.
            let now = Timestamp::now();
            // If this transaction is undone, the job is there again. Work that takes long would be done
            // between the statements of a session.
            let attempt = self.db.transact(|tx| match self.take_due(tx, now)? {
                Some(job) => self.attempt(tx, job).map(Some),
                None => Ok(None),
            })?;
            match attempt {
                // Nobody receives it when the database is about to be closed.
                Some(attempt) => drop(report.send(attempt)),
                None => self.wait_after(now, &mut arrivals)?,
            }
        }
    }

    /// Takes the job that is due for the longest time among the most urgent ones.
    fn take_due(&self, tx: &mut Transaction<'_>, now: Timestamp) -> Result<Option<Job>> {
        for urgency in (0..URGENCIES).rev() {
            let due = self.by_urgency.range((urgency, Timestamp::MIN)..=(urgency, now));
            if let Some((_, job)) = due.take_first(tx)? {
                return Ok(Some(job));
            }
        }
        Ok(None)
    }

    /// Tries to do a job that was taken. It goes and its result comes, both or neither.
    fn attempt(&self, tx: &mut Transaction<'_>, job: Job) -> Result<Attempt> {
        let id = job.id;
        if let Ok(length) = work(&job) {
            self.results.insert(tx, &JobResult { id, length: Some(length) })?;
            return Ok(Attempt::Done);
        }
        let failures = job.failures + 1;
        if failures >= FAILURES_MAX {
            self.results.insert(tx, &JobResult { id, length: None })?;
            return Ok(Attempt::GivenUp);
        }
        // An error would undo the take, and the job would be found again at once. So it is put back for later.
        let due = Timestamp::now() + RETRY_AFTER * failures;
        self.jobs.insert(tx, &Job { due, failures, ..job })?;
        Ok(Attempt::PutBack)
    }

    /// Waits until a job comes, or is given up, or until the next one after `now` is due.
    fn wait_after(&self, now: Timestamp, arrivals: &mut Arrivals) -> Result<()> {
        let next_due = self.db.read(|tx| {
            let mut next_due = None;
            for urgency in 0..URGENCIES {
                let later = self.by_urgency.range((urgency, now + TICK)..=(urgency, Timestamp::MAX));
                let first = later.columns::<Due>().first(tx)?;
                next_due = next_due.into_iter().chain(first.map(|(_, first)| first.due)).min();
            }
            Ok(next_due)
        })?;
        match next_due {
            None => arrivals.wait(),
            Some(due) => arrivals.wait_timeout(due.saturating_duration_since(Timestamp::now())).map(drop),
        }
    }
}

/// Does a job. One in a thousand fails once, and a few fail always.
fn work(job: &Job) -> std::result::Result<u64, &'static str> {
    match job.id % 1_000 {
        1 if job.failures == 0 => Err("not now"),
        2 if job.id % 10_000 == 2 => Err("never"),
        _ => Ok(job.work.len() as u64),
    }
}

/// The shortest time between two timestamps.
const TICK: Duration = Duration::from_micros(1);
