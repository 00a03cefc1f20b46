//! The shapes that XLA's parser infers where a text leaves them out.
//!
//! The rules are those of `ShapeInference` (xla/service/shape_inference.cc). Where bounds or types change, the result has
//! no layout, as in XLA.

use tilewise::{Dimension, ElementType, Shape};

use crate::dimension_numbers::{Padding, numbers, padding};
use crate::opcode::Opcode;
use crate::pairs::Pairs;
use crate::scan::trim;

/// An instruction without shape.
pub(crate) struct Operation<'t> {
    pub(crate) opcode: Opcode,
    /// The shapes of its operands.
    pub(crate) operands: Vec<&'t str>,
    pub(crate) attributes: &'t str,
    /// An element of its first operand.
    pub(crate) element: &'t dyn Fn(usize) -> Option<&'t str>,
    /// The shape of the result of the computation in this attribute.
    pub(crate) result_of: &'t dyn Fn(&str) -> Option<&'t str>,
}

/// The text of the shape of its result; `None` if XLA, or this function, infers none.
pub(crate) fn infer(operation: &Operation<'_>) -> Option<String> {
    use Opcode::*;
    let at = |number: usize| operation.operands.get(number).map(|shape| (*shape).to_owned());
    match operation.opcode {
        Acos | Acosh | AddDependency | Asin | Asinh | Atanh | BatchNormInference | Cbrt | Ceil | Cholesky | Copy
        | Cosine | Cosh | CountLeadingZeros | Domain | Erf | Exponential | ExponentialMinusOne | Floor | Log
        | LogPlusOne | Logistic | Negate | Not | OptimizationBarrier | Popcnt | Reverse | RoundNearestAfz
        | RoundNearestEven | Rsqrt | SelectAndScatter | SetDimensionSize | Sign | Sine | Sinh | Sqrt | Tan | Tanh
        | While => at(0),
        Add | And | Atan2 | Divide | Maximum | Minimum | Multiply | Or | Power | Remainder | ShiftLeft
        | ShiftRightArithmetic | ShiftRightLogical | Subtract | Xor => operation.are_alike(2).and_then(|()| at(0)),
        Clamp | Select | TriangularSolve => at(1),
        AfterAll => Some("token[]".to_owned()),
        PartitionId | ReplicaId => Some("u32[]".to_owned()),
        GetDimensionSize => Some("s32[]".to_owned()),
        Tuple => Some(tuple(&operation.operands)),
        Sort => one_or_tuple(&operation.operands),
        Scatter => one_or_tuple(operation.operands.get(..operation.operands.len().checked_sub(1)? / 2)?),
        BatchNormGrad | BatchNormTraining => {
            Some(tuple(&[operation.operands.first()?, operation.operands.get(1)?, operation.operands.get(1)?]))
        }
        GetTupleElement => (operation.element)(operation.number("index")?).map(str::to_owned),
        Call => (operation.result_of)("to_apply").map(str::to_owned),
        Conditional => {
            ["branch_computations", "true_computation"].into_iter().find_map(operation.result_of).map(str::to_owned)
        }
        _ => operation.shape().map(|shape| shape.to_string()),
    }
}

