//! One walk of each computation, as the core runs it.

use foldhash::HashSet;

use tilewise::tpu::Generation;
use tilewise_hlo::{CallRole, Computation, Instruction, Module, Opcode, dataflow::Dataflow};

use crate::{
    Basis, Cores, Estimate, Kind, LoopRow, NoTime, Rates, Row, Time,
    calls::Calls,
    channels::{Channel, Channels, Waited},
    collective::received_bytes,
    contents::Contents,
    cycles::{Price, price},
    flops::flops,
    kind::{Opcodes, is_collective},
    traffic::{Array, Arrays, Traffic},
};

impl Time {
    /// The time of a run of a program that is compiled for this generation.
    ///
    /// # Errors
    ///
    /// [`NoTime`] if the text has no cycle counts, or isn't a complete schedule.
    pub fn of(flow: &Dataflow, generation: Generation) -> Result<Self, NoTime> {
        let (body, cores, rates) = run(flow, generation)?;
        body.finish(cores, rates)
    }

    /// The least seconds of a run, with every operation at the memory's full rate or at the peak of the matrix unit.
    /// Needs no cycle counts.
    ///
    /// # Errors
    ///
    /// [`NoTime`] if the text isn't scheduled, or has no entry.
    pub fn floor_of(flow: &Dataflow, generation: Generation) -> Result<f64, NoTime> {
        run(flow, generation).map(|(body, ..)| body.total.floor)
    }
}

/// One run of the entry, with all that it calls.
fn run(flow: &Dataflow, generation: Generation) -> Result<(Body, Cores, Rates), NoTime> {
    let module = flow.module();
    if !module.is_scheduled() {
        return Err(NoTime::Unscheduled);
    }
    let entry = module.entry().ok_or(NoTime::NoEntry)?.index();
    let computations: Vec<Computation<'_>> = module.computations().collect();
    let calls = Calls::of(&computations, entry).ok_or(NoTime::Circle)?;
    let cores = Cores::of(module);
    let rates = Rates::of(generation, cores);
    let mut walk = Walk {
        module,
        flow,
        rates,
        contents: vec![None; computations.len()],
        bodies: vec![None; computations.len()],
        arrays: Arrays::default(),
        calls: &calls,
    };
    for inner in &calls.inner {
        walk.contents[*inner] = Some(Contents::of(&computations[*inner], &calls, &walk.contents, &mut walk.arrays));
    }
    for sequence in &calls.sequences {
        walk.bodies[*sequence] = Some(walk.body(&computations[*sequence]));
    }
    let bodies = walk.bodies;
    Ok((executed(bodies, &calls.sequences, entry), cores, rates))
}

/// One run of a computation.
#[derive(Clone, Debug, Default)]
struct Body {
    total: Estimate,
    rows: Vec<Row>,
    loops: Vec<LoopRow>,
    conditionals: usize,
    /// The computations it runs, and how often.
    runs: Vec<(usize, u64)>,
    /// Fusions of the kinds that the compiler always prices: those with a figure, and those without.
    priced: usize,
    unpriced: usize,
}

/// Sums all computations, each as often as it runs.
fn executed(mut bodies: Vec<Option<Body>>, callees_first: &[usize], entry: usize) -> Body {
    let mut counts = vec![0_u64; bodies.len()];
    counts[entry] = 1;
    let mut all = Body::default();
    for &computation in callees_first.iter().rev() {
        let Some(body) = bodies[computation].take() else { continue };
        let count = counts[computation];
        for (callee, times) in body.runs {
            counts[callee] = counts[callee].saturating_add(count.saturating_mul(times));
        }
        if computation == entry {
            all.total = body.total;
        }
        let is_run = count > 0;
        all.rows.extend(body.rows.into_iter().filter(|_| is_run).map(|row| Row { executions: count, ..row }));
        all.loops.extend(body.loops.into_iter().filter(|_| is_run).map(|row| LoopRow { executions: count, ..row }));
        all.conditionals += if is_run { body.conditionals } else { 0 };
        all.priced += body.priced;
        all.unpriced += body.unpriced;
    }
    all.rows.sort_by_key(|row| row.instruction);
    all.loops.sort_by_key(|row| row.instruction);
    all
}

impl Body {
    fn finish(self, cores: Cores, rates: Rates) -> Result<Time, NoTime> {
        let Self { total, rows, loops, conditionals, priced, unpriced, .. } = self;
        if priced == 0 && unpriced > 0 {
            return Err(NoTime::BeforeCodeGeneration);
        }
        if rows.iter().all(|row| row.cycles.is_none()) {
            return Err(NoTime::NothingPriced);
        }
        let is_at_least = rows.iter().any(|row| row.is_unpriced) || loops.iter().any(|row| row.trips.is_none());
        Ok(Time { cores, rates, total, is_at_least, rows, loops, conditionals })
    }
}

