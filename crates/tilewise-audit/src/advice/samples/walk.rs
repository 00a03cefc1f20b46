//! The program, once through: loops until what they carry has its samples.

use super::{
    Digit, Way,
    bounds::Leaf,
    operations::{Operand, by_size, rows_of_each, share},
    share::{Join, Share},
};
use crate::program::{is_backward, op_name};
use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    rc::Rc,
};
use tilewise::{ElementKind, Shape};
use tilewise_hlo::{CallRole, Computation, Instruction, Module, Opcode};

/// Computations call one another so deep, and no deeper is followed.
const DEEPEST: usize = 32;
/// A loop's shares only rise: from the same for all to each sample's.
const ROUNDS: usize = 16;
/// Steps for each instruction of the module.
const STEPS: usize = 64;
/// Custom calls whose results are their operands.
const HANDING_ON: &[&str] =
    &["Sharding", "AssumeGatherIndicesInBound", "GatherScatterIndicesBitpacked", "MoveToHost", "MoveToDevice"];

/// How samples are joined at the end of their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joint {
    /// By their rows, put together.
    Rows,
    /// By what the parts add up to.
    Sums,
}

pub(super) struct Walk {
    samples: u64,
    way: Way,
    /// Steps that are left: the text decides how long loops in loops take.
    left: usize,
    forms: HashMap<usize, Rc<Form>>,
    /// By instruction outside of fusions, the shares of its result's leaves.
    pub(super) shares: HashMap<usize, Vec<Share>>,
    /// The same of what loops fill.
    filled: HashMap<usize, Vec<Share>>,
    /// The first instruction that joins samples, where they may be, and how.
    pub(super) joined: Option<(usize, Joint)>,
    /// What is known to follow from small sums of the forward pass, and the bytes of further ones.
    after_sums: HashSet<usize>,
    joinable_left: u64,
}

impl Walk {
    pub(super) fn new(module: &Module, samples: u64, way: Way) -> Self {
        let left = module.instructions().len().saturating_mul(STEPS);
        let (forms, shares, filled, after_sums) = Default::default();
        let joinable_left = way.joinable_bytes;
        Self { samples, way, left, forms, shares, filled, joined: None, after_sums, joinable_left }
    }

    /// Follows the samples from the arguments of the entry computation on.
    pub(super) fn run(&mut self, computation: &Computation<'_>, arguments: &[Vec<Share>]) -> Result<(), Join> {
        self.call(computation, arguments, 0)?;
        self.shares.extend(std::mem::take(&mut self.filled));
        Ok(())
    }

    /// The shares of a computation's result.
    fn call(
        &mut self,
        computation: &Computation<'_>,
        arguments: &[Vec<Share>],
        depth: usize,
    ) -> Result<Vec<Share>, Join> {
        if depth > DEEPEST {
            return Err(Join::Unknown);
        }
        let mut values: HashMap<usize, Vec<Share>> = HashMap::new();
        let mut result = Vec::new();
        for at in computation.instructions() {
            self.left = self.left.checked_sub(1).ok_or(Join::Unknown)?;
            let shares = match at.parameter_number() {
                Some(number) => arguments.get(number).cloned().ok_or(Join::Unknown)?,
                None => match self.instruction(&at, &values, depth) {
                    Err(join) if depth > 0 || join == Join::Unknown => return Err(join),
                    Err(join) => match self.all_of(&at, &values) {
                        Some(shares) => shares,
                        None => self.of_sums(&at, &values).ok_or(join)?,
                    },
                    found => found?,
                },
            };
            if at.is_root() {
                result.clone_from(&shares);
            }
            values.insert(at.index(), shares);
        }
        self.shares.extend(values);
        Ok(result)
    }