impl Operation<'_> {
    /// The shape of a result with other dimensions, or another type, than its operands.
    fn shape(&self) -> Option<Shape> {
        use Opcode::*;
        match self.opcode {
            Abs | Real | Imag => self.component(),
            Complex => self.complex(),
            IsFinite | Compare => self.predicate(),
            Map => self.map(),
            Broadcast => self.broadcast(),
            Transpose => self.transpose(),
            Concatenate => self.concatenate(),
            Pad => self.pad(),
            Reduce => self.reduce(),
            Dot => self.dot(),
            Gather => self.gather(),
            TopK => self.top_k(),
            _ => None,
        }
    }

    /// The components of complex numbers; other numbers themselves.
    fn component(&self) -> Option<Shape> {
        let operand = self.operand(0)?;
        let component = match operand.element_type()? {
            ElementType::C64 => ElementType::F32,
            ElementType::C128 => ElementType::F64,
            _ => return Some(operand),
        };
        array(component, operand.dimensions())
    }

    /// Complex numbers of two components.
    fn complex(&self) -> Option<Shape> {
        let operand = self.operand(0)?;
        let pair = match operand.element_type()? {
            ElementType::F32 => ElementType::C64,
            ElementType::F64 => ElementType::C128,
            _ => return None,
        };
        array(pair, operand.dimensions())
    }

    /// A truth value for each element.
    fn predicate(&self) -> Option<Shape> {
        array(ElementType::Pred, self.operand(0)?.dimensions())
    }

    /// The type that the applied computation results in, for each element.
    fn map(&self) -> Option<Shape> {
        let result = shape((self.result_of)("to_apply")?)?;
        array(result.element_type()?, self.operand(0)?.dimensions())
    }

    /// XLA's broadcast puts dimensions in front.
    fn broadcast(&self) -> Option<Shape> {
        let operand = self.operand(0)?;
        let broadcast: Option<Vec<Dimension>> =
            self.numbers("dimensions")?.into_iter().map(|size| Dimension::fixed(size as u64).ok()).collect();
        array(operand.element_type()?, &[&broadcast?, operand.dimensions()].concat())
    }

    /// The operand's dimensions in another order.
    fn transpose(&self) -> Option<Shape> {
        let operand = self.operand(0)?;
        let dimension = |number: usize| operand.dimensions().get(number).copied();
        let dimensions: Option<Vec<Dimension>> = self.numbers("dimensions")?.into_iter().map(dimension).collect();
        array(operand.element_type()?, &dimensions?)
    }

    /// One dimension is the sum of the operands'.
    fn concatenate(&self) -> Option<Shape> {
        let first = self.operand(0)?;
        let [along] = self.numbers("dimensions")?[..] else { return None };
        let mut sum = 0_u64;
        for operand in &self.operands {
            sum = sum.checked_add(shape(operand)?.dimensions().get(along)?.bound()?)?;
        }
        let mut dimensions = first.dimensions().to_vec();
        *dimensions.get_mut(along)? = Dimension::fixed(sum).ok()?;
        array(first.element_type()?, &dimensions)
    }

    /// `padding=low_high_interior x …`, a group a dimension; a negative one cuts off.
    fn pad(&self) -> Option<Shape> {
        let operand = self.operand(0)?;
        let padding = padding(self.attribute("padding")?)?;
        let mut dimensions = Vec::new();
        for (at, dimension) in operand.dimensions().iter().enumerate() {
            let Padding { low, high, interior } = *padding.get(at)?;
            let size = i64::try_from(dimension.bound()?).ok()?;
            let inside = interior.checked_mul((size - 1).max(0))?;
            let padded = size.checked_add(low)?.checked_add(high)?.checked_add(inside)?;
            dimensions.push(Dimension::fixed(u64::try_from(padded).ok()?).ok()?);
        }
        array(operand.element_type()?, &dimensions)
    }

    /// The dimensions left of each operand, with the type of its start value.
    fn reduce(&self) -> Option<Shape> {
        let count = self.operands.len() / 2;
        let reduced = self.numbers("dimensions")?;
        let result = |number: usize| {
            let (operand, start) = (self.operand(number)?, self.operand(count + number)?);
            let kept = operand.dimensions().iter().enumerate().filter(|(at, _)| !reduced.contains(at));
            array(start.element_type()?, &kept.map(|(_, dimension)| *dimension).collect::<Vec<_>>())
        };
        let results: Vec<Shape> = (0..count).map(result).collect::<Option<_>>()?;
        match &results[..] {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(Shape::tuple(several.iter().cloned())),
        }
    }

    /// Batch dimensions, then the free ones of the left and of the right operand.
    fn dot(&self) -> Option<Shape> {
        let (left, right) = (self.operand(0)?, self.operand(1)?);
        let numbers = |name: &str| self.numbers(name).unwrap_or_default();
        let (left_batch, right_batch) = (numbers("lhs_batch_dims"), numbers("rhs_batch_dims"));
        let (left_summed, right_summed) = (numbers("lhs_contracting_dims"), numbers("rhs_contracting_dims"));
        let free = |shape: &Shape, batch: &[usize], summed: &[usize]| -> Vec<Dimension> {
            let is_free = |at: &usize| !batch.contains(at) && !summed.contains(at);
            shape.dimensions().iter().enumerate().filter(|(at, _)| is_free(at)).map(|(_, size)| *size).collect()
        };
        let batch: Option<Vec<Dimension>> = left_batch.iter().map(|at| left.dimensions().get(*at).copied()).collect();
        let dimensions =
            [batch?, free(&left, &left_batch, &left_summed), free(&right, &right_batch, &right_summed)].concat();
        array(left.element_type()?, &dimensions)
    }

    /// The kept dimensions of a slice at `offset_dims`, among those of the indices.
    fn gather(&self) -> Option<Shape> {
        let (operand, indices) = (self.operand(0)?, self.operand(1)?);
        let offsets = self.numbers("offset_dims")?;
        let collapsed = self.numbers("collapsed_slice_dims").unwrap_or_default();
        let batched = self.numbers("operand_batching_dims").unwrap_or_default();
        let vector = self.number("index_vector_dim")?;
        let sizes = self.numbers("slice_sizes")?;
        let is_kept = |at: &usize| !collapsed.contains(at) && !batched.contains(at);
        let mut kept = sizes.iter().enumerate().filter(|(at, _)| is_kept(at)).map(|(_, size)| *size as u64);
        let mut batch = indices.dimensions().iter().enumerate().filter(|(at, _)| *at != vector);
        let rank = offsets.len() + indices.dimensions().len() - usize::from(vector < indices.dimensions().len());
        let mut dimensions = Vec::new();
        for at in 0..rank {
            dimensions.push(if offsets.contains(&at) {
                Dimension::fixed(kept.next()?).ok()?
            } else {
                *batch.next()?.1
            });
        }
        array(operand.element_type()?, &dimensions)
    }

    /// The `k` largest of the last dimension, and their indices.
    fn top_k(&self) -> Option<Shape> {
        let operand = self.operand(0)?;
        let mut dimensions = operand.dimensions().to_vec();
        *dimensions.last_mut()? = Dimension::fixed(self.number("k")? as u64).ok()?;
        let values = array(operand.element_type()?, &dimensions)?;
        Some(Shape::tuple([values, array(ElementType::S32, &dimensions)?]))
    }

    fn operand(&self, number: usize) -> Option<Shape> {
        shape(self.operands.get(number)?)
    }

    /// `None` unless the first operands have the same bounds.
    fn are_alike(&self, count: usize) -> Option<()> {
        let first = self.operand(0)?;
        let is_alike = |number: usize| Some(self.operand(number)?.dimensions() == first.dimensions());
        (1..count).all(|number| is_alike(number).unwrap_or(false)).then_some(())
    }

    fn attribute(&self, name: &str) -> Option<&str> {
        Pairs::new(self.attributes).find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    fn number(&self, name: &str) -> Option<usize> {
        trim(self.attribute(name)?).parse().ok()
    }

    fn numbers(&self, name: &str) -> Option<Vec<usize>> {
        numbers(self.attribute(name)?)
    }
}

fn shape(text: &str) -> Option<Shape> {
    Shape::parse_as_written(text).ok()
}

fn array(element_type: ElementType, dimensions: &[Dimension]) -> Option<Shape> {
    Shape::dynamic_array(element_type, dimensions.iter().copied()).ok()
}

fn tuple(elements: &[&str]) -> String {
    format!("({})", elements.join(", "))
}

fn one_or_tuple(shapes: &[&str]) -> Option<String> {
    match shapes {
        [] => None,
        [one] => Some((*one).to_owned()),
        several => Some(tuple(several)),
    }
}
