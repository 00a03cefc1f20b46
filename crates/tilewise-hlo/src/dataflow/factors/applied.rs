//! The effect on a dimension of the computation that an instruction applies.

use super::FactorKind;
use crate::{CallRole, Instruction, Opcode};

impl FactorKind {
    /// The reduction of a dimension by a computation that is applied to two elements, or to two of each array: `Sum`,
    /// `Reduce`, or `Mix` where which element stays is a matter of order.
    ///
    /// ```
    /// use tilewise_hlo::{Module, dataflow::FactorKind};
    ///
    /// let text = "HloModule m
    /// larger { a = f32[] parameter(0)
    ///   b = f32[] parameter(1)
    ///   ROOT c = f32[] maximum(a, b) }
    /// ENTRY e { x = f32[8]{0} parameter(0)
    ///   low = f32[] constant(-inf)
    ///   ROOT r = f32[] reduce(x, low), dimensions={0}, to_apply=larger }";
    /// let module = Module::parse(text)?;
    /// let reduce = module.instructions().find(|at| at.name() == "r").expect("an instruction");
    /// assert_eq!(FactorKind::of_reduction(&reduce), FactorKind::Reduce);
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn of_reduction(at: &Instruction<'_>) -> Self {
        let applied = at.calls().find(|call| matches!(call.role, CallRole::ToApply | CallRole::Calls));
        let root = applied.and_then(|call| call.computation()).and_then(|computation| computation.root());
        let Some(root) = root else { return Self::Mix };
        let are_all = |opcode: Opcode| match root.opcode() {
            Opcode::Tuple => root.operands().all(|of| of.instruction().is_some_and(|of| of.opcode() == opcode)),
            of_root => of_root == opcode,
        };
        match () {
            () if are_all(Opcode::Add) => Self::Sum,
            // The last element written stays.
            () if are_all(Opcode::Parameter) => Self::Mix,
            () => Self::Reduce,
        }
    }
}
