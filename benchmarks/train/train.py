"""Train the weights of the learned forecast: numpy only, seeded, some minutes on two cores.

    python benchmarks/train/train.py --traces FOLDER --out trimtab/core/forecast/learned/weights.npz

Ends with one line of JSON: rows, the loss on held-out sources (cross-validated by source) and that of the shipped
weights on what they were trained on.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from lessons import SOURCES, Lessons, lessons_of

from trimtab.core.forecast.learned.net import BINS, NetWeights, hidden_of, on_grids, probabilities_of

HIDDEN, EPOCHS, BATCH = 128, 4, 2048
RATE, DECAY, LEAK = 3e-3, 1e-5, 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--folds", type=Path, help="write the weights of each fold here, for the benchmark")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    lessons = lessons_of(args.traces, args.seed)
    final = trained(lessons, args.seed)
    if args.out:
        _save(args.out, final)
    losses = []
    for fold in reversed(range(len(SOURCES) + 1)):
        weights = trained(_part(lessons, lessons.folds != fold), args.seed)
        losses.append(loss(weights, _part(lessons, lessons.folds == fold)))
        if args.folds:
            _save(args.folds / f"{fold}.npz", weights)
    print(json.dumps({"rows": len(lessons.folds), "held_out": losses[::-1], "shipped": loss(final, lessons)}))


def _part(lessons: Lessons, chosen: np.ndarray) -> Lessons:
    return Lessons(*(column[chosen] for column in lessons))


def _save(path: Path, weights: NetWeights) -> None:
    np.savez(path, **{name: part.astype(np.float32) for name, part in weights._asdict().items()})


def loss(weights: NetWeights, lessons: Lessons, every: int = 10) -> list[float]:
    """The mean surprise of each question in nats, weighed by the load at stake."""
    shares = probabilities_of(weights.last, hidden_of(weights, lessons.features[::every].astype(np.float64)))
    outcome = lessons.outcomes[::every].astype(np.intp)[:, :, None]
    surprise = -np.log(np.take_along_axis(shares, outcome, axis=2)[:, :, 0] + 1e-9)
    weight = lessons.weights[::every, None]
    return [round(float(value), 4) for value in (surprise * weight).sum(axis=0) / weight.sum()]


def trained(lessons: Lessons, seed: int) -> NetWeights:
    """One hidden layer by Adam on the weighed cross-entropy; then the hidden layer is whitened."""
    draw = np.random.default_rng(seed)
    sample = lessons.features[::7].astype(np.float32)
    mean, spread = sample.mean(axis=0), sample.std(axis=0) + 1e-3
    layers = _first_layers(lessons, draw)
    moments = [np.zeros_like(layer) for layer in layers], [np.zeros_like(layer) for layer in layers]
    batches = len(lessons.features) // BATCH
    for epoch in range(EPOCHS):
        order = draw.permutation(len(lessons.features))[: batches * BATCH].reshape(batches, BATCH)
        for number, rows in enumerate(order):
            inputs = np.clip((lessons.features[rows].astype(np.float32) - mean) / spread, -6, 6)
            slopes = _slopes(layers, inputs, lessons.outcomes[rows], lessons.weights[rows])
            _step(layers, moments, slopes, epoch * batches + number + 1, EPOCHS * batches)
    return _whitened(mean, spread, layers, sample[::7])


def _first_layers(lessons: Lessons, draw: np.random.Generator) -> list[np.ndarray]:
    width, outputs = lessons.features.shape[1], 2 * BINS
    counts = [np.bincount(lessons.outcomes[:, question], minlength=BINS) + 1.0 for question in range(2)]
    return [
        (draw.standard_normal((width, HIDDEN)) * np.sqrt(2 / width)).astype(np.float32),
        np.zeros(HIDDEN, np.float32),
        (draw.standard_normal((HIDDEN, outputs)) * 0.3 * np.sqrt(2 / HIDDEN)).astype(np.float32),
        np.log(np.concatenate(counts) / len(lessons.outcomes)).astype(np.float32),
    ]


def _slopes(
    layers: list[np.ndarray], inputs: np.ndarray, outcomes: np.ndarray, weights: np.ndarray
) -> list[np.ndarray]:
    first, first_bias, last, last_bias = layers
    summed = inputs @ first + first_bias
    hidden = np.maximum(summed, np.float32(LEAK) * summed)
    scores = (hidden @ last + last_bias).reshape(len(inputs), 2, BINS)
    powers = np.exp(scores - scores.max(axis=2, keepdims=True))
    error = powers / powers.sum(axis=2, keepdims=True)
    error[np.arange(len(inputs))[:, None], np.arange(2), outcomes.astype(np.intp)] -= 1.0
    error = (error * (weights / len(inputs))[:, None, None]).reshape(len(inputs), -1).astype(np.float32)
    back = (error @ last.T) * np.where(summed > 0, np.float32(1.0), np.float32(LEAK))
    return [inputs.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]


def _step(layers, moments, slopes, count: int, total: int) -> None:
    """Adam with a short warm-up and a cosine end."""
    rate = RATE * min(1.0, count / 200) * 0.5 * (1 + np.cos(np.pi * count / total))
    for layer, first, second, slope in zip(layers, *moments, slopes, strict=True):
        first += 0.1 * (slope - first)
        second += 0.002 * (slope**2 - second)
        step = first / (1 - 0.9**count) / (np.sqrt(second / (1 - 0.998**count)) + 1e-7)
        layer -= (rate * (step + (DECAY * layer if layer.ndim == 2 else 0.0))).astype(np.float32)


def _whitened(mean: np.ndarray, spread: np.ndarray, layers: list[np.ndarray], sample: np.ndarray) -> NetWeights:
    """The same function, with a hidden layer of mean 0 and unit covariance on the training data.

    Of the hidden layer's directions only those are kept that an output depends on: as many as there are outputs.
    """
    first, first_bias, last, last_bias = (layer.astype(np.float64) for layer in layers)
    summed = np.clip((sample - mean) / spread, -6, 6) @ first + first_bias
    hidden = np.maximum(summed, LEAK * summed)
    center, covariance = hidden.mean(axis=0), np.cov(hidden.T)
    covariance += 1e-3 * np.eye(HIDDEN) * np.trace(covariance) / HIDDEN
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(values) @ vectors.T
    turned, sizes, outputs = np.linalg.svd(root @ last, full_matrices=False)
    whiten = vectors / np.sqrt(values) @ vectors.T @ turned
    shifted = np.concatenate([(last_bias + center @ last)[None], sizes[:, None] * outputs])
    stored = (mean, spread, first, first_bias, whiten, -center @ whiten, shifted)
    return on_grids(NetWeights(*stored))


if __name__ == "__main__":
    main()