    fn instruction(
        &mut self,
        at: &Instruction<'_>,
        values: &HashMap<usize, Vec<Share>>,
        depth: usize,
    ) -> Result<Vec<Share>, Join> {
        let operands: Vec<Instruction<'_>> =
            at.operands().map(|operand| operand.instruction().ok_or(Join::Unknown)).collect::<Result<_, _>>()?;
        let shares: Vec<&Vec<Share>> = operands
            .iter()
            .map(|operand| values.get(&operand.index()).ok_or(Join::Unknown))
            .collect::<Result<_, _>>()?;
        let handed_on = || shares.iter().flat_map(|shares| shares.iter().cloned()).collect::<Vec<_>>();
        let form = self.form(at)?;
        let to = &form.leaves;
        let result = match at.opcode() {
            Opcode::Tuple => handed_on(),
            Opcode::GetTupleElement => {
                let number = at.tuple_index().ok_or(Join::Unknown)?;
                let tuple = self.form(operands.first().ok_or(Join::Unknown)?)?;
                let range = tuple.element(number).ok_or(Join::Unknown)?;
                shares.first().and_then(|shares| shares.get(range)).ok_or(Join::Unknown)?.to_vec()
            }
            Opcode::Fusion | Opcode::Call => {
                let arguments: Vec<Vec<Share>> = shares.iter().map(|shares| (*shares).clone()).collect();
                self.call(&callee(at)?, &arguments, depth + 1)?
            }
            Opcode::While => self.repeated(at, shares.first().ok_or(Join::Unknown)?, depth)?,
            Opcode::Conditional => {
                let mut merged: Option<Vec<Share>> = None;
                let branches =
                    at.calls().filter(|call| matches!(call.role, CallRole::Branch | CallRole::True | CallRole::False));
                for (number, branch) in branches.enumerate() {
                    let argument = shares.get(number + 1).map_or_else(Vec::new, |shares| (*shares).clone());
                    let found = self.call(&branch.computation().ok_or(Join::Unknown)?, &[argument], depth + 1)?;
                    merged = Some(match merged {
                        Some(merged) => all_with(&merged, &found)?,
                        None => found,
                    });
                }
                merged.ok_or(Join::Unknown)?
            }
            // What a SparseCore is given by its memory.
            Opcode::AsyncStart if operands.is_empty() => Vec::new(),
            // ((operands), (results), what it works with)
            Opcode::AsyncStart => {
                // A piece of the memory of an array, which is joined with the others where it goes.
                let runs = callee(at).ok().and_then(|callee| callee.root()).map(|root| root.opcode());
                if runs.or(at.wrapped_opcode()) == Some(Opcode::Slice) {
                    let pieces = shares.iter().flat_map(|shares| shares.iter()).map(|share| share.at(Vec::new()));
                    return Ok(filled(handed_on().into_iter().chain(pieces), to.len()));
                }
                let started = match callee(at) {
                    Ok(computation) => {
                        let arguments: Vec<Vec<Share>> = shares.iter().map(|shares| (*shares).clone()).collect();
                        self.call(&computation, &arguments, depth + 1)?
                    }
                    Err(_) => {
                        let place = handed_on().len();
                        let leaf = to.get(place).cloned().unwrap_or_default();
                        self.each(at, at.wrapped_opcode(), &operands, &shares, &[leaf])?
                    }
                };
                handed_on().into_iter().chain(started).collect()
            }
            // A SparseCore starts on its memory alone, and is given operands then.
            Opcode::AsyncUpdate if operands.len() > 1 => {
                let arguments: Vec<Vec<Share>> = shares.iter().skip(1).map(|shares| (*shares).clone()).collect();
                let given = arguments.concat();
                let made = to.get(given.len());
                let rows = made.and_then(|made| made.bounds.first()).copied();
                let of_rows = all_added(&operands[0], &given, rows);
                let started = match of_rows.or(self.of_row_numbers(&operands[1..], &arguments, rows)) {
                    Some(made) => vec![made],
                    None => match callee(&operands[0]) {
                        Ok(callee) => self.call(&callee, &arguments, depth + 1)?,
                        // What formats an array anew, and the like.
                        Err(_) => {
                            self.each(at, None, &operands[1..], &shares[1..], made.map_or(&[], std::slice::from_ref))?
                        }
                    },
                };
                given.into_iter().chain(started).collect()
            }
            Opcode::AsyncUpdate => handed_on(),
            Opcode::AsyncDone => {
                let start = self.form(operands.first().ok_or(Join::Unknown)?)?;
                let skipped = start.ends.first().copied().unwrap_or(0);
                handed_on().into_iter().skip(skipped).take(to.len()).collect()
            }
            Opcode::CopyStart => [handed_on(), handed_on()].concat(),
            Opcode::CopyDone
            | Opcode::AllReduce
            | Opcode::AllReduceStart
            | Opcode::AllReduceDone
            | Opcode::CollectivePermuteStart
            | Opcode::CollectivePermuteDone
            | Opcode::OptimizationBarrier => handed_on(),
            _ if at.joins_slices() => vec![self.whole(&operands, values, to)],
            Opcode::CustomCall if at.custom_call_target().is_some_and(|target| HANDING_ON.contains(&target)) => {
                handed_on()
            }
            opcode => self.each(at, Some(opcode), &operands, &shares, to)?,
        };
        if at.opcode() == Opcode::Sort {
            self.share_places(&operands, &shares)?;
        }
        Ok(filled(result.into_iter(), to.len()))
    }

