"""A user's program that reads what the package returns, which only the type checkers read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typing_extensions import assert_type

import tilewise as tw


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
    assert_type((table.to_dict(), tree.to_dict()), tuple[dict[str, Any], dict[str, list[Any]]])
    print(table.to_pandas(), table.to_polars(), tree.to_pandas())
    sizes: list[int] = [tree.logical_bytes, tree.physical_bytes, leaf.logical_bytes, leaf.physical_bytes]
    sizes += [tree.padding_bytes, leaf.padding_bytes, tw.hbm_bytes("v5e")]
    assert_type((leaf.path, leaf.shape, leaf.element_type), "tuple[str, tw.Shape, tw.ElementType]")
    assert_type((leaf.sharding, tree.leaves), "tuple[str | None, tuple[tw.TreeLeaf, ...]]")


def calls_of_reports(report: tw.Report, explanation: tw.Explanation, picture: tw.Drawing) -> None:
    assert_type(report.table(all=True) + explanation.table(width=80) + picture.to_text(width=80), str)
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
        tuple[dict[str, Any] | None, dict[str, Any] | None, list[dict[str, Any]]],
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
    """The result of `remat`."""
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
