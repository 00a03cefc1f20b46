//! Bytes are the sum of data and padding, in every row of every program in this repository.

use std::{fs, path::PathBuf};
use tilewise::{Shape, tpu::Generation};
use tilewise_audit::{Audit, Cause, Content, Machine, Program, Report};
use tilewise_hlo::{Module, dataflow::Dataflow};
use tilewise_memory::{Packing, PlanOptions, Planner};
use tilewise_testing::programs;

/// Programs compiled for TPUs, and some written by hand.
fn reports() -> Vec<(PathBuf, Report)> {
    let mut reports = Vec::new();
    for path in programs::all() {
        for content in Content::read(fs::read(&path).expect("a file")) {
            if let Ok(Content::Program(program)) = content {
                reports.push((path.clone(), Audit::new(&program).run()));
            }
        }
    }
    reports
}

/// Bytes of an array's elements without padding; `None` for other shapes.
fn data(shape: &Shape) -> Option<u64> {
    let array = shape.as_array()?;
    let elements: u64 = array.dimensions().iter().map(|dimension| dimension.bound().expect("a bound")).product();
    let natural = u64::from(array.element_type().natural_bits());
    let bits = array.layout()?.element_size_in_bits().map_or(natural, |bits| bits.min(natural));
    Some((elements * bits).div_ceil(8))
}

#[test]
fn bytes_are_data_and_padding() {
    let reports = reports();
    assert!(reports.len() > 50, "{} programs", reports.len());
    let mut rows = 0;
    for (path, report) in &reports {
        let place = |name: &str| format!("{}: {name} of {}", path.display(), report.module_name);
        for row in report.buffers() {
            let (row, sizes) = (place(&row.instruction), row.sizes);
            assert_eq!(sizes.physical_bytes, sizes.logical_bytes + sizes.padding_bytes(), "{row}");
        }
        for row in report.plan_rows() {
            let (data, bytes) = (row.shape().and_then(|shape| data(&shape)), row.value.bytes);
            assert_eq!(row.logical_bytes(), data.unwrap_or(bytes), "{}", place(row.instruction.name()));
            assert_eq!(bytes, row.logical_bytes() + row.padding_bytes(), "{}", place(row.instruction.name()));
            rows += 1;
        }
        for space in &report.memory_spaces {
            let Some(peak) = &space.peak else { continue };
            for row in &peak.rows {
                let place = place(&row.instruction);
                assert_eq!(row.bytes, row.logical_bytes + row.padding_bytes, "{place}");
                assert_eq!(row.padding_bytes == 0, row.causes.is_empty(), "{place}: {:?}", row.causes);
                if let Some(data) = data(&row.shape) {
                    assert_eq!(row.logical_bytes, data * row.count as u64, "{place}");
                }
            }
            let sum = |bytes: fn(&tilewise_audit::PeakRow) -> u64| peak.rows.iter().map(bytes).sum::<u64>();
            assert_eq!(sum(|row| row.bytes), peak.live_bytes, "{}", place("the peak"));
            assert_eq!(sum(|row| row.padding_bytes), peak.padding_bytes, "{}", place("the peak"));
        }
        let Some(timeline) = report.timeline(0) else { continue };
        for (piece, drawn) in report.pieces(0).iter().zip(&timeline.pieces) {
            assert_eq!(drawn.bytes, piece.row.logical_bytes() + drawn.padding_bytes, "{}", place(&drawn.instruction));
        }
    }
    assert!(rows > 1_000, "{rows} rows");
}

#[test]
fn headline_peak_and_chart_are_one_sum() {
    for (path, report) in &reports() {
        let bounds = report.memory_bounds;
        let place = format!("{} of {}", report.module_name, path.display());
        let Ok(plan) = report.plan() else { continue };
        let parts = plan.argument_bytes + plan.output_bytes - plan.alias_bytes;
        assert_eq!(bounds.at_most_bytes, parts + bounds.constant_bytes + plan.temporary_bytes(), "{place}");
        let Some(peak) = report.memory_space(0).and_then(|total| total.peak.as_ref()) else { continue };
        assert!(peak.live_bytes <= bounds.at_most_bytes, "{place}: {} of {}", peak.live_bytes, bounds.at_most_bytes);
        assert!(peak.padding_share() <= 1.0, "{place}");
    }
}

