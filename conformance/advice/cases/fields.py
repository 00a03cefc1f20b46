"""Training steps of the fourth set whose network is a field: of electrons in space, or of light."""

import jax
import jax.numpy as jnp
import optax
from jax import lax

from .case import Case, Change, Draw, Program, case
from .libraries import accumulated, shaped, trained


@case("v4")
def walking_electrons(draw: Draw) -> Case:
    """After FermiNet's `local_kinetic_energy`: second derivatives of determinants, a coordinate at a time, for all walkers."""
    walkers, electrons, atoms, single, pair, matrices = 1024, 20, 2, 256, 32, 16
    half = electrons // 2

    def features(one, two):
        means = [jnp.broadcast_to(part.mean(0), one.shape) for part in (one[:half], one[half:])]
        return jnp.concatenate([one, *means, two[:half].mean(0), two[half:].mean(0)], -1)

    def likelihood(params, flat, nuclei):
        x = flat.reshape(electrons, 3)
        near = x[:, None] - nuclei
        lengths = jnp.linalg.norm(near, axis=-1, keepdims=True)
        apart = x[:, None] - x
        own = jnp.eye(electrons)[..., None]
        far = jnp.linalg.norm(apart + own, axis=-1, keepdims=True) * (1 - own)
        one = jnp.concatenate([near, lengths], -1).reshape(electrons, -1)
        two = jnp.concatenate([apart, far], -1)
        for weights in params["layers"]:
            after = jnp.tanh(features(one, two) @ weights["single"] + weights["bias"])
            one = one + after if after.shape == one.shape else after
            after = jnp.tanh(two @ weights["pair"] + weights["pair_bias"])
            two = two + after if after.shape == two.shape else after
        found = []
        for spin, rows in zip(params["orbitals"], (one[:half], one[half:]), strict=True):
            size = lengths[:half] if spin is params["orbitals"][0] else lengths[half:]
            fade = (jnp.exp(-jnp.abs(spin["decay"] * size)) * spin["share"]).sum(1)
            found.append((rows @ spin["weight"] * fade).reshape(half, matrices, half).swapaxes(0, 1))
        signs, logs = zip(*[jnp.linalg.slogdet(matrix) for matrix in found], strict=True)
        logs = logs[0] + logs[1]
        most = logs.max()
        return jnp.log(jnp.abs((signs[0] * signs[1] * jnp.exp(logs - most)).sum())) + most

    def potential(flat, nuclei, charges):
        x = flat.reshape(electrons, 3)
        near = jnp.linalg.norm(x[:, None] - nuclei, axis=-1)
        far = jnp.linalg.norm(x[:, None] - x + 3 * jnp.eye(electrons)[..., None], axis=-1)
        return jnp.triu(1 / far, 1).sum() - (charges / near).sum()

    def energy(params, flat, nuclei, charges):
        slope = jax.grad(lambda x: likelihood(params, x, nuclei))
        primal, tangent = jax.linearize(slope, flat)
        units = jnp.eye(3 * electrons)
        curve = lax.fori_loop(0, 3 * electrons, lambda at, total: total + tangent(units[at])[at], 0.0)
        return -0.5 * (curve + (primal**2).sum()) + potential(flat, nuclei, charges)

    def step_of(each):
        optimizer = optax.adam(1e-4)

        def step(params, opt, flat, nuclei, charges):
            found = each(lambda x: energy(params, x, nuclei, charges), flat)
            apart = found - found.mean()

            def surrogate(params):
                return (apart * jax.vmap(lambda x: likelihood(params, x, nuclei))(flat)).mean()

            update, opt = optimizer.update(jax.grad(surrogate)(params), opt, params)
            return optax.apply_updates(params, update), opt, found.mean(), found.var()

        return step

    layers, one, two = [], 4 * atoms, 4
    for _ in range(3):
        shapes = {"single": (3 * one + 2 * two, single), "bias": (single,), "pair": (two, pair), "pair_bias": (pair,)}
        layers.append({name: draw.array(shape) for name, shape in shapes.items()})
        one, two = single, pair
    width = matrices * half
    orbitals = {"weight": (single, width), "decay": (atoms, width), "share": (atoms, width)}
    params = {"layers": layers}
    params["orbitals"] = [{name: draw.array(shape) for name, shape in orbitals.items()} for _ in range(2)]
    state = shaped(draw, jax.eval_shape(optax.adam(1e-4).init, params))
    arguments = params, state, draw.array((walkers, 3 * electrons)), draw.array((atoms, 3)), draw.array((atoms,))
    jit = {"donate_argnums": (0, 1)}
    in_parts = Program(step_of(lambda one, flat: lax.map(one, flat, batch_size=64)), arguments, jit)
    program = Program(step_of(lambda one, flat: jax.vmap(one)(flat)), arguments, jit)
    return Case(program, [Change("in_parts", "chunk", "value", in_parts)])


