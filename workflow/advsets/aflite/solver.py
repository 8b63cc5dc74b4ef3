"""L-BFGS for many fits at once, in the variables of one shared preconditioner.

Conventions
-----------
First axis n_fits throughout. Each fit takes its own step length (Nocedal & Wright 2006, algorithm 7.4); one pass over
the data serves the fits still running. Products are float32 while that is precise enough and float64 for what is left.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from advsets.aflite.objective import Objective
from advsets.aflite.preconditioner import Preconditioner

MEMORY = 10
"""Pairs of steps and gradient changes that L-BFGS keeps."""
SUFFICIENT_DECREASE = 1e-4
FLAT_SLOPE = 0.8
"""Where rounding hides a decrease, a step is accepted by its slope instead (Hager & Zhang 2005, delta = 0.1)."""
FLAT_SHARE = {torch.float32: 1e-6, torch.float64: 1e-11}
"""Relative change of the objective that rounding can hide."""
REJECTIONS = {torch.float32: 6, torch.float64: 30}
"""Shorter steps tried before float32 gives way to float64, and before a fit counts as failed."""
PATIENCE = 25
"""Float32 passes without halving the smallest gradient before float64 takes over."""
ROUNDING = 4 * torch.finfo(torch.float32).eps
"""Error of a float32 gradient, as a share of C times the scale of the features."""


@dataclass(frozen=True)
class Fits:
    """Fitted classifiers and how far each got.

    Attributes
    ----------
    coefficients : Tensor
        (n_partitions, n_scores, n_features + 1) float64, intercept last. `n_scores` is 1 for binary and for
        multiple choice (whose intercept is 0), `n_classes` otherwise. `Solver.solve` has (n_partitions, n_outputs,
        n_columns) instead, see `objective`.
    gradient_norm : Tensor
        (n_partitions,) float64, max |gradient| of the objective divided by the fit's training examples.
    n_passes : int
        Passes over the data (objective and gradient); the pooled fit on a sample is not counted.
    status : list of str
        Per fit "converged", "stopped" (pass limit reached) or "failed" (no step lowers the objective further,
        or values are not finite).
    """

    coefficients: Tensor
    gradient_norm: Tensor
    n_passes: int
    status: list[str]


class _History:
    """Last steps and gradient changes of all fits: an approximate inverse Hessian per fit."""

    def __init__(self, gradient: Tensor) -> None:
        self.steps = gradient.new_zeros(MEMORY, *gradient.shape)
        self.changes = torch.zeros_like(self.steps)
        self.inverse_dot = gradient.new_zeros(MEMORY, len(gradient))
        self.scale = gradient.new_ones(len(gradient))
        self.n_pushed = 0

    def push(self, step: Tensor, change: Tensor, accepted: Tensor) -> None:
        """Store one pair per fit, (n_fits, n_variables); where not `accepted` the pair counts as absent."""
        slot = self.n_pushed % MEMORY
        dot, change_square = (step * change).sum(1), change.square().sum(1)
        usable = accepted & (dot > 1e-14 * change_square) & dot.isfinite()
        self.steps[slot] = torch.where(usable[:, None], step, 0.0)
        self.changes[slot] = torch.where(usable[:, None], change, 0.0)
        self.inverse_dot[slot] = torch.where(usable, 1.0 / dot, 0.0)
        self.scale = torch.where(usable, dot / change_square, self.scale)
        self.n_pushed += 1

    def forget(self, fits: Tensor) -> None:
        """Drop all pairs of the fits marked in `fits` (n_fits,) bool."""
        self.inverse_dot[:, fits] = 0.0
        self.scale[fits] = 1.0

    def empty(self) -> Tensor:
        """(n_fits,) bool, fits without a pair."""
        return (self.inverse_dot == 0).all(0)

    def direction(self, gradient: Tensor) -> Tensor:
        """Minus the approximate inverse Hessian times the gradient."""
        newest_first = [(self.n_pushed - 1 - age) % MEMORY for age in range(min(MEMORY, self.n_pushed))]
        out = gradient.clone()
        shares = {}
        for slot in newest_first:
            shares[slot] = self.inverse_dot[slot] * (self.steps[slot] * out).sum(1)
            out -= shares[slot][:, None] * self.changes[slot]
        out *= self.scale[:, None]
        for slot in reversed(newest_first):
            correction = self.inverse_dot[slot] * (self.changes[slot] * out).sum(1)
            out += (shares[slot] - correction)[:, None] * self.steps[slot]
        return out.neg_()

    def keep(self, fits: Tensor) -> None:
        self.steps, self.changes = self.steps[:, fits], self.changes[:, fits]
        self.inverse_dot, self.scale = self.inverse_dot[:, fits], self.scale[fits]


@dataclass
class _State:
    """Where each running fit stands; first axis n_fits throughout."""

    fit: Tensor  # index among all fits
    point: Tensor  # variables accepted last
    value: Tensor
    gradient: Tensor
    norm: Tensor  # max |gradient by the coefficients| / training examples
    direction: Tensor
    slope: Tensor  # of the objective along `direction`
    length: Tensor  # step length to be tried next, 0 to look again at `point`
    rejections: Tensor  # step lengths refused since the last accepted one
    precise: Tensor  # float64 products
    best: Tensor  # norm at the last halving, within float32
    idle: Tensor  # passes since

    def keep(self, fits: Tensor) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[fits])


class Solver:
    """All fits of an objective, from zero coefficients unless `start_at` says otherwise.

    Parameters
    ----------
    objective : Objective
    preconditioner : Preconditioner
    sizes : Tensor
        (n_fits,) float64, training examples by which each fit's gradient is divided.
    noise : float
        Rounding error of such a gradient in float32.
    tolerance : float
        Largest gradient of a converged fit.
    """

    def __init__(
        self, objective: Objective, preconditioner: Preconditioner, sizes: Tensor, noise: float, tolerance: float
    ) -> None:
        self.objective, self.preconditioner, self.sizes, self.tolerance = objective, preconditioner, sizes, tolerance
        # Float32 decides alone only where its rounding error is well below the tolerance.
        self.wants_precise = 8 * noise > tolerance
        self.precise_below = max(32 * noise, tolerance)
        n_fits, data = len(sizes), objective.data
        n_variables = data.n_outputs * data.n_columns
        zeros = sizes.new_zeros(n_fits, n_variables)
        none = torch.zeros(n_fits, dtype=torch.int64, device=sizes.device)
        infinite = torch.full_like(sizes, torch.inf)
        self.state = _State(
            fit=torch.arange(n_fits, device=sizes.device),
            point=zeros,
            value=infinite,
            gradient=zeros.clone(),
            norm=infinite.clone(),
            direction=zeros.clone(),
            slope=torch.zeros_like(sizes),
            length=torch.zeros_like(sizes),
            rejections=none,
            precise=torch.zeros(n_fits, dtype=torch.bool, device=sizes.device),
            best=infinite.clone(),
            idle=none.clone(),
        )
        self.history = _History(zeros)
        self.final_point, self.final_norm = zeros.clone(), infinite.clone()
        self.status = ["stopped"] * n_fits
        self.near = False

    def start_at(self, coefficients: Tensor) -> None:
        """Start every fit at these coefficients (n_outputs, n_columns), near which its Hessian is the pooled one."""
        point = self.preconditioner.variables(coefficients.reshape(1, -1))
        self.state.point = point.expand_as(self.state.point).clone()
        self.near = bool((coefficients != 0).any())

    def solve(self, max_passes: int) -> Fits:
        """Pass over the data until every fit is done, or `max_passes` times."""
        n_passes = 0
        while len(self.state.fit) and n_passes < max_passes:
            n_passes += 1
            self._pass()
        self._retire(torch.ones_like(self.state.precise), "stopped")
        data = self.objective.data
        coefficients = self.preconditioner.coefficients(self.final_point).view(-1, data.n_outputs, data.n_columns)
        return Fits(coefficients, self.final_norm, n_passes, self.status)

    def _pass(self) -> None:
        """Try one step length of every running fit."""
        state = self.state
        trial = state.point + state.length[:, None] * state.direction
        value, gradient, norm = self._evaluate(trial)
        new_slope = (gradient * state.direction).sum(1)
        looked_again = state.length == 0
        accepted = (looked_again | self._good(value, new_slope)) & value.isfinite() & norm.isfinite()
        self.history.push(trial - state.point, gradient - state.gradient, accepted & ~looked_again)
        secant = (state.slope / (state.slope - new_slope)).clamp(0.1, 0.9).nan_to_num(0.1)
        shorter = state.length * torch.where(value.isfinite(), secant, 0.1)
        state.point = torch.where(accepted[:, None], trial, state.point)
        state.gradient = torch.where(accepted[:, None], gradient, state.gradient)
        state.value = torch.where(accepted, value, state.value)
        state.norm = torch.where(accepted, norm, state.norm)
        state.rejections = torch.where(accepted, 0, state.rejections + 1)
        self._turn(accepted)
        state.length = torch.where(accepted, self._first_length(), shorter)
        self.near = False
        self._settle(accepted, hopeless=~accepted & looked_again)

    def _turn(self, accepted: Tensor) -> None:
        """New search direction of the fits whose last step was accepted."""
        state = self.state
        direction = self.history.direction(state.gradient)
        uphill = (direction * state.gradient).sum(1) >= 0
        direction = torch.where(uphill[:, None], -state.gradient, direction)
        state.direction = torch.where(accepted[:, None], direction, state.direction)
        state.slope = (state.direction * state.gradient).sum(1)

    def _evaluate(self, trial: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Objective, gradient by the variables, and norm at the trial points, each fit in its own precision."""
        data, state = self.objective.data, self.state
        change = torch.float64 if bool(state.precise.any()) else torch.float32
        coefficients = self.preconditioner.coefficients(trial, change).view(-1, data.n_outputs, data.n_columns)
        value, gradient = torch.empty_like(state.value), torch.empty_like(coefficients)
        for dtype, members in ((torch.float32, ~state.precise), (torch.float64, state.precise)):
            if bool(members.any()):
                value[members], gradient[members] = self.objective.evaluate(
                    coefficients[members], state.fit[members], dtype
                )
        norm = data.coefficients(gradient).abs().amax((1, 2)) / self.sizes[state.fit]
        return value, self.preconditioner.gradient(gradient.view(len(trial), -1), change), norm

    def _good(self, value: Tensor, new_slope: Tensor) -> Tensor:
        state = self.state
        lower = value <= state.value + SUFFICIENT_DECREASE * state.length * state.slope
        share = torch.where(state.precise, FLAT_SHARE[torch.float64], FLAT_SHARE[torch.float32])
        level = value <= state.value + share * state.value.abs()
        return lower | (level & (new_slope <= -FLAT_SLOPE * state.slope))

    def _first_length(self) -> Tensor:
        """Step length to try first: 1, or far off and without a history what the bound on the curvature calls safe."""
        empty = self.history.empty()
        length = torch.ones_like(self.state.slope)
        if bool(empty.any()) and not self.near:
            curvature = self.preconditioner.curvature_bound(self.state.direction[empty])
            length[empty] = (-self.state.slope[empty] / curvature).clamp(max=1.0).nan_to_num(1.0)
        return length

    def _settle(self, accepted: Tensor, hopeless: Tensor) -> None:
        """Retire fits that are done and move those that float32 cannot carry further to float64."""
        state = self.state
        halved = state.norm <= 0.5 * state.best
        state.best = torch.where(halved, state.norm, state.best)
        state.idle = torch.where(halved, 0, state.idle + 1)
        done = accepted & (state.norm <= self.tolerance) & (state.precise | (not self.wants_precise))
        failed = hopeless | (state.precise & (state.rejections >= REJECTIONS[torch.float64]))
        near = accepted & (state.norm <= self.precise_below) & self.wants_precise
        stuck = (state.rejections >= REJECTIONS[torch.float32]) | (state.idle >= PATIENCE)
        refine = ~state.precise & (near | stuck)
        state.precise = state.precise | refine
        state.length = torch.where(refine, 0.0, state.length)
        state.rejections = torch.where(refine, 0, state.rejections)
        self._restart(state.precise & (state.rejections == REJECTIONS[torch.float64] // 2))
        self._retire(done, "converged")
        self._retire(failed, "failed")
        if bool((done | failed).any()):
            staying = ~(done | failed)
            state.keep(staying)
            self.history.keep(staying)

    def _restart(self, fits: Tensor) -> None:
        """Forget the history of some fits and go down the preconditioned gradient."""
        state = self.state
        if not bool(fits.any()):
            return
        self.history.forget(fits)
        state.direction = torch.where(fits[:, None], -state.gradient, state.direction)
        state.slope = torch.where(fits, -state.gradient.square().sum(1), state.slope)
        state.length = torch.where(fits, self._first_length(), state.length)

    def _retire(self, leaving: Tensor, status: str) -> None:
        """Record the results of some running fits."""
        fits = self.state.fit[leaving]
        self.final_point[fits] = self.state.point[leaving]
        self.final_norm[fits] = self.state.norm[leaving]
        for fit in fits.tolist():
            self.status[fit] = status
