//! Prints a program's memory plan: `plan [--tpu v5e] FILE…`.

use std::time::Instant;
use tilewise::tpu::Generation;
use tilewise_memory::{MemoryPlan, PlanOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut tpu = Generation::V5e;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--tpu" {
            tpu = arguments.next().unwrap_or_default().parse()?;
            continue;
        }
        let start = Instant::now();
        let module = tilewise_hlo::read(&argument)?;
        let parsed = start.elapsed();
        match MemoryPlan::new(&module, &PlanOptions::new(tpu)) {
            Ok(plan) => println!(
                "{argument}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{parsed:?}\t{:?}",
                plan.argument_bytes,
                plan.output_bytes,
                plan.temporary_bytes(),
                plan.alias_bytes,
                plan.host_argument_bytes,
                plan.host_output_bytes,
                plan.space(0).map_or(0, |space| space.peak_live_bytes()),
                start.elapsed(),
            ),
            Err(error) => println!("{argument}\t{error}"),
        }
    }
    Ok(())
}
