//! The process that lets victims work, kills them, and compares what they have left with what they have said.

use std::io::{self, BufRead, BufReader};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Victim;
use super::tables::WORKERS;
use crate::progress;
use crate::random::Random;

/// What a victim has said.
#[derive(Clone, Debug, Default)]
struct Said {
    is_opened: bool,
    begun: [u64; WORKERS as usize],
    stored: [u64; WORKERS as usize],
}

impl Said {
    fn hear(&mut self, message: &str) {
        let mut words = message.split(' ');
        let kind = words.next();
        let worker = words
            .next()
            .and_then(|word| word.parse::<usize>().ok())
            .filter(|&worker| worker < WORKERS as usize);
        let step = words.next().and_then(|word| word.parse::<u64>().ok());
        match (kind, worker, step) {
            (Some("begin"), Some(worker), Some(step)) => self.begun[worker] = step,
            (Some("stored"), Some(worker), Some(step)) => self.stored[worker] = step,
            (Some("opened"), ..) => self.is_opened = true,
            // The last line may be cut short.
            _ => {}
        }
    }
}

/// Reads the database, and returns how far each worker was.
type ReadBeside = fn(&Path) -> ensilo::Result<Vec<u64>>;

/// The parent.
#[derive(Debug)]
pub struct Killer {
    program: PathBuf,
    directory: PathBuf,
    random: Random,
    victims: Vec<Victim>,
    said: Said,
    /// Whether the database is read while victims work.
    reads_beside: bool,
}

/// What the cycles have come to.
#[derive(Debug, Default, Clone, Copy)]
pub struct Killed {
    /// Victims killed.
    pub cycles: u64,
    /// Of these, while they were opening the database.
    pub while_opening: u64,
    /// Transactions that were acknowledged, and were there.
    pub acknowledged: u64,
    /// How often the database was read while a victim worked on it, or right after it was killed.
    pub read_beside: u64,
    /// Transactions that were there although the victim was killed before it saw their acknowledgement.
    pub unacknowledged: u64,
}

impl Killer {
    /// Kills `program`, which runs [`main`](super::main), on a database in `directory`. The victims take turns; what one has left is
    /// opened over the engine of the next one.
    ///
    /// # Panics
    /// When there are no victims.
    #[must_use]
    pub fn new(program: &Path, directory: &Path, seed: u64, victims: &[Victim]) -> Killer {
        assert!(!victims.is_empty(), "there is nobody to be killed");
        let (program, directory) = (program.to_path_buf(), directory.to_path_buf());
        Killer {
            program,
            directory,
            random: Random::new(seed),
            victims: victims.to_vec(),
            said: Said::default(),
            reads_beside: false,
        }
    }

    /// Returns the same, which reads the database again and again beside each victim.
    #[must_use]
    pub fn reading_beside(self) -> Killer {
        Killer { reads_beside: true, ..self }
    }

    /// Lets victims work and kills them, so many times.
    ///
    /// # Errors
    /// What is wrong with a recovered database.
    pub fn run(&mut self, cycles: u64) -> Result<Killed, String> {
        let mut killed = Killed::default();
        let bar = progress::bar("killed processes", cycles);
        for cycle in 0..cycles {
            let [victim, next] =
                [cycle, cycle + 1].map(|turn| self.victims[turn as usize % self.victims.len()]);
            self.cycle(victim, next, &mut killed)
                .map_err(|what| format!("cycle {cycle}, {} and then {}: {what}", victim.name, next.name))?;
            bar.inc(1);
        }
        Ok(killed)
    }

    fn cycle(&mut self, victim: Victim, next: Victim, killed: &mut Killed) -> Result<(), String> {
        let read_beside = victim.read_beside;
        let mut victim = self.start(victim).map_err(|error| format!("cannot start: {error}"))?;
        // Some die while they open the database, most while they work.
        let is_early = self.random.percent(25);
        let wait = Duration::from_micros(self.random.below(if is_early { 15_000 } else { 250_000 }));
        let (said, read) = self.listen(&mut victim, read_beside, is_early, wait)?;
        killed.read_beside += read;
        killed.cycles += 1;
        killed.while_opening += u64::from(!said.is_opened);
        self.said = said;
        self.check(next, killed)
    }