/// Near its limit this program is packed in the second way, and its `sort` lies in the memory of the result.
#[test]
fn what_lies_in_the_memory_of_a_result_is_no_piece() {
    let text = include_str!("../../../../examples/gnn_large.v5e.hlo");
    let module = Module::parse(text).expect("a program");
    let program = Program::from(module);
    let report = Audit::new(&program).machine(Machine::Tpu(Generation::V5e)).limit(256 << 20).run();
    let space = report.plan().expect("a plan").space(0).expect("HBM");
    let moment = space.peak.as_ref().expect("a peak").logical_time;
    let alive = report.pieces(0).into_iter().filter(|piece| (piece.first..=piece.last).contains(&moment));
    assert_eq!(alive.map(|piece| piece.row.value.bytes).sum::<u64>(), space.peak_temporary_live_bytes);
    assert!(report.plan_rows().any(|row| row.value.is_in_resident && row.instruction.name() == "sort"));
}

/// The sizes of this program's parts in the compiler's own buffer assignments: an array of 2048 bytes is an allocation,
/// and so is a constant of a reducer, but not a constant within a fusion.
#[test]
fn constants_are_allocations_of_their_own() {
    let text = "HloModule m, is_scheduled=true

sum {
  a = f32[]{:T(128)} parameter(0)
  b = f32[]{:T(128)} parameter(1)
  half = f32[]{:T(128)} constant(0.5)
  c = f32[]{:T(128)} multiply(b, half)
  ROOT d = f32[]{:T(128)} add(a, c)
}

body {
  p = f32[8,128]{1,0:T(8,128)} parameter(0)
  two = f32[]{:T(128)} constant(2)
  t = f32[8,128]{1,0:T(8,128)} broadcast(two), dimensions={}
  ROOT m = f32[8,128]{1,0:T(8,128)} multiply(p, t)
}

ENTRY e {
  x = f32[8,128]{1,0:T(8,128)} parameter(0)
  k = f32[80,128]{1,0:T(8,128)} constant({...})
  v = f32[8,128]{1,0:T(8,128)S(1)} constant({...})
  zero = f32[]{:T(128)} constant(0)
  f = f32[8,128]{1,0:T(8,128)} fusion(x), kind=kLoop, calls=body
  r = f32[8]{0:T(256)} reduce(f, zero), dimensions={1}, to_apply=sum
  ROOT s = f32[8,128]{1,0:T(8,128)} custom-call(r, k, v), custom_call_target=\"t\"
}
";
    let report = tilewise_audit::audit(&Module::parse(text).expect("a module"));
    let bounds = report.memory_bounds;
    assert_eq!(bounds.constant_bytes, 40_960 + 512 + 512);
    assert_eq!(bounds.at_least_bytes(), bounds.at_most_bytes);
    assert_eq!(bounds.fits(49_000), Some(false));
}

#[test]
fn donated_memory_is_counted_once_where_it_is_shared() {
    let program = |aliases: &str| {
        let a = "f32[8,128]{1,0:T(8,128)}";
        let text = format!(
            "HloModule m, is_scheduled=true, input_output_alias={{ {aliases} }}

ENTRY e {{
  a = {a} parameter(0)
  b = f32[80000,128]{{1,0:T(8,128)}} parameter(1)
  c = {a} negate(a)
  d = {a} negate(c)
  ROOT r = ({a}, {a}) tuple(c, d)
}}
"
        );
        tilewise_audit::audit(&Module::parse(text).expect("a module")).memory_bounds.fits(1 << 40)
    };
    for sound in ["{0}: (0, {}, may-alias)", "{1}: (0, {}, must-alias)", ""] {
        assert_eq!(program(sound), Some(true), "{sound}");
    }
    for wrong in [
        "{0}: (1, {}, may-alias)",
        "{0}: (2, {}, may-alias)",
        "{2}: (0, {}, may-alias)",
        "{0}: (0, {1}, may-alias)",
        "{0}: (0, {}, may-alias), {1}: (0, {}, may-alias)",
        "{}: (0, {}, may-alias)",
        "{0}: junk",
    ] {
        assert_eq!(program(wrong), None, "{wrong}");
    }
}

