"""Programs that serve a model, after public code, written after the rules of 23 November, each with its source named."""

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import lax

from .case import Case, Change, Draw, Program, case
from .libraries import KEY, shaped


def normalized(x):
    """Rows of mean square one."""
    return x * lax.rsqrt((x.astype(jnp.float32) ** 2).mean(-1, keepdims=True) + 1e-6).astype(x.dtype)


@case("v5e")
def triangle_rows(draw: Draw) -> Case:
    """After AlphaFold's `TriangleAttention` without its subbatches: every row of pairs attends over its own columns."""
    size, width, heads, depth = 384, 128, 4, 32

    def row_of(params, bias):
        def row(x):
            q, k, v = (jnp.einsum("jc,chd->jhd", x, params[name]) for name in "qkv")
            scores = jnp.einsum("jhd,khd->hjk", q, k) / depth**0.5 + bias
            found = jnp.einsum("hjk,khd->jhd", jax.nn.softmax(scores), v).reshape(size, -1)
            return (jax.nn.sigmoid(x @ params["gate"]) * found) @ params["out"]

        return row

    def block_of(each):
        def block(params, pair):
            for name in ("starting", "ending"):
                x = pair.swapaxes(0, 1) if name == "ending" else pair
                mean, spread = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
                y = (x - mean) * lax.rsqrt(spread + 1e-5)
                bias = jnp.einsum("jkc,ch->hjk", y, params[name]["bias"])
                found = each(row_of(params[name], bias), y)
                pair = pair + (found.swapaxes(0, 1) if name == "ending" else found)
            return pair + jax.nn.relu(pair @ params["up"]) @ params["down"]

        return block

    shapes = {name: (width, heads, depth) for name in "qkv"} | {"bias": (width, heads)}
    shapes |= {"gate": (width, heads * depth), "out": (heads * depth, width)}
    params = {way: {name: draw.array(shape) for name, shape in shapes.items()} for way in ("starting", "ending")}
    params |= {"up": draw.array((width, 4 * width)), "down": draw.array((4 * width, width))}
    arguments = params, draw.array((size, size, width))
    in_parts = Program(block_of(lambda row, x: lax.map(row, x, batch_size=16)), arguments)
    program = Program(block_of(lambda row, x: jax.vmap(row)(x)), arguments)
    return Case(program, [Change("in_parts", "chunk", "value", in_parts)])


@case("v6e")
def nearest_items(draw: Draw) -> Case:
    """After TensorFlow Recommenders' `BruteForce`: the best hundred of all items for each query."""

    def towered(params, users):
        for weight in params[:-1]:
            users = jax.nn.relu(users @ weight)
        return users @ params[-1]

    def retrieve(params, users, items):
        return lax.top_k(towered(params, users) @ items.T, 100)

    def in_parts(params, users, items):
        return lax.map(lambda row: lax.top_k(row @ items.T, 100), towered(params, users), batch_size=128)

    params = [draw.array(shape) for shape in ((256, 512), (512, 64))]
    arguments = params, draw.array((2048, 256)), draw.array((262144, 64))
    return Case(Program(retrieve, arguments), [Change("in_parts", "chunk", "value", Program(in_parts, arguments))])


