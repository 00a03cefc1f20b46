"""Transformers whose times on one chip were published with their sources: https://github.com/vorushin/tpuchat.

`TRAIN` is its `02_train.py` of 16 February 2026, `LOG.md` has the times of its steps. The parameters begin in bfloat16, and its own
Adam multiplies with a float32 learning rate, so that after one step they, and all that follows, are float32. `ABLATIONS` is
`08_tpu_ablations.py`, in bfloat16 throughout, with the splash kernel; the parts of it are those of `05_tpu_perf.py`. The table of
their times is in https://vorushin.github.io/blog/llm-pretraining-tpu-v6e-50usd.
"""

import jax
import jax.numpy as jnp

BF16, F32, S32 = jnp.bfloat16, jnp.float32, jnp.int32
TOKENS, VOCABULARY, WIDTH, SOFTCAP = 2048, 32768, 1024, 15.0


def array(*dimensions, of=BF16):
    """An argument."""
    return jax.ShapeDtypeStruct(dimensions, of)


def normalized(x):
    """By the root of the mean square."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def rotations(width):
    """Cosines and sines by position."""
    frequencies = 1.0 / (10000 ** (jnp.arange(0, width, 2, dtype=F32) / width))
    angles = jnp.outer(jnp.arange(TOKENS, dtype=F32), frequencies)
    return jnp.cos(angles).astype(BF16), jnp.sin(angles).astype(BF16)


def rotated(x, cosines, sines):
    """By the position."""
    left, right = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([left * cosines + right * sines, left * -sines + right * cosines], axis=-1)


def masked(scores, window=TOKENS):
    """So that no token sees later ones, nor those before its window."""
    rows, columns = jnp.arange(TOKENS)[:, None], jnp.arange(TOKENS)[None, :]
    seen = columns <= rows
    if window < TOKENS:
        seen &= columns >= rows - window + 1
    return jnp.where(seen[None, None], scores, jnp.finfo(scores.dtype).min)


def entropies(logits, labels):
    """Of each token."""
    import optax  # noqa: PLC0415, as only training needs it

    return optax.softmax_cross_entropy_with_integer_labels(logits, labels)


def train(batch, layers=16, heads=8):
    """A step of the first: a function and its arguments."""
    width = WIDTH // heads
    matrices = {name: (WIDTH, WIDTH) for name in ("q", "k", "v", "out")} | {
        "up": (WIDTH, 4 * WIDTH),
        "down": (4 * WIDTH, WIDTH),
    }
    parameters = {
        "embedding": array(VOCABULARY, WIDTH, of=F32),
        "head": array(WIDTH, VOCABULARY, of=F32),
        "kept": array(layers, of=F32),
        "first": array(layers, of=F32),
        "layers": [{name: array(*shape, of=F32) for name, shape in matrices.items()} for _ in range(layers)],
    }

    def logits(p, tokens, cosines, sines):
        split = (*tokens.shape, heads, width)
        x = first = normalized(p["embedding"][tokens])
        for number, layer in enumerate(p["layers"]):
            y = normalized(x)
            q, k, v = ((y @ layer[name]).reshape(split) for name in "qkv")
            q, k = (normalized(rotated(one, cosines[:, None], sines[:, None])) for one in (q, k))
            window = TOKENS if number % 4 == 3 or number == layers - 1 else TOKENS // 2
            scores = masked(jnp.einsum("bthd,bshd->bhts", q, k) * width**-0.5, window)
            mixed = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores, axis=-1), v)
            x = p["kept"][number] * x + p["first"][number] * first + mixed.reshape(x.shape) @ layer["out"]
            x = x + jax.nn.relu(normalized(x) @ layer["up"]) ** 2 @ layer["down"]
        return SOFTCAP * jnp.tanh((normalized(x) @ p["head"]).astype(F32) / SOFTCAP)

    def updated(p, gradient, state, rate):
        count = state["count"] + 1
        first = 0.9 * state["first"] + 0.1 * gradient
        second = 0.95 * state["second"] + 0.05 * gradient**2
        step = first / (1 - 0.9**count) / (jnp.sqrt(second / (1 - 0.95**count)) + 1e-8)
        decay = 0.1 if p.ndim > 1 else 0.0
        return p - 3e-4 * rate * (step + decay * p), {"first": first, "second": second, "count": count}

    def step(p, states, cosines, sines, tokens, labels, rate):
        found, gradient = jax.value_and_grad(lambda p: entropies(logits(p, tokens, cosines, sines), labels).mean())(p)
        leaves, tree = jax.tree.flatten(p)
        pairs = zip(leaves, jax.tree.leaves(gradient), states, strict=True)
        moved = [updated(*one, rate) for one in pairs]
        return found, jax.tree.unflatten(tree, [p for p, _ in moved]), [state for _, state in moved]

    states = [{"first": one, "second": one, "count": array(of=S32)} for one in jax.tree.leaves(parameters)]
    text = array(batch, TOKENS, of=S32)
    angles = array(TOKENS, width // 2)
    return step, (parameters, states, angles, angles, text, text, array(of=F32))


HEADS, HEAD, HIDDEN = 4, 256, 3072
"""Of the second."""

LAYER = {
    "q": (WIDTH, HEADS, HEAD),
    "k": (WIDTH, 1, HEAD),
    "v": (WIDTH, 1, HEAD),
    "out": (HEADS, HEAD, WIDTH),
    "gate": (WIDTH, HIDDEN),
    "up": (WIDTH, HIDDEN),
    "down": (HIDDEN, WIDTH),
}


def projected(x, p):
    """Queries, keys and values."""
    cosines, sines = rotations(HEAD)
    y = normalized(x)
    q, k, v = (jnp.einsum("btd,dhk->bhtk", y, p[name]) for name in "qkv")
    q, k = (normalized(rotated(one, cosines, sines)) for one in (q, k))
    return q, k, v


def attention(x, p):
    """Without a kernel."""
    q, k, v = projected(x, p)
    k, v = (jnp.repeat(one, HEADS, axis=1) for one in (k, v))
    scores = masked(jnp.einsum("bhtd,bhsd->bhts", q, k) * HEAD**-0.5)
    mixed = jnp.einsum("bhts,bhsd->bhtd", jax.nn.softmax(scores, axis=-1), v)
    return jnp.einsum("bhtd,hde->bte", mixed, p["out"])


def attention_by_kernel(x, p):
    """With the splash kernel."""
    from jax.experimental.pallas.ops.tpu.splash_attention import (  # noqa: PLC0415, as only these programs need it
        splash_attention_kernel,
        splash_attention_mask,
    )

    mask = splash_attention_mask.MultiHeadMask([splash_attention_mask.CausalMask((TOKENS, TOKENS))] * HEADS)
    blocks = ("q", "kv", "q_dkv", "kv_dkv", "q_dq", "kv_dq")
    sizes = splash_attention_kernel.BlockSizes(**{f"block_{name}": 1024 for name in blocks})
    kernel = splash_attention_kernel.make_splash_mha(mask=mask, head_shards=1, q_seq_shards=1, block_sizes=sizes)
    return jnp.einsum("bhtd,hde->bte", jax.vmap(kernel)(*projected(x, p)), p["out"])


def feed_forward(x, p):
    """SwiGLU."""
    y = normalized(x)
    gate = jax.nn.silu(jnp.einsum("btd,dh->bth", y, p["gate"]))
    return jnp.einsum("bth,hd->btd", gate * jnp.einsum("btd,dh->bth", y, p["up"]), p["down"])


CHUNKS = 8


def chunk_loss(hidden, head, labels):
    """Of a part of the tokens."""
    logits = jnp.einsum("td,dv->tv", hidden, head, preferred_element_type=BF16)
    return entropies(SOFTCAP * jnp.tanh(logits / SOFTCAP), labels).sum()


@jax.custom_vjp
def chunked_loss(hidden, head, labels):
    """The loss, in chunks of which one is held at a time."""
    chunks = (hidden.reshape(CHUNKS, -1, WIDTH), labels.reshape(CHUNKS, -1))
    _, losses = jax.lax.scan(lambda _, chunk: (None, chunk_loss(chunk[0], head, chunk[1])), None, chunks)
    return losses.sum() / labels.size


def chunked_loss_backward(kept, gradient):
    """Its gradient, with the logits computed again."""
    hidden, head, labels = kept

    def body(sum_of_head, chunk):
        _, pull = jax.vjp(lambda h, w: chunk_loss(h, w, chunk[1]), chunk[0], head)
        of_hidden, of_head = pull((gradient / labels.size).astype(BF16))
        return sum_of_head + of_head, of_hidden

    chunks = (hidden.reshape(CHUNKS, -1, WIDTH), labels.reshape(CHUNKS, -1))
    of_head, of_hidden = jax.lax.scan(body, jnp.zeros_like(head), chunks)
    return of_hidden.reshape(hidden.shape), of_head, None


chunked_loss.defvjp(lambda *kept: (chunked_loss(*kept), kept), chunked_loss_backward)


def ablations(microbatches=16, microbatch=4, layers=8):
    """A step of the second."""
    import optax  # noqa: PLC0415, as only training needs it

    optimizer = optax.adamw(optax.constant_schedule(1e-4), b1=0.9, b2=0.95, eps=1e-8, weight_decay=0.1)
    layer = {name: array(*shape) for name, shape in LAYER.items()}
    parameters = {"embedding": array(VOCABULARY, WIDTH), "head": array(WIDTH, VOCABULARY), "layers": [layer] * layers}

    def loss(p, tokens, labels):
        x = normalized(p["embedding"][tokens])
        for one in p["layers"]:
            x = x + attention_by_kernel(x, one)
            x = x + feed_forward(x, one)
        return chunked_loss(normalized(x), p["head"], labels)

    def step(p, state, tokens, labels):
        def body(sums, part):
            found, gradient = jax.value_and_grad(loss)(p, *part)
            return jax.tree.map(jax.lax.add, sums, gradient), found

        split = (microbatches, microbatch, TOKENS)
        start = jax.tree.map(jnp.zeros_like, p)
        sums, found = jax.lax.scan(body, start, (tokens.reshape(split), labels.reshape(split)))
        update, state = optimizer.update(jax.tree.map(lambda one: one / microbatches, sums), state, p)
        return found.mean(), optax.apply_updates(p, update), state

    text = array(microbatches * microbatch, TOKENS, of=S32)
    return step, (parameters, jax.eval_shape(optimizer.init, parameters), text, text)


def part(function, batch=4):
    """One of the functions above, alone."""
    return function, (array(batch, TOKENS, WIDTH), {name: array(*shape) for name, shape in LAYER.items()})


def loss_alone(batch=4):
    """The chunked loss."""
    return chunked_loss, (array(batch, TOKENS, WIDTH), array(WIDTH, VOCABULARY), array(batch, TOKENS, of=S32))
