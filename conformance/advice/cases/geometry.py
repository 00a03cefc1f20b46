"""Points, boxes, rotations and tracks: long arrays of a few components."""

import jax
import jax.numpy as jnp
from jax import lax

from .case import Case, Draw, Program, case, compared, pinned


@case("v5e", "v7x")
def lidar_to_world(draw: Draw) -> Case:
    n = 6_000_000

    def moved(points, rotation, offset):
        world = points @ rotation.T + offset
        return world, jnp.linalg.norm(world, axis=-1)

    def planes(x, y, z, rotation, offset):
        world = [sum(rotation[i, j] * v for j, v in enumerate((x, y, z))) + offset[i] for i in range(3)]
        return world, jnp.sqrt(sum(v * v for v in world))

    pose = draw.array((3, 3)), draw.array((3,))
    return compared(
        Program(moved, (draw.array((n, 3)), *pose)),
        ("planes", "split argument", planes, (*[draw.array((n,))] * 3, *pose)),
    )


@case("v6e", "v5p")
def nearest_neighbours(draw: Draw) -> Case:
    def nearest(points, queries):
        distance = jnp.sum((queries[:, None] - points[None]) ** 2, axis=-1)
        return lax.top_k(-distance, 16)

    def chunked(points, queries):
        return lax.map(lambda q: lax.top_k(-jnp.sum((q - points) ** 2, axis=-1), 16), queries, batch_size=256)

    arguments = draw.array((30000, 3)), draw.array((8192, 3))
    return compared(Program(nearest, arguments), ("chunked", "chunk", chunked))


@case("v5p")
def quaternion_rotations(draw: Draw) -> Case:
    n = 3_000_000

    def rotated(q, v):
        q = q / jnp.linalg.norm(q, axis=-1, keepdims=True)
        t = 2 * jnp.cross(q[:, 1:], v)
        return v + q[:, :1] * t + jnp.cross(q[:, 1:], t)

    def cross(a, b):
        return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]

    def planes(w, axis, v):
        norm = jnp.sqrt(w * w + sum(a * a for a in axis))
        w, axis = w / norm, [a / norm for a in axis]
        t = [2 * a for a in cross(axis, v)]
        return [v[i] + w * t[i] + u for i, u in enumerate(cross(axis, t))]

    one = draw.array((n,))
    return compared(
        Program(rotated, (draw.array((n, 4)), draw.array((n, 3)))),
        ("planes", "split argument", planes, (one, [one] * 3, [one] * 3)),
    )


@case("v5e")
def pinned_boxes(draw: Draw) -> Case:
    """The caller keeps boxes row-major, as they come from the host."""
    boxes = draw.array((1_500_000, 4))

    def areas(boxes, scores):
        size = boxes[:, 2:] - boxes[:, :2]
        keep = (scores > 0.5) & jnp.all(size > 1, axis=1)
        return jnp.where(keep, size[:, 0] * size[:, 1], 0.0), jnp.where(keep[:, None], boxes, 0).sum(axis=0)

    def flat(boxes, scores):
        return areas(boxes.reshape(-1, 4), scores)

    scores = draw.array((1_500_000,))
    return compared(
        Program(areas, (pinned(boxes), scores)),
        ("unpinned", "order argument", areas, (boxes, scores)),
        ("flat", "reshape argument", flat, (draw.array((6_000_000,)), scores)),
    )


@case("v6e", "v4")
def kalman_tracks(draw: Draw) -> Case:
    """A step of 40000 constant-velocity filters: four states, two measured."""
    n = 40_000

    def step(x, p, z, f, h, q, r):
        x, p = x @ f.T, f @ p @ f.T + q
        s = h @ p @ h.T + r
        gain = jnp.linalg.solve(s, h @ p).mT
        x = x + jnp.einsum("nij,nj->ni", gain, z - x @ h.T)
        return x, (jnp.eye(4) - gain @ h) @ p

    def chunked(x, p, z, f, h, q, r):
        return lax.map(
            lambda one: jax.tree.map(lambda v: v[0], step(*[v[None] for v in one], f, h, q, r)),
            (x, p, z),
            batch_size=2500,
        )

    def tracks_last(x, p, z, f, h, q, r):
        x, p = f @ x, jnp.einsum("ij,jkn,lk->iln", f, p, f) + q[..., None]
        hp = jnp.einsum("ij,jkn->ikn", h, p)
        s = jnp.einsum("ikn,jk->ijn", hp, h) + r[..., None]
        det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
        inverse = jnp.stack([jnp.stack([s[1, 1], -s[0, 1]]), jnp.stack([-s[1, 0], s[0, 0]])]) / det
        gain = jnp.einsum("jin,jkn->ikn", hp, inverse)
        return x + jnp.einsum("ijn,jn->in", gain, z - h @ x), p - jnp.einsum("ijn,jkn->ikn", gain, hp)

    model = [draw.array(shape) for shape in ((4, 4), (2, 4), (4, 4), (2, 2))]
    state = [draw.array(shape) for shape in ((n, 4), (n, 4, 4), (n, 2))]
    last = [draw.array(shape) for shape in ((4, n), (4, 4, n), (2, n))]
    return compared(
        Program(step, (*state, *model)),
        ("chunked", "chunk", chunked),
        ("tracks_last", "transpose argument", tracks_last, (*last, *model)),
    )


