//! Products of many small matrices, such as 3 × 3: the compiler multiplies them as a convolution, whose results have each
//! matrix in tiles of its own. Sums of elementwise products have the many matrices along the lanes.

use super::narrow_rows::is_padded;
use crate::{
    advice::{
        change::{Saving, Target},
        evidence::{ArrayFact, Evidence, Listed, default_bytes},
        finding::{Finding, RowOperation, RowsOfFew},
        rule::{Proposal, Rule},
    },
    program::any_fused,
};
use tilewise_hlo::{Instruction, Opcode};

pub(crate) struct ProductsOfSmallMatrices;

/// JAX's name of a product.
const PRODUCT: &str = "dot_general";

impl Rule for ProductsOfSmallMatrices {
    fn propose(&self, evidence: &dyn Evidence) -> Vec<Proposal> {
        let (mut done, mut proposals) = (Vec::<[u64; 2]>::new(), Vec::new());
        let temporaries = evidence.temporaries();
        for array in temporaries.iter().copied() {
            let Some(matrix) = matrix(evidence, array).filter(|matrix| !done.contains(matrix)) else { continue };
            if !is_of_product(evidence, array) {
                continue;
            }
            // Elementwise operations and slices before and behind a product have its layout.
            let all = evidence.program().map_or_else(|| temporaries.clone(), |program| program.held_temporaries());
            let alike = || all.iter().copied().filter(|same| self::matrix(evidence, *same) == Some(matrix));
            let apart = |same: &dyn ArrayFact| {
                let minor = &same.minor_to_major()[..2];
                let bounds = same.bounds().iter().enumerate().filter(|(at, _)| !minor.contains(at));
                let many: Vec<u64> = bounds.map(|(_, bound)| *bound).collect();
                let bytes = default_bytes(evidence, same, &many)?.checked_mul(matrix[0] * matrix[1])?;
                Some((same.buffer(), bytes.min(same.bytes())))
            };
            let buffers: Vec<(usize, u64)> = alike().filter_map(apart).collect();
            let after = buffers.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
            let freed = alike().map(|same| same.bytes()).fold(0, u64::saturating_add).saturating_sub(after);
            let [rows, columns] = matrix;
            let finding = RowsOfFew { columns: rows * columns, operation: RowOperation::Product { rows, columns } };
            let proposal = Proposal::new(Finding::RowsOfFew(finding), Target::Upstream, array.advised(evidence));
            let proposal = proposal.at_most(buffers);
            proposals.push(match evidence.message() {
                Some(_) => proposal.bound().extrapolated(evidence, freed, Listed::Padding),
                None => Proposal { saving: Saving::About, ..proposal },
            });
            done.push(matrix);
        }
        proposals
    }
}

/// The rows and columns of an array's matrices, if they are few and padded.
fn matrix(evidence: &dyn Evidence, array: &dyn ArrayFact) -> Option<[u64; 2]> {
    let mut minor: Vec<usize> = array.minor_to_major().get(..2)?.to_vec();
    minor.sort_unstable();
    let matrix = [minor[0], minor[1]].map(|at| array.bounds().get(at).copied().unwrap_or_default());
    let are_few = matrix.iter().all(|bound| (2..=evidence.thresholds().max_columns).contains(bound));
    (are_few && is_padded(evidence, array)).then_some(matrix)
}

fn is_of_product(evidence: &dyn Evidence, array: &dyn ArrayFact) -> bool {
    let is_product = |at: &Instruction<'_>| matches!(at.opcode(), Opcode::Dot | Opcode::Convolution);
    match (evidence.program(), array.live()) {
        (Some(program), Some(array)) => program.made_by(array.op, |at| any_fused(at, is_product)).is_some(),
        _ => array.op_name().ends_with(PRODUCT),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Audit, Program,
        recommendation::finding::{Finding, RowOperation, RowsOfFew},
    };
    use tilewise::tpu::Generation;
    use tilewise_memory::Machine;

    /// Links of a lattice: a product of 3 × 3 matrices, and an elementwise operation on its results.
    const LINKS: &str = r#"HloModule jit_f, is_scheduled=true

ENTRY main {
  u = f32[3,3,65536]{2,1,0:T(4,128)} parameter(0), metadata={op_name="u"}
  a = f32[65536,3,3]{2,1,0:T(4,128)} copy(u)
  c = f32[65536,3,3]{2,1,0:T(4,128)} dot(a, a), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, metadata={op_name="jit(f)/dot_general" source_file="links.py" source_line=7}
  d = f32[65536,3,3]{2,1,0:T(4,128)} multiply(c, c)
  ROOT r = f32[3,3,65536]{2,1,0:T(4,128)} copy(d)
}"#;

    fn products(text: &str) -> Option<RowsOfFew> {
        let program = Program::parse(text).expect("a module");
        let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(64 << 20).run();
        report.advice().iter().find_map(|one| match &one.finding {
            Finding::RowsOfFew(few) if matches!(few.operation, RowOperation::Product { .. }) => Some(few.clone()),
            _ => None,
        })
    }

    /// Whichever product makes the array that is told, each of them is to be written elementwise.
    #[test]
    fn lines_of_all_products() {
        let product = "  c = f32[65536,3,3]{2,1,0:T(4,128)} dot(a, a), lhs_batch_dims";
        let second = "  b = f32[65536,3,3]{2,1,0:T(4,128)} dot(a, a), lhs_batch_dims={0}, rhs_batch_dims={0}, \
                      lhs_contracting_dims={2}, rhs_contracting_dims={1}, metadata={op_name=\"jit(f)/dot_general\" \
                      source_file=\"links.py\" source_line=9}\n  c = f32[65536,3,3]{2,1,0:T(4,128)} dot(a, b), lhs_batch_dims";
        let program = Program::parse(LINKS.replace(product, second)).expect("a module");
        let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(64 << 20).run();
        let edited = report.advice().iter().find_map(|one| match &one.finding {
            Finding::RowsOfFew(few) if matches!(few.operation, RowOperation::Product { .. }) => one.edited.clone(),
            _ => None,
        });
        assert_eq!(edited.map(|edited| (edited.line.line, edited.more)), Some((7, vec![9])));
    }

    #[test]
    fn matrices_that_are_multiplied() {
        let few = products(LINKS).expect("a product");
        assert_eq!(few.operation, RowOperation::Product { rows: 3, columns: 3 });
        // No product, and matrices that fill their tiles.
        assert_eq!(products(&LINKS.replace(" dot(", " custom-call(")), None);
        assert_eq!(products(&LINKS.replace("65536,3,3", "65536,16,128").replace("3,3,65536", "16,128,65536")), None);
    }
}
