//! A program as advice looks at it: what it holds, what of that is alive at the peak, and what it would hold otherwise.

use super::{Advice, AdviceKind, AdviceTarget};
use crate::{Report, flow::Flow, origin::traced, sizing::share};
use std::collections::{HashMap, HashSet};
use tilewise::{ElementType, Shape, tpu};
use tilewise_hlo::{Instruction, Module, Opcode};
use tilewise_memory::{Packing, PlanOptions, Planner, Role};

/// An array in the device's default memory.
#[derive(Clone, Debug)]
pub(crate) struct Held<'m> {
    pub(super) instruction: Instruction<'m>,
    pub(super) shape: Shape,
    pub(super) bounds: Vec<u64>,
    pub(super) bytes: u64,
    pub(super) role: Role,
    /// Its number among the plan's buffers.
    pub(super) buffer: usize,
    pub(super) is_at_peak: bool,
}

impl Held<'_> {
    pub(super) fn element_type(&self) -> ElementType {
        self.shape.element_type().unwrap_or(ElementType::Pred)
    }

    /// Logical dimensions, the fastest-varying first.
    pub(super) fn minor_to_major(&self) -> &[usize] {
        self.shape.layout().map_or(&[], |layout| layout.minor_to_major())
    }

    pub(super) fn elements(&self) -> u64 {
        self.bounds.iter().fold(1, |product, bound| product.saturating_mul(*bound))
    }

    pub(super) fn logical_bytes(&self) -> u64 {
        self.shape.as_array().and_then(|array| array.sizes().ok()).map_or(self.bytes, |sizes| sizes.logical_bytes)
    }
}

/// An argument or a result that is copied.
#[derive(Clone, Debug)]
pub(super) struct Party<'m> {
    pub(super) role: Role,
    /// The parameter, or the instruction that is the result.
    pub(super) instruction: Instruction<'m>,
    /// Among the arguments, or among the arrays of the result.
    pub(super) number: usize,
    /// As it is handed over.
    pub(super) from: Shape,
    /// As it had better be.
    pub(super) to: Shape,
    /// The copies that are then needless, by the index of their instructions.
    pub(super) copies: Vec<usize>,
    /// A result's value before it is copied.
    pub(super) made: Option<usize>,
    /// The number of the result that shares an argument's memory.
    pub(super) donated_to: Option<usize>,
}

/// A change that may help, before it is priced.
#[derive(Clone, Debug)]
pub(crate) struct Candidate<'m> {
    pub(super) kind: AdviceKind,
    pub(super) target: AdviceTarget,
    pub(crate) about: Held<'m>,
    /// Bytes that buffers take instead, if that is less.
    pub(super) resized: HashMap<usize, u64>,
    /// Bytes that buffers take instead, be it more.
    pub(super) placed: HashMap<usize, u64>,
    /// Bytes of results that then lie in arguments.
    pub(super) donated_bytes: u64,
    pub(super) is_bound: bool,
    pub(crate) sentence: String,
    pub(crate) code: Option<String>,
    pub(crate) imports: Option<&'static str>,
}

impl<'m> Candidate<'m> {
    pub(super) fn new(kind: AdviceKind, target: AdviceTarget, about: &Held<'m>, sentence: String) -> Self {
        Self {
            kind,
            target,
            about: about.clone(),
            resized: HashMap::new(),
            placed: HashMap::new(),
            donated_bytes: 0,
            is_bound: false,
            sentence,
            code: None,
            imports: None,
        }
    }

    pub(super) fn into_advice(self, peak_bytes_saved: u64) -> Advice {
        let (op_name, source) = traced(&self.about.instruction);
        Advice {
            kind: self.kind,
            target: self.target,
            instruction: self.about.instruction.name().to_owned(),
            shape: self.about.shape,
            peak_bytes_saved,
            is_bound: self.is_bound,
            sentence: self.sentence,
            imports: self.imports.filter(|_| self.code.is_some()).map(str::to_owned),
            code: self.code,
            op_name,
            source,
        }
    }
}

pub(crate) struct Scene<'m> {
    pub(super) module: &'m Module,
    pub(super) generation: tpu::Generation,
    /// Devices that run the program together.
    pub(super) partitions: u64,
    pub(super) flow: Flow<'m>,
    /// What is large enough to matter, in the order of definition.
    pub(super) held: Vec<Held<'m>>,
    pub(super) total_bytes: u64,
    pub(super) temporary_bytes: u64,
    pub(super) padding_share: f64,
    /// By instruction, the number of the buffer that it makes, or that the first of them lies in.
    pub(super) buffers: HashMap<usize, usize>,
    planner: Planner,
    packing: Packing,
}