@case("v5e", "v6e")
def voxel_means(draw: Draw) -> Case:
    """Sums of features of lidar points in their voxels."""
    n, voxels = 2_000_000, 300_000

    def means(features, voxel):
        sums = jax.ops.segment_sum(features, voxel, voxels)
        count = jax.ops.segment_sum(jnp.ones_like(voxel, jnp.float32), voxel, voxels)
        return sums / jnp.maximum(count, 1)[:, None]

    def columns(features, voxel):
        count = jnp.maximum(jax.ops.segment_sum(jnp.ones_like(voxel, jnp.float32), voxel, voxels), 1)
        return jnp.stack([jax.ops.segment_sum(c, voxel, voxels) / count for c in jnp.unstack(features, axis=1)], axis=1)

    def planes(features, voxel):
        count = jnp.maximum(jax.ops.segment_sum(jnp.ones_like(voxel, jnp.float32), voxel, voxels), 1)
        return [jax.ops.segment_sum(c, voxel, voxels) / count for c in features]

    voxel = draw.array((n,), jnp.int32)
    return compared(
        Program(means, (draw.array((n, 6)), voxel)),
        ("columns", "split upstream", columns),
        ("planes", "split argument", planes, ([draw.array((n,))] * 6, voxel)),
    )


@case("v4")
def bundle_adjustment(draw: Draw) -> Case:
    """The normal equations of the poses that see 150000 points: a Jacobian a point."""
    n, cameras = 150_000, 200

    def residual(pose, point, pixel):
        a, t = pose[:3], pose[3:]
        p = point + jnp.cross(a, point) + 0.5 * jnp.cross(a, jnp.cross(a, point)) + t
        return p[:2] / p[2] - pixel

    def normal(poses, points, pixels, camera):
        jacobian = jax.vmap(jax.jacfwd(residual))(poses[camera], points, pixels)
        value = jax.vmap(residual)(poses[camera], points, pixels)
        return (
            jax.ops.segment_sum(jnp.einsum("nki,nkj->nij", jacobian, jacobian), camera, cameras),
            jax.ops.segment_sum(jnp.einsum("nki,nk->ni", jacobian, value), camera, cameras),
        )

    def chunked(poses, points, pixels, camera):
        def add(sums, chunk):
            return jax.tree.map(jnp.add, sums, normal(poses, *chunk)), None

        chunks = [v.reshape(50, -1, *v.shape[1:]) for v in (points, pixels, camera)]
        return lax.scan(add, (jnp.zeros((cameras, 6, 6)), jnp.zeros((cameras, 6))), chunks)[0]

    def columns(poses, points, pixels, camera):
        jacobian = jax.vmap(jax.jacfwd(residual))(poses[camera], points, pixels)
        value = jax.vmap(residual)(poses[camera], points, pixels)
        column = [jnp.unstack(jacobian[:, k], axis=1) for k in range(2)]

        def summed(edge):
            return jax.ops.segment_sum(edge, camera, cameras)

        rows = [[summed(column[0][i] * column[0][j] + column[1][i] * column[1][j]) for j in range(6)] for i in range(6)]
        right = [summed(column[0][i] * value[:, 0] + column[1][i] * value[:, 1]) for i in range(6)]
        return jnp.stack([jnp.stack(row, axis=1) for row in rows], axis=1), jnp.stack(right, axis=1)

    arguments = [draw.array(shape) for shape in ((cameras, 6), (n, 3), (n, 2))]
    arguments = (*arguments, draw.array((n,), jnp.int32))
    return compared(Program(normal, arguments), ("chunked", "chunk", chunked), ("columns", "split upstream", columns))


@case("v5e")
def flat_records(draw: Draw) -> Case:
    """Boxes come and go in flat arrays, as a file has them."""
    n = 1_000_000

    def clipped(flat, shift):
        box = flat.reshape(-1, 4)
        low, high = box[:, :2] + shift, box[:, 2:] + shift
        size = jnp.maximum(high - low, 0)
        return size[:, 0] * size[:, 1], jnp.concatenate([low, high], 1).reshape(-1)

    def of_columns(columns, shift):
        a, b, c, d = (column + shift[number % 2] for number, column in enumerate(columns))
        return jnp.maximum(c - a, 0) * jnp.maximum(d - b, 0), [a, b, c, d]

    def strided(flat, shift):
        area, columns = of_columns([flat[column::4] for column in range(4)], shift)
        return area, jnp.stack(columns, 1).reshape(-1)

    flat, shift = draw.array((4 * n,)), draw.array((2,))
    return compared(
        Program(clipped, (flat, shift)),
        ("strided", "split argument", strided),
        ("columns", "split argument", of_columns, ([draw.array((n,))] * 4, shift)),
    )
