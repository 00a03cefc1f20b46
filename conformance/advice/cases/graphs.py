"""Graphs: gathers of the rows of nodes, scatters of what edges say."""

import jax
import jax.numpy as jnp
from jax import lax

from .case import Case, Draw, Program, case, compared


def over_edges(nodes, width, step, edges, chunks, dtype=jnp.float32):
    """The sum over chunks of edges of what a step adds to nodes."""

    def add(i, total):
        size = edges[0].shape[0] // chunks
        return total + step(*[lax.dynamic_slice_in_dim(edge, i * size, size) for edge in edges])

    return lax.fori_loop(0, chunks, add, jnp.zeros((nodes, width), dtype))


@case("v5e", "v4")
def message_passing(draw: Draw) -> Case:
    nodes, edges, width = 50_000, 800_000, 10

    def layer(h, w, source, target):
        message = jax.nn.relu(h[source] @ w)
        return jax.ops.segment_sum(message, target, nodes)

    def chunked(h, w, source, target):
        return over_edges(nodes, width, lambda s, t: layer(h, w, s, t), (source, target), 16)

    def columns(h, w, source, target):
        rows = [c[source] for c in jnp.unstack(h, axis=1)]
        messages = [jax.nn.relu(sum(w[i, j] * row for i, row in enumerate(rows))) for j in range(width)]
        return jnp.stack([jax.ops.segment_sum(m, target, nodes) for m in messages], axis=1)

    index = draw.array((edges,), jnp.int32)
    arguments = (draw.array((nodes, width)), draw.array((width, width)), index, index)
    return compared(Program(layer, arguments), ("chunked", "chunk", chunked), ("columns", "split upstream", columns))


@case("v5e")
def gnn_large(draw: Draw) -> Case:
    """The program of the README: examples/gnn_large.v5e.hlo."""
    nodes, edges, width = 100_000, 400_000, 12

    def f(x, e, w):
        messages = x[e[:, 0]] @ w
        return jnp.zeros_like(x).at[e[:, 1]].add(messages)

    def columns(x, e, w):
        rows = [column[e[:, 0]] for column in jnp.unstack(x, axis=-1)]
        messages = [sum(row * w[i, j] for i, row in enumerate(rows)) for j in range(width)]
        return jnp.stack([jnp.zeros(nodes).at[e[:, 1]].add(m) for m in messages], axis=-1)

    def chunked(x, e, w):
        return over_edges(nodes, width, lambda e: f(x, e, w), (e,), 16)

    arguments = (draw.array((nodes, width)), draw.array((edges, 2), jnp.int32), draw.array((width, width)))
    return compared(Program(f, arguments), ("columns", "split upstream", columns), ("chunked", "chunk", chunked))


@case("v6e")
def graph_attention(draw: Draw) -> Case:
    nodes, edges, heads, width = 40_000, 800_000, 4, 8

    def scored(h, a, source, target):
        pair = jnp.concatenate([h[source], h[target]], axis=-1)
        return jnp.exp(jax.nn.leaky_relu(jnp.einsum("ehd,hd->eh", pair, a)))

    def layer(h, a, source, target):
        score = scored(h, a, source, target)
        total = jax.ops.segment_sum(score, target, nodes)
        return jax.ops.segment_sum(h[source] * score[..., None], target, nodes) / total[..., None]

    def parts(h, a, source, target):
        score = scored(h, a, source, target)
        rows = jax.ops.segment_sum((h[source] * score[..., None]).reshape(-1, heads * width), target, nodes)
        return jnp.concatenate([rows, jax.ops.segment_sum(score, target, nodes)], axis=1)

    def chunked(h, a, source, target):
        summed = over_edges(nodes, heads * (width + 1), lambda s, t: parts(h, a, s, t), (source, target), 20)
        return summed[:, : heads * width].reshape(nodes, heads, width) / summed[:, heads * width :, None]

    def columns(h, a, source, target):
        result = []
        for head in range(heads):
            rows = [[c[index] for c in jnp.unstack(h[:, head], axis=1)] for index in (source, target)]
            pair = sum(c * a[head, i] for i, c in enumerate(rows[0] + rows[1]))
            score = jnp.exp(jax.nn.leaky_relu(pair))
            total = jax.ops.segment_sum(score, target, nodes)
            sums = [jax.ops.segment_sum(c * score, target, nodes) / total for c in rows[0]]
            result.append(jnp.stack(sums, axis=1))
        return jnp.stack(result, axis=1)

    index = draw.array((edges,), jnp.int32)
    arguments = (draw.array((nodes, heads, width)), draw.array((heads, 2 * width)), index, index)
    return compared(Program(layer, arguments), ("chunked", "chunk", chunked), ("columns", "split upstream", columns))


