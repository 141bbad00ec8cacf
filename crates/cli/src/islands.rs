//! `ensilo islands`: the machine's topology, where instances go on it, how they talk to each other, and how many there are.

mod advise;
mod redistribute;

use std::error::Error;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use clap::builder::{PathBufValueParser, TypedValueParser as _};
use clap::{Args, Subcommand};
use ensilo_islands::{
    ChannelKind, CpuId, InstancePlace, Instances, MESSAGE_BYTES_MAX, Placement, Plan, Regular, RoundTrips,
    Topology, TopologyError, answer_all, bind_this_thread, connect, measure_round_trips,
};
use ensilo_islands_bench::{ChannelReport, ChannelRun};

use crate::bench::islands::IslandsFormat;
use crate::output::{Output, failed, say};
use crate::seconds::seconds_of_run;

const EXAMPLES: &str = "\
Examples:
  ensilo islands topology > here.machine
      This machine: its processors, cores, sockets, nodes of memory and caches, in the form of `lscpu -p`.
  ensilo islands plan --instances socket
      The processors of an instance for each socket of this machine.
  ensilo islands plan --machine octo-socket --instances 4 --placement spread
      The same for four instances on the paper's machine with eight sockets, each with cores of all of them.
  ensilo islands channels --cpus 0,1
      How long a message takes to another process and back, by each kind of channel.
  ensilo islands channels --placement spread --kinds memory,unix --format json
      Two of the kinds, between processors of two sockets if there are; for programs.
  ensilo islands advise micro --update --multisite 20 --verify
      How many instances suit a workload, and whether that is so.
  ensilo islands redistribute bank bank-of-4 --instances 4
      The tables that a program has stored in bank, on four instances.

Exit codes: 0 all is well; 1 it failed; 2 bad parameters.";

/// Where instances of a database go on a machine, and how they talk to each other
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum IslandsCommand {
    /// Describe a machine, in the form that --machine reads
    Topology(MachineArguments),
    /// Show the processors and the memory of each instance
    Plan(PlanArguments),
    /// Measure round trips between two processes (Islands, figure 2)
    Channels(ChannelsArguments),
    /// Measure what a workload costs, and recommend a size of islands for it
    #[command(subcommand)]
    Advise(advise::AdviseCommand),
    /// Copy the tables of instances that are not open to another number of instances, or to other partitionings
    Redistribute(redistribute::RedistributeArguments),
    /// The other process of `channels`: its standard input is the socket by which the two meet
    #[command(hide = true)]
    Answer(AnswerArguments),
}

/// Which machine.
#[derive(Debug, Args)]
pub(crate) struct MachineArguments {
    /// A file that describes the machine, as `lscpu -p` prints it, or one of the paper's machines: dual-socket, quad-socket,
    /// octo-socket [default: this machine]
    #[arg(long, value_name = "FILE|NAME", value_parser = PathBufValueParser::new().try_map(machine))]
    machine: Option<Topology>,
}

/// Returns the machine that a file describes, or that has this name.
fn machine(file: PathBuf) -> Result<Topology, TopologyError> {
    match file.to_str() {
        Some("dual-socket") => Topology::try_from(Regular::DUAL_SOCKET),
        Some("quad-socket") => Topology::try_from(Regular::QUAD_SOCKET),
        Some("octo-socket") => Topology::try_from(Regular::OCTO_SOCKET),
        _ => Topology::from_file(&file),
    }
}

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    machine: MachineArguments,

    /// How many instances: one for each core, cache (of the last level) or socket, one, or a number
    #[arg(long, value_name = "core|cache|socket|one|N", default_value = "socket")]
    instances: Instances,

    /// Whether the cores of an instance are close to each other (group), on as many sockets as it goes (spread), in pairs on sockets
    /// (mix), or where the operating system puts them (system)
    #[arg(long, value_name = "group|spread|mix|system", default_value_t = Placement::Group)]
    placement: Placement,
}