@case("v5e")
def hashed_places(draw: Draw) -> Case:
    """After jaxngp's `HashGridEncoder`: two numbers at each of eight corners around a point, of sixteen grids in one table."""
    rays, samples, levels, size, coarse, fine = 1024, 128, 16, 2**19, 16, 512

    def embedded(table, x):
        corners = jnp.array([(i, j, k) for i in (0, 1) for j in (0, 1) for k in (0, 1)])
        primes = jnp.array([1, 2654435761, 805459861], jnp.uint32)

        def indexed(number):
            place = x * jnp.floor(coarse * (fine / coarse) ** (number / (levels - 1)))
            low = jnp.floor(place).astype(jnp.int32)
            hashed = (low[:, None] + corners).astype(jnp.uint32) * primes
            at = (hashed[..., 0] ^ hashed[..., 1] ^ hashed[..., 2]) & (size - 1)
            share = (place - low)[:, None]
            return at.astype(jnp.int32) + number * size, jnp.where(corners, share, 1 - share).prod(-1)

        at, weight = jax.vmap(indexed)(jnp.arange(levels))
        return (table[at] * weight[..., None]).sum(2).swapaxes(0, 1).reshape(len(x), -1)

    def spheres(way):
        x, y, z = jnp.moveaxis(way, -1, 0)
        low = [jnp.ones_like(x), y, z, x, x * y, y * z, 3 * z**2 - 1, x * z, x**2 - y**2]
        high = [y * (3 * x**2 - y**2), x * y * z, y * (5 * z**2 - 1), z * (5 * z**2 - 3), x * (5 * z**2 - 1)]
        return jnp.stack([*low, *high, z * (x**2 - y**2), x * (x**2 - 3 * y**2)], -1)

    def loss(params, start, way, keys, color):
        depth = (
            jnp.linspace(0.1, 1, samples) + jax.vmap(lambda key: jax.random.uniform(key, (samples,)))(keys) / samples
        )
        x = start[:, None] + way[:, None] * depth[..., None]
        y = embedded(params["table"], jnp.clip(x, 0, 1).reshape(-1, 3))
        y = jax.nn.relu(y @ params["first"]) @ params["second"]
        density, seen = jax.nn.relu(y[:, 0]).reshape(-1, samples), y[:, 1:]
        unit = way / jnp.linalg.norm(way, axis=-1, keepdims=True)
        y = jnp.concatenate([jnp.repeat(spheres(unit), samples, 0), seen], -1)
        for name in ("third", "fourth"):
            y = jax.nn.relu(y @ params[name])
        painted = jax.nn.sigmoid(y @ params["fifth"]).reshape(-1, samples, 3)
        alpha = 1 - jnp.exp(-density * jnp.diff(depth, append=depth[:, -1:] + 0.01))
        through = jnp.cumprod(1 - alpha + 1e-10, -1)
        share = alpha * jnp.concatenate([jnp.ones_like(alpha[:, :1]), through[:, :-1]], -1)
        sparse = -(share * jnp.log(share + 1e-6)).sum(-1)
        return ((jnp.einsum("rs,rsc->rc", share, painted) - color) ** 2).mean() + 1e-10 * sparse.mean()

    shapes = {"first": (2 * levels, 64), "second": (64, 16), "third": (31, 64), "fourth": (64, 64), "fifth": (64, 3)}
    params = {name: draw.array(shape) for name, shape in shapes.items()}
    params["table"] = draw.array((levels * size, 2))
    batch = draw.array((rays, 3)), draw.array((rays, 3)), draw.array((rays, 2), jnp.uint32), draw.array((rays, 3))
    return trained(draw, loss, params, batch, [("accumulated", "chunk", accumulated(loss, 8))])
