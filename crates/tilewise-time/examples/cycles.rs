//! The compiler's cycles of a run: `cargo run -p tilewise-time --example cycles v5e PROGRAM.hlo…`
//!
//! Prints a line a program: its name, cycles of a run, those of matrix multiplications, of copies, and loops whose trips can't
//! be told.

use std::{error::Error, path::Path};
use tilewise::tpu::Generation;
use tilewise_hlo::dataflow::Dataflow;
use tilewise_time::{Kind, Time};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let generation: Generation = arguments.next().ok_or("a TPU generation, then programs")?.parse()?;
    for path in arguments {
        let flow = Dataflow::new(&tilewise_hlo::read(Path::new(&path))?);
        match Time::of(&flow, generation) {
            Ok(time) => {
                let [matmul, copy] = [Kind::Matmul, Kind::Copy].map(|kind| time.cycles_of(kind));
                let unknown = time.loops.iter().filter(|at| at.trips.is_none()).count();
                println!(
                    "{path},{},{matmul},{copy},{unknown},{:.6e},{:.6e},{:.6e}",
                    time.cycles(),
                    time.total.floor,
                    time.total.estimate,
                    time.total.compiler
                );
            }
            Err(none) => println!("{path},{none}"),
        }
    }
    Ok(())
}
