//! The audit of a module: its buffers sized, its copies listed, its memory bounded.

use super::{
    buffers::Buffers,
    peak::peak,
    rows::{MemoryBounds, SpaceTotal},
    sections::Report,
    warning::{Concerned, OtherCompiler, ReportWarning},
};
use crate::{
    copies::copies,
    program::{
        Array, ArrayId, Sizer, build_in_name, contradiction, for_tpu, infer_generation, infer_machine, machine_in_name,
        shown_generation,
    },
    program::{PlannedProgram, Program},
};
use foldhash::HashSet;
use std::{collections::BTreeMap, sync::OnceLock};
use tilewise::{
    ElementType, Layout, Shape, ShapeKind,
    tpu::{Generation, Libtpu},
};
use tilewise_hlo::{
    BufferAssignment, Computation, InputOutputAlias, Instruction, Module, Opcode, WarningKind, dataflow::Dataflow,
};
use tilewise_memory::{
    Error as PlanError, ErrorKind as PlanErrorKind, Machine, MemoryPlan, PlanOptions, Planner, SpacePlan,
    unshared_bytes,
};

/// Options of an audit.
#[derive(Clone, Copy)]
struct Options {
    machine: Option<Machine>,
    limit: Option<u64>,
    /// The machine in the name of the program's file.
    named: Option<Machine>,
    /// The build of the compiler in the name of the program's file.
    build: Option<u64>,
    /// The version of libtpu that compiled the program, if given; else that of the build is used.
    libtpu: Option<Libtpu>,
}

/// An audit of a program, which makes its [`Report`].
///
/// ```
/// use tilewise::tpu::Generation;
/// use tilewise_audit::{Audit, Machine, Program};
///
/// let program = Program::parse("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")?;
/// let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).source("jobs/step.v6e.hlo").run();
/// assert_eq!((report.padded(), report.limit()), ((1, 185_600_000), Some(Generation::V5e.hbm_bytes())));
/// // The file is named after another generation.
/// assert!(report.warnings.iter().any(|warning| warning.as_str() == "other_generation"));
/// # Ok::<(), tilewise_audit::Failure>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Audit<'a> {
    module: &'a Module,
    buffer_assignment: Option<&'a BufferAssignment>,
    machine: Option<Machine>,
    limit: Option<Option<u64>>,
    libtpu: Option<Libtpu>,
    source: &'a str,
}

impl<'a> Audit<'a> {
    /// The audit of a program, for the machine that its text shows.
    pub fn new(program: &'a Program) -> Self {
        let buffer_assignment = program.buffer_assignment.as_ref();
        Self { buffer_assignment, ..Self::of_module(&program.module) }
    }

    fn of_module(module: &'a Module) -> Self {
        Self { module, buffer_assignment: None, machine: None, limit: None, libtpu: None, source: "" }
    }

    /// Sets the machine, with as much memory as it [gives to programs](Machine::program_bytes); `None`
    /// [infers](infer_machine) it.
    pub fn machine(self, machine: impl Into<Option<Machine>>) -> Self {
        Self { machine: machine.into(), ..self }
    }

    /// Sets the bytes of memory, or no limit: near it a TPU's compiler packs memory another way.
    pub fn limit(self, bytes: impl Into<Option<u64>>) -> Self {
        Self { limit: Some(bytes.into()), ..self }
    }

    /// Sets the version of libtpu that compiled the program; by default that [of the build](Libtpu::of_build) in the
    /// file's name.
    pub fn libtpu(self, libtpu: impl Into<Option<Libtpu>>) -> Self {
        Self { libtpu: libtpu.into(), ..self }
    }

    /// Sets the source of the program's text. A file's name may have the compiler's build, and a machine, which is used
    /// if none is given; a generation gives a warning if another one is.
    pub fn source(self, path: &'a str) -> Self {
        Self { source: path, ..self }
    }