impl<'m> Scene<'m> {
    pub(crate) fn new(report: &'m Report) -> Option<Self> {
        /// Arrays below this part of what the program holds can't make advice.
        const NEGLIGIBLE: u64 = 1000;

        let (plan, module) = (report.plan.as_ref().ok()?, &report.text);
        let mut options = PlanOptions::new(report.generation).with_packing(plan.packing);
        options.hbm_limit = None;
        let planner = Planner::new(module, options).ok()?;
        let hbm = plan.space(0)?;
        let total_bytes = plan.total_bytes();
        let at_peak: HashSet<usize> =
            hbm.peak.iter().flat_map(|peak| &peak.live).map(|live| hbm.values[live.value].buffer).collect();
        let mut held = Vec::new();
        for value in hbm.values.iter().filter(|value| value.bytes > total_bytes / NEGLIGIBLE) {
            let Some(instruction) = module.instruction(value.instruction) else { continue };
            let Some(shape) = part(&instruction, &value.shape_index) else { continue };
            let Some(array) = shape.as_array() else { continue };
            let bounds: Option<Vec<u64>> = array.dimensions().iter().map(|dimension| dimension.bound()).collect();
            let Some(bounds) = bounds else { continue };
            held.push(Held {
                instruction,
                bounds,
                bytes: value.bytes,
                role: value.role,
                buffer: value.buffer,
                is_at_peak: at_peak.contains(&value.buffer),
                shape,
            });
        }
        let mut buffers = HashMap::new();
        for value in plan.spaces.iter().flat_map(|space| &space.values) {
            buffers.entry(value.instruction).or_insert(value.buffer);
        }
        let peak = report.memory_space(0).and_then(|total| total.peak.as_ref());
        Some(Self {
            module,
            generation: report.generation,
            partitions: report.partitions,
            flow: Flow::new(module),
            held,
            total_bytes,
            temporary_bytes: plan.temporary_bytes(),
            padding_share: peak.map_or(0.0, |peak| share(peak.padding_bytes, peak.live_bytes)),
            buffers,
            planner,
            packing: plan.packing,
        })
    }

    pub(super) fn arguments(&self) -> impl Iterator<Item = &Held<'m>> {
        self.held.iter().filter(|held| held.role == Role::Argument && held.is_parameter())
    }

    pub(super) fn results(&self) -> impl Iterator<Item = &Held<'m>> {
        self.held.iter().filter(|held| held.role == Role::Output)
    }

    pub(super) fn temporaries(&self) -> impl Iterator<Item = &Held<'m>> {
        self.held.iter().filter(|held| held.role == Role::Temporary)
    }

    pub(super) fn peak_temporaries(&self) -> impl Iterator<Item = &Held<'m>> {
        let mut seen = HashSet::new();
        self.temporaries().filter(move |held| held.is_at_peak && seen.insert(held.buffer))
    }

    /// Whether the program takes a gradient: JAX's names of operations say so.
    pub(super) fn has_gradient(&self) -> bool {
        self.module.source().contains("transpose(jvp")
    }

    /// Bytes of an array that the compiler lays out freely.
    pub(super) fn default_bytes(&self, element_type: ElementType, bounds: &[u64]) -> Option<u64> {
        let shape = tpu::default_layout(element_type, bounds, self.generation).ok()?;
        Some(shape.as_array()?.sizes().ok()?.physical_bytes)
    }

    /// Bytes by which the program's total falls with all these changes.
    pub(super) fn saved<'a>(&mut self, candidates: impl IntoIterator<Item = &'a Candidate<'m>>) -> u64
    where
        'm: 'a,
    {
        self.total_bytes.saturating_sub(self.after(candidates))
    }

    /// The program's total with all these changes.
    pub(super) fn after<'a>(&mut self, candidates: impl IntoIterator<Item = &'a Candidate<'m>>) -> u64
    where
        'm: 'a,
    {
        let (mut resized, mut placed, mut donated) = (HashMap::new(), HashMap::new(), 0_u64);
        for candidate in candidates {
            for (buffer, bytes) in &candidate.resized {
                let least = resized.entry(*buffer).or_insert(*bytes);
                *least = (*least).min(*bytes);
            }
            placed.extend(&candidate.placed);
            donated = donated.saturating_add(candidate.donated_bytes);
        }
        let plan = self.planner.plan_resized(self.packing, |buffer, bytes| {
            let resized = || resized.get(&buffer).map(|resized| bytes.min(*resized));
            placed.get(&buffer).copied().or_else(resized)
        });
        plan.map_or(self.total_bytes, |plan| plan.total_bytes()).saturating_sub(donated)
    }
}

impl Held<'_> {
    pub(super) fn is_parameter(&self) -> bool {
        self.instruction.opcode() == Opcode::Parameter && self.instruction.computation().is_entry()
    }
}

/// The part of an instruction's shape at this path.
fn part(instruction: &Instruction<'_>, path: &[usize]) -> Option<Shape> {
    let shape = instruction.shape().ok()?;
    path.iter().try_fold(shape, |shape, element| shape.elements().nth(*element))
}
