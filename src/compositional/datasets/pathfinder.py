"""Pathfinder: are two marks joined by a path of dashes? After Linsley, Kim, Veerabadran, Windolf, Serre (NeurIPS 2018).

An image shows two contours of dashes ("paddles"), shorter distracting contours, and two discs: one at the first tip of one
contour, one at the last tip of the same contour (label 1) or of the other one (label 0). An image depends only on its geometry
and number, so any part of a data set can be made anywhere, in any order.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from compositional import randomness

FILES: dict = {}
SCALE = 2  # images are drawn larger by this factor, then reduced (Lanczos)
_EXTENSION_TRIALS, _SEED_TRIALS, _DISTRACTOR_TRIALS = 3, 3, 5
_PLACEMENT_TRIALS = 300  # after this many misses in a row, less than about 1 % of the area is free
_TOUCHING = 2  # number of pixels that two margins may share


@dataclass(frozen=True)
class Geometry:
    """The geometry of images of `side` x `side` pixels; lengths are in pixels.

    path_length: paddles in each of the two contours. continuity: straightness of contours. seed_distance: distance between the
    first tips of the two contours, whose distance from the border is at least twice that. border: width of the empty border.
    distractor_paddles: number of paddles in all distracting contours, which have path_length / 3 each.
    """

    path_length: int
    side: int
    paddle_length: int
    paddle_thickness: int
    margin: int
    continuity: float
    seed_distance: int
    border: int
    marker_radius: int
    distractor_paddles: int

    @property
    def distractors(self) -> tuple[int, int]:
        """The number of distracting contours, and of paddles in each."""
        return math.ceil(self.distractor_paddles / (self.path_length / 3)), max(1, self.path_length // 3)

    def key(self, number: int) -> int:
        """The key of the random numbers of image `number`."""
        return randomness.derive("pathfinder", json.dumps(self.__dict__, sort_keys=True), number)


@dataclass(frozen=True)
class Sample:
    """An image (side, side) uint8; its label; the contours, arrays (paddles, 2, 2) of tail and head as (x, y); both marks (x, y).

    The question is about the first two contours.
    """

    image: np.ndarray
    label: int
    contours: list[np.ndarray]
    marks: np.ndarray


class _Canvas:
    """Which pixels are taken: how many paddles, widened by the margin, cover each pixel; the border counts as a paddle."""

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry
        self.taken = np.zeros((geometry.side, geometry.side), np.int16)
        self.reach = geometry.paddle_thickness / 2 + geometry.margin
        inner = slice(geometry.border, geometry.side - geometry.border)
        self.taken[:] = 1
        self.taken[inner, inner] = 0

    def footprint(self, paddle: np.ndarray) -> tuple[tuple[slice, slice], np.ndarray] | None:
        """The pixels that a paddle with its margin covers: a window and a mask in it; None if they leave the image."""
        low = np.floor(paddle.min(0) - self.reach).astype(int)
        high = np.ceil(paddle.max(0) + self.reach).astype(int) + 1
        if low.min() < 0 or high.max() > self.geometry.side:
            return None
        tail, along = paddle[0], paddle[1] - paddle[0]
        x, y = np.arange(low[0], high[0])[None, :] - tail[0], np.arange(low[1], high[1])[:, None] - tail[1]
        share = np.clip((x * along[0] + y * along[1]) / (along @ along), 0, 1)
        near = (x - share * along[0]) ** 2 + (y - share * along[1]) ** 2 <= self.reach**2
        return (slice(low[1], high[1]), slice(low[0], high[0])), near

    def add(self, paddle: np.ndarray, sign: int = 1) -> None:
        """Mark a paddle's pixels as taken (or, with sign -1, as free again)."""
        if (found := self.footprint(paddle)) is None:
            raise ValueError("the paddle leaves the image")
        self.taken[found[0]] += sign * found[1]

    def fits(self, paddle: np.ndarray) -> bool:
        """Whether a paddle is inside the image and clear of the others."""
        found = self.footprint(paddle)
        return found is not None and bool(np.count_nonzero(self.taken[found[0]][found[1]]) < _TOUCHING)


def _paddle(tail: np.ndarray, angle: float, length: float) -> np.ndarray:
    return np.stack([tail, tail + length * np.array([math.cos(angle), math.sin(angle)])])