    /// Runs the audit: the program's memory at its peak, and the sizes of every buffer.
    ///
    /// Buffers that can't be sized, without a layout or a bound, give a warning and no row. A module that isn't
    /// scheduled has no [plan](Report::plan). The first warning is that the program was not compiled for a TPU, unless
    /// another machine is given.
    #[must_use]
    pub fn run(self) -> Report {
        let mut report = report(self);
        // A GPU's model is only known if it is given or named.
        let is_told = matches!(report.machine, Machine::Gpu(Some(_)));
        let may_be_tpus = !is_told && self.machine.is_none_or(|machine| machine.generation().is_some());
        let not_tpu = for_tpu(self.module).err().filter(|_| may_be_tpus);
        report.warnings.splice(..0, not_tpu.map(ReportWarning::NotTpu));
        if let Some(assignment) = self.buffer_assignment {
            report.compare_with(assignment);
        }
        report
    }
}

/// The [`Audit`] of a module with default options.
#[must_use]
pub fn audit(module: &Module) -> Report {
    report(Audit::of_module(module))
}

fn report(asked: Audit<'_>) -> Report {
    let name = asked.source.rsplit(['/', '\\']).next().unwrap_or_default();
    let options = Options {
        machine: asked.machine,
        limit: asked.limit.unwrap_or_else(|| asked.machine.and_then(Machine::program_bytes)),
        named: machine_in_name(name),
        build: build_in_name(name),
        libtpu: asked.libtpu,
    };
    let module = asked.module;
    let mut auditor = Auditor { must_be_tiled: module.has_tiles(), ..Auditor::default() };
    auditor.warnings.extend(module.warnings().iter().cloned().map(ReportWarning::Text));
    if module.leaves_layouts_out() {
        auditor.warnings.push(ReportWarning::DefaultLayouts);
    }
    for computation in module.computations() {
        let owns_buffers = computation.owns_buffers();
        for instruction in computation.instructions() {
            if !owns_buffers {
                auditor.check_shape(&instruction);
            } else if let Err(error) = auditor.add(&instruction) {
                auditor.lacks_any = true;
                auditor.warnings.push(ReportWarning::Shape(error.into()));
            }
        }
    }
    let flow = Dataflow::new(module);
    auditor.check_result(module);
    auditor.check_aliases(&flow);
    auditor.check_shapes(&flow);
    auditor.report_unsized();
    let copies = copies(module, &flow, &mut auditor.sizer);
    let (machine, assumed) = machine(module, options);
    let is_assumed = assumed.is_some();
    let is_machine_shown = asked.machine.is_some() || options.named.is_some() || shows_machine(module);
    auditor.warnings.extend(assumed);
    let other = machine.generation().and_then(|generation| of_another(module, generation, options));
    let other_generation = match &other {
        Some(ReportWarning::OtherGeneration { other, .. }) => Some(*other),
        _ => None,
    };
    auditor.warnings.extend(other);
    let libtpu = options.libtpu.or(options.build.and_then(Libtpu::of_build)).filter(|_| machine.generation().is_some());
    auditor.warnings.extend(of_another_build(libtpu, options.build, machine));
    auditor.check_spaces(machine);
    let mut plan_options = PlanOptions::new(machine);
    // A TPU's compiler knew the size of its memory, and near it packs memory another way. A GPU's limit is its pool.
    let of_machine = || machine.program_bytes().filter(|_| !is_assumed);
    plan_options.hbm_limit = options.limit.or_else(|| asked.limit.is_none().then(of_machine).flatten());
    // Compilers for other machines pack memory in other ways.
    let is_for_another = module.is_scheduled() && module.has_tiles() != machine.generation().is_some();
    let planner = if is_for_another {
        Err(PlanErrorKind::OtherMachine(machine).into())
    } else {
        Planner::of_dataflow(flow.clone(), plan_options)
    };
    let plan = planner.as_ref().map_err(PlanError::clone).and_then(Planner::plan);
    let mut memory_bounds = match &plan {
        Ok(plan) => MemoryBounds::of_plan(plan),
        Err(_) => memory_bounds(module, &mut auditor),
    };
    let is_bounded = match &plan {
        Ok(plan) => auditor.check_plan(plan, machine),
        Err(error) if matches!(error.kind(), PlanErrorKind::Unscheduled | PlanErrorKind::OtherMachine(_)) => {
            match unshared_bytes(&flow, machine) {
                Ok(bytes) => {
                    memory_bounds.at_most_bytes = bytes;
                    true
                }
                Err(_) => false,
            }
        }
        Err(_) => false,
    };
    memory_bounds.is_assumed = is_assumed;
    memory_bounds.doubtful_bytes = auditor.doubtful_bytes;
    // XLA schedules all programs that it compiles for these machines: the temporaries of another text are unknown.
    let is_compiled = machine.generation().is_some() || module.is_scheduled();
    memory_bounds.is_complete = is_bounded && !auditor.lacks_any && is_whole(module) && is_compiled;
    let mut memory_spaces = auditor.totals();
    for (plan, space) in plan.iter().flat_map(|plan| plan.spaces.iter().map(move |space| (plan, space))) {
        let number = space.memory_space;
        let total = memory_spaces.entry(number).or_insert_with(|| SpaceTotal::empty(number));
        total.peak = peak(&flow, plan, space, &mut auditor.sizer);
    }
    let Auditor { mut buffers, sizer, warnings, .. } = auditor;
    buffers.finish(sizer.into_arrays());
    Report {
        source: asked.source.to_owned(),
        given: asked.machine,
        module_name: module.name().to_owned(),
        entry: module.entry().map(|entry| entry.name().to_owned()),
        is_scheduled: module.is_scheduled(),
        machine,
        libtpu,
        partitions: partitions(module),
        memory_spaces: memory_spaces.into_values().collect(),
        copies,
        memory_bounds,
        warnings,
        compiler_plan: None,
        buffers,
        findings: OnceLock::new(),
        time: OnceLock::new(),
        planned: PlannedProgram {
            module: module.clone(),
            flow,
            machine,
            partitions: partitions(module),
            is_machine_shown,
            other_generation,
            limit: options.limit,
            plan,
            planner: planner.ok(),
        },
    }
}

