//! `allclear simulate`: whole clusters under faults, each made from a seed. Opens no port and writes nothing.

mod soak;
mod told;

use super::{Exit, say};
use crate::simulator::{self, Mistake, Run, Scenario, Verdict};

/// Plays whole clusters under faults, each made from a seed, and judges them
#[derive(clap::Args)]
pub(super) struct Simulate {
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with_all = ["seed", "minutes"])]
    seeds: u64,
    /// The first of them
    #[arg(long, value_name = "S", default_value_t = 0)]
    from: u64,
    /// This one alone
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Of what happens under this seed only these, by their numbers
    #[arg(long, value_name = "N,...", value_delimiter = ',', requires = "seed")]
    only: Option<Vec<usize>>,
    /// Print what happens, line by line
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Go on for so long, whatever the number of seeds
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
}

impl Simulate {
    pub(super) fn run(self) -> Exit {
        let Some(seed) = self.seed else {
            return soak::soak(self.from, self.minutes.is_none().then_some(self.seeds), self.minutes);
        };
        let whole = simulator::generate(seed);
        let places = self.only.unwrap_or_else(|| (0..whole.happenings.len()).collect());
        let run = simulator::run(&whole.only(&places), Mistake::None, self.trace);
        if self.trace {
            told::print(&told::scenario(&whole, &places));
            told::print(&run.trace);
        }
        say(told::summary(seed, &run));
        if run.breach().is_none() {
            return Exit::Done;
        }
        explain(&whole, &run);
        Exit::Failed
    }
}

/// What broke, how to see it again, and with how little it does.
fn explain(whole: &Scenario, run: &Run) {
    let Verdict::Failed(breach) = &run.verdict else { return };
    say(format_args!("seed {} breaks {}: {}", whole.seed, breach.property, breach.what));
    say(format_args!("  allclear simulate --seed {} --trace", whole.seed));
    let needed = simulator::reduce(whole, Mistake::None, breach.property);
    let numbers: Vec<String> = needed.iter().map(ToString::to_string).collect();
    let (kept, all) = (needed.len(), whole.happenings.len());
    say(format_args!("of {all} things that happen {kept} are enough:"));
    for line in told::scenario(whole, &needed) {
        say(format_args!("  {line}"));
    }
    say(format_args!("  allclear simulate --seed {} --only {} --trace", whole.seed, numbers.join(",")));
}