class _Contour:
    """A contour that grows on a canvas. While it grows, the next paddle may touch the last one."""

    def __init__(self, canvas: _Canvas, first: np.ndarray) -> None:
        self.canvas, self.paddles = canvas, [first]
        canvas.add(first)

    def remove(self) -> None:
        for paddle in self.paddles:
            self.canvas.add(paddle, -1)

    def extend(self, source: np.random.Generator) -> bool:
        """Add a paddle. Returns False at a dead end."""
        geometry, canvas = self.canvas.geometry, self.canvas
        last = self.paddles[-1]
        direction = (last[1] - last[0]) / geometry.paddle_length
        pivot = last[1] + geometry.margin * direction
        radius = geometry.paddle_length + geometry.margin
        span = np.arange(-radius - 1, radius + 2)
        pixels = np.round(pivot).astype(int) + np.stack(np.meshgrid(span, span), -1).reshape(-1, 2)
        away = pixels - pivot
        distance = np.hypot(away[:, 0], away[:, 1])
        ring = (np.abs(distance - radius) < 0.5) & (pixels.min(1) >= 0) & (pixels.max(1) < geometry.side)
        pixels, away = pixels[ring], away[ring] / distance[ring, None]
        canvas.add(last, -1)
        turned = np.arccos(np.clip(away @ direction, -1, 1))
        weight = np.cos(np.minimum(geometry.continuity * turned, math.pi / 2)) ** 2
        weight = weight * (canvas.taken[pixels[:, 1], pixels[:, 0]] == 0)
        found = None
        if weight.sum() >= 1e-4:
            weight /= weight.sum()
            for _ in range(_EXTENSION_TRIALS):
                choice = source.choice(len(weight), p=weight)
                head = pivot + radius * away[choice]
                paddle = np.stack([pivot + geometry.margin * away[choice], head])
                if canvas.fits(paddle):
                    found = paddle
                    break
        canvas.add(last)
        if found is None:
            return False
        canvas.add(found)
        self.paddles.append(found)
        return True


def _angle(source: np.random.Generator) -> float:
    return math.radians(source.integers(-180, 180))


def _two_contours(canvas: _Canvas, source: np.random.Generator) -> list[_Contour] | None:
    """The two contours that the question is about, grown alternately; None at a dead end."""
    geometry = canvas.geometry
    least, most = 2 * geometry.seed_distance, geometry.side - 2 * geometry.seed_distance
    contours: list[_Contour] = []
    for index in range(2):
        for _ in range(_SEED_TRIALS):
            if index:
                tail = _paddle(contours[0].paddles[0][0], _angle(source), geometry.seed_distance)[1]
            else:
                tail = source.integers(least, most, size=2).astype(float)
            first = _paddle(tail, _angle(source), geometry.paddle_length)
            if canvas.fits(first):
                contours.append(_Contour(canvas, first))
                break
        else:
            break
    if len(contours) == 2 and all(contour.extend(source) for _ in range(geometry.path_length - 1) for contour in contours):
        return contours
    for contour in contours:
        contour.remove()
    return None


def _distract(canvas: _Canvas, source: np.random.Generator) -> list[_Contour]:
    """Distracting contours anywhere. If one finds no room in several trials, its last, shorter form is kept."""
    geometry = canvas.geometry
    number, length = geometry.distractors
    found: list[_Contour] = []
    for _ in range(number):
        for trial in range(_DISTRACTOR_TRIALS):
            for _ in range(_PLACEMENT_TRIALS):
                tail = source.integers(geometry.border, geometry.side - geometry.border, size=2).astype(float)
                first = _paddle(tail, _angle(source), geometry.paddle_length)
                if canvas.fits(first):
                    break
            else:
                return found
            contour = _Contour(canvas, first)
            if all(contour.extend(source) for _ in range(length - 1)) or trial == _DISTRACTOR_TRIALS - 1:
                found.append(contour)
                break
            contour.remove()
    return found


def _draw(geometry: Geometry, contours: list[np.ndarray], marks: np.ndarray) -> np.ndarray:
    picture = Image.new("L", (SCALE * geometry.side,) * 2)
    pen = ImageDraw.Draw(picture)
    for paddle in np.concatenate(contours):
        ends = [tuple(round(SCALE * value) for value in end) for end in paddle]
        pen.line(ends, fill=255, width=SCALE * geometry.paddle_thickness)
    for x, y in marks:
        pen.circle((SCALE * x, SCALE * y), SCALE * geometry.marker_radius, fill=255)
    small = np.asarray(picture.resize((geometry.side,) * 2, Image.Resampling.LANCZOS), np.float32)
    return np.rint(small * (255 / small.max())).astype(np.uint8)


def generate(geometry: Geometry, number: int) -> Sample:
    """The image of this number.

    Raises:
        ValueError: the contours find no room in this geometry.
    """
    source = randomness.generator(geometry.key(number))
    label = int(source.integers(2))
    canvas = _Canvas(geometry)
    if geometry.side - 4 * geometry.seed_distance < 1:
        raise ValueError(f"pathfinder: seed_distance: {geometry.seed_distance} must be below a quarter of side, {geometry.side}")
    for _ in range(1000):
        if contours := _two_contours(canvas, source):
            break
    else:
        raise ValueError(
            f"pathfinder: two contours of path_length: {geometry.path_length} dashes do not fit into an image of side: "
            f"{geometry.side} pixels with a border of {geometry.border}; lower path_length or border, or raise side"
        )
    own = int(source.integers(2))
    first, last = contours[own], contours[own if label else 1 - own]
    marks = np.stack([first.paddles[0][0], last.paddles[-1][1]])
    contours += _distract(canvas, source)
    arrays = [np.stack(contour.paddles) for contour in contours]
    return Sample(_draw(geometry, arrays, marks), label, arrays, marks)
