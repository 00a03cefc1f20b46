//! Times against what an independent walk of the same programs found, small programs worked out by hand, and hostile texts.

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

mod by_hand;
mod compiler;
mod hostile;

use tilewise::tpu::Generation;
use tilewise_hlo::{Module, dataflow::Dataflow};
use tilewise_time::{NoTime, Time};

fn time(text: &str, generation: Generation) -> Result<Time, NoTime> {
    Time::of(&Dataflow::new(&Module::parse(text).unwrap()), generation)
}

/// A priced operation on 1024 x 1024 numbers: a line of HLO.
fn priced(name: &str, operand: &str, cycles: &str) -> String {
    format!(
        "  {name} = f32[1024,1024]{{1,0:T(8,128)}} negate({operand}), \
         backend_config={{\"window_config\":{{\"estimated_cycles\":\"{cycles}\"}}}}\n"
    )
}