/// The machine that a program is planned for, with the warning that it is only assumed.
fn machine(module: &Module, options: Options) -> (Machine, Option<ReportWarning>) {
    if let Some(machine) = options.machine {
        return (machine, None);
    }
    if module.has_tiles() || !module.is_scheduled() {
        let named = options.named.and_then(Machine::generation);
        return (named.unwrap_or_else(|| infer_generation(module)).into(), None);
    }
    let named = options.named.filter(|named| matches!(named, Machine::Gpu(_)));
    let inferred = match infer_machine(module) {
        None | Some(Machine::Gpu(None)) if named.is_some() => named,
        shown => shown,
    };
    let machine = inferred.unwrap_or(Machine::Cpu);
    (machine, inferred.is_none().then_some(ReportWarning::AssumedMachine))
}

/// Whether a module's text points to one machine.
fn shows_machine(module: &Module) -> bool {
    if module.has_tiles() { shown_generation(module).is_some() } else { infer_machine(module).is_some() }
}

/// The warning for a program that is compiled for another generation than the one it is audited for, or whose file is
/// named after another.
fn of_another(module: &Module, generation: Generation, options: Options) -> Option<ReportWarning> {
    let named = options.named.and_then(Machine::generation).filter(|named| *named != generation);
    let other = named.or_else(|| contradiction(module, generation))?;
    Some(ReportWarning::OtherGeneration { other, audited: generation, is_named: named.is_some() })
}

/// The warning for a program whose compiler's plans weren't compared.
fn of_another_build(libtpu: Option<Libtpu>, build: Option<u64>, machine: Machine) -> Option<ReportWarning> {
    machine.generation()?;
    let compiler = match (libtpu, build) {
        (Some(version), _) if version.is_checked() => return None,
        (Some(version), _) => OtherCompiler::Libtpu(version),
        (None, build) => OtherCompiler::Build(build?),
    };
    Some(ReportWarning::OtherBuild { compiler, machine })
}

/// Whether the text is a whole program, with nothing unknown in it.
fn is_whole(module: &Module) -> bool {
    let is_aside = |warning: &tilewise_hlo::Warning| warning.kind() == WarningKind::SeveralModules;
    !module.is_part() && module.warnings().iter().all(is_aside)
}

/// Devices that run the program together, each on its part (`num_partitions`).
fn partitions(module: &Module) -> u64 {
    module.attribute("num_partitions").and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// Collects buffers and warnings.
#[derive(Default)]
struct Auditor<'m> {
    sizer: Sizer<'m>,
    buffers: Buffers,
    /// By kind of error, the buffers that it kept from being sized.
    unsized_buffers: Vec<(tilewise::Error, Concerned)>,
    /// Whether arrays in HBM must have tiles, since some in the program do.
    must_be_tiled: bool,
    /// Arrays in HBM that lack tiles they must have.
    untiled: Option<Concerned>,
    /// Arrays whose elements have fewer bits than their type.
    narrowed: Option<Concerned>,
    /// The texts of shapes in fusions and functions that are already checked.
    checked_shapes: HashSet<&'m str>,
    /// Bytes that untiled arrays may take beside those counted.
    doubtful_bytes: u64,
    /// Whether anything could not be read or sized.
    lacks_any: bool,
    warnings: Vec<ReportWarning>,
}