@case("v4")
def page_rank(draw: Draw) -> Case:
    """Scalars a node and an edge: no padding."""
    nodes, edges = 2_000_000, 20_000_000

    def ranked(rank, degree, source, target):
        def step(_, rank):
            return 0.15 / nodes + 0.85 * jax.ops.segment_sum((rank / degree)[source], target, nodes)

        return lax.fori_loop(0, 20, step, rank)

    def chunked(rank, degree, source, target):
        def step(_, rank):
            share = rank / degree
            part = lambda s, t: jax.ops.segment_sum(share[s], t, nodes)[:, None]  # noqa: E731
            total = over_edges(nodes, 1, part, (source, target), 20)
            return 0.15 / nodes + 0.85 * total[:, 0]

        return lax.fori_loop(0, 20, step, rank)

    value, index = draw.array((nodes,)), draw.array((edges,), jnp.int32)
    arguments = (value, value, index, index)
    return compared(Program(ranked, arguments), ("chunked", "chunk", chunked))


@case("v5e")
def face_normals(draw: Draw) -> Case:
    """Normals of the triangles of a mesh, added up at its vertices."""
    vertices, faces = 300_000, 600_000

    def added(corners, face):
        a, b, c = corners
        normal = jnp.cross(b - a, c - a)
        return sum(jax.ops.segment_sum(normal, face[:, i], vertices) for i in range(3))

    def unit(total):
        return total / jnp.linalg.norm(total, axis=-1, keepdims=True)

    def normals(x, face):
        return unit(added((x[face[:, i]] for i in range(3)), face))

    def columns(x, face):
        corner = [[c[face[:, i]] for c in jnp.unstack(x, axis=1)] for i in range(3)]
        u, v = ([p - q for p, q in zip(corner[i], corner[0], strict=True)] for i in (1, 2))
        normal = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]
        total = [sum(jax.ops.segment_sum(n, face[:, i], vertices) for i in range(3)) for n in normal]
        return jnp.stack(total, axis=1) / jnp.sqrt(sum(t * t for t in total))[:, None]

    def gathers(x, face):
        return unit(added((jnp.stack([c[face[:, i]] for c in jnp.unstack(x, axis=1)], 1) for i in range(3)), face))

    def chunked(x, face):
        return unit(over_edges(vertices, 3, lambda face: added((x[face[:, i]] for i in range(3)), face), (face,), 16))

    arguments = (draw.array((vertices, 3)), draw.array((faces, 3), jnp.int32))
    return compared(
        Program(normals, arguments),
        ("columns", "split upstream", columns),
        ("gathers", "split upstream", gathers),
        ("chunked", "chunk", chunked),
    )


@case("v5e")
def knowledge_graph(draw: Draw) -> Case:
    """DistMult's scores of triples, as bf16 rows of 32."""
    entities, relations, triples, width = 500_000, 200, 1_000_000, 32

    def loss(entity, relation, triple):
        rows = entity[triple[:, 0]] * relation[triple[:, 1]] * entity[triple[:, 2]]
        return -jnp.mean(jax.nn.log_sigmoid(jnp.sum(rows.astype(jnp.float32), axis=-1)))

    def chunked(entity, relation, triple):
        step = jax.checkpoint(lambda total, chunk: (total + loss(entity, relation, chunk), None))
        return lax.scan(step, 0.0, triple.reshape(16, -1, 3))[0] / 16

    dtype = jnp.bfloat16
    tables = draw.array((entities, width), dtype), draw.array((relations, width), dtype)
    arguments = (*tables, draw.array((triples, 3), jnp.int32))
    return compared(Program(jax.grad(loss, (0, 1)), arguments), ("chunked", "chunk", jax.grad(chunked, (0, 1))))
