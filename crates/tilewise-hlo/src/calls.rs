//! The computations that an instruction calls.

use std::fmt;

use crate::computation::Computation;
use crate::instruction::Instruction;
use crate::operands::OperandTexts;
use crate::record::Data;
use crate::scan::bare;

/// The role in which a computation is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallRole {
    /// `calls`: a fusion's body, or the computation that an `async-start` wraps.
    Calls,
    /// `to_apply`: the callee of a `call`; of others, a scalar function such as a reducer or comparator.
    ToApply,
    /// `body` of a `while`.
    Body,
    /// `condition` of a `while`.
    Condition,
    /// One of the `branch_computations` of a `conditional`.
    Branch,
    /// `true_computation` of a `conditional`.
    True,
    /// `false_computation` of a `conditional`.
    False,
    /// One of the `called_computations` of a `custom-call`.
    Called,
    /// `select` of a `select-and-scatter`.
    Select,
    /// `scatter` of a `select-and-scatter`.
    Scatter,
}

impl CallRole {
    /// The attribute's name in the text.
    ///
    /// ```
    /// assert_eq!(tilewise_hlo::CallRole::Branch.as_str(), "branch_computations");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::ToApply => "to_apply",
            Self::Body => "body",
            Self::Condition => "condition",
            Self::Branch => "branch_computations",
            Self::True => "true_computation",
            Self::False => "false_computation",
            Self::Called => "called_computations",
            Self::Select => "select",
            Self::Scatter => "scatter",
        }
    }

    pub(crate) fn of(name: &str) -> Option<Self> {
        use CallRole::*;
        [Calls, ToApply, Body, Condition, Branch, True, False, Called, Select, Scatter]
            .into_iter()
            .find(|role| role.as_str() == name)
    }
}

/// A computation that an instruction calls.
#[derive(Clone, Copy)]
pub struct Call<'m> {
    /// The role in which it is called.
    pub role: CallRole,
    /// The computation's name, without `%`; one made up for a computation within the instruction.
    pub name: &'m str,
    index: Option<usize>,
    data: &'m Data,
}

impl<'m> Call<'m> {
    /// The computation, if the text has it.
    #[must_use]
    pub fn computation(&self) -> Option<Computation<'m>> {
        match self.index {
            Some(index) => Some(Computation { data: self.data, index }),
            None => Computation::named(self.data, self.name),
        }
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("role", &self.role).field("name", &self.name).finish()
    }
}