impl<'m> Auditor<'m> {
    /// Adds the buffers that an instruction makes.
    fn add(&mut self, instruction: &Instruction<'m>) -> Result<(), tilewise_hlo::Error> {
        let definitions = instruction.definitions()?;
        if definitions.is_empty() {
            return Ok(());
        }
        let Some(leaves) = self.sizer.leaves(instruction) else {
            // Returns the shape's error.
            return instruction.buffers().map(|_| ());
        };
        let is_hosts = instruction.computation().execution_thread() == Some("host");
        for (path, array) in leaves.iter().filter(|(path, _)| definitions.include(path)) {
            self.push(instruction, path, array);
            if let (false, Ok(array)) = (is_hosts, array) {
                self.check_layout(instruction, *array);
            }
        }
        Ok(())
    }

    /// Checks tiles and bits of elements. A compiler lays every array in HBM out in tiles, but for scalars and empty
    /// ones: the size of another is unknown. Nor does it store an element in fewer bits than its type has; `pred` has
    /// one.
    fn check_layout(&mut self, instruction: &Instruction<'_>, array: ArrayId) {
        let Array { shape, memory_space, sizes: array_sizes, .. } = self.sizer.array(array);
        let is_tiled = shape.layout().is_some_and(|layout| !layout.tiles().is_empty());
        let is_empty = shape.dimensions().iter().any(|dimension| dimension.bound() == Some(0));
        let none = || Concerned { first: instruction.name().to_owned(), count: 0 };
        let must_be_tiled = self.must_be_tiled && !instruction.may_lack_tiles(shape);
        if must_be_tiled && *memory_space == 0 && !is_tiled && !is_empty && !shape.dimensions().is_empty() {
            self.untiled.get_or_insert_with(none).count += 1;
            let most = array_sizes.physical_bytes.saturating_mul(MOST_TIMES);
            self.doubtful_bytes = self.doubtful_bytes.saturating_add(most);
        }
        let bits = match shape.element_type() {
            Some(ElementType::Pred) | None => 1,
            Some(element) => u64::from(element.bits()),
        };
        if shape.layout().and_then(Layout::element_size_in_bits).is_some_and(|stored| stored < bits) {
            self.narrowed.get_or_insert_with(none).count += 1;
        }
    }

    /// Checks a shape within a fusion or function: it has no buffer, but must be readable.
    fn check_shape(&mut self, instruction: &Instruction<'m>) {
        if !self.checked_shapes.insert(instruction.shape_text()) {
            return;
        }
        if let Err(error) = instruction.shape() {
            self.note_unsized(error, instruction.name());
        }
    }

    /// Checks that a donated argument and its result exist, have one size, and are in no other pair: their shared
    /// memory is counted once. XLA's verifier refuses all else (`HloInputOutputAliasConfig::Verify` in
    /// xla/hlo/ir/hlo_input_output_alias_config.cc).
    fn check_aliases(&mut self, flow: &Dataflow) {
        let (Some(entry), Ok(aliases)) = (flow.entry(), flow.module().input_output_aliases()) else {
            // The plan has the error.
            self.lacks_any = true;
            return;
        };
        let parameters = &flow[entry].parameters;
        let (mut arguments, mut results) = (HashSet::default(), HashSet::default());
        for alias in &aliases {
            let parameter = parameters.binary_search_by_key(&alias.parameter_number, |op| flow[*op].number).ok();
            let argument = parameter.and_then(|at| flow.at(flow[parameters[at]].position, &alias.parameter_index));
            let result = flow.at(flow.result(entry), &alias.output_index);
            let is_sound = argument.zip(result).is_some_and(|(argument, result)| {
                let sizes = [argument, result].map(|position| flow.shape(position).map(|shape| self.sizes_in(&shape)));
                let [of_argument, of_result] = sizes;
                of_argument == of_result && arguments.insert(argument) && results.insert(result)
            });
            if !is_sound {
                let InputOutputAlias { output_index, parameter_number, .. } = alias;
                self.lacks_any = true;
                let (output_index, argument) = (output_index.clone(), *parameter_number);
                self.warnings.push(ReportWarning::AliasMismatch { output_index, argument });
                return;
            }
        }
    }

