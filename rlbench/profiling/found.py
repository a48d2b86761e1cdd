"""What a profile finds unaided: calls that every training makes are wrapped while a profile is open.

    env         `step` and `reset` of Gymnasium's and Gym's envs and vector envs, of Stable-Baselines3's, and of any class of the
                reader's that has both
    forward     calling an `nn.Module`
    backward    `torch.autograd.backward` (which `Tensor.backward` calls) and `torch.autograd.grad`
    optimizer   `step` of every optimizer
    sample      the next minibatch of a `DataLoader`

A wrapper asks for this thread's clock and, without one, passes the call on: a wrapper that somebody kept does no harm. Under
torch.compile the calls are traced as if nothing were wrapped. Wrappers name modules, not objects of theirs, so that a class of
the reader's that is wrapped can still be sent to a worker process.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.compiler import is_compiling

from rlbench import phases
from rlbench.profiling.accounts import briefly

ENV_ROOTS = (
    *(("gymnasium", "Env"), ("gymnasium.vector", "VectorEnv"), ("gym", "Env"), ("gym.vector", "VectorEnv")),
    ("stable_baselines3.common.vec_env", "VecEnv"),
)
MARK = "_rlbench_found"
BORDERS = ("env", "reset", "optimizer")  # phases that are timed even while the clock looks away


def found(function: Callable, name: str) -> Callable:
    """`function`, its calls counted as phase `name` where the code around has not said otherwise; quick within another."""
    use, border = Use(name), name in BORDERS

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return function(*args, **kwargs)
        clock = phases.current.clock
        if border and clock is not None and clock.blind and len(clock.stack) == 1:
            use.alone = True
            return briefly(clock, name, function, args, kwargs)
        if clock is None or not clock.finds or not (clock.top.free or clock.around):
            use.within = True
            return function(*args, **kwargs)
        use.alone = True
        with clock.handles[name] if clock.blind else clock.finding(name):
            return function(*args, **kwargs)

    setattr(call, MARK, use)
    return call


class Use:
    """How a wrapper was called so far: within another phase, or alone."""

    __slots__ = ("alone", "phase", "within")

    def __init__(self, phase: str) -> None:
        self.phase, self.within, self.alone = phase, False, False

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do while the clock looks away."""
        return self.phase not in BORDERS or (self.within and not self.alone)


@dataclass
class Wrapped:
    """An attribute and what was put into its place."""

    holder: Any
    name: str
    before: Any
    after: Any

    def put(self) -> None:
        """Left alone where somebody has put something else there."""
        if vars(self.holder).get(self.name) is self.before:
            setattr(self.holder, self.name, self.after)

    def remove(self) -> None:
        """Left alone where somebody wrapped it again; ours passes calls on."""
        if vars(self.holder).get(self.name) is self.after:
            setattr(self.holder, self.name, self.before)


class Wrappers:
    """Wraps while it is installed; installed twice, it stays until it was removed twice."""

    def __init__(self) -> None:
        self.users = 0
        self._wrapped: list[Wrapped] = []
        self._resting: list[Wrapped] = []

    def install(self, *namespaces: dict[str, Any]) -> None:
        """`namespaces`: where classes of the reader's are looked for, such as the globals of a script."""
        self.users += 1
        self.wake()
        if self.users == 1:
            self._torch()
            build = builtins.__build_class__
            self._put(builtins, "__build_class__", self._building(build))
        for root in env_roots():
            for cls in (root, *subclasses(root)):
                self._env(cls)
        for namespace in (vars(sys.modules["__main__"]), *namespaces):
            for value in list(namespace.values()):
                if is_env(value):
                    self._env(value)

    def remove(self) -> None:
        self.users -= 1
        if self.users:
            return
        self._resting.clear()
        while self._wrapped:
            self._wrapped.pop().remove()

    def rest(self) -> None:
        """The only user looks away: calls that have nothing to do then go their own way until `wake`.

        Those of modules are many, and so are steps of envs within envs.
        """
        if self.users == 1 and not self._resting:
            self._resting = [each for each in self._wrapped if getattr(getattr(each.after, MARK, None), "idle", False)]
            for each in reversed(self._resting):
                each.remove()

    def wake(self) -> None:
        while self._resting:
            self._resting.pop().put()

    def _torch(self) -> None:
        optim = torch.optim.Optimizer
        self._put(torch.nn.Module, "__call__", found(torch.nn.Module.__call__, "forward"))
        self._put(torch.autograd, "backward", found(torch.autograd.backward, "backward"))
        self._put(torch.autograd, "grad", found(torch.autograd.grad, "backward"))
        self._put(optim, "__init__", self._making(optim.__init__))
        for cls in subclasses(optim):
            self._method(cls, "step", "optimizer")
        loader = torch.utils.data.dataloader._BaseDataLoaderIter
        self._put(loader, "__next__", found(loader.__next__, "sample"))

    def _making(self, init: Callable) -> Callable:
        @functools.wraps(init)
        def make(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            init(optimizer, *args, **kwargs)
            if self.users:
                self._method(type(optimizer), "step", "optimizer")

        return make

    def _building(self, build: Callable) -> Callable:
        @functools.wraps(build)
        def build_class(body: Callable, name: str, *bases: Any, **kwargs: Any) -> Any:
            cls = build(body, name, *bases, **kwargs)
            if self.users and is_env(cls):
                self._env(cls)
            return cls

        return build_class

    def _env(self, cls: type) -> None:
        self._method(cls, "step", "env")
        self._method(cls, "step_wait", "env")
        self._method(cls, "reset", "reset")

    def _method(self, cls: type, name: str, phase: str) -> None:
        function = vars(cls).get(name)
        if callable(function) and not hasattr(function, MARK) and not isinstance(function, staticmethod | classmethod):
            self._put(cls, name, found(function, phase))

    def _put(self, holder: Any, name: str, wrapped: Callable) -> None:
        self._wrapped.append(Wrapped(holder, name, vars(holder)[name], wrapped))
        setattr(holder, name, wrapped)


def env_roots() -> Iterator[type]:
    """The base classes of envs that are loaded."""
    for module, name in ENV_ROOTS:
        root = getattr(sys.modules.get(module), name, None)
        if isinstance(root, type):
            yield root


def subclasses(root: type) -> Iterable[type]:
    """All classes below `root`, each once."""
    seen: dict[type, None] = {}
    stack = [root]
    while stack:
        for cls in type.__subclasses__(stack.pop()):
            if cls not in seen:
                seen[cls] = None
                stack.append(cls)
    return tuple(seen)


def is_env(value: Any) -> bool:
    """Whether it is a class of environments: below a known base, or with functions `step` and `reset` and no part of torch."""
    if not isinstance(value, type):
        return False
    if issubclass(value, tuple(env_roots())):
        return True
    if issubclass(value, torch.nn.Module | torch.optim.Optimizer):
        return False
    return callable(getattr(value, "step", None)) and callable(getattr(value, "reset", None))


WRAPPERS = Wrappers()