@case("v6e")
def decoded_token(draw: Draw) -> Case:
    """After Bonsai's Qwen3: a token for each prompt, whose keys and values are written where the prompt ends."""
    rows, length, width, heads, groups, depth = 32, 2048, 1024, 16, 8, 128

    def layer(weights, cache, x, at):
        y = normalized(x)
        q = jnp.einsum("bw,whd->bhd", y, weights["q"]).reshape(rows, groups, heads // groups, depth)
        fresh = [jnp.einsum("bw,whd->bhd", y, weights[name]) for name in "kv"]

        def written(cache, new, at):
            return lax.dynamic_update_slice(cache, new[None], (at, 0, 0))

        keys, values = (
            jax.vmap(written)(old, new, at) for old, new in zip((cache["k"], cache["v"]), fresh, strict=True)
        )
        scores = jnp.einsum("bgqd,btgd->bgqt", q, keys).astype(jnp.float32) / depth**0.5
        scores = jnp.where(jnp.arange(length) <= at[:, None, None, None], scores, -1e30)
        found = jnp.einsum("bgqt,btgd->bgqd", jax.nn.softmax(scores).astype(x.dtype), values)
        x = x + found.reshape(rows, -1) @ weights["o"]
        y = normalized(x)
        return x + (jax.nn.silu(y @ weights["gate"]) * (y @ weights["up"])) @ weights["down"], {"k": keys, "v": values}

    def forward(params, caches, token, at):
        x, after = params["embedding"][token], []
        for weights, cache in zip(params["layers"], caches, strict=True):
            x, cache = layer(weights, cache, x, at)
            after.append(cache)
        return jnp.argmax(normalized(x) @ params["embedding"].T, -1), after, at + 1

    shapes = {"q": (width, heads, depth), "k": (width, groups, depth), "v": (width, groups, depth)}
    shapes |= {"o": (heads * depth, width), "gate": (width, 3072), "up": (width, 3072), "down": (3072, width)}
    layers = [{name: draw.array(shape, jnp.bfloat16) for name, shape in shapes.items()} for _ in range(4)]
    params = {"layers": layers, "embedding": draw.array((32000, width), jnp.bfloat16)}
    caches = [{name: draw.array((rows, length, groups, depth), jnp.bfloat16) for name in "kv"} for _ in range(4)]
    arguments = params, caches, draw.array((rows,), jnp.int32), draw.array((rows,), jnp.int32)
    donated = Program(forward, arguments, {"donate_argnums": (1,)})
    return Case(Program(forward, arguments), [Change("donated", "donate", "argument", donated)])


@case("v5e")
def verified_draft(draw: Draw) -> Case:
    """After speculative decoding on a model of scanned layers, as MaxText scans them: five guesses are read at once."""
    rows, length, width, heads, depth, count, guesses = 16, 1024, 1024, 8, 128, 8, 5

    def attended(weights, keys, values, x, at):
        y = normalized(x)
        q, k, v = (jnp.einsum("btw,whd->bthd", y, weights[name]) for name in "qkv")
        keys, values = (lax.dynamic_update_slice(old, new, (0, at, 0, 0)) for old, new in ((keys, k), (values, v)))
        scores = jnp.einsum("bqhd,bthd->bhqt", q, keys).astype(jnp.float32) / depth**0.5
        seen = jnp.arange(length) <= at + jnp.arange(guesses)[:, None]
        found = jax.nn.softmax(jnp.where(seen, scores, -1e30)).astype(x.dtype)
        x = x + jnp.einsum("bhqt,bthd->bqhd", found, values).reshape(x.shape) @ weights["o"]
        return x + jax.nn.gelu(normalized(x) @ weights["up"]) @ weights["down"], keys, values

    def accepted(params, x, drafted):
        chosen = jnp.argmax(normalized(x) @ params["embedding"].T, -1)
        right = jnp.cumprod(chosen[:, :-1] == drafted[:, 1:], -1).sum(-1)
        return chosen, right.min()

    def verify(params, keys, values, drafted, at):
        def layer(x, given):
            x, keys, values = attended(*given, x, at)
            return x, (keys, values)

        x, (keys, values) = lax.scan(layer, params["embedding"][drafted], (params["layers"], keys, values))
        return *accepted(params, x, drafted), keys, values

    def carried(params, keys, values, drafted, at):
        def layer(carry, given):
            x, keys, values = carry
            number, weights = given
            x, key, value = attended(weights, keys[number], values[number], x, at)
            return (x, keys.at[number].set(key), values.at[number].set(value)), None

        first = params["embedding"][drafted], keys, values
        (x, keys, values), _ = lax.scan(layer, first, (jnp.arange(count), params["layers"]))
        return *accepted(params, x, drafted), keys, values

    shapes = {name: (count, width, heads, depth) for name in "qkv"} | {"o": (count, width, width)}
    shapes |= {"up": (count, width, 4 * width), "down": (count, 4 * width, width)}
    params = {"layers": {name: draw.array(shape, jnp.bfloat16) for name, shape in shapes.items()}}
    params["embedding"] = draw.array((32000, width), jnp.bfloat16)
    cache = draw.array((count, rows, length, heads, depth), jnp.bfloat16)
    arguments = params, cache, cache, draw.array((rows, guesses), jnp.int32), draw.array((), jnp.int32)
    jit = {"donate_argnums": (1, 2)}
    return Case(Program(verify, arguments, jit), [Change("carried", "carry", "loop", Program(carried, arguments, jit))])


@case("v5e")
def beam_step(draw: Draw) -> Case:
    """After T5X's `beam_search` and Flax's caches: beams of 12 heads of 64, gathered anew at each of 32 tokens."""
    rows, beams, length, width, heads, depth, vocabulary = 16, 4, 256, 768, 12, 64, 32128

    def search_of(split, joined):
        def attended(weights, cache, x, at):
            y = normalized(x)
            q, k, v = ((y @ weights[name]).reshape(rows, beams, heads, depth) for name in "qkv")
            keys, values = (
                lax.dynamic_update_slice(old, joined(new)[:, :, None], (0, 0, at, *[0] * (old.ndim - 3)))
                for old, new in zip(cache, (k, v), strict=True)
            )
            scores = jnp.einsum("bnhd,bnthd->bnht", q, split(keys)) / depth**0.5
            found = jax.nn.softmax(jnp.where(jnp.arange(length) <= at, scores, -1e30))
            found = jnp.einsum("bnht,bnthd->bnhd", found, split(values))
            return x + found.reshape(x.shape) @ weights["o"], (keys, values)

        def search(params, caches, tokens, scores):
            def step(state):
                at, caches, tokens, scores = state
                x, after = params["embedding"][tokens[:, :, at]], []
                for weights, cache in zip(params["layers"], caches, strict=True):
                    x, cache = attended(weights, cache, x, at)
                    x = x + jax.nn.relu(normalized(x) @ weights["up"]) @ weights["down"]
                    after.append(cache)
                chances = jax.nn.log_softmax(normalized(x) @ params["embedding"].T) + scores[..., None]
                scores, best = lax.top_k(chances.reshape(rows, -1), beams)
                origin, token = best // vocabulary, best % vocabulary
                caches, tokens = jax.tree.map(lambda leaf: jax.vmap(lambda x, i: x[i])(leaf, origin), (after, tokens))
                return at + 1, caches, tokens.at[:, :, at + 1].set(token), scores

            state = jnp.int32(0), caches, tokens, scores
            return lax.while_loop(lambda state: state[0] < 32, step, state)[2:]

        return search

    shapes = {name: (width, width) for name in "qkvo"} | {"up": (width, 2048), "down": (2048, width)}
    params = {"layers": [{name: draw.array(shape) for name, shape in shapes.items()} for _ in range(3)]}
    params["embedding"] = draw.array((vocabulary, width))
    tokens, scores = draw.array((rows, beams, 64), jnp.int32), draw.array((rows, beams))

    def arguments(*last):
        caches = [tuple(draw.array((rows, beams, length, *last)) for _ in "kv") for _ in range(3)]
        return params, caches, tokens, scores

    merged = search_of(lambda x: x.reshape(*x.shape[:3], heads, depth), lambda x: x.reshape(*x.shape[:2], -1))
    jit = {"donate_argnums": (1,)}
    change = Change("merged", "reshape", "argument", Program(merged, arguments(width), jit))
    return Case(Program(search_of(lambda x: x, lambda x: x), arguments(heads, depth), jit), [change])


@case("v5p")
def prompt_likelihoods(draw: Draw) -> Case:
    """After the evaluation harness's `loglikelihood`: the chance of each token of whole prompts, and whether it is best."""
    rows, length, width, vocabulary = 16, 1024, 768, 50257

    class Model(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(vocabulary, width, dtype=jnp.bfloat16)(tokens)
            mask = nn.make_causal_mask(tokens)
            for _ in range(2):
                y = nn.LayerNorm(dtype=jnp.bfloat16)(x)
                x = x + nn.MultiHeadDotProductAttention(12, dtype=jnp.bfloat16)(y, y, mask=mask)
                y = nn.Dense(4 * width, dtype=jnp.bfloat16)(nn.LayerNorm(dtype=jnp.bfloat16)(x))
                x = x + nn.Dense(width, dtype=jnp.bfloat16)(nn.gelu(y))
            return x

    def scored(head, x, tokens):
        chances = jax.nn.log_softmax((x[..., :-1, :] @ head).astype(jnp.float32))
        found = jnp.take_along_axis(chances, tokens[..., 1:, None], -1)[..., 0]
        return found, chances.argmax(-1) == tokens[..., 1:]

    def summed(found, best, asked):
        asked = asked[:, 1:]
        return (found * asked).sum(-1), jnp.where(asked > 0, best, True).all(-1)

    model = Model()

    def likelihoods(params, head, tokens, asked):
        return summed(*scored(head, model.apply(params, tokens), tokens), asked)

    def in_parts(params, head, tokens, asked):
        x = model.apply(params, tokens)
        return summed(*lax.map(lambda row: scored(head, *row), (x, tokens)), asked)

    tokens = draw.array((rows, length), jnp.int32)
    params = shaped(draw, jax.eval_shape(model.init, KEY, tokens))
    arguments = params, draw.array((width, vocabulary), jnp.bfloat16), tokens, draw.array((rows, length))
    change = Change("in_parts", "chunk", "value", Program(in_parts, arguments))
    return Case(Program(likelihoods, arguments), [change])
