"""Answers Pathfinder's question from the image alone, without the generator's knowledge: a check of the generated images.

Dashes are found as connected pixels, discs as the pixels that survive an erosion. Starting at one disc, the solver moves from a
dash to the one that continues it: the straight lines through both meet halfway between their tips.
"""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from compositional.datasets.pathfinder import Geometry

_BRIGHT = 110  # of 255
_MEETING = 2.6  # pixels between the points where two dashes would meet
_STRAIGHT = 0.5  # minimum cosine of the angle between two consecutive dashes


def _disc(radius: int) -> np.ndarray:
    span = np.arange(-radius, radius + 1)
    return span[:, None] ** 2 + span**2 <= radius**2


def _marks(image: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Centers (x, y) of the discs."""
    cores, count = ndimage.label(ndimage.binary_erosion(image > _BRIGHT, _disc(geometry.marker_radius - 1)))
    centers = ndimage.center_of_mass(cores > 0, cores, range(1, count + 1))
    return np.array([(x, y) for y, x in centers])


def _dashes(image: np.ndarray, marks: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Tips (n, 2, 2) of the dashes; those at the discs come first, with the tip in the disc first."""
    y, x = np.indices(image.shape)
    away = np.stack([np.hypot(x - mark[0], y - mark[1]) for mark in marks])
    found = []
    for mark, distance in zip(marks, away, strict=True):
        # The part of the dash that sticks out of the disc.
        ring = (distance > geometry.marker_radius + 0.7) & (distance < geometry.paddle_length + 0.7)
        weight = image * ring
        stub = np.array([(x * weight).sum(), (y * weight).sum()]) / max(weight.sum(), 1) - mark
        direction = stub / max(np.hypot(*stub), 1e-9)
        found.append(np.stack([mark, mark + geometry.paddle_length * direction]))
    parts, count = ndimage.label((image > _BRIGHT) & (away > geometry.paddle_length + 1.2).all(0), np.ones((3, 3)))
    for window, index in zip(ndimage.find_objects(parts), range(1, count + 1), strict=True):
        own = parts[window] == index
        if own.sum() < geometry.paddle_length:
            continue
        weight = image[window] * own / image[window][own].sum()
        rows, columns = np.indices(own.shape)
        center = np.array([(columns * weight).sum(), (rows * weight).sum()])
        offsets = np.stack([columns, rows], -1) - center
        spread = np.einsum("yx,yxi,yxj->ij", weight, offsets, offsets)
        direction = np.linalg.eigh(spread)[1][:, 1]
        center = np.add(center, (window[1].start, window[0].start))
        half = direction * geometry.paddle_length / 2
        found.append(np.stack([center - half, center + half]))
    return np.stack(found)


def _follow(dashes: np.ndarray, start: int, goal: int, geometry: Geometry) -> int | None:
    """Number of dashes on the path from one disc to the other; None if the path ends elsewhere."""
    left = [index for index in range(len(dashes)) if index != start]
    tail, head = dashes[start]
    count = 1
    while left:
        direction = (head - tail) / np.hypot(*(head - tail))
        meeting = head + geometry.margin * direction
        best = None
        for index in left:
            # The path can enter the dash at the other disc only at its free tip.
            for ends in (dashes[index], dashes[index][::-1])[1 if index == goal else 0 :]:
                other = (ends[1] - ends[0]) / np.hypot(*(ends[1] - ends[0]))
                miss = np.hypot(*(ends[0] - geometry.margin * other - meeting))
                if other @ direction > _STRAIGHT and miss < _MEETING and (best is None or miss < best[0]):
                    best = miss, index, ends
        if best is None:
            return None
        _, index, (tail, head) = best
        count += 1
        if index == goal:
            return count
        left.remove(index)
    return None


def trace(image: np.ndarray, geometry: Geometry) -> tuple[int | None, int]:
    """Whether a path joins the two discs of an image (side, side): (1, 0, or None if undecided; number of its dashes or 0).

    An image is undecided if there are not two discs, or if the paths from the two discs give different answers.
    """
    marks = _marks(image, geometry)
    if len(marks) != 2:
        return None, 0
    dashes = _dashes(image, marks, geometry)
    there, back = _follow(dashes, 0, 1, geometry), _follow(dashes, 1, 0, geometry)
    if there != back:
        return None, 0
    return (1, there) if there else (0, 0)
