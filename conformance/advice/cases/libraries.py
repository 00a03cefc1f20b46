"""Training steps, caches, samplers and searches of public libraries. Weights are shapes: nothing is downloaded."""

import functools
from typing import Any

import diffrax
import equinox
import flax.linen as nn
import haiku
import jax
import jax.numpy as jnp
import jraph
import mctx
import numpyro
import optax
from jax import lax
from numpyro import distributions

from .case import Case, Draw, Program, case, compared

KEY = jax.random.key(0)


def normalized(x, small=1e-6):
    """Rows of mean square one."""
    return x * lax.rsqrt((x.astype(jnp.float32) ** 2).mean(-1, keepdims=True) + small).astype(x.dtype)


def step_of(loss, optimizer):
    """A training step that returns the new parameters and the new state of the optimizer."""

    def step(params, opt, *batch):
        value, gradient = jax.value_and_grad(loss)(params, *batch)
        update, opt = optimizer.update(gradient, opt, params)
        return optax.apply_updates(params, update), opt, value

    return step


def accumulated(loss, parts):
    """A loss that is a mean over the batch, with the gradients of its parts added up."""

    @jax.custom_vjp
    def mean(params, *batch):
        return loss(params, *batch)

    def forward(params, *batch):
        def add(total, part):
            found = jax.value_and_grad(loss)(params, *part)
            return jax.tree.map(lambda t, g: t + g / parts, total, found), None

        cut = jax.tree.map(lambda leaf: leaf.reshape(parts, -1, *leaf.shape[1:]), batch)
        zero = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), (jnp.float32(0), params))
        value, gradient = lax.scan(add, zero, cut)[0]
        return value, (gradient, batch)

    def backward(kept, by):
        gradient, batch = kept
        return jax.tree.map(lambda g: g * by, gradient), *[None] * len(batch)

    mean.defvjp(forward, backward)
    return mean


def trained(draw: Draw, loss, params, batch, changes, optimizer=None, donated=True) -> Case:
    """A training step, and the same with other losses.

    `changes` has a name, a kind of advice with its target, and a loss for each. Where nothing is donated, a step that
    donates its parameters and its state is one more change: the function and its arguments are the same, and only
    the options of `jax.jit` differ.
    """
    optimizer = optimizer or optax.adam(1e-3)
    arguments = (*draw.like((params, jax.eval_shape(optimizer.init, params))), *batch)
    jit = {"donate_argnums": (0, 1)}
    program = Program(step_of(loss, optimizer), arguments, jit if donated else {})
    others = [(name, about, step_of(other, optimizer)) for name, about, other in changes]
    if not donated:
        others.append(("donated", "donate argument", program.function, arguments, jit))
    return compared(program, *others)


def recomputed(draw: Draw, loss, variants, params, batch, optimizer=None, parts=None, donated=True) -> Case:
    """A training step, the same with its layers recomputed, and the first in parts of the batch.

    `variants` are the first argument of the loss as the program has it, and as it recomputes its layers.
    """
    whole, remat = (functools.partial(loss, variant) for variant in variants)
    changes = [("remat", "checkpoint", remat)]
    if parts:
        changes.append(("accumulated", "chunk", accumulated(whole, parts)))
    return trained(draw, whole, params, batch, changes, optimizer, donated)


class Block(nn.Module):
    """A layer of a transformer, normalized before each half."""

    heads: int = 8
    dtype: Any = jnp.bfloat16

    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm(dtype=self.dtype)(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads, dtype=self.dtype)(y, y)
        y = nn.Dense(4 * x.shape[-1], dtype=self.dtype)(nn.LayerNorm(dtype=self.dtype)(x))
        return x + nn.Dense(x.shape[-1], dtype=self.dtype)(nn.gelu(y))


