//! Values that each device computes whole, alike on all: gathered rows without a division of what is made of them, or a batch
//! that lost its sharding.

use crate::{
    advice::{
        change::Target,
        devices::Devices,
        evidence::Evidence,
        finding::{Alike, Finding},
        program::{LiveArray, ProgramModel},
        rule::{Proposal, Rule},
    },
    program::traced,
};
use tilewise_memory::Machine;

/// Arrays that matter take this part of the largest, or more.
const SMALL: u64 = 8;

/// They matter from this part of the program's bytes on.
const MUCH: u64 = 3;

pub(crate) struct AlikeOnAllDevices;

impl Rule for AlikeOnAllDevices {
    fn holds_on(&self, _: Machine) -> bool {
        true
    }

    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let Some(program) = evidence.program() else { return Vec::new() };
        let found = Devices::of(program).and_then(|devices| proposal(program, &devices));
        found.into_iter().collect()
    }
}

fn proposal<'m>(program: &ProgramModel<'m>, devices: &Devices<'m>) -> Option<Proposal> {
    let alike: Vec<&LiveArray<'m>> =
        program.peak_temporaries().filter(|array| devices.is_alike(program, array)).collect();
    let largest = *alike.iter().max_by_key(|array| (array.bytes, array.bounds.len()))?;
    let count = program.partitions;
    let is_even = |at: &usize| largest.bounds.get(*at).is_some_and(|size| *size >= count && size.is_multiple_of(count));
    let dimension = devices.gathered_dimension(program, largest).filter(is_even)?;
    let size = largest.bounds[dimension];
    // Those of the rows, or of a part of them.
    let divided: Vec<&LiveArray<'m>> = alike
        .into_iter()
        .filter(|array| array.bytes >= largest.bytes / SMALL && array.bounds.contains(&size))
        .collect();
    let bytes = divided.iter().map(|array| array.bytes).fold(0, u64::saturating_add);
    if bytes < program.total_bytes / MUCH {
        return None;
    }
    let gather = devices.gather(program, largest, dimension);
    let finding = Alike {
        devices: count,
        dimension,
        size,
        arrays: divided.len(),
        gather: gather.and_then(|gather| traced(program.flow, &gather).1),
        mesh_axis: devices.mesh_axis.map(str::to_owned),
        is_mapped: program.is_mapped(),
    };
    let proposal = Proposal::new(Finding::Alike(finding), Target::Value, program.advised(largest)).bound();
    Some(proposal.at_most(divided.iter().map(|array| (array.buffer, array.bytes.div_ceil(count)))))
}

#[cfg(test)]
mod tests {
    use crate::{
        Audit, Program,
        recommendation::finding::{Alike, Finding},
    };

    /// Products of all texts with all images of four devices, of which each has 2,048 of both.
    fn found(rows: u64, images: &str) -> Option<Alike> {
        let text = format!(
            r#"HloModule jit_step, is_scheduled=true, num_partitions=4

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

ENTRY main (image.1: f32[2048,512], text.1: f32[2048,512]) -> f32[] {{
  image.1 = f32[2048,512]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="image"}}
  text.1 = f32[2048,512]{{1,0:T(8,128)}} parameter(1), metadata={{op_name="text"}}
  zero = f32[]{{:T(128)}} constant(0)
  t = f32[2048,512]{{1,0:T(8,128)}} tanh(text.1)
  i = f32[2048,512]{{1,0:T(8,128)}} tanh(image.1)
  texts = f32[8192,512]{{1,0:T(8,128)}} all-gather(t), replica_groups=mesh['data'=4] {{'data'}}, dimensions={{0}}
{images}
  p = f32[{rows},8192]{{1,0:T(8,128)}} exponential(logits), metadata={{op_name="jit(step)/exp"}}
  r = f32[]{{:T(128)}} reduce(p, zero), dimensions={{0,1}}, to_apply=add
  ROOT all = f32[]{{:T(128)}} all-reduce(r), replica_groups=mesh['data'=4] {{'data'}}, to_apply=add
}}"#
        );
        let report = Audit::new(&Program::parse(text).expect("a module")).run();
        report.advice().iter().find_map(|one| match &one.finding {
            Finding::Alike(alike) => Some(alike.clone()),
            _ => None,
        })
    }

    #[test]
    fn what_all_devices_compute_is_divided() {
        let both = "  images = f32[8192,512]{1,0:T(8,128)} all-gather(i), replica_groups=mesh['data'=4] {'data'}, dimensions={0}
  logits = f32[8192,8192]{1,0:T(8,128)} dot(images, texts), lhs_contracting_dims={1}, rhs_contracting_dims={1}, metadata={op_name=\"jit(step)/dot_general\"}";
        let alike = found(8192, both).expect("the change");
        assert_eq!(
            (alike.devices, alike.dimension, alike.size, alike.mesh_axis.as_deref()),
            (4, 0, 8192, Some("data"))
        );
        // Each device's own images: other values on each.
        let own = "  logits = f32[2048,8192]{1,0:T(8,128)} dot(i, texts), lhs_contracting_dims={1}, rhs_contracting_dims={1}, metadata={op_name=\"jit(step)/dot_general\"}";
        assert_eq!(found(2048, own), None);
        // As weights are, to be used.
        assert_eq!(
            found(
                8192,
                &both.replace("all-gather(i)", "all-gather(image.1)").replace("images, texts", "images, images")
            ),
            None
        );
        // Gathered over two of the devices alone.
        assert_eq!(found(8192, &both.replace("mesh['data'=4] {'data'}", "{{0,1},{2,3}}")), None);
    }
}
