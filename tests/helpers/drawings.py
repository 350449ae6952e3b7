"""Pictures to draw on, strokes, and work that is done when a test says so."""

import numpy as np

from setwise.app._drawing._drawing import Drawing
from setwise.app._drawing._jobs import Work
from setwise.app._drawing._strokes import Stroke


def picture(height=40, width=56, seed=0):
    """A bright disc on a dark ground, with noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    inside = (y - height / 2) ** 2 + (x - width / 2) ** 2 < (0.3 * height) ** 2
    plain = np.where(inside[..., None], (200, 150, 60), (60, 80, 120))
    return np.clip(plain + rng.normal(0, 12, (height, width, 3)), 0, 255).astype(np.uint8)


def line(label, *points, radius=2.0, kind="brush", key=""):
    return Stroke(kind, label, radius, tuple(points), key)


def two_strokes(shape):
    """One in the disc of the picture, one beside it."""
    height, width = shape
    return (
        line(1, (width / 2 - 5, height / 2), (width / 2 + 5, height / 2)),
        line(0, (3.0, 3.0), (3.0, height - 4.0)),
    )


def random_stroke(rng, shape, labels=2):
    height, width = shape
    points = rng.uniform((-3, -3), (width + 3, height + 3), (rng.integers(1, 6), 2))
    kind = rng.choice(["brush", "brush", "brush", "erase", "box"])
    return Stroke(
        str(kind),
        int(rng.integers(labels)),
        float(rng.uniform(0.5, 5.0)),
        tuple((float(x), float(y)) for x, y in points),
    )


class Queue:
    """Workers that keep jobs until ``run`` is called."""

    def __init__(self):
        self.jobs = []

    def submit(self, owner, job, *, urgent):
        self.jobs.append((owner, job, urgent))

    def drop(self, owner):
        dropped = [job for one, job, _ in self.jobs if one is owner]
        self.jobs = [job for job in self.jobs if job[0] is not owner]
        return dropped

    def close(self):
        self.jobs.clear()

    def run(self, most=None):
        """Do all jobs, also those that come meanwhile, or ``most`` of them."""
        while self.jobs and most != 0:
            owner, job, _ = self.jobs.pop(0)
            owner.run(job)
            most = None if most is None else most - 1


class Desk:
    """A drawing whose work waits in a queue, and the events that it has told."""

    def __init__(self, image):
        self.drawing = Drawing(image)
        self.queue, self.events = Queue(), []
        self.work = Work(self.drawing, self.queue, self.told)
        self.hook = None

    def told(self, event):
        self.events.append(event)
        if self.hook is not None:
            self.hook(event)

    def draw(self, *strokes):
        for stroke in strokes:
            self.drawing.add(stroke)
            self.work.changed()

    def run(self):
        self.queue.run()

    def kinds(self):
        return [type(event).__name__ for event in self.events]