class Decoder(nn.Module):
    """A language model of three layers."""

    vocabulary: int
    layer: type = Block

    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(self.vocabulary, 256, dtype=jnp.bfloat16)(tokens)
        for number in range(3):
            x = self.layer(name=f"layer_{number}")(x)
        return nn.Dense(self.vocabulary, dtype=jnp.bfloat16)(x).astype(jnp.float32)


@case("v6e")
def flax_decoder(draw: Draw) -> Case:
    """Flax: of a small vocabulary, so that scores and activations fill the memory."""
    tokens = draw.array((16, 1024), jnp.int32)

    def loss(model, params, tokens):
        logits = model.apply(params, tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()

    model = Decoder(256)
    params = jax.eval_shape(model.init, KEY, tokens)
    return recomputed(draw, loss, (model, Decoder(256, layer=nn.remat(Block))), params, (tokens,), parts=8)


@case("v5e")
def flax_vocabulary(draw: Draw) -> Case:
    """Flax: one of 32000, whose logits fill the memory."""
    tokens = draw.array((8, 512), jnp.int32)
    model = Decoder(32000)

    def loss(params, tokens):
        logits = model.apply(params, tokens)
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens).mean()

    params = jax.eval_shape(model.init, KEY, tokens)
    return trained(draw, loss, params, (tokens,), [("accumulated", "chunk", accumulated(loss, 8))])


@case("v4")
def flax_convolutions(draw: Draw) -> Case:
    """Flax: convolutions on pictures."""

    class Convolutions(nn.Module):
        @nn.compact
        def __call__(self, x):
            for number in range(4):
                x = nn.relu(nn.Conv(64, (3, 3), dtype=jnp.bfloat16, name=f"conv_{number}")(x))
            return nn.Dense(10)(x.mean((1, 2)))

    model, x, y = Convolutions(), draw.array((256, 64, 64, 3)), draw.array((256,), jnp.int32)

    def loss(params, x, y):
        return optax.softmax_cross_entropy_with_integer_labels(model.apply(params, x), y).mean()

    params = jax.eval_shape(model.init, KEY, x)
    return trained(draw, loss, params, (x, y), [("accumulated", "chunk", accumulated(loss, 8))], optax.sgd(0.1, 0.9))


@case("v4")
def haiku_lstm(draw: Draw) -> Case:
    """Haiku: an LSTM over 128 steps."""
    x, y = draw.array((256, 128, 64)), draw.array((256, 128, 64))

    def network(x, is_recomputed):
        core = haiku.LSTM(256)

        def run(x, state):
            return core(x, state)

        step = haiku.remat(run) if is_recomputed else run
        out, _ = haiku.dynamic_unroll(step, x, core.initial_state(x.shape[0]), time_major=False)
        return haiku.BatchApply(haiku.Linear(64))(out)

    def loss_of(is_recomputed):
        net = haiku.without_apply_rng(haiku.transform(functools.partial(network, is_recomputed=is_recomputed)))
        return net, lambda params, x, y: jnp.mean((net.apply(params, x) - y) ** 2)

    (net, loss), (_, remat) = loss_of(False), loss_of(True)
    params = jax.eval_shape(net.init, KEY, x)
    changes = [("accumulated", "chunk", accumulated(loss, 8)), ("remat", "checkpoint loop", remat)]
    return trained(draw, loss, params, (x, y), changes)


