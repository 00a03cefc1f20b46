//! The memory of programs that are loaded on one device at once, such as the buckets of a server.

mod argument;
mod error;
mod growth;
mod loaded;
mod pages;
mod resident;
mod total;

pub use pages::{PageArrays, PagesOf};
pub use resident::ResidentArray;

use crate::{failure::Failure, report::Report};
use loaded::Loaded;
use pages::Pages;
use resident::Residents;
use tilewise_memory::Machine;
use total::Totals;

/// A program of a set.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Its audit.
    pub report: &'a Report,
    /// Its name; else its module's, or if others share that, its file's.
    pub name: Option<&'a str>,
    /// Bytes of its code in HBM (`generated_code_size_in_bytes` of the compiler's `memory_analysis()`); not in the
    /// text.
    pub code_bytes: Option<u64>,
}

impl<'a> Member<'a> {
    /// A program with only its text known.
    #[must_use]
    pub fn new(report: &'a Report) -> Self {
        Self { report, name: None, code_bytes: None }
    }
}

/// The memory of a set of programs in a device's HBM when all are loaded.
///
/// Arguments of several programs with the same name, type, dimensions and layout are one array. An argument whose
/// dimensions differ between programs is an input of a call, held while its program runs; an argument of a single
/// program is held all the time. The runtime reserves the largest temporaries of all loaded programs, whichever runs.
///
/// ```
/// use tilewise_audit::{Member, Program, Audit, Together};
///
/// let program = |tokens: u32| {
///     let text = format!("HloModule jit_f{tokens}, is_scheduled=true\n\nENTRY e {{
///   w = f32[1024,1024]{{1,0:T(8,128)}} parameter(0), metadata={{op_name=\"w\"}}
///   x = f32[{tokens},1024]{{1,0:T(8,128)}} parameter(1), metadata={{op_name=\"x\"}}
///   ROOT y = f32[{tokens},1024]{{1,0:T(8,128)}} custom-call(w, x), custom_call_target=\"f\"\n}}");
///     Ok::<_, tilewise_audit::Failure>(Audit::new(&Program::parse(&text)?).run())
/// };
/// let reports = [program(8)?, program(64)?];
/// let together = Together::of(&reports.each_ref().map(Member::new), None, None)?;
/// // The weights once; of the larger call its input and its result.
/// assert_eq!((together.resident_bytes, together.call_bytes), (4 << 20, 2 * 64 * 4096));
/// # Ok::<(), tilewise_audit::Failure>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Together {
    /// The machine that all are compiled for.
    pub machine: Machine,
    /// Available bytes of HBM, if known.
    pub limit: Option<u64>,
    /// The programs, in their order.
    pub programs: Vec<LoadedProgram>,
    /// Arrays that are held whichever program runs, each once, by name.
    pub residents: Vec<ResidentArray>,
    /// Bytes of [`residents`](Self::residents).
    pub resident_bytes: u64,
    /// Bytes of the programs' constants.
    pub constant_bytes: u64,
    /// Bytes of their code; `None` if one's is unknown.
    pub code_bytes: Option<u64>,
    /// Bytes of the largest program's temporaries, the gaps between them included.
    pub largest_temporaries: u64,
    /// The most bytes of inputs and new results that a call of any program holds.
    pub call_bytes: u64,
    /// Sum of all these bytes; unknown code isn't counted.
    pub total_bytes: u64,
    /// The pages of the cache; `None` without page arrays.
    pub pages: Option<PageArrays>,
    /// Changes that free memory or make room for pages, the most first.
    pub options: Vec<Alternative>,
}

/// A program's part of its set.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadedProgram {
    /// Its name in the set.
    pub name: String,
    /// The module's name.
    pub module_name: String,
    /// Bytes of its arguments, results, and results that lie in arguments, as the compiler reports them.
    pub argument_bytes: u64,
    /// See [`argument_bytes`](Self::argument_bytes).
    pub output_bytes: u64,
    /// See [`argument_bytes`](Self::argument_bytes).
    pub alias_bytes: u64,
    /// Bytes of its temporaries.
    pub temporary_bytes: u64,
    /// Bytes of its temporaries' memory that nothing uses at its peak.
    pub fragmentation_bytes: u64,
    /// Bytes of its constants.
    pub constant_bytes: u64,
    /// Bytes of its code, if known.
    pub code_bytes: Option<u64>,
    /// Bytes of inputs and new results that one call of it holds beside resident arrays.
    pub call_bytes: u64,
    /// Bytes of its new results that could lie in resident arrays, were these donated.
    pub undonated_bytes: u64,
    /// Bytes of its temporaries and results per additional page, approximately; 0 if they do not grow with the cache.
    pub bytes_per_page: u64,
    /// Whether its temporaries, inputs and new results together are the largest.
    pub decides: bool,
    /// Bytes that dropping it frees.
    pub freed_bytes: u64,
    /// Extra pages that fit without this program; `None` if there are no pages, limit or other programs.
    pub costs_pages: Option<u64>,
}

