"""A user's program that reads every field, which only the type checkers read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from typing_extensions import assert_type

import tilewise as tw


def recommendation_fields(advice: tw.Recommendation) -> None:
    texts: list[str] = [advice.kind, advice.target, advice.sentence]
    shapes: list[tw.Shape | None] = [advice.shape, advice.requested]
    maybe_counts: list[int | None] = [advice.peak_bytes_saved, advice.parts]
    flags: list[bool] = [advice.is_bound, advice.is_estimate]
    axes: dict[str, int] = advice.inputs
    donated: list[str] = advice.donate
    maybe_texts: list[str | None] = [
        advice.instruction,
        advice.shape_text,
        advice.code,
        advice.imports,
        advice.op_name,
    ]
    lines: list[tw.SourceLine | None] = [advice.source]
    print(texts, shapes, maybe_counts, flags, axes, donated, maybe_texts, lines)


def screen_fields(headline: tw.Headline, cause: tw.Cause, change: tw.PlannedChange) -> None:
    texts: list[str] = [headline.verdict, headline.sentence, cause.kind, cause.sentence, change.do, change.kind]
    maybe_texts: list[str | None] = [cause.quote, change.code, change.caveat, change.quote]
    counts: list[int] = [cause.bytes, cause.arrays]
    maybe_counts: list[int | None] = [headline.needed_bytes, headline.limit_bytes, change.bytes_after]
    flags: list[bool | None] = [headline.is_comfortable, change.fits]
    numbers: list[float | None] = [cause.share, change.seconds_after]
    assert_type(cause.axes, "list[tuple[str | None, int]]")
    assert_type(cause.filled, "tuple[int, int] | None")
    lines: list[tw.SourceLine | None] = [cause.source]
    print(texts, maybe_texts, counts, maybe_counts, flags, numbers, lines)


def allocation_fields(allocation: tw.Allocation) -> None:
    texts: list[str] = [allocation.section]
    maybe_texts: list[str | None] = [allocation.instruction, allocation.label, allocation.shape_text]
    maybe_shapes: list[tw.Shape | None] = [allocation.shape]
    maybe_counts: list[int | None] = [allocation.reported_bytes, allocation.logical_bytes, allocation.physical_bytes]
    print(texts, maybe_texts, maybe_shapes, maybe_counts)


def buffer_fields(buffer: tw.Buffer) -> None:
    texts: list[str] = [buffer.instruction, buffer.computation, buffer.opcode]
    shapes: list[tw.Shape] = [buffer.shape]
    numbers: list[tuple[int, ...]] = [buffer.shape_index]
    counts: list[int] = [buffer.memory_space, buffer.logical_bytes, buffer.physical_bytes]
    print(texts, shapes, numbers, counts)


def copy_fields(copy: tw.Copy) -> None:
    texts: list[str] = [copy.instruction, copy.computation, copy.class_name, copy.why]
    shapes: list[tw.Shape] = [copy.from_shape, copy.to_shape]
    counts: list[int] = [copy.read_bytes, copy.written_bytes]
    maybe_texts: list[str | None] = [copy.op_name, copy.cancels]
    lines: list[tw.SourceLine | None] = [copy.source]
    maybe_counts: list[int | None] = [copy.trips]
    fixes: list[tw.Recommendation | None] = [copy.fix]
    print(texts, shapes, counts, maybe_texts, lines, maybe_counts, fixes)


def kernel_fields(found: tw.KernelBudgets) -> None:
    kernel: tw.KernelBudget = found[0]
    row: tw.KernelRow = kernel.rows[0]
    rows: tuple[tw.KernelRow, ...] = found.rows
    counts: list[int] = [found.vmem_bytes, found.smem_bytes, kernel.may_be_kept_bytes, row.buffers, row.bytes]
    counts += [row.logical_bytes, row.padding_bytes]
    maybe_counts: list[int | None] = [kernel.guess_bytes, kernel.limit_bytes, kernel.cap_bytes, kernel.measured_bytes]
    texts: list[str] = [kernel.text, kernel.tpu, row.operand, row.memory_space_name]
    maybe_texts: list[str | None] = [found.verdict, kernel.verdict, kernel.name, row.shape, row.cause, row.unsupported]
    sentences: list[tuple[str, ...]] = [found.unsupported, kernel.unsupported]
    blocks: list[tuple[int | None, ...] | None] = [row.block, row.padded_block, row.nearest_block]
    print(rows, counts, maybe_counts, texts, maybe_texts, sentences, blocks)
    assert_type(tw.kernel_budget(print, 1, tpu="v6e"), tw.KernelBudgets)


def suggested_blocks_fields(found: tw.BlockSuggestions, choice: tw.SuggestedBlocks) -> None:
    counts: list[int] = [choice.vmem_bytes, choice.guess_bytes]
    maybes: list[int | str | None] = [choice.moved_bytes, choice.verdict]
    share: float = found.removed_share
    print(counts, maybes, share, choice.sizes, found.choices, found.removed)
    assert_type(tw.suggest_blocks(print, tpu="v6e", space={"rows": [256]}), tw.BlockSuggestions)


def kernel_use_fields(kernel: tw.KernelUse) -> None:
    texts: list[str] = [kernel.instruction, kernel.computation]
    maybe_counts: list[int | None] = [kernel.used_bytes, kernel.limit_bytes, kernel.cap_bytes]
    maybe_texts: list[str | None] = [kernel.op_name]
    flags: list[bool] = [kernel.is_near_limit]
    lines: list[tw.SourceLine | None] = [kernel.source]
    print(texts, maybe_counts, maybe_texts, flags, lines)
    arrays: list[tw.KernelArray] = [*kernel.operands, *kernel.results]
    counts: list[int] = [kernel.copied_bytes, kernel.held_bytes]
    moves: list[str] | None = kernel.body_moves
    blocks: dict[str, int] = kernel.block_sizes
    print(arrays, counts, moves, blocks)


def kernel_array_fields(array: tw.KernelArray, change: tw.BoundaryChange, remedy: tw.Remedy) -> None:
    texts: list[str] = [array.side, array.other, array.other_opcode, change.instruction, change.opcode]
    sentences: list[str] = [remedy.kind, remedy.sentence]
    maybe_texts: list[str | None] = [array.forced_by, remedy.shape, remedy.access, remedy.code]
    shapes: list[tw.Shape] = [array.shape, change.from_shape, change.to_shape]
    counts: list[int] = [array.index, array.copied_bytes, change.bytes]
    flags: list[bool] = [change.is_relayout, change.is_duplicate]
    maybe_counts: list[int | None] = [change.trips]
    lines: list[tw.SourceLine | None] = [change.source]
    between: list[tw.BoundaryChange] = array.between
    maybe_remedy: tw.Remedy | None = array.remedy
    print(texts, sentences, maybe_texts, shapes, counts, flags, maybe_counts, lines, between, maybe_remedy)


def machine_fields(found: tw.Machines) -> None:
    row: tw.OnMachine = found[0]
    texts: list[str] = [row.machine]
    maybe_texts: list[str | None] = [row.error]
    maybe_counts: list[int | None] = [row.peak_bytes]
    reports: list[tw.Report | None] = [row.report]
    print(texts, maybe_texts, maybe_counts, reports)
    assert_type(tw.compare_machines(print, 1, machines=["cpu"]), tw.Machines)
    assert_type(tw.audit(print, 1, machine="cpu"), tw.Report)
    assert_type(tw.audit("x", machine="cpu"), tw.Report)


def element_type_fields(element_type: tw.ElementType) -> None:
    texts: list[str] = [element_type.name, element_type.kind]
    counts: list[int] = [element_type.bits, element_type.natural_bits]
    dtypes: list[np.dtype[Any]] = [element_type.dtype]
    print(texts, counts, dtypes)


def explanation_fields(explanation: tw.Explanation) -> None:
    texts: list[str] = [explanation.verdict, explanation.form]
    maybe_texts: list[str | None] = [explanation.code, explanation.module, explanation.memory_space_name]
    maybe_counts: list[int | None] = [explanation.used_bytes, explanation.limit_bytes, explanation.exceeded_bytes]
    counts: list[int] = [explanation.padding_bytes]
    flags: list[bool] = [explanation.truncated]
    assert_type(explanation.allocations, "list[tw.Allocation]")
    assert_type(explanation.advice, "list[tw.Recommendation]")
    assert_type(explanation.headline, "tw.Headline")
    assert_type(explanation.causes, "list[tw.Cause]")
    assert_type(explanation.changes, "list[tw.PlannedChange]")
    assert_type(explanation.raised_at, "tuple[str, int] | None")
    print(texts, maybe_texts, maybe_counts, counts, flags)


def relation_fields(relation: tw.Relation) -> None:
    texts: list[str | None] = [relation.kind, relation.reason]
    counts: list[int | None] = [relation.exposed, relation.hidden]
    assert_type(relation.permutation, "tuple[int, ...] | None")
    orders: list[tuple[int, ...] | None] = [relation.reshape, relation.then]
    assert_type(relation.counterexample, "tuple[tuple[int, ...], tuple[int, ...], int, int] | None")
    print(texts, counts, orders, bool(relation))


def layout_fields(layout: tw.Layout) -> None:
    numbers: list[tuple[int, ...]] = [layout.minor_to_major]
    assert_type(layout.tiles, "tuple[tuple[int | None, ...], ...]")
    counts: list[int] = [layout.tail_padding_alignment, layout.memory_space, layout.dynamic_shape_metadata_prefix_bytes]
    maybe_counts: list[int | None] = [layout.element_size_in_bits]
    texts: list[str | None] = [layout.memory_space_name, layout.order_name]
    assert_type(layout.split_configs, "tuple[tuple[int, tuple[int, ...]], ...]")
    assert_type(layout.index_primitive_type, "tw.ElementType | None")
    assert_type(layout.pointer_primitive_type, "tw.ElementType | None")
    print(numbers, counts, maybe_counts, texts)


def peak_buffer_fields(peak: tw.PeakBuffer) -> None:
    texts: list[str] = [peak.instruction, peak.computation, peak.opcode, peak.role]
    shapes: list[tw.Shape] = [peak.shape]
    counts: list[int] = [peak.count, peak.bytes, peak.logical_bytes, peak.padding_bytes]
    sentences: list[list[str]] = [peak.causes]
    maybe_texts: list[str | None] = [peak.op_name]
    lines: list[tw.SourceLine | None] = [peak.source]
    print(texts, shapes, counts, sentences, maybe_texts, lines)


def report_fields(report: tw.Report) -> None:
    texts: list[str] = [report.module, report.source, report.text, report.buffer_assignment or "", report.machine]
    maybe_texts: list[str | None] = [report.entry, report.peak_instruction, report.tpu, report.no_time]
    flags: list[bool] = [report.is_scheduled]
    assert_type(report.memory_spaces, "list[tw.SpaceTotal]")
    assert_type(report.buffers, "list[tw.Buffer]")
    assert_type(report.copies, "list[tw.Copy]")
    assert_type(report.kernels, "list[tw.KernelUse]")
    assert_type(report.warnings, "list[tw.ReportWarning]")
    assert_type(report.time, "tw.Time | None")
    counts: list[int] = [
        report.padding_bytes,
        report.argument_bytes,
        report.output_bytes,
        report.alias_bytes,
        report.constant_bytes,
        report.at_least_bytes,
        report.at_most_bytes,
        report.partitions,
    ]
    ratios: list[float] = [report.padding_share]
    maybe_counts: list[int | None] = [
        report.temporary_bytes,
        report.hbm_limit,
        report.peak_bytes,
        report.peak_live_bytes,
        report.peak_padding_bytes,
    ]
    maybe_flags: list[bool | None] = [report.fits]
    assert_type(report.advice, "list[tw.Recommendation]")
    assert_type(report.headline, "tw.Headline")
    assert_type(report.causes, "list[tw.Cause]")
    assert_type(report.changes, "list[tw.PlannedChange]")
    lines: list[tw.SourceLine | None] = [report.peak_source]
    assert_type(report.peak_buffers, "list[tw.PeakBuffer]")
    print(texts, maybe_texts, flags, counts, ratios, maybe_counts, maybe_flags, lines)


def report_warning_fields(warning: tw.ReportWarning) -> None:
    texts: list[str] = [warning.kind, warning.message]
    print(texts)


def row_fields(row: tw.Row) -> None:
    counts: list[int] = [row.padding_bytes]
    ratios: list[float] = [row.expansion]
    sentences: list[list[str]] = [row.causes]
    maybe_texts: list[str | None] = [row.op_name]
    lines: list[tw.SourceLine | None] = [row.source]
    print(counts, ratios, sentences, maybe_texts, lines)


def shape_fields(shape: tw.Shape) -> None:
    texts: list[str] = [shape.kind]
    assert_type(shape.element_type, "tw.ElementType")
    assert_type(shape.dimensions, "tuple[int | None, ...]")
    assert_type(shape.dynamic_dimensions, "tuple[bool, ...]")
    counts: list[int] = [
        shape.rank,
        shape.true_rank,
        shape.logical_bytes,
        shape.physical_bytes,
        shape.padding_bytes,
        shape.physical_elements,
    ]
    assert_type(shape.layout, "tw.Layout")
    flags: list[bool] = [shape.has_layout]
    assert_type(shape.elements, "tuple[tw.Shape, ...]")
    ratios: list[float] = [shape.expansion]
    numbers: list[tuple[int, ...]] = [shape.physical_dimensions]
    maybe_counts: list[int | None] = [shape.xla_array_size]
    print(texts, counts, flags, ratios, numbers, maybe_counts)


def source_line_fields(line: tw.SourceLine) -> None:
    texts: list[str] = [line.file]
    counts: list[int] = [line.line]
    maybe_texts: list[str | None] = [line.function]
    lines: list[tw.SourceLine | None] = [line.library]
    print(texts, counts, maybe_texts, lines)


def time_fields(time: tw.Time) -> None:
    texts: list[str] = [time.text, time.words]
    seconds: list[float] = [time.estimate_seconds, time.floor_seconds, time.compiler_seconds, time.padding_seconds]
    shares: list[float] = [time.bound_share]
    counts: list[int] = [time.cycles]
    maybe_counts: list[int | None] = [time.cores]
    flags: list[bool] = [time.is_at_least]
    assert_type(time.unpriced, "tuple[tw.TimeGroup, ...]")
    for groups in (time.kinds, time.lines, time.modules):
        assert_type(groups, "tuple[tw.TimeGroup, ...]")
    assert_type(time.rows, "tuple[tw.TimeRow, ...]")
    print(texts, seconds, shares, counts, maybe_counts, flags)


def time_group_fields(group: tw.TimeGroup) -> None:
    texts: list[str] = [group.name]
    counts: list[int] = [group.operations]
    seconds: list[float] = [group.seconds, group.bound_seconds]
    print(texts, counts, seconds)


def time_row_fields(row: tw.TimeRow) -> None:
    texts: list[str] = [row.instruction, row.computation, row.kind, row.basis]
    counts: list[int] = [row.executions, row.bytes, row.padding_bytes, row.flops]
    seconds: list[float] = [row.estimate_seconds, row.floor_seconds, row.compiler_seconds]
    maybe_texts: list[str | None] = [row.roof, row.op_name, row.file]
    maybe_counts: list[int | None] = [row.line]
    print(texts, counts, seconds, maybe_texts, maybe_counts)


def space_total_fields(space: tw.SpaceTotal) -> None:
    counts: list[int] = [
        space.memory_space,
        space.buffers,
        space.logical_bytes,
        space.physical_bytes,
        space.padding_bytes,
    ]
    texts: list[str] = [space.memory_space_name]
    ratios: list[float] = [space.padding_share]
    maybe_counts: list[int | None] = [
        space.peak_live_bytes,
        space.peak_temporary_bytes,
        space.peak_padding_bytes,
        space.peak_fragmentation_bytes,
    ]
    maybe_texts: list[str | None] = [space.peak_instruction]
    lines: list[tw.SourceLine | None] = [space.peak_source]
    assert_type(space.peak_buffers, "list[tw.PeakBuffer] | None")
    print(counts, texts, ratios, maybe_counts, maybe_texts, lines)


def step_fields(step: tw.Step) -> None:
    texts: list[str] = [step.operation, step.effect]
    numbers: list[tuple[int, ...]] = [step.before, step.after]
    maybe_counts: list[int | None] = [step.tile]
    maybe_numbers: list[tuple[int, ...] | None] = [step.permutation, step.padding]
    print(texts, numbers, maybe_counts, maybe_numbers)


def calls_of_shapes(shape: tw.Shape) -> None:
    assert_type(tw.Shape.tuple([shape, "token[]"]).leaves(), "list[tuple[tuple[int, ...], tw.Shape]]")
    assert_type(tw.Shape.from_proto(shape.to_proto()).identical(tw.Shape.parse_as_written("f32[3]")), bool)
    assert_type(shape.without_layout().layout_in_words(), "list[tuple[str, str]]")
    assert_type(shape.causes(), "list[str]")
    assert_type(shape.bitcast("f32[3]", reading="reshape"), tw.Relation)
    assert_type(shape.same_bytes(shape), bool)
    assert_type(tw.Shape.from_notation("cute", shape.to_notation("cute"), "f32[3]"), tw.Shape)
    assert_type(tw.Layout.row_major(2), tw.Layout)
    assert_type(tw.ElementType.all(), "list[tw.ElementType]")
    assert_type(tw.hbm_bytes(tw.TPU_GENERATIONS[0]), int)
    assert_type((tw.__version__, tw.CHECKED_WITH), "tuple[str, str]")


def calls_of_reshapes(shape: tw.Shape) -> None:
    assert_type(shape.free_reshape([8, 512, 12, 64]), "list[tw.Shape]")
    assert_type(tw.free_reshapes(shape, (8, 512, 12, 64), tpu="v6e"), "list[tuple[tw.Shape, tw.Shape]]")


def calls_of_steps(steps: tw.Steps) -> Iterator[tw.Step]:
    assert_type((steps.as_numpy(), steps.as_einops(), steps.as_mlir()), "tuple[str, str, str]")
    assert_type(len(steps), int)
    yield from steps


def calls_of_tables(table: tw.Table, tree: tw.TreePrediction, leaf: tw.TreeLeaf) -> None:
    assert_type((table.to_dict(), tree.to_dict()), "tuple[dict[str, Any], dict[str, list[Any]]]")
    print(table.to_pandas(), table.to_polars(), tree.to_pandas())
    sizes: list[int] = [tree.logical_bytes, tree.physical_bytes, leaf.logical_bytes, leaf.physical_bytes]
    sizes += [tree.padding_bytes, leaf.padding_bytes, tw.hbm_bytes("v5e")]
    assert_type((leaf.path, leaf.shape, leaf.element_type), "tuple[str, tw.Shape, tw.ElementType]")
    assert_type((leaf.sharding, tree.leaves), "tuple[str | None, tuple[tw.TreeLeaf, ...]]")


def calls_of_reports(report: tw.Report, explanation: tw.Explanation, picture: tw.Drawing) -> None:
    assert_type(report.table(all=True) + explanation.table(width=80) + picture.to_text(width=80), str)
    assert_type(report.notes, "list[str]")
    assert_type(report.to_html(), str)
    assert_type(picture.to_png(scale=1.0), bytes)
    difference: tw.Comparison = report.diff(report)
    print(difference)


def calls_of_comparisons(check: tw.Comparison, program: tw.ComparedProgram, change: tw.Change) -> None:
    sizes: list[int] = [check.peak_bytes_saved, program.peak_bytes, program.peak_padding_bytes, program.recomputed]
    sizes += [program.argument_bytes, program.output_bytes, program.alias_bytes, program.temporary_bytes]
    sizes += [check.before.peak_bytes, check.after.peak_bytes, program.constant_bytes]
    owners: list[tw.Owner] = [*check.removed, *check.added, *program.owners]
    maybe: list[str | int | None] = [check.advice, program.tpu, program.topology, program.hbm_limit, change.owner]
    maybe += [change.file, change.line]
    texts: list[str] = [check.program, check.headline, check.verdict, check.to_markdown(), program.source, change.what]
    texts += [change.verdict, *program.settings]
    print(sizes, owners, maybe, texts, change.before, change.after)
    assert_type(check.changes, "tuple[tw.Change, ...]")


def calls_of_advice(report: tw.Report) -> None:
    checked = report.check()
    assert_type(checked, tw.AdviceCheck)
    compared: tw.Comparison = checked.comparison
    for row in checked.rows:
        assert_type(row, tw.CheckedAdvice)
        assert_type(
            (row.recommendation, row.freed_bytes, row.why_not), "tuple[tw.Recommendation, int | None, str | None]"
        )
    assert_type(checked.peak_bytes_saved, int)
    print(compared)
    in_parts = tw.microbatch(calls_of_advice, 4, batch_argnums=0)
    in_parts(report)


def calls_of_fits(found: tw.Fit, row: tw.FitRow, owner: tw.Owner) -> None:
    assert_type(
        (found.largest, found.best, found.gaps),
        "tuple[dict[str, Any] | None, dict[str, Any] | None, list[dict[str, Any]]]",
    )
    assert_type(found.rows + found.errors, "list[tw.FitRow]")
    assert_type((found.interrupted, found.target is None, len(found)), "tuple[bool, bool, int]")
    texts: list[str] = [found.to_json(), found.to_csv(), found.to_markdown(), found.to_html(), found.plot(), str(found)]
    print(texts, found.to_dicts(), found.to_pandas(), found.to_polars(), found.combinations)
    sizes = [row.argument_bytes, row.output_bytes, row.alias_bytes, row.temporary_bytes, row.total_bytes]
    sizes += [row.padding_bytes, row.headroom_bytes, row.limit_bytes, row.flops, row.hbm_bytes_moved, row.recomputed]
    assert_type(sizes, "list[int | None]")
    print(row.settings, row.tpu, row.topology, row.status, row.bytes_source, row.collective_bytes, row.compiler_cost)
    print(row.trace_seconds, row.compile_seconds, row.hlo_hash, row.compiler, row.cached, row.error, row.mode)
    assert_type(row.report, "tw.Report | None")
    assert_type(tw.FitRow.from_dict(row.to_dict()).to_json(), str)
    assert_type((owner.file, owner.line, owner.op), "tuple[str | None, int | None, str]")
    assert_type((owner.shape, owner.bytes), "tuple[str, int]")


def calls_of_servers(
    found: tw.Together,
    loaded: tw.LoadedProgram,
    array: tw.ResidentArray,
    pages: tw.PageArrays,
    option: tw.Alternative,
) -> None:
    sizes: list[int] = [found.resident_bytes, found.largest_temporaries, found.call_bytes, found.total_bytes]
    sizes += [loaded.temporary_bytes, loaded.undonated_bytes, array.bytes, pages.page_bytes, option.freed_bytes]
    known: list[int | None] = [found.code_bytes, found.limit_bytes, loaded.costs_pages, pages.fitting, option.pages]
    known.append(loaded.code_bytes)
    assert_type(array.programs, "tuple[str, ...]")
    assert_type(found.to_json(), str)
    server = assert_type(tw.audit_together({"tanh": (print, [1])}, tpu="v5e"), tw.Together)
    assert_type(server.to_html(), str)


def calls_of_errors(explainer: tw.OomExplainer) -> None:
    with explainer:
        try:
            tw.Shape("b16[3]")
        except (tw.ParseError, tw.ShapeError, tw.OutOfRangeError, tw.HloError, tw.NotATpuProgram) as error:
            assert_type((error.kind, error.message), "tuple[str, str]")
        except (tw.MessageError, tw.RelayoutError, tw.DrawError) as error:
            assert_type((error.text, error.help), "tuple[str | None, str | None]")
        except tw.Error as error:
            assert_type(error.span, "tuple[int, int] | None")


def calls_of_fleet(layouts: dict[str, tw.Layout | str]) -> None:
    # PyArrow has no types.
    tw.fleet.audit("dumps", engine="ray", out="reports", tpu="v5e")  # pyright: ignore[reportUnknownMemberType]
    converted: tw.fleet.Relayout = tw.fleet.relayout("checkpoint", layouts, "out", engine="dask", check="all")
    counts: list[int] = [converted.files, converted.tensors, converted.slices, converted.resumed_slices]
    counts += [converted.bytes, converted.checked_elements]


def fields_of_remat(found: tw.Remat) -> None:
    """What `remat` returns."""
    assert_type(tw.remat(fields_of_remat, tpu="v5e"), tw.Remat)
    assert_type(found.row, tw.RematRow)
    assert_type(found.rows, list[tw.RematRow])
    assert_type(found.frontier, list[tw.RematRow])
    assert_type(found.fits, bool)
    assert_type(found.peak_bytes, int)
    assert_type(found.seconds, float | None)
    assert_type(found.kept, list[tw.RematValue])
    assert_type(found.recomputed, list[tw.RematValue])
    assert_type(found.code, str)
    assert_type(found.check(), float)
    assert_type(found.row.floor_seconds, float | None)
    assert_type(found.row.kept_bytes, int | None)
    assert_type(found.kept[0].place, str)
    assert_type(found.kept[0].ends_line, bool)
    found.draw()
