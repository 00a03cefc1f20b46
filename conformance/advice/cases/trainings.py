"""Training steps of the sorts that people run most, built from public libraries after all rules were written."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax import lax

from .case import Case, Draw, Program, case, compared
from .libraries import KEY, accumulated, recomputed, step_of


class Convolved(nn.Module):
    """A block of a U-Net: two convolutions beside a residual."""

    width: int

    @nn.compact
    def __call__(self, x, time):
        y = nn.Conv(self.width, (3, 3), dtype=jnp.bfloat16)(nn.silu(nn.GroupNorm(8, dtype=jnp.bfloat16)(x)))
        y = y + nn.Dense(self.width, dtype=jnp.bfloat16)(time)[:, None, None]
        y = nn.Conv(self.width, (3, 3), dtype=jnp.bfloat16)(nn.silu(nn.GroupNorm(8, dtype=jnp.bfloat16)(y)))
        return y + nn.Dense(self.width, dtype=jnp.bfloat16)(x)


class UNet(nn.Module):
    """Three resolutions, two blocks at each."""

    block: type = Convolved

    @nn.compact
    def __call__(self, x, time):
        angles = time[:, None] * jnp.exp(jnp.linspace(0.0, -9.0, 32))
        time = nn.silu(nn.Dense(128, dtype=jnp.bfloat16)(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)))
        x, kept = nn.Conv(64, (3, 3), dtype=jnp.bfloat16)(x), []
        for level in range(3):
            for number in range(2):
                x = self.block(64 << level, name=f"down_{2 * level + number}")(x, time)
                kept.append(x)
            x = nn.avg_pool(x, (2, 2), (2, 2)) if level < 2 else x
        for level in reversed(range(3)):
            for number in range(2):
                x = jnp.concatenate([x, kept.pop()], -1)
                x = self.block(64 << level, name=f"up_{2 * level + number}")(x, time)
            if level:
                batch, height, width, channels = x.shape
                x = jax.image.resize(x, (batch, 2 * height, 2 * width, channels), "nearest")
        return nn.Conv(3, (3, 3))(x)


@case("v4")
def flax_diffusion(draw: Draw) -> Case:
    """Flax: a U-Net learns to remove noise."""
    x, noise, time = draw.array((32, 64, 64, 3)), draw.array((32, 64, 64, 3)), draw.array((32,))

    def loss(model, params, x, noise, time):
        keep = jnp.cos(time)[:, None, None, None]
        noisy = keep * x + jnp.sqrt(1 - keep**2) * noise
        return jnp.mean((model.apply(params, noisy, time) - noise) ** 2)

    model = UNet()
    params = jax.eval_shape(model.init, KEY, x, time)
    return recomputed(draw, loss, (model, UNet(block=nn.remat(Convolved))), params, (x, noise, time), parts=2)


@case("v5p")
def vmapped_ensemble(draw: Draw) -> Case:
    """Optax: sixteen networks train on one batch, each with its own weights."""
    members, rows = 16, 8192

    def one(params, x, y):
        for weight in params["hidden"]:
            x = jax.nn.gelu(x @ weight)
        return jnp.mean((x @ params["out"] - y) ** 2)

    optimizer = optax.adam(1e-3)
    params = {"hidden": [draw.array((256, 256))] * 4, "out": draw.array((256, 1))}
    state = jax.eval_shape(optimizer.init, params)

    def many(tree):
        return jax.tree.map(lambda leaf: draw.array((members, *leaf.shape), leaf.dtype), tree)

    step = step_of(one, optimizer)

    def train(params, opt, x, y):
        return jax.vmap(step, in_axes=(0, 0, None, None))(params, opt, x, y)

    def mapped(params, opt, x, y):
        return lax.map(lambda member: step(*member, x, y), (params, opt))

    def halved(params, opt, x, y):
        in_parts = step_of(accumulated(one, 8), optimizer)
        return jax.vmap(in_parts, in_axes=(0, 0, None, None))(params, opt, x, y)

    arguments = many(params), many(state), draw.array((rows, 256)), draw.array((rows, 1))
    jit = {"donate_argnums": (0, 1)}
    return compared(Program(train, arguments, jit), ("mapped", "chunk", mapped), ("accumulated", "chunk value", halved))


@case("v4")
def ppo_update(draw: Draw) -> Case:
    """Flax: epochs of minibatches over shuffled rollouts, as an agent is trained by PPO."""
    steps, agents, width, minibatches = 128, 1024, 128, 8

    class Agent(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(3):
                x = nn.tanh(nn.Dense(256)(x))
            return nn.log_softmax(nn.Dense(8)(x)), nn.Dense(1)(x)[..., 0]

    agent, optimizer = Agent(), optax.chain(optax.clip_by_global_norm(0.5), optax.adam(3e-4))
    params = jax.eval_shape(agent.init, KEY, draw.array((1, width)))
    state = jax.eval_shape(optimizer.init, params)

    def loss(params, seen, action, before, advantage, target):
        chances, value = agent.apply(params, seen)
        ratio = jnp.exp(jnp.take_along_axis(chances, action[:, None], 1)[:, 0] - before)
        gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 0.8, 1.2) * advantage)
        return 0.5 * jnp.mean((value - target) ** 2) - gain.mean()

    step = step_of(loss, optimizer)

    def gathered_first(rollout, order):
        return [leaf[order].reshape(minibatches, -1, *leaf.shape[1:]) for leaf in rollout], lambda part: part

    def gathered_later(rollout, order):
        return order.reshape(minibatches, -1), lambda part: [leaf[part] for leaf in rollout]

    def updated(parts_of, params, opt, seen, action, before, value, reward, orders):
        def back(total, now):
            reward, value, after = now
            total = reward + 0.99 * after - value + 0.95 * 0.99 * total
            return total, total

        after = jnp.concatenate([value[1:], value[-1:]])
        _, advantage = lax.scan(back, jnp.zeros(agents), (reward, value, after), reverse=True)
        rollout = [seen, action, before, advantage, advantage + value]
        rollout = [leaf.reshape(steps * agents, *leaf.shape[2:]) for leaf in rollout]

        def epoch(carry, order):
            parts, taken = parts_of(rollout, order)

            def minibatch(carry, part):
                params, opt, value = step(*carry, *taken(part))
                return (params, opt), value

            return lax.scan(minibatch, carry, parts)

        return lax.scan(epoch, (params, opt), orders)

    def update(params, opt, seen, action, before, value, reward, orders):
        return updated(gathered_first, params, opt, seen, action, before, value, reward, orders)

    def chunked(*arguments):
        return updated(gathered_later, *arguments)

    rows = [draw.array((steps, agents), dtype) for dtype in (jnp.int32, *[jnp.float32] * 3)]
    orders = draw.array((4, steps * agents), jnp.int32)
    arguments = draw.like(params), draw.like(state), draw.array((steps, agents, width)), *rows, orders
    jit = {"donate_argnums": (0, 1)}
    return compared(Program(update, arguments, jit), ("chunked", "chunk loop", chunked))
