//! Programs that are loaded on one device at once, such as the buckets of a server: what the whole takes.

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
    /// What it is called; else its module's name, or where others have that, too, its file's.
    pub name: Option<&'a str>,
    /// Bytes of its code in HBM (`generated_code_size_in_bytes` of the compiler's `memory_analysis()`), which no text tells.
    pub code_bytes: Option<u64>,
}

impl<'a> Member<'a> {
    /// A program of which nothing but its text is known.
    #[must_use]
    pub fn new(report: &'a Report) -> Self {
        Self { report, name: None, code_bytes: None }
    }
}

/// What a set of programs holds in a device's HBM when all are loaded.
///
/// Arguments that several programs have, by name, type, dimensions and layout, are one array. An argument whose dimensions
/// differ between programs is an input of a call, held while its program runs; one that a single program has is held all
/// the time. The runtime reserves the largest temporaries of all loaded programs, whether or not that program runs.
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
    /// Bytes of HBM that there are, where that is known.
    pub limit: Option<u64>,
    /// The programs, in their order.
    pub programs: Vec<LoadedProgram>,
    /// Arrays that are held whichever program runs, each once, by name.
    pub residents: Vec<ResidentArray>,
    /// Bytes of these.
    pub resident_bytes: u64,
    /// Bytes of the programs' constants.
    pub constant_bytes: u64,
    /// Bytes of their code; `None` where one's isn't known.
    pub code_bytes: Option<u64>,
    /// Bytes of the largest program's temporaries, the gaps between them included.
    pub largest_temporaries: u64,
    /// The most bytes of inputs and new results that a call of any program holds.
    pub call_bytes: u64,
    /// All of it; without code where that isn't known.
    pub total_bytes: u64,
    /// The pages of the cache, where there are such arrays.
    pub pages: Option<PageArrays>,
    /// What would free memory or make room for pages, the most first.
    pub options: Vec<Alternative>,
}

/// What a program adds to its set.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadedProgram {
    /// What it is called in the set.
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
    /// Bytes of these that nothing uses at its peak.
    pub fragmentation_bytes: u64,
    /// Bytes of its constants.
    pub constant_bytes: u64,
    /// Bytes of its code, where they are known.
    pub code_bytes: Option<u64>,
    /// Bytes of inputs and new results that one call of it holds beside what is resident.
    pub call_bytes: u64,
    /// Bytes of its new results that are of the form of arrays it could be given by donation.
    pub undonated_bytes: u64,
    /// Bytes of its temporaries and results for one more page, about; 0 where they do not grow with the cache.
    pub bytes_per_page: u64,
    /// Whether its temporaries, inputs and new results together are the largest.
    pub decides: bool,
    /// Bytes that the set takes less without it.
    pub freed_bytes: u64,
    /// How many pages more fit without it; `None` without pages, a limit or other programs.
    pub costs_pages: Option<u64>,
}

/// What a change of the set frees.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Alternative {
    /// What is changed.
    pub change: SetChange,
    /// Bytes that the set takes less.
    pub freed_bytes: u64,
    /// Whether it may be less.
    pub is_bound: bool,
    /// How many pages fit then; `None` without pages or a limit.
    pub pages: Option<u64>,
}

/// A change of a set of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SetChange {
    /// A program, by its number, is given the arrays that it returns again.
    Donate(usize),
    /// A program, by its number, isn't loaded.
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

    /// The number of the program that it is about.
    #[must_use]
    pub fn program(self) -> Option<usize> {
        match self {
            Self::Donate(number) | Self::Drop(number) => Some(number),
            Self::Narrow | Self::Dense => None,
        }
    }
}

impl Together {
    /// The sum of programs in `limit` bytes of HBM, by default as much as their machine gives.
    ///
    /// `pages` says which arguments are the cache and which dimension counts its pages; by default those that some program is
    /// donated and every program has, if they agree in their first dimension.
    ///
    /// # Errors
    /// There is no program, one has no plan, they are of different machines, or no argument is called as `pages` says.
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

    /// Whether all of it fits; `None` where that isn't known: without a limit, or where code decides of which no bytes are known.
    #[must_use]
    pub fn fits(&self) -> Option<bool> {
        let limit = self.limit?;
        if self.total_bytes > limit { Some(false) } else { self.code_bytes.map(|_| true) }
    }
}

/// What the programs are called: the names given, else those of the modules, files or paths, whichever differ first, else
/// their numbers.
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