@case("v5e")
def jraph_network(draw: Draw) -> Case:
    """Jraph: two rounds of messages along 200000 edges."""
    nodes, edges, graphs = 20_000, 200_000, 64

    def network(graph, is_recomputed):
        graph = jraph.GraphMapFeatures(haiku.Linear(64), haiku.Linear(64), haiku.Linear(32))(graph)

        def mlp(*inputs):
            return haiku.nets.MLP([64, 64])(jnp.concatenate(inputs, -1))

        for _ in range(3):
            layer = jraph.GraphNetwork(lambda e, s, r, g: mlp(e, s, r, g), lambda n, s, r, g: mlp(n, s, r, g), None)
            graph = (haiku.remat(layer) if is_recomputed else layer)(graph)
        return haiku.Linear(1)(graph.nodes)

    numbers = {"nodes": (nodes, 9), "edges": (edges, 3), "globals": (graphs, 1)}
    places = {"senders": (edges,), "receivers": (edges,), "n_node": (graphs,), "n_edge": (graphs,)}
    graph = jraph.GraphsTuple(**draw.named(numbers), **draw.named(places, jnp.int32))

    def loss_of(is_recomputed):
        net = haiku.without_apply_rng(haiku.transform(functools.partial(network, is_recomputed=is_recomputed)))
        return net, lambda params, graph, y: jnp.mean((net.apply(params, graph)[:, 0] - y) ** 2)

    (net, loss), (_, remat) = loss_of(False), loss_of(True)
    params = jax.eval_shape(net.init, KEY, graph)
    changes = [("remat", "checkpoint", remat), ("accumulated", "chunk", accumulated(loss, 2))]
    return trained(draw, loss, params, (graph, draw.array((nodes,))), changes)


@case("v6e")
def equinox_mlp(draw: Draw) -> Case:
    """Equinox: a vmapped network of six layers, nothing donated."""
    model = equinox.filter_eval_shape(lambda: equinox.nn.MLP(64, 8, 512, 6, key=KEY))
    params, static = equinox.partition(model, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))

    def loss(params, x, y):
        return jnp.mean((jax.vmap(equinox.combine(params, static))(x) - y) ** 2)

    x, y = draw.array((32768, 64)), draw.array((32768, 8))
    changes = [("accumulated", "chunk", accumulated(loss, 8))]
    return trained(draw, loss, params, (x, y), changes, donated=False)


@case("v5p")
def optax_undonated(draw: Draw) -> Case:
    """Optax: Adam, and nothing is donated."""
    params = {"w": draw.array((4096, 2048)), "v": draw.array((2048, 4096))}

    def loss(params, x):
        return jnp.mean((jax.nn.relu(x @ params["w"]) @ params["v"] - x) ** 2)

    return trained(draw, loss, params, (draw.array((256, 4096)),), [], optax.adamw(1e-3), donated=False)


@case("v4")
def mctx_search(draw: Draw) -> Case:
    """Mctx: a tree for each of 256 states."""
    batch, actions, width = 256, 64, 64

    def search(w, embedding):
        def recurrent(w, key, action, embedding):
            embedding = jnp.tanh(embedding @ w + action[:, None])
            found = mctx.RecurrentFnOutput(
                reward=embedding[:, 0],
                discount=jnp.full(embedding.shape[:1], 0.99),
                prior_logits=embedding,
                value=embedding[:, 1],
            )
            return found, embedding

        root = mctx.RootFnOutput(prior_logits=embedding, value=embedding[:, 1], embedding=embedding)
        key = jax.random.key(0)
        return mctx.gumbel_muzero_policy(w, key, root, recurrent, 48, max_num_considered_actions=8).action_weights

    def chunked(w, embedding):
        parts = embedding.reshape(8, -1, width)
        return lax.map(lambda part: search(w, part), parts).reshape(batch, actions)

    arguments = draw.array((width, actions)), draw.array((batch, width))
    return compared(Program(search, arguments), ("chunked", "chunk", chunked))