#[derive(Debug, Args)]
pub(crate) struct ChannelsArguments {
    /// The kinds of channels that are measured: memory, unix, pipe, tcp
    #[arg(long, value_name = "KIND", value_delimiter = ',', default_values_t = ChannelKind::all())]
    kinds: Vec<ChannelKind>,

    /// The length of a message, up to 32768
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = message_bytes)]
    message_bytes: usize,

    /// How long each kind is measured, busy and with the other end asleep, in seconds
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds_of_run)]
    seconds: f64,

    /// The processors that the two processes run on [default: wherever the operating system puts them]
    #[arg(long, value_name = "A,B", value_parser = two_cpus)]
    cpus: Option<[CpuId; 2]>,

    /// Where the two processes run: close to each other (group, mix), on two sockets if there are (spread), or where the operating
    /// system puts them (system)
    #[arg(long, value_name = "group|spread|mix|system", conflicts_with = "cpus", default_value_t = Placement::System)]
    placement: Placement,

    /// How the report is written; as JSON one object on a line for each kind
    #[arg(long, value_enum, default_value_t = IslandsFormat::Text)]
    format: IslandsFormat,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArguments {
    #[arg(long)]
    kind: ChannelKind,
    #[arg(long)]
    cpu: Option<u32>,
}

fn message_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse().map_err(|_| "not a number of bytes".to_owned())?;
    if bytes <= MESSAGE_BYTES_MAX { Ok(bytes) } else { Err(format!("not in 0..={MESSAGE_BYTES_MAX}")) }
}

fn two_cpus(text: &str) -> Result<[CpuId; 2], String> {
    let numbers: Option<Vec<CpuId>> = text.split(',').map(|number| number.parse().ok().map(CpuId)).collect();
    let two = numbers.and_then(|numbers| numbers.try_into().ok());
    two.ok_or_else(|| "not two numbers with a comma between them".to_owned())
}

/// Runs a command.
pub(crate) fn run(command: &IslandsCommand) -> ExitCode {
    let done = match command {
        IslandsCommand::Topology(machine) => topology_of(machine).map(|topology| show_topology(&topology)),
        IslandsCommand::Plan(arguments) => show_plan(arguments),
        IslandsCommand::Channels(arguments) => measure_channels(arguments),
        IslandsCommand::Advise(command) => advise::run(command),
        IslandsCommand::Redistribute(arguments) => redistribute::run(arguments),
        IslandsCommand::Answer(arguments) => answer(arguments),
    };
    done.map_or_else(failed, |()| ExitCode::SUCCESS)
}

type Done<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

fn topology_of(MachineArguments { machine }: &MachineArguments) -> Done<Topology> {
    Ok(machine.clone().map_or_else(Topology::of_this_machine, Ok)?)
}

fn show_topology(topology: &Topology) {
    let mut output = Output::new();
    topology.to_string().lines().for_each(|line| output.line(format_args!("{line}")));
}

fn show_plan(arguments: &PlanArguments) -> Done {
    let topology = topology_of(&arguments.machine)?;
    let plan = Plan::new(&topology, arguments.instances, arguments.placement);
    let mut output = Output::new();
    for (number, place) in plan.instances().iter().enumerate() {
        let cpus = list(place.cpus().iter().map(|cpu| cpu.0));
        match place.cpus() {
            [] => output.line(format_args!("instance {number}: wherever the operating system puts it")),
            _ => {
                let nodes = list(place.nodes().iter().map(|node| node.0));
                output.line(format_args!("instance {number}: processors {cpus}; memory of nodes {nodes}"));
            }
        }
    }
    if plan.is_oversubscribed() {
        output.line(format_args!("There are more instances than cores: several share one."));
    }
    Ok(())
}

fn list(numbers: impl Iterator<Item = u32>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
}

/// So long the other end has been idle before each round trip that finds it asleep.
const PAUSE: Duration = Duration::from_millis(1);

