"""The published networks once more, in numpy and from the papers' words, for one position."""

import numpy as np


def convolve(x, weight, bias):
    """Cross-correlation of x[C, N, N] with weight[K, C, S, S], the board surrounded by zeros."""
    size, span = x.shape[1], weight.shape[2]
    padded = np.pad(x, ((0, 0), (span // 2,) * 2, (span // 2,) * 2))
    out = np.empty((len(weight), size, size))
    for row in range(size):
        for column in range(size):
            patch = padded[:, row : row + span, column : column + span]
            out[:, row, column] = (weight * patch).sum(axis=(1, 2, 3)) + bias
    return out


def rectify(x):
    return np.maximum(x, 0)


def hidden_layers(state, x):
    """AlphaGo's layers 1 to 12, either network."""
    for layer in range(12):
        x = rectify(convolve(x, state[f"layers.{layer}.weight"], state[f"layers.{layer}.bias"]))
    return x


def policy(state, planes):
    """Logits of AlphaGo's policy network."""
    x = convolve(hidden_layers(state, planes), state["last.weight"], 0.0)
    return x.reshape(-1) + state["point_bias"]


def value(state, planes):
    """Output of AlphaGo's value network."""
    x = convolve(hidden_layers(state, planes), state["last.weight"], state["last.bias"]).reshape(-1)
    x = rectify(state["hidden.weight"] @ x + state["hidden.bias"])
    return np.tanh(state["out.weight"] @ x + state["out.bias"])[0]


def normalised(state, name, x):
    """Convolution and batch normalisation by the running statistics."""
    x = convolve(x, state[f"{name}.conv.weight"], 0.0)
    mean, variance, scale, shift = (
        state[f"{name}.{part}"][:, None, None] for part in ("mean", "variance", "scale", "shift")
    )
    return (x - mean) / np.sqrt(variance + 1e-5) * scale + shift


def zero(state, planes, blocks):
    """Logits and value of AlphaGo Zero's network."""
    x = rectify(normalised(state, "stem", planes))
    for i in range(blocks):
        inner = rectify(normalised(state, f"blocks.{i}.first", x))
        x = rectify(normalised(state, f"blocks.{i}.second", inner) + x)
    local = rectify(normalised(state, "policy_local", x)).reshape(-1)
    logits = state["policy_out.weight"] @ local + state["policy_out.bias"]
    local = rectify(normalised(state, "value_local", x)).reshape(-1)
    hidden = rectify(state["value_hidden.weight"] @ local + state["value_hidden.bias"])
    return logits, np.tanh(state["value_out.weight"] @ hidden + state["value_out.bias"])[0]
