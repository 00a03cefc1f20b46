//! Prints the totals of programs' memory plans: `plan [--machine tpu:v5e] [--best-fit] FILE…`.

use tilewise::tpu::Generation;
use tilewise_memory::{Machine, MemoryPlan, Packing, PlanOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = PlanOptions::new(Generation::V5e);
    println!("arguments\toutputs\ttemporaries\taliased\talive at the peak\tfile");
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--machine" => options = PlanOptions::new(arguments.next().unwrap_or_default().parse::<Machine>()?),
            "--best-fit" => options = options.with_packing(Packing::BestFit),
            file => match MemoryPlan::new(&tilewise_hlo::read(file)?, &options) {
                Ok(plan) => println!(
                    "{}\t{}\t{}\t{}\t{}\t{file}",
                    plan.argument_bytes,
                    plan.output_bytes,
                    plan.temporary_bytes(),
                    plan.alias_bytes,
                    plan.space(0).map_or(0, |space| space.peak_live_bytes()),
                ),
                Err(error) => println!("{file}: {error}"),
            },
        }
    }
    Ok(())
}