    /// Checks that one value has one shape: otherwise the smaller size could be counted for the larger.
    fn check_shapes(&mut self, flow: &Dataflow) {
        if let Some(mismatch) = flow.mismatch() {
            self.lacks_any = true;
            self.warnings.push(ReportWarning::ShapeMismatch(mismatch));
        }
    }

    /// Whether a plan adds up: the live bytes at the peak are at most the total, and values in memory on the chip have
    /// room there.
    fn check_plan(&mut self, plan: &MemoryPlan, machine: Machine) -> bool {
        let live_bytes = plan.space(0).map_or(0, SpacePlan::peak_live_bytes);
        let total_bytes = plan.total_bytes();
        if live_bytes > total_bytes {
            self.warnings.push(ReportWarning::PeakAboveTotal { live_bytes, total_bytes });
            return false;
        }
        let Some(generation) = machine.generation() else { return true };
        let over = plan.spaces.iter().find_map(|space| {
            let room = on_chip_bytes(generation, space.memory_space)?;
            let largest = space.values.iter().map(|value| value.bytes).max().unwrap_or(0);
            // Windows and partial buffers of kernels are counted whole here: in compiled programs, up to 1.5 times the
            // memory's size.
            let bytes = if largest > room { largest } else { space.peak_live_bytes() / 2 };
            (bytes > room).then_some((space, largest.max(space.peak_live_bytes()), room))
        });
        let Some((space, bytes, room_bytes)) = over else { return true };
        self.warnings.push(ReportWarning::OnChipMemory { memory_space: space.memory_space, bytes, room_bytes });
        false
    }

    /// Warns of arrays in memory that no TPU is known to have.
    fn check_spaces(&mut self, machine: Machine) {
        let unknown =
            self.totals().into_keys().find(|space| machine.generation().is_some() && !KNOWN_SPACES.contains(space));
        if let Some(space) = unknown {
            self.lacks_any = true;
            self.warnings.push(ReportWarning::UnknownMemorySpace(space));
        }
    }

    /// Bytes of each array in a shape.
    fn sizes_in(&mut self, shape: &Shape) -> Vec<Option<u64>> {
        shape.leaves().map(|(_, leaf)| self.sizer.physical_bytes(&leaf)).collect()
    }

    /// Checks the result: printed without layouts it has no size, though its operands may have one.
    fn check_result(&mut self, module: &'m Module) {
        let Some(root) = module.entry().and_then(|entry| entry.root()) else { return };
        for (_, array) in self.sizer.leaves(&root).iter().flat_map(|leaves| leaves.iter()) {
            match array {
                Err(error) => self.note_unsized(error.clone(), root.name()),
                Ok(array) => self.check_layout(&root, *array),
            }
        }
    }

    fn push(&mut self, instruction: &Instruction<'m>, path: &[usize], array: &Result<ArrayId, tilewise::Error>) {
        match array {
            Ok(array) => self.buffers.push(instruction, path, *array),
            Err(error) => self.note_unsized(error.clone(), instruction.name()),
        }
    }

    /// The buffers of each memory space together.
    fn totals(&self) -> BTreeMap<u8, SpaceTotal> {
        let mut totals = BTreeMap::new();
        for (_, array) in self.buffers.arrays(self.sizer.arrays()) {
            let total = totals.entry(array.memory_space).or_insert_with(|| SpaceTotal::empty(array.memory_space));
            total.buffers += 1;
            // Hostile sizes may sum to more than 2^64 bytes; the total then saturates.
            total.logical_bytes = total.logical_bytes.saturating_add(array.sizes.logical_bytes);
            total.physical_bytes = total.physical_bytes.saturating_add(array.sizes.physical_bytes);
        }
        totals
    }

    fn note_unsized(&mut self, error: tilewise::Error, instruction: &str) {
        match self.unsized_buffers.iter_mut().find(|(known, _)| known.kind() == error.kind()) {
            Some((_, arrays)) => arrays.count += 1,
            None => self.unsized_buffers.push((error, Concerned { first: instruction.to_owned(), count: 1 })),
        }
    }