    /// What an instruction has that joins samples, where it reads little of them: something of all, as inputs are.
    fn all_of(&mut self, at: &Instruction<'_>, values: &HashMap<usize, Vec<Share>>) -> Option<Vec<Share>> {
        let mut left = self.way.joinable_bytes;
        for operand in at.operands().filter_map(|operand| operand.instruction()) {
            let shape = operand.shape().ok()?;
            for ((_, leaf), share) in shape.leaves().zip(values.get(&operand.index())?) {
                if !share.digits().is_empty() {
                    left = left.checked_sub(leaf.as_array()?.sizes().ok()?.physical_bytes)?;
                }
            }
        }
        self.joined.get_or_insert((at.index(), Joint::Rows));
        let length = self.form(at).ok()?.leaves.len();
        Some(vec![Share::SAME; length])
    }

    /// What an instruction of the backward pass has that reads what follows from sums over all samples for each of them: parts of the
    /// forward pass end where these are added up, and the backward pass, which computes them again, is given what follows.
    fn of_sums(&mut self, at: &Instruction<'_>, values: &HashMap<usize, Vec<Share>>) -> Option<Vec<Share>> {
        let is_joined_otherwise = matches!(self.joined, Some((_, Joint::Rows)));
        if is_joined_otherwise || !op_name(at).is_some_and(|name| is_backward(&name)) {
            return None;
        }
        let first = self.first_sum(at, values)?;
        let same = |share: &Share| if is_all(share) { Share::SAME } else { share.clone() };
        let operands = at.operands().filter_map(|operand| operand.instruction());
        let given = operands.filter_map(|operand| {
            let shares = values.get(&operand.index())?;
            Some((operand.index(), shares.iter().map(same).collect()))
        });
        let shares = self.instruction(at, &given.collect(), 0).ok()?;
        let first = self.joined.map_or(first, |(before, _)| before.min(first));
        self.joined = Some((first, Joint::Sums));
        Some(shares)
    }

    /// The first sum over all samples that an instruction's operands follow from, where all such sums are of the forward pass and
    /// small; of those that are known already, any.
    fn first_sum(&mut self, at: &Instruction<'_>, values: &HashMap<usize, Vec<Share>>) -> Option<usize> {
        let (mut waiting, mut seen, mut first) = (vec![*at], HashSet::new(), self.joined.map(|(first, _)| first));
        let mut left = self.joinable_left;
        while let Some(at) = waiting.pop() {
            self.left = self.left.checked_sub(1)?;
            for operand in at.operands().filter_map(|operand| operand.instruction()) {
                let (index, shares) = (operand.index(), values.get(&operand.index())?);
                if !shares.iter().any(is_all) || self.after_sums.contains(&index) || !seen.insert(index) {
                    continue;
                }
                let mut read = operand.operands().filter_map(|of| values.get(&of.instruction()?.index())).flatten();
                if !read.any(|share| !share.digits().is_empty()) {
                    waiting.push(operand);
                    continue;
                }
                if op_name(&operand).is_some_and(|name| is_backward(&name)) {
                    return None;
                }
                let shape = operand.shape().ok()?;
                for (leaf, _) in shape.leaves().map(|(_, leaf)| leaf).zip(shares).filter(|(_, share)| is_all(share)) {
                    left = left.checked_sub(leaf.as_array()?.sizes().ok()?.physical_bytes)?;
                }
                first = Some(first.map_or(index, |first| first.min(index)));
            }
        }
        self.joinable_left = left;
        self.after_sums.extend(seen);
        first
    }