struct Walk<'m> {
    module: &'m Module,
    flow: &'m Dataflow,
    rates: Rates,
    calls: &'m Calls,
    contents: Vec<Option<Contents>>,
    bodies: Vec<Option<Body>>,
    arrays: Arrays<'m>,
}

impl<'m> Walk<'m> {
    fn body(&mut self, computation: &Computation<'m>) -> Body {
        let mut body = Body::default();
        let mut channels = Channels::default();
        for instruction in computation.instructions() {
            match instruction.opcode() {
                Opcode::Parameter
                | Opcode::Constant
                | Opcode::Bitcast
                | Opcode::Tuple
                | Opcode::GetTupleElement
                | Opcode::AfterAll
                | Opcode::PartitionId
                | Opcode::ReplicaId
                | Opcode::OptimizationBarrier
                | Opcode::AddDependency
                | Opcode::Domain => {}
                Opcode::While => channels.now += self.repeated(&instruction, &mut body),
                Opcode::Conditional => channels.now += self.dearest(&instruction, &mut body),
                Opcode::Call => {
                    for (_, callee) in self.calls.of_instruction(&instruction) {
                        channels.now += self.run(*callee, 1, &mut body);
                    }
                }
                Opcode::CopyStart
                | Opcode::AsyncStart
                | Opcode::AllGatherStart
                | Opcode::AllReduceStart
                | Opcode::CollectivePermuteStart
                | Opcode::Send
                | Opcode::Recv => self.start(&instruction, &mut channels, &mut body),
                Opcode::AsyncUpdate => {
                    if let Some(start) = first_operand(&instruction) {
                        channels.hand_on(start.index(), instruction.index());
                    }
                }
                Opcode::CopyDone
                | Opcode::AsyncDone
                | Opcode::AllGatherDone
                | Opcode::AllReduceDone
                | Opcode::CollectivePermuteDone
                | Opcode::SendDone
                | Opcode::RecvDone => {
                    let waited = first_operand(&instruction).and_then(|start| channels.end(start.index()));
                    body.rows.extend(waited.map(|Waited { start, seconds, kind }| Row {
                        instruction: start,
                        each: seconds,
                        ..row(&instruction, kind, Basis::Wait)
                    }));
                }
                Opcode::CustomCall if is_free(&instruction) => {}
                _ => {
                    let row = self.operation(&instruction, &mut body);
                    channels.now += row.each;
                    if !row.each.is_zero() || row.is_unpriced || row.cycles.is_some() {
                        body.rows.push(row);
                    }
                }
            }
        }
        body.total = channels.now;
        body
    }

    /// Runs a computation that was walked already.
    fn run(&self, callee: usize, times: u64, body: &mut Body) -> Estimate {
        body.runs.push((callee, times));
        self.once(callee).times(times)
    }

    fn once(&self, callee: usize) -> Estimate {
        self.bodies[callee].as_ref().map_or_else(Estimate::default, |body| body.total)
    }

    fn repeated(&self, instruction: &Instruction<'m>, body: &mut Body) -> Estimate {
        let trips = self.flow.op(instruction).and_then(|op| self.flow.trip_count(op));
        let called = self.calls.of_instruction(instruction).iter();
        let turn = called.filter(|(role, _)| matches!(role, CallRole::Body | CallRole::Condition));
        let callees: Vec<usize> = turn.map(|(_, callee)| *callee).collect();
        let each = callees.iter().fold(Estimate::default(), |sum, callee| sum + self.once(*callee));
        body.loops.push(LoopRow { instruction: instruction.index(), trips, executions: 1, each });
        let times = trips.unwrap_or(1);
        callees.into_iter().fold(Estimate::default(), |sum, callee| sum + self.run(callee, times, body))
    }

    fn dearest(&self, instruction: &Instruction<'m>, body: &mut Body) -> Estimate {
        body.conditionals += 1;
        let branches = self.calls.of_instruction(instruction).iter().map(|(_, callee)| *callee);
        let by_time = |left: &usize, right: &usize| self.once(*left).compiler.total_cmp(&self.once(*right).compiler);
        // The first of equal ones.
        match branches.rev().max_by(by_time) {
            Some(dearest) => self.run(dearest, 1, body),
            None => Estimate::default(),
        }
    }