fn measure_channels(arguments: &ChannelsArguments) -> Done {
    let ChannelsArguments { kinds, message_bytes, seconds, cpus, placement, format } = arguments;
    refuse_unusable_processors(cpus.as_slice().iter().flatten())?;
    let places = cpus.map_or_else(|| cpus_of(*placement), |cpus| Ok(cpus.map(Some)))?;
    if let IslandsFormat::Text = format {
        say(format_args!(
            "messages of {message_bytes} bytes to another process and back, {seconds} s each\n"
        ));
        say(format_args!("{}", ChannelReport::header()));
    }
    for kind in kinds {
        let placement = if cpus.is_some() { "cpus" } else { placement.name() };
        let run = ChannelRun { kind: *kind, placement, message_bytes: *message_bytes, seconds: *seconds };
        let report = measure_channel(run, places)?;
        match format {
            IslandsFormat::Text => say(format_args!("{report}")),
            IslandsFormat::Json => say(format_args!("{}", report.to_json())),
        }
    }
    Ok(())
}

/// Ends the program if it may not run on one of these processors.
fn refuse_unusable_processors<'a>(mut cpus: impl Iterator<Item = &'a CpuId>) -> Done {
    let topology = Topology::of_this_machine()?;
    if let Some(cpu) = cpus.find(|cpu| InstancePlace::of_cpu(&topology, **cpu).is_none()) {
        crate::refuse_usage(&format!("processor {} may not be used", cpu.0));
    }
    Ok(())
}

/// Returns the processors of the first two workers of an instance that is placed so.
fn cpus_of(placement: Placement) -> Done<[Option<CpuId>; 2]> {
    let plan = Plan::new(&Topology::of_this_machine()?, Instances::One, placement);
    let place = &plan.instances()[0];
    Ok([0, 1].map(|worker| place.cpu_of_worker(worker)))
}

fn measure_channel(run: ChannelRun, [own, other]: [Option<CpuId>; 2]) -> Done<ChannelReport> {
    let duration = Duration::from_secs_f64(run.seconds);
    let (mut child, link) = start_other(run.kind, other)?;
    // In a thread of its own, which alone is kept on its processor: the next process is started by this one, and may run anywhere.
    let measure = || -> Done<[RoundTrips; 2]> {
        run_on(own)?;
        let mut channel = connect(run.kind, link)?;
        let mut measure = |pause| measure_round_trips(&mut *channel, run.message_bytes, duration, pause);
        Ok([measure(None)?, measure(Some(PAUSE))?])
    };
    let measured = std::thread::scope(|scope| scope.spawn(measure).join());
    let [busy, asleep] = measured.map_err(|_| "the measurement has failed")??;
    if !child.wait()?.success() {
        return Err("the other process has failed".into());
    }
    Ok(ChannelReport::new(run, [&busy, &asleep]))
}

/// Starts the process that answers, and returns the socket that leads to it.
fn start_other(kind: ChannelKind, cpu: Option<CpuId>) -> Done<(Child, UnixStream)> {
    let (here, there) = UnixStream::pair()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["islands", "answer", "--kind", kind.name()]);
    if let Some(CpuId(cpu)) = cpu {
        command.args(["--cpu", &cpu.to_string()]);
    }
    let child = command.stdin(Stdio::from(OwnedFd::from(there))).spawn()?;
    Ok((child, here))
}

fn answer(arguments: &AnswerArguments) -> Done {
    run_on(arguments.cpu.map(CpuId))?;
    let link = std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned()?;
    Ok(answer_all(&mut *connect(arguments.kind, UnixStream::from(link))?)?)
}

/// Keeps this process on a processor, if there is one named.
fn run_on(cpu: Option<CpuId>) -> Done {
    let Some(cpu) = cpu else { return Ok(()) };
    let topology = Topology::of_this_machine()?;
    let place =
        InstancePlace::of_cpu(&topology, cpu).ok_or(format!("processor {} may not be used", cpu.0))?;
    Ok(bind_this_thread(&place, 0)?)
}