    /// The share of numbers of rows, of which each of so many rows that are gathered has one.
    fn of_row_numbers(
        &mut self,
        operands: &[Instruction<'_>],
        shares: &[Vec<Share>],
        rows: Option<u64>,
    ) -> Option<Share> {
        let mut of_rows = operands.iter().zip(shares).filter(|(at, _)| {
            let form = self.form(at).ok();
            form.is_some_and(|form| matches!(&form.leaves[..], [leaf] if leaf.bounds.len() == 1 && leaf.bounds.first() == rows.as_ref()))
        });
        let found =
            of_rows.find_map(|(_, shares)| shares.first().filter(|share| !share.digits().is_empty()).cloned())?;
        // What is computed from rows of weights counts as of weights, too.
        Some(found.marked(shares.iter().flatten().any(Share::of_weights)))
    }

    /// The share of the array whose pieces these are.
    fn whole(&mut self, pieces: &[Instruction<'_>], values: &HashMap<usize, Vec<Share>>, to: &[Leaf]) -> Share {
        /// From a piece to its array: what it is of, the start, its bytes, the array.
        const STEPS: usize = 6;
        let mut at = pieces.first().copied();
        for _ in 0..STEPS {
            let Some(found) = at else { break };
            let shares = values.get(&found.index()).map(Vec::as_slice);
            let bounds = self.form(&found).ok().and_then(|form| Some(form.leaves.first()?.bounds.clone()));
            if let Some([share]) = shares.filter(|_| bounds.as_ref() == to.first().map(|leaf| &leaf.bounds)) {
                return share.clone();
            }
            at = found.operands().next().and_then(|operand| operand.instruction());
        }
        let mut shares = pieces.iter().filter_map(|piece| values.get(&piece.index())?.first());
        let is_of_weights = shares.clone().any(Share::of_weights);
        shares.next().cloned().unwrap_or(Share::SAME).marked(is_of_weights)
    }

    /// The shares of these arrays of a result.
    fn each<'a>(
        &mut self,
        at: &Instruction<'_>,
        opcode: Option<Opcode>,
        operands: &[Instruction<'_>],
        shares: &[&Vec<Share>],
        to: &'a [Leaf],
    ) -> Result<Vec<Share>, Join> {
        match opcode {
            Some(Opcode::Iota) => return Ok(to.iter().map(|leaf| self.counted(at, leaf)).collect()),
            Some(Opcode::Rng | Opcode::RngBitGenerator) if self.way.is_made => {
                return Ok(to.iter().map(|leaf| self.drawn(leaf)).collect());
            }
            _ => {}
        }
        let forms: Vec<Rc<Form>> = operands.iter().map(|operand| self.form(operand)).collect::<Result<_, _>>()?;
        let given: Vec<Operand<'_>> = forms
            .iter()
            .zip(shares)
            .flat_map(|(form, shares)| form.leaves.iter().zip(shares.iter()))
            .map(|(leaf, share)| Operand { share, leaf })
            .collect();
        // A kernel, the host, what is newer than this, or what the same is made of for all samples.
        let is_known = !matches!(
            opcode,
            None | Some(
                Opcode::CustomCall
                    | Opcode::Send
                    | Opcode::SendDone
                    | Opcode::Recv
                    | Opcode::RecvDone
                    | Opcode::Unknown
            )
        );
        let is_of_samples = given.iter().any(|given| !matches!(given.share, Share::Same { .. }));
        // Results of equal bounds have equal shares: a call may have as many results as operands.
        let mut sized: HashMap<&'a [u64], Share> = HashMap::new();
        let of_leaf = |leaf: &'a Leaf| match opcode.and_then(|opcode| share(at, opcode, &given, leaf, self.samples)) {
            Some(found) => found,
            None if is_known && is_of_samples => Err(Join::Unknown),
            None => {
                let known = sized.entry(&leaf.bounds).or_insert_with(|| by_size(&given, leaf, self.samples));
                Ok(known.clone())
            }
        };
        to.iter().map(of_leaf).collect()
    }

    /// Numbers along a dimension of as many as there are samples.
    fn counted(&self, at: &Instruction<'_>, to: &Leaf) -> Share {
        let place = at.iota_dimension();
        let digit = place.filter(|place| to.bounds.get(*place) == Some(&self.samples));
        let digits = digit.map(|place| Digit::new(place, 1, self.samples)).into_iter().collect();
        if self.way.is_made && digit.is_some() {
            return Share::Each { of_weights: false, numbered: true, is_made: true, digits };
        }
        Share::SAME.at(digits)
    }

    /// Random bits, as many along a dimension as there are samples.
    fn drawn(&self, to: &Leaf) -> Share {
        match to.bounds.iter().position(|bound| *bound == self.samples) {
            Some(place) => Share::each(vec![Digit::new(place, 1, self.samples)]),
            None => Share::SAME,
        }
    }

    /// Gives the places that a stable sort takes beside samples the samples' share: fewer samples have fewer places.
    fn share_places(&mut self, operands: &[Instruction<'_>], shares: &[&Vec<Share>]) -> Result<(), Join> {
        let Some((like, share)) = operands.iter().zip(shares).find_map(|(operand, shares)| match &shares[..] {
            [share] if !share.digits().is_empty() => Some((operand, share.clone())),
            _ => None,
        }) else {
            return Ok(());
        };
        let bounds = self.form(like)?.leaves.first().map(|leaf| leaf.bounds.clone());
        for operand in operands.iter().filter(|operand| is_counted(operand)) {
            let form = self.form(operand)?;
            if matches!(&form.leaves[..], [leaf] if Some(&leaf.bounds) == bounds.as_ref()) {
                self.filled.insert(operand.index(), vec![share.clone()]);
            }
        }
        Ok(())
    }

    /// What a loop leaves: what it carries, once another step changes nothing of it.
    fn repeated(&mut self, at: &Instruction<'_>, carried: &[Share], depth: usize) -> Result<Vec<Share>, Join> {
        let body = at.calls().find(|call| call.role == CallRole::Body).and_then(|call| call.computation());
        let body = body.ok_or(Join::Unknown)?;
        if let Some(carried) = self.gathered(at, carried)? {
            self.fill(at, &carried);
            return Ok(carried);
        }
        let mut carried = carried.to_vec();
        for _ in 0..ROUNDS {
            let next = self.call(&body, &[carried.clone()], depth + 1)?;
            let all = all_with(&carried, &next)?;
            if all == carried {
                self.fill(at, &carried);
                return Ok(carried);
            }
            carried = all;
        }
        Err(Join::Unknown)
    }

    /// What a loop leaves that the compiler makes of a gather: a row of the same table, or of its own, at each sample's number.
    fn gathered(&mut self, at: &Instruction<'_>, carried: &[Share]) -> Result<Option<Vec<Share>>, Join> {
        if op_name(at).is_none_or(|name| name.rsplit('/').next() != Some("gather")) {
            return Ok(None);
        }
        let form = self.form(at)?;
        let shape = at.shape().map_err(|_| Join::Unknown)?;
        let is_number = |leaf: &Shape| {
            leaf.element_type().is_some_and(|of| matches!(of.kind(), ElementKind::Signed | ElementKind::Unsigned))
        };
        let all = carried.iter().zip(&form.leaves).zip(shape.leaves());
        let of_samples = all.filter(|((share, _), _)| !share.digits().is_empty());
        let (numbers, tables): (Vec<_>, Vec<_>) = of_samples.partition(|(_, (_, leaf))| is_number(leaf));
        let [((numbers, of), _)] = numbers[..] else { return Ok(None) };
        if tables.iter().any(|((table, _), _)| table.digits() != numbers.digits()) {
            return Ok(None);
        }
        let rows = of.bounds.first().filter(|_| numbers.digits().iter().all(|digit| digit.dimension == 0));
        let is_filled = |leaf: &Leaf| leaf.bounds.len() > 1 && leaf.bounds.first() == rows;
        let of_weights = carried.iter().any(Share::of_weights);
        let found = carried.iter().zip(&form.leaves).map(|(share, leaf)| match share {
            Share::Same { .. } if rows.is_some() && is_filled(leaf) => numbers.clone().marked(of_weights),
            share => share.clone(),
        });
        Ok(rows.is_some().then(|| found.collect()))
    }

    /// Gives an array that a loop writes samples into their shares from before the loop on: its zeros are overwritten.
    fn fill(&mut self, at: &Instruction<'_>, carried: &[Share]) {
        let tuple = at.operands().next().and_then(|operand| operand.instruction());
        let elements = tuple.iter().flat_map(|tuple| tuple.operands()).map(|operand| operand.instruction());
        let mut next = carried.iter();
        for element in elements {
            let Some(element) = element else { return };
            let count = self.form(&element).map_or(0, |form| form.leaves.len());
            let shares: Vec<Share> = next.by_ref().take(count).cloned().collect();
            if shares.iter().any(|share| !share.digits().is_empty()) {
                self.filled.insert(element.index(), shares);
            }
        }
    }

    fn form(&mut self, at: &Instruction<'_>) -> Result<Rc<Form>, Join> {
        if let Some(known) = self.forms.get(&at.index()) {
            return Ok(Rc::clone(known));
        }
        let form = Rc::new(Form::new(&at.shape().map_err(|_| Join::Unknown)?));
        self.forms.insert(at.index(), Rc::clone(&form));
        Ok(form)
    }
}

/// The arrays of a result, and how many of them there are up to the end of each of its elements.
struct Form {
    leaves: Vec<Leaf>,
    ends: Vec<usize>,
}

impl Form {
    fn new(shape: &Shape) -> Self {
        let leaves = shape.leaves().map(|(_, leaf)| Leaf::new(&leaf)).collect();
        let mut end = 0;
        let ends = shape.elements().map(|element| {
            end += element.leaves().count();
            end
        });
        Self { ends: ends.collect(), leaves }
    }

    /// The leaves of an element.
    fn element(&self, number: usize) -> Option<Range<usize>> {
        let start = number.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        Some(start..*self.ends.get(number)?)
    }
}

/// So many shares: of what is listed, and of what else there is.
fn filled(listed: impl Iterator<Item = Share>, length: usize) -> Vec<Share> {
    let mut shares: Vec<Share> = listed.collect();
    shares.resize(length, Share::SAME);
    shares
}

/// What a scatter leaves that adds samples' rows up: each sample's own rows, or those of all.
fn all_added(at: &Instruction<'_>, given: &[Share], rows: Option<u64>) -> Option<Share> {
    let is_sum = op_name(at).is_some_and(|name| name.ends_with("scatter-add"));
    let is_of_samples = given.iter().any(|share| !matches!(share, Share::Same { .. }));
    let of_weights = given.iter().any(Share::of_weights);
    let of_each = || given.iter().find_map(|numbers| rows_of_each(numbers, 0, rows?));
    (is_sum && is_of_samples)
        .then(|| of_each().map_or(Share::All { of_weights }, |digit| Share::each(vec![digit]).marked(of_weights)))
}

/// Whether it is made of nothing but numbers in order.
fn is_counted(at: &Instruction<'_>) -> bool {
    at.opcode() == Opcode::Iota || at.opcode() == Opcode::Fusion && at.operands().next().is_none()
}

/// What an instruction runs.
fn callee<'m>(at: &Instruction<'m>) -> Result<Computation<'m>, Join> {
    let mut calls = at.calls().filter(|call| matches!(call.role, CallRole::Calls | CallRole::ToApply));
    calls.next().and_then(|call| call.computation()).ok_or(Join::Unknown)
}

fn all_with(left: &[Share], right: &[Share]) -> Result<Vec<Share>, Join> {
    left.iter().zip(right).map(|(left, right)| left.with(right)).collect()
}

const fn is_all(share: &Share) -> bool {
    matches!(share, Share::All { .. })
}