    /// Starts an operation beside the core.
    fn start(&mut self, instruction: &Instruction<'m>, channels: &mut Channels, body: &mut Body) {
        let called = self.calls.of_instruction(instruction).iter();
        let inner: Vec<&Contents> = called.filter_map(|(_, callee)| self.contents[*callee].as_ref()).collect();
        let opcodes = inner.iter().fold(Opcodes::default(), |sum, inner| sum.with(inner.opcodes));
        let collective = inner.iter().find_map(|inner| inner.collective);
        let collective = match collective.and_then(|index| self.module.instruction(index)) {
            Some(inside) => Some(inside),
            None => is_collective(instruction.opcode()).then_some(*instruction),
        };
        let wraps_collective = instruction.wrapped_opcode().is_some_and(is_collective);
        let collective = collective.or(wraps_collective.then_some(*instruction));
        let thread = instruction.attribute("async_execution_thread").map(|thread| thread.trim_matches('"'));
        let index = instruction.index();
        if let Some(collective) = collective.filter(|_| thread != Some("host")) {
            let bytes = received_bytes(&collective, self.module, false, &mut self.arrays);
            channels.begin(index, Channel::Link, bytes / self.rates.link_bytes, Kind::CollectiveWait);
            body.rows.push(self.unpriced_start(instruction, Kind::Collective));
            return;
        }
        debug_assert!(!opcodes.has_collective() || thread == Some("host"));
        let beside = match thread {
            Some("host") => Some((Kind::Host, Kind::HostWait)),
            Some("main") | None => None,
            Some(_) => Some((Kind::SparseCore, Kind::SparseCoreWait)),
        };
        let arrays = self.arrays.result(instruction);
        if let Some((kind, wait)) = beside {
            let in_hbm = arrays.iter().filter(|array| array.memory_space == 0);
            let bytes = in_hbm.map(|array| array.part.physical).fold(0, u64::saturating_add);
            channels.begin(index, Channel::Beside, self.rates.seconds_of_bytes(bytes), wait);
            body.rows.push(self.unpriced_start(instruction, kind));
            return;
        }
        let wrapped = instruction.wrapped_opcode().or_else(|| inner.first()?.root);
        let update = instruction.operands().nth(1).and_then(|operand| operand.instruction());
        let (bytes, spaces) = moved(&arrays, wrapped);
        let bytes = match (wrapped, update) {
            (Some(Opcode::DynamicUpdateSlice), Some(update)) => self.arrays.part(&update).physical,
            _ => bytes,
        };
        if spaces.contains(&5) {
            channels.begin(index, Channel::Host, self.rates.seconds_to_host(bytes), Kind::HostWait);
        } else {
            // From HBM to HBM, every byte is read and written.
            let passes = match (spaces.contains(&0), spaces.len()) {
                (false, _) => 0,
                (true, 1) => 2,
                (true, _) => 1,
            };
            let seconds = self.rates.seconds_of_bytes(bytes.saturating_mul(passes));
            channels.begin(index, Channel::Dma, seconds, Kind::DmaWait);
        }
    }

    /// A row for the start of an operation that the compiler has no figure for; the row of the wait has its time.
    fn unpriced_start(&mut self, instruction: &Instruction<'m>, kind: Kind) -> Row {
        let is_unpriced = self.arrays.elements(instruction) > Row::SMALL;
        Row { is_unpriced, ..row(instruction, kind, Basis::Bound) }
    }

    /// The row of an operation of the core.
    fn operation(&mut self, instruction: &Instruction<'m>, body: &mut Body) -> Row {
        let called = self.calls.of_instruction(instruction).first();
        let inside = called.and_then(|(_, callee)| self.contents[*callee].as_ref());
        let fused = inside.filter(|_| instruction.opcode() == Opcode::Fusion);
        let traffic = Traffic::of(instruction, fused, &mut self.arrays);
        let kind = match fused {
            Some(fused) => fused.opcodes.kind(),
            None => Kind::of(instruction.opcode(), instruction.custom_call_target() == Some("tpu_custom_call")),
        };
        let flops = match fused {
            Some(fused) => fused.flops,
            None => flops(instruction).or_else(|| noted_flops(instruction)).unwrap_or(0),
        };
        let price = price(instruction);
        if fused.is_some() && matches!(instruction.attribute("kind"), Some("kLoop" | "kOutput")) {
            *(if price.is_some() { &mut body.priced } else { &mut body.unpriced }) += 1;
        }
        let row = Row {
            bytes: traffic.hbm.physical,
            padding_bytes: traffic.hbm.physical.saturating_sub(traffic.hbm.logical),
            flops,
            ..row(instruction, kind, Basis::Cycles)
        };
        if let Some(Price::Cycles(cycles)) = price {
            return Row { cycles: Some(cycles), each: self.estimate(cycles, &traffic, flops), ..row };
        }
        let seconds = if kind == Kind::Collective {
            let collective = fused.and_then(|fused| self.module.instruction(fused.collective?)).unwrap_or(*instruction);
            let scatters = fused.is_some_and(|fused| fused.opcodes.has_dynamic_slice());
            received_bytes(&collective, self.module, scatters, &mut self.arrays) / self.rates.link_bytes
        } else {
            self.floor(&traffic, flops).max(self.rates.seconds_to_host(traffic.host_bytes))
        };
        // An update in place works on the update only.
        let update = instruction.operands().nth(1).and_then(|operand| operand.instruction());
        let worked_on = match (instruction.opcode(), update) {
            (Opcode::DynamicUpdateSlice, Some(update)) => update,
            _ => *instruction,
        };
        let is_unpriced = self.arrays.elements(&worked_on) > Row::SMALL;
        let basis = if price.is_some() { Basis::Unknown } else { Basis::Bound };
        Row { each: Estimate::of(seconds), basis, is_unpriced, ..row }
    }

