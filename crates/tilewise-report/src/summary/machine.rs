//! Words on a machine's memory, and on the part that a plan leaves out.

use super::Remark;
use crate::style::Tone;
use crate::style::bytes;
use tilewise::tpu::{Generation, Libtpu};
use tilewise_audit::{Machine, Report};

/// The name of its memory.
pub fn memory_name(machine: Machine) -> &'static str {
    match machine {
        Machine::Tpu(_) => "HBM",
        Machine::Cpu => "memory",
        _ => "GPU memory",
    }
}

/// The size of its memory, in a sentence.
pub(super) fn words(machine: Machine) -> String {
    let pool = "JAX takes three quarters of a GPU's memory (`XLA_CLIENT_MEM_FRACTION`)";
    match (machine, machine.memory_bytes(), machine.program_bytes()) {
        (Machine::Tpu(Generation::V7x), Some(all), _) => {
            format!("Each of the two devices of a TPU v7x has {} of HBM for programs.", bytes(all))
        }
        (Machine::Tpu(generation), Some(all), _) => {
            format!("A TPU {} has {} of HBM for programs: the run time keeps the rest.", generation.name(), bytes(all))
        }
        (Machine::Cpu, ..) => "A CPU's program has the host's memory.".to_owned(),
        (_, Some(all), Some(part)) => {
            let name = machine.to_string().rsplit(':').next().unwrap_or_default().to_uppercase();
            format!("{pool}: of the {} of this {name}, {}.", bytes(all), bytes(part))
        }
        _ => format!("{pool}."),
    }
}

/// The compiler that the plan follows, the part it leaves out, and more from the compiler's own report.
pub(super) fn compiler(report: &Report) -> Vec<Remark> {
    let rest = left_out(report.machine);
    let is_equal = report.compiler_plan.as_ref().is_some_and(|agreement| agreement.has_equal_bytes());
    let planned = match report.libtpu.filter(|version| Libtpu::is_checked(*version)) {
        Some(libtpu) if is_equal => format!("Exact for libtpu {libtpu}, which compiled it; {rest}"),
        Some(libtpu) => format!("Planned as libtpu {libtpu} does, which compiled it; {rest}"),
        None => format!("Planned as {} does; {rest}", report.machine.compiler()),
    };
    let temporaries = report.memory_bounds.temporary_bytes.map(bytes);
    let reported =
        report.reported_temporary_bytes().map(bytes).filter(|reported| Some(reported) != temporaries.as_ref());
    let counted_twice = reported.zip(report.libtpu);
    let counted_twice = counted_twice.map(|(reported, libtpu)| {
        format!(
            "`memory_analysis()` of libtpu {libtpu} says {reported} of temporaries: before 0.0.51 it counts the gaps between \
             them twice."
        )
    });
    [Some(planned), counted_twice].into_iter().flatten().map(|words| Remark { words, tone: Tone::Faint }).collect()
}

/// The part that a plan leaves out. Of 155 programs compiled by libtpu 0.0.51, `generated_code_size` is below 4 MiB in
/// 140, and 28 MiB at most.
pub(super) fn left_out(machine: Machine) -> &'static str {
    match machine {
        Machine::Tpu(_) => "program code is extra, usually under 4 MiB.",
        Machine::Cpu => "JAX's `peak_memory_in_bytes` leaves the temporaries out on a CPU.",
        _ => {
            "not counted are the CUDA context, handles and buffers of cuBLAS, cuDNN and NCCL, gaps in JAX's pool and, in a \
             text compiled without a GPU, workspaces of convolutions and of cuDNN's attention."
        }
    }
}