/// A change of the set and its effect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Alternative {
    /// The change.
    pub change: SetChange,
    /// Bytes that it frees.
    pub freed_bytes: u64,
    /// Whether it may free less.
    pub is_bound: bool,
    /// Number of pages that fit then; `None` without pages or a limit.
    pub pages: Option<u64>,
}

/// A change of a set of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SetChange {
    /// The arrays that a program returns again are donated to it; by its number.
    Donate(usize),
    /// A program isn't loaded; by its number.
    Drop(usize),
    /// Pages of 8-bit elements, in the compiler's layout for them.
    Narrow,
    /// Pages without padding.
    Dense,
}

impl SetChange {
    /// Its name in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Donate(_) => "donate",
            Self::Drop(_) => "drop",
            Self::Narrow => "narrow",
            Self::Dense => "layout",
        }
    }

    /// The number of its program; `None` for a change of the pages.
    #[must_use]
    pub fn program(self) -> Option<usize> {
        match self {
            Self::Donate(number) | Self::Drop(number) => Some(number),
            Self::Narrow | Self::Dense => None,
        }
    }
}

impl Together {
    /// Sums up programs in `limit` bytes of HBM, by default all that their machine gives.
    ///
    /// `pages` names the arguments that are the cache, and the dimension that counts its pages. By default the cache is
    /// every argument of rank 3 or more that is donated to some program and that all have, if their first dimensions
    /// are equal.
    ///
    /// # Errors
    /// There is no program, one has no plan or unknown sizes, their machines differ, or `pages` matches no arguments of
    /// equal counts.
    pub fn of(members: &[Member<'_>], limit: impl Into<Option<u64>>, pages: Option<&PagesOf>) -> Result<Self, Failure> {
        let Some(first) = members.first() else {
            return Err(error::no_program());
        };
        let machine = first.report.machine;
        let loaded = members.iter().zip(names(members)).map(|(member, name)| Loaded::new(member, name, machine));
        let loaded: Vec<Loaded<'_>> = loaded.collect::<Result<_, _>>()?;
        let residents = Residents::of(&loaded);
        let pages = Pages::of(&residents, loaded.len(), pages)?;
        let limit = limit.into().or(first.report.limit()).or_else(|| machine.program_bytes());
        let totals = Totals { loaded: &loaded, residents: &residents, pages: pages.as_ref(), machine, limit };
        let (now, fitting) = (totals.total(None, None), totals.fitting(None));
        let programs: Vec<LoadedProgram> =
            (0..loaded.len()).map(|number| totals.program(number, now, fitting)).collect();
        let options = totals.options(now, &programs);
        let page_arrays = pages.as_ref().map(|pages| totals.page_arrays(pages, fitting));
        let mut residents = residents.arrays;
        for at in pages.iter().flat_map(|pages| &pages.arrays) {
            residents[*at].is_pages = true;
        }
        Ok(Self {
            machine,
            limit,
            programs,
            resident_bytes: now.resident,
            constant_bytes: now.constants,
            code_bytes: loaded.iter().all(|each| each.code_bytes.is_some()).then_some(now.code),
            largest_temporaries: now.temporaries,
            call_bytes: now.call,
            total_bytes: now.sum(),
            pages: page_arrays,
            residents,
            options,
        })
    }

    /// Whether all of it fits; `None` if unknown: without a limit, or if it depends on code of unknown size.
    #[must_use]
    pub fn fits(&self) -> Option<bool> {
        let limit = self.limit?;
        if self.total_bytes > limit { Some(false) } else { self.code_bytes.map(|_| true) }
    }
}

/// The names of the programs: those given, else those of the modules, files or paths, whichever are distinct first,
/// else their numbers.
fn names(members: &[Member<'_>]) -> Vec<String> {
    let module = |member: &Member<'_>| {
        let name = &member.report.module_name;
        name.strip_prefix("jit_").unwrap_or(name).to_owned()
    };
    let file = |member: &Member<'_>| {
        let source = &member.report.source;
        source.rsplit(['/', '\\']).next().unwrap_or(source).to_owned()
    };
    let stem = |member: &Member<'_>| file(member).split('.').next().unwrap_or_default().to_owned();
    let source = |member: &Member<'_>| member.report.source.clone();
    let ways: [&dyn Fn(&Member<'_>) -> String; 4] = [&module, &stem, &file, &source];
    let distinct = ways.iter().map(|way| members.iter().map(way).collect::<Vec<String>>()).find(|names| {
        let is_unique = |name: &String| !name.is_empty() && names.iter().filter(|other| *other == name).count() == 1;
        names.iter().all(is_unique)
    });
    let names = distinct.unwrap_or_else(|| (1..=members.len()).map(|number| number.to_string()).collect());
    members.iter().zip(names).map(|(member, name)| member.name.map_or(name, str::to_owned)).collect()
}
