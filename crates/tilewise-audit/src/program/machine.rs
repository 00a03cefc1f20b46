//! Infers the machine that a program is compiled for from its text.

use tilewise::{
    ArrayShape,
    tpu::{self, Generation},
};
use tilewise_hlo::Module;
use tilewise_memory::{GpuModel, Machine};

/// The generation that a module's text points to; v5e without a sign.
///
/// Texts don't name it. Two signs depend on it: the tiles of scalars, which are larger on v2 and v3, and features that
/// only some generations have. Of a program's sizes only the tables of tuples depend on it, by some hundred bytes.
///
/// ```
/// use tilewise::tpu::Generation;
///
/// let module = tilewise_hlo::Module::parse("x = f32[]{:T(256)} parameter(0)")?;
/// assert_eq!(tilewise_audit::infer_generation(&module), Generation::V3);
/// # Ok::<(), tilewise_hlo::Error>(())
/// ```
#[must_use]
pub fn infer_generation(module: &Module) -> Generation {
    shown_generation(module).unwrap_or(Generation::V5e)
}

/// The generation that a module's text points to; `None` without a sign.
pub(crate) fn shown_generation(module: &Module) -> Option<Generation> {
    let end = end_of(module.source());
    if has_old_scalars(end) {
        Some(Generation::V3)
    } else if end.contains(V7X_SCOPED_MEMORY) {
        Some(Generation::V7x)
    } else {
        has_sparse_core(module).then_some(Generation::V6e)
    }
}

/// The end of a text, where `ENTRY` is.
fn end_of(source: &str) -> &str {
    let mut start = source.len().saturating_sub(LOOKED_AT);
    while !source.is_char_boundary(start) {
        start += 1;
    }
    &source[start..]
}

/// Whether 32-bit scalars have the tiles of v2 and v3. 16-bit scalars have them on later generations, too.
fn has_old_scalars(text: &str) -> bool {
    text.contains("32[]{:T(256)")
}

/// Whether a part of a program runs on SparseCores.
pub(crate) fn has_sparse_core(module: &Module) -> bool {
    module.computations().any(|computation| computation.execution_thread() == Some("sparsecore"))
}

/// The machine that a module's text shows: a TPU if arrays lie in tiles; a GPU or a CPU by marks of its compiler.
/// `None` without a mark.
///
/// ```
/// use tilewise_memory::Machine;
///
/// let text = "HloModule m, is_scheduled=true\nENTRY e { ROOT x = f32[8]{0} parameter(0) }";
/// let machine = |text: &str| tilewise_audit::infer_machine(&tilewise_hlo::Module::parse(text).unwrap());
/// assert_eq!(machine(text), None);
/// assert_eq!(machine(&text.replace("true", "true, frontend_attributes={fingerprint_before_lhs=\"6f\"}")), Some(Machine::Gpu(None)));
/// ```
#[must_use]
pub fn infer_machine(module: &Module) -> Option<Machine> {
    if module.has_tiles() {
        return Some(infer_generation(module).into());
    }
    let shows = |marks: &[&str]| marks.iter().any(|mark| module.source().contains(mark));
    // CPU marks come first: both machines have Triton-like fusions, under different names.
    if shows(CPU_MARKS) { Some(Machine::Cpu) } else { shows(GPU_MARKS).then_some(Machine::Gpu(None)) }
}

/// Marks of GPUs. The fingerprint is in all 163 compared texts of GPUs; the others are fields of the backend's
/// configuration, and libraries that only GPUs call.
const GPU_MARKS: &[&str] = &[
    "fingerprint_before_lhs",
    "\"operation_queue_id\"",
    "\"force_earliest_schedule\"",
    "\"fusion_backend_config\"",
    "\"__cublas$",
    "\"__cudnn$",
    "__triton",
    "cusolver",
];

/// Marks of CPUs, in 53 of 60 compared texts of CPUs.
const CPU_MARKS: &[&str] = &["\"outer_dimension_partitions\"", "__ynn_fusion", "\"__onednn$", "xla_cpu"];

