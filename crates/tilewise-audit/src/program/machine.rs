//! Which machine a program is compiled for, from its text.

use tilewise::{
    ArrayShape,
    tpu::{self, Generation},
};
use tilewise_hlo::Module;
use tilewise_memory::Machine;

/// The generation that a module's text points to; v5e where nothing does.
///
/// Texts don't name it. Two things that depend on it show: the tiles of scalars, which are larger on v2 and v3, and what
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

/// The generation that a module's text points to; `None` where nothing does.
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

/// The part of a text that is looked at: `ENTRY` is last.
fn end_of(source: &str) -> &str {
    let mut start = source.len().saturating_sub(LOOKED_AT);
    while !source.is_char_boundary(start) {
        start += 1;
    }
    &source[start..]
}

/// Whether scalars have the tiles of v2 and v3. Of 16 bits, these are the tiles of later generations, too.
fn has_old_scalars(text: &str) -> bool {
    text.contains("32[]{:T(256)")
}

/// Whether a part of a program runs on SparseCores.
pub(crate) fn has_sparse_core(module: &Module) -> bool {
    module.computations().any(|computation| computation.execution_thread() == Some("sparsecore"))
}

/// The machine that a module's text shows: a TPU if arrays lie in tiles; a GPU or a CPU by what only its compiler writes.
/// `None` where nothing shows.
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
    // CPUs' first: both have fusions of Triton's kind, under names of their own.
    if shows(CPU_MARKS) { Some(Machine::Cpu) } else { shows(GPU_MARKS).then_some(Machine::Gpu(None)) }
}

/// In all 163 texts of GPUs that were compared: the fingerprint. The others are of the backend's configuration, and of
/// the libraries that only GPUs call.
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

/// In 53 of 60 texts of CPUs that were compared.
const CPU_MARKS: &[&str] = &["\"outer_dimension_partitions\"", "__ynn_fusion", "\"__onednn$", "xla_cpu"];

/// The generation that a file's name mentions: a hint, where no other is given.
///
/// ```
/// use tilewise::tpu::Generation;
///
/// assert_eq!(tilewise_audit::generation_in_name("step.v6e.hlo"), Some(Generation::V6e));
/// assert_eq!(tilewise_audit::generation_in_name("step.v5e8.hlo"), Some(Generation::V5e));
/// assert_eq!(tilewise_audit::generation_in_name("step.hlo"), None);
/// ```
#[must_use]
pub fn generation_in_name(name: &str) -> Option<Generation> {
    // `v5e8` are eight of them.
    let of_many = |part: &str| part.trim_end_matches(|letter: char| letter.is_ascii_digit()).parse().ok();
    name.split('.').rev().find_map(|part| part.parse().ok().or_else(|| of_many(part)))
}

/// The build of the compiler that a dump's file is of.
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

/// The generation that a module is surely compiled for instead, or one like it, if it can't be this one.
///
/// How much scoped VMEM instructions have says nothing for sure: v7x's default is another generation's with
/// `--xla_tpu_scoped_vmem_limit_kib`, and kernels ask for their own.
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

/// The only side of the divide between v3 and v4 on which an array of these bounds and this order has these tiles, if
/// there is just one: v3 or v5e.
pub(crate) fn generation_of_tiles(array: &ArrayShape) -> Option<Generation> {
    let layout = array.layout().filter(|layout| !layout.tiles().is_empty())?;
    let bounds: Vec<u64> = array.dimensions().iter().map(|dimension| dimension.bound()).collect::<Option<_>>()?;
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

/// Bytes from the end of the text that are looked at.
const LOOKED_AT: usize = 1 << 18;

/// Seen in programs of v7x, unless an option asks for it.
const V7X_SCOPED_MEMORY: &str =
    "\"scoped_memory_configs\":[{\"memory_space\":\"1\",\"offset\":\"0\",\"size\":\"33554432\"}";