@case("v6e")
def numpyro_density(draw: Draw) -> Case:
    """NumPyro: the gradient of the density of a hierarchical model, for 64 chains."""
    chains, rows, groups = 64, 65536, 128

    def model(x, group, y):
        scale = numpyro.sample("scale", distributions.HalfNormal(1.0))
        slope = numpyro.sample("slope", distributions.Normal(jnp.zeros(groups), scale))
        numpyro.sample("y", distributions.Normal(slope[group] * x, 1.0), obs=y)

    def gradient(params, x, group, y):
        def density(params):
            return numpyro.infer.util.log_density(model, (x, group, y), {}, params)[0]

        return jax.vmap(jax.grad(density))(params)

    def chunked(params, x, group, y):
        return lax.map(
            lambda one: jax.tree.map(
                lambda leaf: leaf[0], gradient(jax.tree.map(lambda leaf: leaf[None], one), x, group, y)
            ),
            params,
        )

    params = {"scale": draw.array((chains,)), "slope": draw.array((chains, groups))}
    arguments = params, draw.array((rows,)), draw.array((rows,), jnp.int32), draw.array((rows,))
    return compared(Program(gradient, arguments), ("chunked", "chunk", chunked))


@case("v5e")
def diffrax_network(draw: Draw) -> Case:
    """Diffrax: an ODE whose right side is a network, solved for 1024 samples."""
    params = {"w": draw.array((64, 512)), "v": draw.array((512, 64))}

    def solved(params, y, vmap):
        term = diffrax.ODETerm(lambda t, y, params: jnp.tanh(y @ params["w"]) @ params["v"])
        controller = diffrax.ConstantStepSize()
        run = functools.partial(
            diffrax.diffeqsolve, term, diffrax.Heun(), 0.0, 1.0, 0.05, stepsize_controller=controller
        )
        return vmap(lambda y: run(y, args=params, max_steps=20).ys[0])(y)

    def loss(params, y, target, vmap=jax.vmap):
        return jnp.mean((solved(params, y, vmap) - target) ** 2)

    together = functools.partial(loss, vmap=lambda run: run)
    batch = draw.array((16384, 64)), draw.array((16384, 64))
    changes = [("accumulated", "chunk", accumulated(loss, 8)), ("together", "batch loop", together)]
    return trained(draw, loss, params, batch, changes)


@case("v6e")
def transformers_cache(draw: Draw) -> Case:
    """Transformers: GPT-2 decodes a token, and leaves the old cache alive."""
    import transformers

    config = transformers.GPT2Config(n_embd=512, n_layer=2, n_head=8, vocab_size=8000)
    model = transformers.FlaxGPT2LMHeadModel(config, _do_init=False, dtype=jnp.bfloat16)
    params = jax.tree.map(lambda leaf: draw.array(leaf.shape, jnp.bfloat16), model.params_shape_tree)
    cache = draw.like(jax.eval_shape(lambda: model.init_cache(16, 1024)))

    def step(params, cache, token, position, mask):
        out = model(token, attention_mask=mask, position_ids=position, past_key_values=cache, params=params)
        return jnp.argmax(out.logits[:, -1], -1), out.past_key_values

    token = draw.array((16, 1), jnp.int32)
    arguments = params, cache, token, token, draw.array((16, 1024), jnp.int32)
    return compared(Program(step, arguments), ("donated", "donate argument", step, arguments, {"donate_argnums": 1}))


@case("v4")
def transformers_bert(draw: Draw) -> Case:
    """Transformers: BERT of three layers; attention's weights are kept for each."""
    import transformers

    config = transformers.BertConfig(
        hidden_size=256, num_hidden_layers=3, num_attention_heads=8, intermediate_size=1024, vocab_size=2000
    )
    ids = draw.array((32, 512), jnp.int32)

    def loss_of(is_recomputed):
        kind = transformers.FlaxBertForMaskedLM
        model = kind(config, _do_init=False, dtype=jnp.bfloat16, gradient_checkpointing=is_recomputed)

        def loss(params, ids, labels):
            logits = model(ids, params=params, train=False).logits.astype(jnp.float32)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        return model, loss

    (model, loss), (_, remat) = loss_of(False), loss_of(True)
    changes = [("remat", "checkpoint", remat), ("accumulated", "chunk", accumulated(loss, 8))]
    return trained(draw, loss, model.params_shape_tree, (ids, ids), changes)
