"""KataGo's network once more, in plain NumPy and float64, for one position: from a dict of tests/nets/katago_files.

Loops over points where that is the plainest thing to write; the order of everything is that of the file.
"""

import numpy as np


def softplus(x):
    return np.logaddexp(0.0, x)


def activate(layer, x):
    name = layer["name"].removeprefix("ACTIVATION_")
    if name == "RELU":
        return np.maximum(x, 0)
    if name == "MISH":
        return x * np.tanh(softplus(x))
    return x / (1 + np.exp(-x)) if name == "SILU" else x


def convolve(layer, x):
    """[K, N, N] of x[C, N, N], zeros around the board."""
    weight = layer["weight"].astype(np.float64)
    (height, width, _, outputs), size = weight.shape, x.shape[1]
    out = np.zeros((outputs, size, size))
    for row in range(size):
        for column in range(size):
            for i in range(height):
                for j in range(width):
                    y = row + (i - height // 2) * layer["dilation"][0]
                    z = column + (j - width // 2) * layer["dilation"][1]
                    if 0 <= y < size and 0 <= z < size:
                        out[:, row, column] += x[:, y, z] @ weight[i, j]
    return out


def normalise(layer, x):
    """Batch normalisation by the file's statistics."""
    scale = 1.0 if layer["scale"] is None else layer["scale"][:, None, None]
    shift = 0.0 if layer["shift"] is None else layer["shift"][:, None, None]
    deviation = np.sqrt(layer["variance"].astype(np.float64) + layer["epsilon"])
    return (x - layer["mean"][:, None, None]) / deviation[:, None, None] * scale + shift


def multiply(layer, x):
    """[..., K] of x[..., C]."""
    return x @ layer["weight"].astype(np.float64)


def pool(x, last):
    mean, distance = x.mean(axis=(1, 2)), x.shape[1] - 14
    if last == "maximum":
        return np.concatenate([mean, mean * distance * 0.1, x.max(axis=(1, 2))])
    return np.concatenate([mean, mean * distance * 0.1, mean * (distance**2 * 0.01 - 0.1)])


def residual(block, x):
    before, act, first, middle, act2, last = block["layers"]
    inner = convolve(first, activate(act, normalise(before, x)))
    return x + convolve(last, activate(act2, normalise(middle, inner)))


def pooling(block, x):
    before, act, first, pool_conv, pool_norm, pool_act, matrix, middle, act2, last = block["layers"]
    ready = activate(act, normalise(before, x))
    pooled = pool(activate(pool_act, normalise(pool_norm, convolve(pool_conv, ready))), "maximum")
    inner = convolve(first, ready) + multiply(matrix, pooled)[:, None, None]
    return x + convolve(last, activate(act2, normalise(middle, inner)))


def nested(block, x):
    before, act, first, blocks, after, act2, last = block["layers"]
    inner = convolve(first, activate(act, normalise(before, x)))
    for one in blocks:
        inner = BLOCKS[one["kind"]](one, inner)
    return x + convolve(last, activate(act2, normalise(after, inner)))


def token_norm(layer, tokens):
    return tokens / np.sqrt((tokens**2).mean(axis=1, keepdims=True) + layer["epsilon"]) * layer["weight"]


def angle(block, key_head, pair, row, column):
    rope, pairs = block["rope"], block["numbers"][2] // 2
    if not isinstance(rope, float):
        return column * float(rope[key_head, pair, 0]) + row * float(rope[key_head, pair, 1])
    if pair < pairs // 2:
        return row / rope ** (2 * pair / pairs)
    return column / rope ** (2 * (pair - pairs // 2) / pairs)


def rotate(block, vector, key_head, row, column):
    if block["rope"] is None:
        return vector
    out = np.empty_like(vector)
    for pair in range(len(vector) // 2):
        turn = angle(block, key_head, pair, row, column)
        a, b = vector[2 * pair], vector[2 * pair + 1]
        out[2 * pair] = a * np.cos(turn) - b * np.sin(turn)
        out[2 * pair + 1] = a * np.sin(turn) + b * np.cos(turn)
    return out


def attention(block, x):
    heads, key_heads, width, value_width, *_ = block["numbers"]
    norm, *matrices, out = block["layers"]
    size = x.shape[1]
    ready = token_norm(norm, x.reshape(len(x), -1).T)
    query, key, value = (multiply(matrix, ready) for matrix in matrices)
    seen = np.zeros((size * size, heads * value_width))
    places = [divmod(token, size) for token in range(size * size)]
    for head in range(heads):
        of = head // (heads // key_heads)
        q = np.array([
            rotate(block, query[t, head * width : (head + 1) * width], of, *place) for t, place in enumerate(places)
        ])  # fmt: skip
        k = np.array([
            rotate(block, key[t, of * width : (of + 1) * width], of, *place) for t, place in enumerate(places)
        ])  # fmt: skip
        match = np.exp(q @ k.T / np.sqrt(width))
        match /= match.sum(axis=1, keepdims=True)
        seen[:, head * value_width : (head + 1) * value_width] = (
            match @ value[:, of * value_width : (of + 1) * value_width]
        )
    return x + multiply(out, seen).T.reshape(x.shape)


def feed_forward(block, x):
    norm, first, gate, last = block["layers"]
    ready = token_norm(norm, x.reshape(len(x), -1).T)
    hidden = multiply(first, ready)
    hidden = hidden / (1 + np.exp(-hidden)) * multiply(gate, ready)
    return x + multiply(last, hidden).T.reshape(x.shape)


BLOCKS = {
    "ordinary_block": residual,
    "gpool_block": pooling,
    "nested_bottleneck_block": nested,
    "transformer_attention_block": attention,
    "transformer_ffn_block": feed_forward,
}


def trunk(network, planes, globals_, human):
    stem, matrix = network["stem"]
    x = convolve(stem, planes) + multiply(matrix, globals_)[:, None, None]
    if network["human"]:
        mul1, bias1, act1, mul2, bias2, act2, mul3 = network["human"]
        inner = activate(act1, multiply(mul1, human) + bias1["weight"])
        inner = activate(act2, multiply(mul2, inner) + bias2["weight"])
        x = x + multiply(mul3, inner)[:, None, None]
    for block in network["blocks"]:
        x = BLOCKS[block["kind"]](block, x)
    tip, act = network["tip"]
    if tip["kind"] == "scaling":
        return activate(act, normalise(tip, x))
    axes = (0, 1, 2) if tip["spatial"] else (0,)
    x = x / np.sqrt((x**2).mean(axis=axes, keepdims=True) + tip["epsilon"])
    return activate(act, x * tip["weight"][:, None, None] + tip["shift"][:, None, None])


def policies(network, x):
    """[channels, N*N+1]."""
    local, pool_conv, pool_norm, pool_act, matrix, norm, act, out, *passing = network["policy"]["layers"]
    pooled = pool(activate(pool_act, normalise(pool_norm, convolve(pool_conv, x))), "maximum")
    inner = convolve(local, x) + multiply(matrix, pooled)[:, None, None]
    moves = convolve(out, activate(act, normalise(norm, inner)))
    if len(passing) == 1:
        passes = multiply(passing[0], pooled)
    else:
        mul1, bias, pass_act, mul2 = passing
        passes = multiply(mul2, activate(pass_act, multiply(mul1, pooled) + bias["weight"]))
    return np.concatenate([moves.reshape(len(moves), -1), passes[:, None]], axis=1)


def values(network, x):
    """Three logits, 4 or 6 scores, and [N, N] of owners, before scaling."""
    conv, norm, act, hidden, bias, act2, mul3, bias3, mul_s, bias_s, owners = network["value"]["layers"]
    local = activate(act, normalise(norm, convolve(conv, x)))
    inner = activate(act2, multiply(hidden, pool(local, "square")) + bias["weight"])
    return (
        multiply(mul3, inner) + bias3["weight"],
        multiply(mul_s, inner) + bias_s["weight"],
        convolve(owners, local)[0],
    )


def evaluate(network, planes, globals_, human=None, optimism=0.0):
    """Everything KataGo tells, by the names of :class:`engine.nets.katago.model.KataGoOutput`."""
    x = trunk(network, planes.astype(np.float64), globals_.astype(np.float64), human)
    policy = policies(network, x)
    logits, scores, owners = values(network, x)
    version = network["version"]
    _, mean_by, deviation_by, lead_by, time_by, value_by, score_by = network["multipliers"] or (
        20.0, 20.0, 20.0, 20.0, 40.0, 0.25, 30.0,
    )  # fmt: skip
    weights = np.exp(logits - logits.max())
    if globals_[6] and not globals_[9]:
        weights[2] = 0.0
    win, loss, no_result = weights / weights.sum()
    mean, deviation = scores[0] * mean_by, softplus(scores[1]) * deviation_by
    time = value_error = score_error = -1.0
    if version >= 9:
        time = softplus(scores[3]) * time_by
        value_error, score_error = softplus(scores[4]), softplus(scores[5]) * 10
    if version >= 10:
        value_error, score_error = np.sqrt(softplus(scores[4]) * value_by), np.sqrt(softplus(scores[5]) * score_by)
    if version >= 14:
        value_error = np.sqrt(softplus(scores[4] / 2) ** 2 * value_by)
        score_error = np.sqrt(softplus(scores[5] / 2) ** 2 * score_by)
    return {
        "policy": policy[0] + (policy[1] - policy[0]) * optimism if len(policy) > 1 else policy[0],
        "win": win,
        "loss": loss,
        "no_result": no_result,
        "lead": scores[2] * lead_by * (1 - no_result),
        "score": mean * (1 - no_result),
        "score_square": (mean**2 + deviation**2) * (1 - no_result),
        "variance_time": time,
        "value_error": value_error,
        "score_error": score_error,
        "ownership": np.tanh(owners),
    }