    /// Bytes and operations at full rate.
    fn floor(&self, traffic: &Traffic, flops: u64) -> f64 {
        self.rates.seconds_of_bytes(traffic.hbm.physical).max(self.rates.seconds_of_flops(flops))
    }

    /// The compiler charges memory-bound operations as if every element had four bytes, at 0.8 of the memory's rate. If
    /// that explains its figure, the true bytes replace them.
    #[expect(clippy::cast_precision_loss, reason = "an estimate of two digits")]
    fn estimate(&self, cycles: u64, traffic: &Traffic, flops: u64) -> Estimate {
        /// The share of the memory's rate that the compiler assumes.
        const MEMORY: f64 = 0.8;
        /// The share of the peak that large multiplications reach.
        const COMPUTE: f64 = 0.92;
        /// Seconds to start any operation.
        const START: f64 = 1.5e-6;
        let compiler = self.rates.seconds_of_cycles(cycles);
        let floor = self.floor(traffic, flops);
        let charged = traffic.wide_bytes / (MEMORY * self.rates.hbm_bytes);
        let estimate = if traffic.wide_bytes > 0.0 && charged >= 0.5 * compiler {
            let bytes = compiler * (traffic.hbm.physical as f64 / traffic.wide_bytes);
            let computed = self.rates.seconds_of_flops(flops) / COMPUTE;
            compiler.min(bytes.max(computed).max(self.rates.seconds_of_bytes(traffic.hbm.physical)) + START)
        } else {
            compiler
        };
        Estimate { floor, estimate: estimate.max(floor), compiler }
    }
}

/// A row without a time yet.
fn row(instruction: &Instruction<'_>, kind: Kind, basis: Basis) -> Row {
    Row {
        instruction: instruction.index(),
        kind,
        basis,
        cycles: None,
        executions: 1,
        each: Estimate::default(),
        bytes: 0,
        padding_bytes: 0,
        flops: 0,
        is_unpriced: false,
    }
}

fn first_operand<'m>(instruction: &Instruction<'m>) -> Option<Instruction<'m>> {
    instruction.operands().next()?.instruction()
}

/// Bytes that an asynchronous copy moves, and the memory spaces that it moves them between.
fn moved(arrays: &[Array], wrapped: Option<Opcode>) -> (u64, HashSet<u8>) {
    // Scalars are flags.
    let large = arrays.iter().filter(|array| !array.is_scalar);
    let bytes = large.clone().map(|array| array.part.physical);
    let bytes = match wrapped {
        Some(Opcode::Slice | Opcode::DynamicSlice) => bytes.min(),
        _ => bytes.max(),
    };
    (bytes.unwrap_or(0), large.map(|array| array.memory_space).collect())
}

/// Whether a custom call only names memory, or joins two halves, and does no work.
fn is_free(instruction: &Instruction<'_>) -> bool {
    let Some(target) = instruction.custom_call_target() else { return false };
    target.starts_with("TODO(")
        || target.starts_with("AsyncCollective")
        || matches!(
            target,
            "AllocateBuffer"
                | "ConcatBitcast"
                | "SliceBitcast"
                | "NopReturnToken"
                | "X64Combine"
                | "X64SplitLow"
                | "X64SplitHigh"
                | "X128Combine"
                | "X128SplitLow"
                | "X128SplitHigh"
                | "MoveToHost"
                | "MoveToDevice"
                | "Sharding"
                | "annotate_device_placement"
                | "AssumeGatherIndicesInBound"
        )
}

/// The operations that a kernel's author notes (`cost_estimate`).
fn noted_flops(instruction: &Instruction<'_>) -> Option<u64> {
    if instruction.opcode() != Opcode::CustomCall {
        return None;
    }
    let config = tilewise_hlo::unquote(instruction.attribute("backend_config")?);
    let (_, noted) = config.split_once("\"cost_estimate\"")?;
    let (_, flops) = noted.split_once("\"flops\"")?;
    let flops = flops.trim_start_matches([' ', ':', '"']);
    let digits = flops.bytes().take_while(u8::is_ascii_digit).count();
    flops[..digits].parse().ok()
}