#[test]
fn a_program_is_audited_for_the_tpu_that_it_is_compiled_for() {
    let warnings = |path: &str, tpu: Option<Generation>, text: String| -> usize {
        let program = tilewise_audit::Program::parse(text).expect("a program");
        let report = Audit::new(&program).machine(tpu.map(Machine::Tpu)).source(path).run();
        report.warnings.iter().filter(|warning| warning.as_str() == "other_generation").count()
    };
    let mut checked = 0;
    for path in programs::all().iter().filter(|path| path.extension().is_some_and(|extension| extension == "hlo")) {
        let name = path.file_name().expect("a file").to_str().expect("text");
        let Some(named) = tilewise_audit::machine_in_name(name).and_then(Machine::generation) else { continue };
        let text = fs::read_to_string(path).expect("a file");
        assert_eq!(warnings(name, Some(named), text.clone()), 0, "{name}");
        let other = if named == Generation::V6e { Generation::V5e } else { Generation::V6e };
        assert_eq!(warnings(name, Some(other), text.clone()), 1, "{name} for {other}");
        checked += 1;
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn what_has_no_size_fits_nothing() {
    let program = |lines: &str| {
        let text = format!(
            "HloModule m, is_scheduled=true\n\nENTRY e {{\n  a = f32[8,128]{{1,0:T(8,128)}} parameter(0)\n{lines}\n}}\n"
        );
        let module = Module::parse(text).expect("a module");
        module.check().expect("a program");
        tilewise_audit::audit(&module)
    };
    let root = "  ROOT r = f32[8,128]{1,0:T(8,128)} custom-call(b), custom_call_target=\"t\"";
    let fits = |shape: &str| {
        program(&format!("  b = {shape} custom-call(a), custom_call_target=\"s\"\n{root}")).memory_bounds.fits(1 << 40)
    };
    for shape in [
        "bf17[8,128]{1,0:T(8,128)}",
        "f32[?,128]{1,0:T(8,128)}",
        "f32[1000000000000000000,128]{1,0:T(8,128)}",
        "f32[-400000,128]{1,0:T(8,128)}",
        "f32[8,128]",
    ] {
        assert_eq!(fits(shape), None, "{shape}");
    }
    // Without tiles it takes at most 4096 times its data: 16 MiB for 4 KiB.
    for shape in ["f32[8,128]{1,0}", "(f32[8,128]{1,0:T(8,128)}, f32[8,128]{1,0})"] {
        let report = program(&format!("  b = {shape} custom-call(a), custom_call_target=\"s\"\n{root}"));
        let bounds = report.memory_bounds;
        assert_eq!((bounds.fits(16 << 20), bounds.fits(17 << 20)), (None, Some(true)), "{shape}");
        assert!(report.warnings.iter().any(|warning| warning.as_str() == "untiled"), "{shape}");
    }
    for shape in ["f32[8,128]{1,0:T(8,128)}", "u32[]{:S(2)}", "f32[]", "f32[0,4]{1,0}", "f32[8,128]{1,0:S(5)}"] {
        assert_eq!(fits(shape), Some(true), "{shape}");
    }
    let text = "HloModule m, is_scheduled=true

f {
  p = f32[8,128]{1,0} parameter(0)
  q = bf17[8,128]{1,0} negate(p)
  ROOT r = f32[8,128]{1,0} negate(q)
}

ENTRY e {
  a = f32[8,128]{1,0:T(8,128)} parameter(0)
  ROOT r = f32[8,128]{1,0:T(8,128)} fusion(a), kind=kLoop, calls=f
}
";
    let fits = |text: &str| tilewise_audit::audit(&Module::parse(text).expect("a module")).memory_bounds.fits(1 << 40);
    assert_eq!((fits(text), fits(&text.replace("bf17", "f32"))), (None, Some(true)));
    let result = "  b = f32[8,128]{1,0:T(8,128)} negate(a)\n  ROOT r = (f32[8,128], f32[8,128]) tuple(a, b)";
    assert_eq!(program(result).memory_bounds.fits(16 << 20), None);
}

/// libtpu 0.0.52 for TPU v5p prints some results of convolutions without tiles, and their bitcasts with tiles; all else
/// has tiles.
#[test]
fn results_of_convolutions_may_lack_tiles() {
    let text = "HloModule m, is_scheduled=true\n\nENTRY main {
  a = f32[8,192]{1,0:T(8,128)} parameter(0)
  b = f32[8,512]{1,0:T(8,128)} parameter(1)
  c = f32[192,512]{0,1} convolution(a, b), dim_labels=fb_io->bf
  d = f32[192,8,64]{0,2,1:T(8,128)} bitcast(c)
  ROOT r = f32[8,64]{1,0:T(8,128)} custom-call(d), custom_call_target=\"f\"\n}\n";
    let fits = |text: &str| tilewise_audit::audit(&Module::parse(text).expect("a module")).memory_bounds.fits(1 << 40);
    assert_eq!(fits(text), Some(true));
    let other = text.replace("convolution(a, b), dim_labels=fb_io->bf", "custom-call(a, b), custom_call_target=\"g\"");
    assert_eq!(fits(&other), Some(true), "in 1 TiB");
    assert_eq!(fits(&text.replace("f32[192,8,64]", "f32[192,8,128]")), None);
    let fits = |text: &str| tilewise_audit::audit(&Module::parse(text).expect("a module")).memory_bounds.fits(64 << 20);
    assert_eq!((fits(text), fits(&other)), (Some(true), None));
}

/// libtpu 0.0.51 prints a leaf in VMEM of a fusion's result without tiles, and its bitcast with tiles.
#[test]
fn what_a_fusion_makes_in_vmem_may_lack_tiles() {
    let text = "HloModule m, is_scheduled=true

f {
  p = bf16[64,512]{1,0:T(8,128)(2,1)} parameter(0)
  q = bf16[64,512]{0,1} copy(p)
  ROOT t = (bf16[64,512]{1,0:T(8,128)(2,1)}, bf16[64,512]{0,1}) tuple(p, q)
}

ENTRY main {
  a = bf16[64,512]{1,0:T(8,128)(2,1)} parameter(0)
  f.1 = (bf16[64,512]{1,0:T(8,128)(2,1)}, bf16[64,512]{0,1:S(1)}) fusion(a), kind=kLoop, calls=f
  g = bf16[64,512]{0,1:S(1)} get-tuple-element(f.1), index=1
  b = bf16[512,64]{1,0:T(8,128)(2,1)S(1)} bitcast(g)
  ROOT r = f32[8,128]{1,0:T(8,128)} custom-call(b), custom_call_target=\"t\"
}
";
    let report = tilewise_audit::audit(&Module::parse(text).expect("a module"));
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    assert_eq!(report.memory_bounds.fits(1 << 20), Some(true));
}

/// Padding that the first level of tiles alone, or a layout without tiles, doesn't show.
#[test]
fn all_levels_and_blocks_are_counted() {
    let text = "HloModule m, is_scheduled=true\n\nENTRY main {
  levels = f32[7,130]{1,0:T(4,128)(3,1)} parameter(0)
  plain = s8[33]{0} parameter(1)
  signal = u32[]{:T(128)S(2)} parameter(2)
  ROOT sum = f32[8,128]{1,0:T(8,128)} custom-call(levels, plain, signal)\n}\n";
    let report = tilewise_audit::audit(&Module::parse(text).expect("a module"));
    let row = |name: &str| {
        let rows = report.memory_spaces.iter().filter_map(|space| space.peak.as_ref()).flat_map(|peak| &peak.rows);
        let row = rows.into_iter().find(|row| row.instruction == name).expect(name);
        (row.bytes, row.logical_bytes, row.padding_bytes, row.causes.last().cloned())
    };
    // 4 × 2 tiles of 128 × 3 × 2 elements: the 4 rows of a tile are padded to 6.
    let (bytes, logical, padding, _) = row("levels");
    assert_eq!((bytes, logical, padding), (2 * 2 * 128 * 6 * 4, 7 * 130 * 4, 12_288 - 3640));
    assert_eq!(row("plain"), (4096, 33, 4063, Some(Cause::Untiled)));
    assert_eq!(row("signal"), (4, 4, 0, None));
}

/// A bound for any schedule holds for the compiler's.
#[test]
fn no_plan_is_larger_than_what_an_unscheduled_program_may_hold() {
    let mut checked = 0;
    for path in programs::all() {
        let Ok(text) = tilewise_hlo::read_text(&path) else { continue };
        for module in Module::parse_all(text).into_iter().flatten().filter(|module| module.is_scheduled()) {
            let place = format!("{} of {}", module.name(), path.display());
            let report = tilewise_audit::audit(&module);
            let Ok(plan) = report.plan() else { continue };
            let flow = Dataflow::new(&module);
            let most = tilewise_memory::unshared_bytes(&flow, report.machine).expect("a bound");
            let planner = Planner::of_dataflow(flow, PlanOptions::new(report.machine)).expect("a planner");
            for packing in [Packing::FastMerge, Packing::BestFit] {
                let total = planner.plan_resized(packing, |_, _| None).expect("a plan").total_bytes();
                assert!(total <= most, "{place}: {total} of {most}");
            }
            let (total, head) = (plan.total_bytes(), module.source().replacen("is_scheduled=true", "", 1));
            let unscheduled = Module::parse(head.replacen(", ,", ",", 1).replacen(", \n", "\n", 1)).expect("a module");
            assert!(!unscheduled.is_scheduled() && unscheduled.check().is_ok(), "{place}");
            let bounds = Audit::new(&Program::from(unscheduled.clone())).machine(report.machine).limit(None).run();
            let bounds = bounds.memory_bounds;
            assert_ne!(bounds.fits(total.saturating_sub(1)), Some(true), "{place}");
            // For other machines, the temporaries of a text that isn't scheduled are unknown.
            let is_known = report.machine.generation().is_some() && report.memory_bounds.is_complete;
            assert_eq!(bounds.fits(bounds.at_most_bytes), is_known.then_some(true), "{place}");
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}

/// An array larger than its memory fits nothing, whatever the sum is.
#[test]
fn nothing_hides_in_what_is_smaller() {
    let fits = |lines: &str| {
        let text = format!(
            "HloModule m, is_scheduled=true\n\nENTRY e {{\n  a = f32[16,128]{{1,0:T(8,128)}} parameter(0)\n  \
             i = s32[]{{:T(128)}} parameter(1)\n{lines}  ROOT r = f32[16,128]{{1,0:T(8,128)}} custom-call(k)\n}}\n"
        );
        let module = Module::parse(text).expect("a module");
        module.check().expect("a program");
        let report =
            Audit::new(&Program::from(module.clone())).machine(Machine::Tpu(Generation::V5e)).limit(None).run();
        (report.memory_bounds.fits(63 << 28), report.warnings.first().map(|warning| warning.as_str()))
    };
    let large = "f32[40000,128,1024]{2,1,0:T(8,128)}";
    assert_eq!(fits("  k = f32[16,128]{1,0:T(8,128)} negate(a)\n"), (Some(true), None));
    for line in ["bitcast(a)", "dynamic-update-slice(a, a, i, i)", "set-dimension-size(a, i), dimensions={0}"] {
        assert_eq!(fits(&format!("  k = {large} {line}\n")), (None, Some("shape_mismatch")), "{line}");
    }
    for (space, kind) in
        [(1, "on_chip_memory"), (6, "on_chip_memory"), (9, "unknown_memory_space"), (127, "unknown_memory_space")]
    {
        let there = large.replace(")}", &format!(")S({space})}}"));
        assert_eq!(fits(&format!("  k = {there} custom-call(a)\n")), (None, Some(kind)), "S({space})");
    }
    assert_eq!(fits(&format!("  k = {} custom-call(a)\n", large.replace(")}", ")S(5)}"))), (Some(true), None));
    // XLA's parser accepts 32-bit numbers stored in one bit.
    let narrow = large.replace(")}", ")E(1)}");
    assert_eq!(fits(&format!("  k = {narrow} custom-call(a)\n")), (None, Some("narrow_element")));
    let flags = narrow.replace("f32", "pred");
    assert_eq!(fits(&format!("  k = {flags} custom-call(a)\n")), (Some(true), None));
    // Two results in the memory of one argument.
    let twice = "f32[16,128]{1,0:T(8,128)}";
    assert_eq!(fits(&format!("  k = ({twice}, {twice}) custom-call(a)\n")), (Some(true), None));
}

/// `temp_size_in_bytes` of `scatter_offload` as libtpu 0.0.50.1 and 0.0.52 reported it.
#[test]
fn what_a_compiler_reports_depends_on_its_version() {
    let text = tilewise_hlo::read_text(programs::path("elements.hlo.gz")).expect("a text");
    let modules: Vec<Module> = Module::parse_all(text).into_iter().map(|module| module.expect("a module")).collect();
    let report = |name: &str, libtpu: Option<&str>| {
        let module = modules.iter().find(|module| module.name() == name).expect("a program");
        let libtpu = libtpu.map(|version| version.parse().expect("a version"));
        let program = Program::from(module.clone());
        Audit::new(&program).machine(Machine::Tpu(Generation::V6e)).limit(None).libtpu(libtpu).run()
    };
    let older = report("scatter_offload_50.v6e", Some("0.0.50.1"));
    assert_eq!(older.memory_bounds.temporary_bytes, Some(1_736_704));
    assert_eq!(older.reported_temporary_bytes(), Some(1_900_224));
    let newer = report("scatter_offload_52.v6e", Some("0.0.52"));
    assert_eq!(
        (newer.memory_bounds.temporary_bytes, newer.reported_temporary_bytes()),
        (Some(1_818_624), Some(1_818_624))
    );
    let unknown = [report("scatter_offload_52.v6e", Some("0.0.99")), report("scatter_offload_52.v6e", None)];
    let warned =
        |report: &tilewise_audit::Report| report.warnings.iter().any(|warning| warning.as_str() == "other_build");
    assert_eq!([&older, &newer, &unknown[0], &unknown[1]].map(warned), [false, false, true, false]);
}
