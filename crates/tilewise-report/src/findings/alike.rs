//! Values that each device computes whole.

use super::{
    Words,
    code::{AN_AXIS, SHARDING},
    words::{at, at_line, bounds_of},
};
use crate::style::grouped;
use tilewise_audit::{Recommendation, recommendation::finding::Alike};

pub(super) fn words(finding: &Alike, about: &Recommendation) -> Words {
    let Alike { devices, dimension, size, arrays, gather, mesh_axis, is_mapped, .. } = finding;
    let (rows, own) = (grouped(*size), grouped(size / devices));
    let others = if *arrays > 1 { format!(", and {} arrays made of it", arrays - 1) } else { String::new() };
    let words = Words::new(format!(
        "Let each of the {devices} devices compute {own} of the {rows} positions along dimension {dimension} of [{}]{}{others}: \
         all devices compute the same values, since the operand is gathered{}; what is added up over these positions is then added up over \
         the devices, too",
        bounds_of(about),
        at_line(about),
        at(gather.as_ref())
    ))
    .task(format!("Let each of the {devices} devices compute {own} of the {rows} rows: all compute the same"));
    let axis = mesh_axis.as_deref().unwrap_or("x");
    let name = if mesh_axis.is_some() { "" } else { AN_AXIS };
    if *is_mapped {
        return words.jax(
            about,
            "import jax",
            format!(
                "# under shard_map: gather one operand alone, not the one of these rows; of a sum over them:\n\
                 total = jax.lax.psum(own_total, '{axis}')  # of a maximum jax.lax.pmax; a row's own number begins at \
                 jax.lax.axis_index('{axis}') * {}{name}",
                size / devices
            ),
        );
    }
    let places = (0..*dimension).map(|_| "None, ").collect::<String>();
    words.jax(
        about,
        SHARDING,
        format!("y = jax.lax.with_sharding_constraint(y, NamedSharding(mesh, PartitionSpec({places}'{axis}')))  # y: this array{name}"),
    )
}