impl<'m> Instruction<'m> {
    /// The number of devices that take part in a collective, by the first of its `replica_groups`; `None` if all do, or for
    /// other operations.
    ///
    /// ```
    /// use tilewise_hlo::Module;
    ///
    /// let sum = |groups: &str| {
    ///     let line = format!("x = f32[8] all-reduce(a), replica_groups={groups}, to_apply=add");
    ///     let module = Module::parse(format!("HloModule m\nENTRY e {{\n  a = f32[8] parameter(0)\n  ROOT {line}\n}}"))?;
    ///     Ok::<_, tilewise_hlo::Error>(module.instructions().nth(1).and_then(|at| at.group_size()))
    /// };
    /// assert_eq!((sum("{{0,1,2,3}}")?, sum("[2,8]<=[16]")?, sum("{}")?), (Some(4), Some(8), None));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn group_size(&self) -> Option<u64> {
        let groups = self.attribute("replica_groups")?;
        if let Some(first) = groups.strip_prefix("{{") {
            let members = first.split('}').next()?.split(',').filter(|member| !member.trim().is_empty());
            return u64::try_from(members.count()).ok();
        }
        if let Some((axes, used)) = mesh(groups) {
            let size = |one: &str| {
                // `'x':(2)4` is 4 of the devices along `x`.
                let part = one.rsplit_once(')').map(|(_, size)| size);
                let whole = || axes.split(',').find_map(|axis| axis.trim().strip_prefix(one.trim())?.strip_prefix('='));
                part.or_else(whole)?.trim().parse().ok()
            };
            return used.split(',').map(size).try_fold(1, |all: u64, one| all.checked_mul(one?));
        }
        // `[groups,members]<=[…]`
        let (counts, _) = groups.strip_prefix('[')?.split_once(']')?;
        counts.split(',').nth(1)?.trim().parse().ok()
    }

    /// The axis of the mesh along which the devices of a collective lie, if its `replica_groups` name one alone.
    ///
    /// ```
    /// let groups = "mesh['data'=4,'model'=2] {'data'}";
    /// let line = format!("x = f32[8] all-reduce(a), replica_groups={groups}, to_apply=add");
    /// let text = format!("HloModule m\nENTRY e {{\n  a = f32[8] parameter(0)\n  ROOT {line}\n}}");
    /// let module = tilewise_hlo::Module::parse(text)?;
    /// let sum = module.entry().and_then(|entry| entry.root()).expect("a root");
    /// assert_eq!((sum.mesh_axis(), sum.group_size()), (Some("data"), Some(4)));
    /// # Ok::<(), tilewise_hlo::Error>(())
    /// ```
    #[must_use]
    pub fn mesh_axis(&self) -> Option<&'m str> {
        let (_, used) = mesh(self.attribute("replica_groups")?)?;
        used.trim().strip_prefix('\'')?.strip_suffix('\'').filter(|name| !name.contains('\''))
    }

    /// The computations it calls, each with its role; the text may not have them.
    pub fn calls(&self) -> impl Iterator<Item = Call<'m>> + use<'m> {
        let data = self.data;
        let attributes = self.attributes().filter_map(|found| Some((CallRole::of(found.name)?, found.value)));
        attributes.flat_map(move |(role, value)| {
            called(data, value).map(move |(name, index)| Call { role, name, index, data })
        })
    }
}

/// The axes of `mesh['x'=4,'y'=2] {'x'}` with their sizes, and those used.
fn mesh(groups: &str) -> Option<(&str, &str)> {
    let (axes, rest) = groups.strip_prefix("mesh[")?.split_once(']')?;
    Some((axes, rest.rsplit_once('{')?.1.strip_suffix('}')?))
}

/// The computations of an attribute's value: one or a list in braces, each by its name, or written out in braces of its
/// own, and then with its index.
pub(crate) fn called<'m>(data: &'m Data, value: &'m str) -> impl Iterator<Item = (&'m str, Option<usize>)> {
    let inline = move |item: &'m str| {
        let position = u32::try_from(data.offset_of(item)).ok()?;
        let found = data.inline.binary_search_by_key(&position, |(position, _)| *position).ok()?;
        Some(data.inline[found].1 as usize)
    };
    let is_inline = move |item: &'m str| !data.inline.is_empty() && item.starts_with('{') && inline(item).is_some();
    let names = match value.strip_prefix('{').and_then(|value| value.strip_suffix('}')) {
        Some(names) if !is_inline(value) => names,
        _ => value,
    };
    OperandTexts::new(names).map(move |item| match inline(item).filter(|_| is_inline(item)) {
        Some(index) => (data.text(data.computations[index].name), Some(index)),
        None => (bare(item), None),
    })
}

#[cfg(test)]
mod tests {
    use crate::Module;

    #[test]
    fn calls_of_every_spelling() {
        let text =
            "x = f32[] conditional(p), branch_computations={%a, %b}, to_apply=c, called_computations={}, calls=%no";
        let module = Module::parse(text).unwrap();
        let calls: Vec<_> = module.instructions().next().unwrap().calls().collect();
        let names: Vec<_> = calls.iter().map(|call| (call.role.as_str(), call.name)).collect();
        let branches = "branch_computations";
        assert_eq!(names, [(branches, "a"), (branches, "b"), ("to_apply", "c"), ("calls", "no")]);
        assert!(calls[3].computation().is_none());
    }
}
