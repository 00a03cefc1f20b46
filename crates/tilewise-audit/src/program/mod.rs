//! A program: read from the bytes of a file, its arrays sized, its instructions named.

mod axis_name;
mod axis_signs;
mod carry;
mod causes;
mod content;
mod describe;
mod gradient;
mod interface;
mod machine;
mod names;
mod operations;
mod origin;
mod planned;
mod purpose;
mod sizing;
mod softmax;
mod weights;

pub use axis_name::{AxisName, NamedAxis};
pub(crate) use axis_signs::twice;
pub(crate) use carry::{Carry, body};
pub use causes::{Cause, causes};
pub(crate) use content::for_tpu;
pub use content::{Content, Program};
pub(crate) use describe::Names;
pub(crate) use gradient::{has_gradient, has_gradients_of_samples, names_under_checkpoints, runs_backward};
pub(crate) use interface::bytes as bytes_of_leaf;
pub use machine::{build_in_name, infer_generation, infer_machine, machine_in_name};
pub(crate) use machine::{contradiction, generation_of_tiles, has_sparse_core, shown_generation};
pub(crate) use names::{
    begins_with, family, is_backward, is_forward, is_module, is_name, is_of_directions, is_of_instruction,
    is_recomputed, module_path, modules, name, numbered, root, tree, without_numbers,
};
pub(crate) use operations::{
    MOSAIC, any_fused, bounds, count, does, fused_updates, is_elementwise, is_reduction, keeps_indices, passes_on,
    ranks_rows, with_fused,
};
pub use origin::SourceLine;
pub(crate) use origin::{Tracer, call_stack, innermost_own, is_installed, op_name, own_loops, source_line, traced};
pub(crate) use planned::PlannedProgram;
pub use purpose::Purpose;
pub(crate) use purpose::is_input;
pub(crate) use sizing::{Array, ArrayId, Sizer, share};
pub(crate) use softmax::{Scores, bounds_of, elements, is_softmax, scores, softened, sorted};
pub(crate) use weights::Weights;