/// The machine in a file's name, a TPU's generation or a GPU's model: a hint, if no other is given.
///
/// ```
/// use tilewise::tpu::Generation;
/// use tilewise_memory::{GpuModel, Machine};
///
/// assert_eq!(tilewise_audit::machine_in_name("step.v6e.hlo"), Some(Machine::Tpu(Generation::V6e)));
/// assert_eq!(tilewise_audit::machine_in_name("step.v5e8.hlo"), Some(Machine::Tpu(Generation::V5e)));
/// assert_eq!(tilewise_audit::machine_in_name("step.h100.hlo"), Some(Machine::Gpu(Some(GpuModel::H100))));
/// assert_eq!(tilewise_audit::machine_in_name("step.hlo"), None);
/// ```
#[must_use]
pub fn machine_in_name(name: &str) -> Option<Machine> {
    // `v5e8` is eight chips of v5e.
    let of_many = |part: &str| part.trim_end_matches(|letter: char| letter.is_ascii_digit()).parse().ok();
    let generation = |part: &str| part.parse().ok().or_else(|| of_many(part)).map(Machine::Tpu);
    let model = |part: &str| GpuModel::ALL.into_iter().find(|model| model.name() == part);
    name.split('.').rev().find_map(|part| generation(part).or_else(|| Some(Machine::Gpu(Some(model(part)?)))))
}

/// The compiler's build in the name of a dump's file.
///
/// ```
/// let file = "module_0031.jit_f.cl_772339112.after_optimizations.txt";
/// assert_eq!(tilewise_audit::build_in_name(file), Some(772_339_112));
/// assert_eq!(tilewise_audit::build_in_name("step.v6e.hlo"), None);
/// ```
#[must_use]
pub fn build_in_name(name: &str) -> Option<u64> {
    name.split('.').find_map(|part| part.strip_prefix("cl_")?.parse().ok())
}

/// A generation for which the module could be compiled, if it can't be compiled for `generation`; else `None`.
///
/// The scoped VMEM of instructions proves nothing: `--xla_tpu_scoped_vmem_limit_kib` can set v7x's default on another
/// generation, and kernels ask for their own.
pub(crate) fn contradiction(module: &Module, generation: Generation) -> Option<Generation> {
    let is_old = matches!(generation, Generation::V2 | Generation::V3);
    if has_old_scalars(end_of(module.source())) {
        return (!is_old).then_some(Generation::V3);
    }
    // v5p and v7x have SparseCores, too.
    if has_sparse_core(module) {
        return (is_old || generation == Generation::V5e).then_some(Generation::V6e);
    }
    (is_old && module.source().contains("f32[]{:T(128)")).then_some(Generation::V5e)
}

/// The generation whose default tiles the array has, if only one does: v3, or v5e for v4 and later. `None` if both or
/// neither do.
pub(crate) fn generation_of_tiles(array: &ArrayShape) -> Option<Generation> {
    let layout = array.layout().filter(|layout| !layout.tiles().is_empty())?;
    let bounds: Vec<u64> = array.bounds()?;
    let fits = |generation| {
        let predicted =
            tpu::layout_for_order(array.element_type(), &bounds, layout.minor_to_major(), generation).ok()?;
        let predicted = predicted.layout()?;
        let same =
            predicted.tiles() == layout.tiles() && predicted.element_size_in_bits() == layout.element_size_in_bits();
        same.then_some(generation)
    };
    match (fits(Generation::V3), fits(Generation::V5e)) {
        (Some(only), None) | (None, Some(only)) => Some(only),
        _ => None,
    }
}

/// Bytes searched at the end of the text.
const LOOKED_AT: usize = 1 << 18;

/// Seen in programs of v7x; in others only if an option asks for it.
const V7X_SCOPED_MEMORY: &str =
    "\"scoped_memory_configs\":[{\"memory_space\":\"1\",\"offset\":\"0\",\"size\":\"33554432\"}";