    fn start(&mut self, victim: Victim) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.arg(victim.name).arg(&self.directory).arg(self.random.draw().to_string());
        if victim.answers_early {
            command.arg("--early");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
    }

    /// Hears what the victim says, kills it when it is time, and hears the rest. Returns that, and how often the database was read meanwhile.
    fn listen(
        &self,
        victim: &mut Child,
        read_beside: ReadBeside,
        is_early: bool,
        wait: Duration,
    ) -> Result<(Said, u64), String> {
        let pipe = victim.stdout.take().ok_or("no pipe")?;
        let said = Mutex::new(Said { is_opened: false, ..self.said.clone() });
        let is_opened = || said.lock().is_ok_and(|said| said.is_opened);
        let is_killed = AtomicBool::new(false);
        let read = thread::scope(|scope| {
            let listener = scope.spawn(|| {
                for line in BufReader::new(pipe).lines().map_while(io::Result::ok) {
                    said.lock().map(|mut said| said.hear(&line)).unwrap_or_default();
                }
            });
            let reader =
                self.reads_beside.then(|| scope.spawn(|| self.read_beside(read_beside, &said, &is_killed)));
            let started = Instant::now();
            while !is_early && !is_opened() && !listener.is_finished() && started.elapsed().as_secs() < 60 {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(wait);
            let ended = victim.try_wait();
            let killed = victim.kill().and_then(|()| victim.wait());
            is_killed.store(true, Ordering::Relaxed);
            let read =
                reader.map_or(Ok(0), |reader| reader.join().unwrap_or_else(|panic| resume_unwind(panic)));
            match (ended, killed) {
                (Ok(None), Ok(_)) => read,
                (ended, killed) => Err(format!("the victim ended by itself: {ended:?}, {killed:?}")),
            }
        })?;
        Ok((said.into_inner().map_err(|error| error.to_string())?, read))
    }

    /// Reads the database until the victim is killed, and once more; each time all is there that was acknowledged before. Returns how
    /// often.
    fn read_beside(
        &self,
        read_beside: ReadBeside,
        said: &Mutex<Said>,
        is_killed: &AtomicBool,
    ) -> Result<u64, String> {
        let had_tables = self.said.begun.iter().any(|&begun| begun > 0);
        let mut count = 0;
        loop {
            let is_last = is_killed.load(Ordering::Relaxed);
            let before = said.lock().map(|said| said.clone()).map_err(|error| error.to_string())?;
            if had_tables || before.is_opened {
                let steps = read_beside(&self.directory).map_err(|error| format!("read beside: {error}"))?;
                for (worker, (step, stored)) in steps.into_iter().zip(before.stored).enumerate() {
                    if step < stored {
                        return Err(format!(
                            "read beside: worker {worker} is at step {step}; {stored} was acknowledged"
                        ));
                    }
                }
                count += 1;
            } else {
                thread::sleep(Duration::from_millis(1));
            }
            if is_last {
                return Ok(count);
            }
        }
    }

    /// Opens the database and compares it with what the victim has said.
    fn check(&mut self, next: Victim, killed: &mut Killed) -> Result<(), String> {
        let steps = (next.recover)(&self.directory).map_err(|error| error.to_string())?;
        for (worker, &step) in steps.iter().enumerate() {
            let (stored, begun) = (self.said.stored[worker], self.said.begun[worker]);
            if step < stored || step > begun.max(stored) {
                return Err(format!(
                    "worker {worker} is at step {step}; {stored} was acknowledged, {begun} begun"
                ));
            }
            killed.unacknowledged += step - stored;
            // From here on it counts as acknowledged: it was read.
            self.said.stored[worker] = step;
        }
        killed.acknowledged = self.said.stored.iter().sum();
        Ok(())
    }
}