    fn report_unsized(&mut self) {
        self.lacks_any |= !self.unsized_buffers.is_empty() || self.narrowed.is_some();
        self.warnings.extend(self.untiled.take().map(ReportWarning::Untiled));
        self.warnings.extend(self.narrowed.take().map(ReportWarning::NarrowElement));
        let sizes = self.unsized_buffers.drain(..).map(|(error, arrays)| ReportWarning::Size(error, arrays));
        self.warnings.extend(sizes);
    }
}

/// Most times that tiles expand an array: a single number in a tile of 8 × 128, four times as wide.
const MOST_TIMES: u64 = 4096;

/// The memory spaces that a TPU's compiler was seen to use, on any generation.
const KNOWN_SPACES: [u8; 13] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 15];

/// Bytes of a memory space on the chip, if known; for spaces that hold only small things, at most the size of the
/// largest VMEM. `None` for HBM and the host's memory.
fn on_chip_bytes(generation: Generation, memory_space: u8) -> Option<u64> {
    /// Bytes of CMEM, which v4 has beside VMEM, and of the largest VMEM.
    const LARGEST: u64 = 128 << 20;
    match memory_space {
        0 | 5 => None,
        1 => tilewise_kernel::vmem_bytes(generation).or(Some(LARGEST)),
        4 => generation.smem_bytes().or(Some(LARGEST)),
        _ => Some(LARGEST),
    }
}

/// The bounds of the program's bytes in the default memory.
fn memory_bounds<'m>(module: &'m Module, auditor: &mut Auditor<'m>) -> MemoryBounds {
    let mut bounds = MemoryBounds::default();
    let Some(entry) = module.entry() else { return bounds };
    let arguments: Vec<usize> =
        entry.instructions().filter(|i| i.opcode() == Opcode::Parameter).map(|argument| argument.index()).collect();
    for (instruction, array) in auditor.buffers.arrays(auditor.sizer.arrays()) {
        if array.memory_space == 0 {
            let bytes = array.sizes.physical_bytes;
            bounds.at_most_bytes = bounds.at_most_bytes.saturating_add(bytes);
            let part = match module.instruction(instruction).map(|instruction| instruction.opcode()) {
                Some(Opcode::Constant) => &mut bounds.constant_bytes,
                _ if arguments.binary_search(&instruction).is_ok() => &mut bounds.argument_bytes,
                _ => continue,
            };
            *part = part.saturating_add(bytes);
        }
    }
    // Constants of functions are allocations, too.
    let functions = module.computations().filter(Computation::is_function);
    for constant in functions.flat_map(|it| it.instructions()).filter(|it| it.opcode() == Opcode::Constant) {
        for array in
            auditor.sizer.leaves(&constant).iter().flat_map(|leaves| leaves.iter()).flat_map(|(_, array)| array)
        {
            let Array { memory_space, sizes, .. } = auditor.sizer.array(*array);
            let bytes = if *memory_space == 0 { sizes.physical_bytes } else { 0 };
            bounds.constant_bytes = bounds.constant_bytes.saturating_add(bytes);
            bounds.at_most_bytes = bounds.at_most_bytes.saturating_add(bytes);
        }
    }
    let Some(Ok(result)) = entry.root().map(|root| root.shape()) else { return bounds };
    let donated: HashSet<Vec<usize>> =
        module.input_output_aliases().unwrap_or_default().into_iter().map(|alias| alias.output_index).collect();
    for (path, leaf) in result.leaves().filter(|(_, leaf)| memory_space(leaf) == 0) {
        let bytes = auditor.sizer.physical_bytes(&leaf).unwrap_or(0);
        bounds.output_bytes = bounds.output_bytes.saturating_add(bytes);
        if (0..=path.len()).any(|depth| donated.contains(&path[..depth])) {
            bounds.alias_bytes = bounds.alias_bytes.saturating_add(bytes);
        }
    }
    bounds.at_most_bytes = bounds.at_most_bytes.saturating_sub(bounds.alias_bytes);
    bounds
}

fn memory_space(shape: &Shape) -> u8 {
    match shape.kind() {
        ShapeKind::Array(array) => array.memory_space(),
        _ => 0,
    }
}
