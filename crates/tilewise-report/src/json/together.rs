//! Programs that are loaded at once, as JSON has them: `docs/json.md` lists the fields.

use super::{Json, all};
use serde::{Serialize, Serializer, ser::SerializeStruct};
use tilewise_audit::{Alternative, LoadedProgram, PageArrays, ResidentArray, Together};

/// As `--together` prints it: the one field of its line.
#[derive(Debug, Serialize)]
pub(crate) struct TogetherLine<'a> {
    pub(crate) together: Json<'a, Together>,
}

/// An item whose program numbers become names, so that its list reads alone.
struct Named<'a, T> {
    item: &'a T,
    together: &'a Together,
}

fn named<'a, T>(items: &'a [T], together: &'a Together) -> Vec<Named<'a, T>> {
    items.iter().map(|item| Named { item, together }).collect()
}

fn name(together: &Together, number: usize) -> Option<&str> {
    together.programs.get(number).map(|program| &*program.name)
}

fields!(Together, together, {
    machine: together.machine.to_string(),
    resident_bytes: together.resident_bytes,
    largest_temporaries: together.largest_temporaries,
    call_bytes: together.call_bytes,
    constant_bytes: together.constant_bytes,
    // Null where one program's isn't known.
    code_bytes: together.code_bytes,
    total_bytes: together.total_bytes,
    limit_bytes: together.limit,
    fits: together.fits(),
    programs: all(&together.programs),
    residents: named(&together.residents, together),
    pages: together.pages.as_ref().map(|item| Named { item, together }),
    options: named(&together.options, together),
});

fields!(LoadedProgram, program, {
    name: program.name,
    module: program.module_name,
    argument_bytes: program.argument_bytes,
    output_bytes: program.output_bytes,
    alias_bytes: program.alias_bytes,
    temporary_bytes: program.temporary_bytes,
    fragmentation_bytes: program.fragmentation_bytes,
    constant_bytes: program.constant_bytes,
    code_bytes: program.code_bytes,
    call_bytes: program.call_bytes,
    undonated_bytes: program.undonated_bytes,
    bytes_per_page: program.bytes_per_page,
    decides: program.decides,
    freed_bytes: program.freed_bytes,
    costs_pages: program.costs_pages,
});

impl Serialize for Named<'_, ResidentArray> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { item: array, together } = self;
        let names = |numbers: &[usize]| numbers.iter().filter_map(|at| name(together, *at)).collect::<Vec<_>>();
        let mut fields = serializer.serialize_struct("ResidentArray", 8)?;
        fields.serialize_field("name", &array.name)?;
        fields.serialize_field("shape", &array.shape.to_string())?;
        fields.serialize_field("bytes", &array.bytes)?;
        fields.serialize_field("padding_bytes", &array.padding_bytes)?;
        fields.serialize_field("programs", &names(&array.programs))?;
        fields.serialize_field("donated_to", &names(&array.donated_to))?;
        fields.serialize_field("is_pages", &array.is_pages)?;
        fields.serialize_field("is_laid_out_otherwise", &array.is_laid_out_otherwise)?;
        fields.end()
    }
}

impl Serialize for Named<'_, PageArrays> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { item: pages, together } = self;
        let mut fields = serializer.serialize_struct("PageArrays", 9)?;
        fields.serialize_field("arrays", &pages.arrays)?;
        fields.serialize_field("name", &pages.name)?;
        fields.serialize_field("shape", &pages.shape.to_string())?;
        fields.serialize_field("dimension", &pages.dimension)?;
        fields.serialize_field("count", &pages.count)?;
        fields.serialize_field("page_bytes", &pages.page_bytes)?;
        fields.serialize_field("page_padding_bytes", &pages.page_padding_bytes)?;
        fields.serialize_field("fitting", &pages.fitting)?;
        fields.serialize_field("decided_by", &pages.decided_by.and_then(|number| name(together, number)))?;
        fields.end()
    }
}

impl Serialize for Named<'_, Alternative> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { item: option, together } = self;
        let mut fields = serializer.serialize_struct("Alternative", 6)?;
        fields.serialize_field("kind", option.change.as_str())?;
        fields.serialize_field("program", &option.change.program().and_then(|number| name(together, number)))?;
        fields.serialize_field("sentence", &crate::findings::set_change(option, together))?;
        fields.serialize_field("freed_bytes", &option.freed_bytes)?;
        fields.serialize_field("is_bound", &option.is_bound)?;
        fields.serialize_field("pages", &option.pages)?;
        fields.end()
    }
}

impl Serialize for crate::ProgramSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        TogetherLine { together: Json(&self.0) }.serialize(serializer)
    }
}
