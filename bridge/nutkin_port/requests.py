"""Open requests: each waits for its blobs, is compiled, and becomes a value or a run, until its last answer is sent.

Messages are handled one after another by one thread; models are read, bound and sampled on a pool of as many threads as
there are cores; one thread compiles. Whoever closes a request first sends its last answer, and nobody sends another.
More runs than the limit allows wait in line for one that ends.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

import nutkin
import nutkin.compile
import nutkin.model
import nutkin.sampler
from nutkin.errors import Cancelled, LimitExceeded, NutkinError, ProtocolError
from nutkin_port import answers, codec, memory, messages
from nutkin_port.compiler import Compiler
from nutkin_port.frames import FrameWriter
from nutkin_port.limits import Limits
from nutkin_port.line import Line
from nutkin_port.logs import Logs
from nutkin_port.messages import (
    Ack,
    Cancel,
    Checkpoint,
    Compile,
    Debug,
    Evaluate,
    Info,
    LogDensity,
    Pause,
    Ping,
    Predict,
    Put,
    Resume,
    Sample,
    Shapes,
    Shutdown,
)
from nutkin_port.request import RUNS, Job, Request
from nutkin_port.runs import Run
from nutkin_port.store import Store


class Requests:
    """`replace` ends the program, for the reason that it gets, where a compilation must end; or else it goes on."""

    def __init__(
        self, writer: FrameWriter, logs: Logs, limits: Limits, replace: Callable[[str], None] = lambda reason: None
    ) -> None:
        self._writer = writer
        self._logs = logs
        self._limits = limits
        self._store = Store(limits.store)
        self._pool = nutkin.sampler.Pool(nutkin.sampler.cores(), "pool")
        self._compiler = Compiler(limits, replace)
        self._line = Line(limits.runs)
        self._open: dict[int, Request] = {}
        self._changed = threading.Condition()  # guards `_open`, `_line` and the state of each request; reentrant

    def send(self, kind: str, id: int, body: dict[str, Any]) -> None:
        """LimitExceeded where the message does not fit into a frame."""
        self._writer.write(codec.pack(kind, id, body, limit=self._limits.frame))

    def handle(self, frame: bytes | bytearray) -> bool:
        """One message; False after `shutdown`. ProtocolError when the frame is none, which ends all trust."""
        kind, id, body = codec.unpack(frame)
        try:
            message = messages.read(kind, body, self._limits.nesting)
            if isinstance(message, Shutdown):
                self.shutdown()
                return False
            self._dispatch(id, message)
        except Exception as error:  # answered, whatever it is
            with self._changed:  # one whose last answer is being sent is closed after it
                request = self._open.get(id)
            if kind not in messages.OF_A_REQUEST:
                self.send("error", 0 if request else id, self._error_body(error))
            elif request is not None:
                self._abort(request, error)
                self._compiler.abandon(request)
        return True

    def shutdown(self) -> None:
        """Cancels every open request and waits until all are answered."""
        for request in list(self._open.values()):
            self._cancel(request)
        with self._changed:
            self._changed.wait_for(lambda: not self._open)

    def _dispatch(self, id: int, message: messages.Body) -> None:
        request = self._open.get(id)
        match message:
            case Compile() | Sample() | LogDensity() | Predict() | Shapes() | Evaluate():
                self._accept(id, message)
            case Ping():
                self._check_free(id)
                with self._changed:  # a request whose last answer is sent counts no more
                    requests = len(self._open)
                self.send("pong", id, answers.pong(requests, self._store.usage()))
            case Put() if request:
                self._put(request, message)
            case Ack() if request:
                self._ack(request, message.chunks)
            case Pause() | Resume() if request:
                self._pause(request, isinstance(message, Pause))
            case Checkpoint() if request:
                self._checkpoint(request)
            case Info() if request:
                self._info(request)
            case Cancel() if request:
                self._cancel(request)
                self._compiler.abandon(request)
            # the others are for a request that has ended meanwhile

    def _check_free(self, id: int) -> None:
        if id == 0 or id in self._open:
            raise ProtocolError("the id of a request is not free", expected="an unused number above 0", found=str(id))

    # ---- the way of a request

    def _accept(self, id: int, job: Job) -> None:
        request = Request(id, job)
        with self._changed:
            self._check_free(id)
            if len(self._open) >= self._limits.requests:
                raise LimitExceeded(
                    "too many requests are open",
                    expected=f"at most {self._limits.requests}",
                    hint="wait for answers, or cancel some",
                )
            memory.check(self._limits, self._store)
            self._open[id] = request
        self._work(request, self._read_model)

    def _work(self, request: Request, step: Callable[[Request], None], *, compiles: bool = False) -> None:
        """Queues a step of a request, unless it is closed by then; an error is its last answer."""

        def attempt() -> None:
            with self._changed:
                if self._open.get(request.id) is not request:
                    return
                if compiles:
                    self.send("compiling", request.id, {})
            try:
                step(request)
            except Exception as error:  # answered, whatever it is
                self._abort(request, error)

        if compiles:
            abort = functools.partial(self._abort, request)
            self._compiler.submit(request, request.job.model, attempt, too_long=abort)
        else:
            self._pool.submit(attempt)

    def _read_model(self, request: Request) -> None:
        request.model = nutkin.model.read(request.job.model, limit=self._limits.nodes)
        posterior = request.job.posterior if isinstance(request.job, Predict) else {}
        checkpoint = [request.job.checkpoint] if isinstance(request.job, Sample) and request.job.checkpoint else []
        every = [*request.job.data.values(), *posterior.values(), *sorted(request.model.blobs()), *checkpoint]
        needed = dict.fromkeys(every)
        with self._changed:
            if self._open.get(request.id) is not request:
                return  # cancelled meanwhile, and its id may be another's
            for address in needed:
                array = self._store.get(address)
                if array is None:
                    request.missing.add(address)
                else:
                    request.arrays[address] = array
            missing = [address for address in needed if address in request.missing]
            if missing:  # sent under the lock: after it, the blobs may be there, and the request further on its way
                self.send("need", request.id, {"blobs": missing})
                return
        self._work(request, self._bind)

    def _put(self, request: Request, put: Put) -> None:
        if put.blob in request.arrays:
            return  # another request's upload was faster
        array = request.add(put, self._limits)
        if array is not None:
            self._store.put(put.blob, array)
            self._supply(put.blob, array)

    def _supply(self, address: bytes, array: np.ndarray) -> None:
        """Hands a blob to every request that waits for it."""
        with self._changed:
            waiting = [request for request in self._open.values() if address in request.missing]
            for request in waiting:
                request.arrays[address] = array
                request.missing.remove(address)
                request.uploads.pop(address, None)
            ready = [request for request in waiting if not request.missing]
        for request in ready:
            self._work(request, self._bind)

    def _bind(self, request: Request) -> None:
        """A request whose programs are at hand goes on at once, past those that wait for a compilation."""
        job = request.job
        request.check_size(self._limits)  # those that were there already count too
        data = {name: request.arrays[address] for name, address in job.data.items()}
        constants = {address: request.arrays[address] for address in request.model.blobs()}
        if isinstance(job, Predict):
            self._bind_prediction(request, data, constants)
            return
        if isinstance(job, Shapes):
            found = nutkin.compile.shapes(request.model, job.nodes, data, constants, precision=job.options.precision)
            self._close(request, "shapes", answers.shapes(found))
            return
        if isinstance(job, Evaluate):
            evaluation = nutkin.compile.bind_evaluation(
                request.model, job.results, data, constants, precision=job.options.precision
            )
            compute = functools.partial(self._compute, evaluation=evaluation)
            self._work(request, compute, compiles=not evaluation.is_compiled())
            return
        # For one evaluation, no rewrite repays what it prepares.
        rewrites = () if isinstance(job, LogDensity) else job.options.rewrites
        target = nutkin.compile.bind(request.model, data, constants, precision=job.options.precision, rewrites=rewrites)
        if isinstance(job, Debug):
            at_hand, step = True, self._diagnose
        elif isinstance(job, LogDensity):
            at_hand, step = target.has_gradient_program(), self._evaluate
        else:
            at_hand = nutkin.sampler.has_programs(target, **_program(job.options))
            step = self._compile
        self._work(request, functools.partial(step, target=target), compiles=not at_hand)

    def _bind_prediction(
        self, request: Request, data: dict[str, np.ndarray], constants: dict[bytes, np.ndarray]
    ) -> None:
        job = request.job
        options = msgspec.structs.asdict(job.options)
        del options["credit"]
        shape = (options.pop("chains"), options.pop("draws"))
        draws = {name: request.arrays[address] for name, address in job.posterior.items()}
        prediction = nutkin.compile.bind_prediction(
            request.model, draws, data, constants, shape=None if draws else shape, **options
        )
        for name in prediction.left_out:
            self._logs.emit("warning", "nutkin", f"the factor {name} has no part in the random draws of parameters")
        predict = functools.partial(self._predict, prediction=prediction)
        self._work(request, predict, compiles=not prediction.is_compiled())

    def _predict(self, request: Request, prediction: nutkin.compile.Prediction) -> None:
        started = time.monotonic()
        cached = prediction.compile()
        self._compiler.release(request)
        body = answers.predicted(prediction, cached, time.monotonic() - started)
        self._announce(request, body)
        delivered = request.job.delivered
        first = [sample for _warmup, sample in delivered]
        chains = nutkin.sampler.Predictions(prediction, first)
        self._start(request, chains, compile_seconds=body["seconds"], delivered=delivered)

    def _compute(self, request: Request, evaluation: nutkin.compile.Evaluation) -> None:
        started = time.monotonic()
        values, cached = evaluation.run()
        self._compiler.release(request)
        for part in answers.parts(values, self._limits.chunk):
            with self._changed:
                if self._open.get(request.id) is not request:
                    return  # cancelled meanwhile
                self.send("part", request.id, part)
        self._close(request, "evaluated", answers.evaluated(values, cached, time.monotonic() - started))

    def _evaluate(self, request: Request, target: nutkin.compile.Target) -> None:
        value = answers.value(target, request.job)
        self._compiler.release(request)
        self._close(request, "value", value)

    def _diagnose(self, request: Request, target: nutkin.compile.Target) -> None:
        self._close(request, "diagnosis", answers.diagnosis(target, request.job))

    def _compile(self, request: Request, target: nutkin.compile.Target) -> None:
        job = request.job
        started = time.monotonic()
        sampler = nutkin.sampler.compile_sampler(target, **_program(job.options))
        self._compiler.release(request)
        body = answers.compiled(sampler, time.monotonic() - started)
        if isinstance(job, Compile):
            self._close(request, "compiled", body)
            return
        sample = functools.partial(self._sample, sampler=sampler, compiled=body)
        if target.centerings:  # a pilot takes its time, and others wait for the compiler
            self._work(request, sample)
        else:
            sample(request)

    def _announce(self, request: Request, compiled: dict[str, Any]) -> None:
        with self._changed:
            if self._open.get(request.id) is request:  # else it was cancelled while it was compiled
                self.send("compiled", request.id, compiled)

    def _sample(self, request: Request, sampler: nutkin.sampler.Sampler, compiled: dict[str, Any]) -> None:
        options = request.job.options
        checkpoint = request.job.checkpoint and codec.unpack_tree(request.arrays[request.job.checkpoint])
        run = nutkin.sampler.Run(sampler, options, checkpoint=checkpoint)  # checks the options
        self._announce(request, compiled)

        def is_closed() -> bool:
            return self._open.get(request.id) is not request

        sampler, pilot = nutkin.sampler.centered(sampler, options, is_closed, checkpoint)
        if pilot is not None:
            run = nutkin.sampler.Run(sampler, options, pilot, checkpoint)
        self._start(
            request,
            run,
            delivered=request.job.delivered,
            checkpoint_every=options.checkpoint_every,
            max_time=options.max_time,
            compile_seconds=compiled["seconds"],
        )

    def _start(
        self,
        request: Request,
        chains: nutkin.sampler.Run | nutkin.sampler.Predictions,
        *,
        delivered: Sequence[Sequence[int]],
        compile_seconds: float,
        checkpoint_every: float | None = None,
        max_time: float | None = None,
    ) -> None:
        """Begins a run, or puts it in line."""
        times = [seconds for seconds in (max_time, self._limits.run_seconds) if seconds is not None]

        def start() -> None:
            request.run = Run(
                chains,
                credit=request.credit,
                delivered=delivered,
                checkpoint_every=checkpoint_every,
                max_time=min(times, default=None),
                compile_seconds=compile_seconds,
                limits=self._limits,
                pool=self._pool,
                send=lambda kind, body: self.send(kind, request.id, body),
                finish=lambda result: self._finish(request, result),
            )
            if request.paused:
                request.run.pause()
            request.run.start()

        with self._changed:
            if self._open.get(request.id) is request:  # else it was cancelled meanwhile
                self._line.join(request, start)

    def _ack(self, request: Request, chunks: int) -> None:
        if not isinstance(request.job, RUNS):
            raise ProtocolError("an `ack` for a request that sends no draws", found=type(request.job).__name__)
        with self._changed:
            if request.run is None:
                request.credit += chunks
            else:
                request.run.ack(chunks)

    def _pause(self, request: Request, paused: bool) -> None:
        if not isinstance(request.job, RUNS):
            raise ProtocolError("a `pause` or `resume` of what is no run", found=type(request.job).__name__)
        with self._changed:
            request.paused = paused
            if request.run is not None:
                (request.run.pause if paused else request.run.resume)()

    def _checkpoint(self, request: Request) -> None:
        if not isinstance(request.job, Sample):
            raise ProtocolError("a `checkpoint` of what does not sample", found=type(request.job).__name__)
        with self._changed:
            run = request.run
            if run is None and self._open.get(request.id) is request:  # nothing is done yet
                self.send("checkpoint", request.id, {"size": 0, "offset": 0, "bytes": b""})
        if run is not None:
            run.checkpoint()

    def _info(self, request: Request) -> None:
        run = request.run
        stage = "running" if run else "compiling" if self._compiler.compiles(request) else "waiting"
        idle = {"paused": request.paused, "credit": request.credit, "chains": []}
        body = {"stage": stage, "seconds": time.monotonic() - request.accepted, **(run.info() if run else idle)}
        with self._changed:
            if self._open.get(request.id) is request:
                self.send("info", request.id, body)

    def _cancel(self, request: Request) -> None:
        with self._changed:
            if request.run is not None:
                request.run.stop()
            elif isinstance(request.job, RUNS):
                seconds = {"compile": 0.0, "warmup": 0.0, "sample": 0.0}
                self._close(request, "done", {"status": "cancelled", "chains": [], "pilot": None, "seconds": seconds})
            else:
                self._abort(request, Cancelled("the request was cancelled"))

    # ---- last answers

    def _abort(self, request: Request, error: Exception) -> None:
        """Ends a request with an error: after the last draws where it is running."""
        with self._changed:
            if request.run is not None:
                request.run.fail(error)
            else:
                self._close(request, "error", self._error_body(error))

    def _finish(self, request: Request, result: dict[str, Any] | Exception) -> None:
        if isinstance(result, Exception):
            self._close(request, "error", self._error_body(result))
        else:
            self._close(request, "done", result)

    def _close(self, request: Request, kind: str, body: dict[str, Any]) -> None:
        """Sends the last answer, unless the request has had one."""
        with self._changed:
            if self._open.get(request.id) is not request:
                return
            try:
                self.send(kind, request.id, body)
            except LimitExceeded as error:
                self.send("error", request.id, error.body())
            del self._open[request.id]
            request.run = None  # the two hold on to each other, and to the arrays
            self._line.leave(request)
            self._changed.notify_all()

    def _error_body(self, error: Exception) -> dict[str, Any]:
        if isinstance(error, NutkinError):
            return error.body()
        if isinstance(error, MemoryError) or nutkin.compile.is_out_of_memory(error):
            return LimitExceeded("there is not enough memory for the request").body()
        self._logs.emit_traceback(error)
        return answers.defect(error)


def _program(options: messages.CompileOptions | messages.SampleOptions) -> dict[str, Any]:
    """Of the options, those that the program depends on."""
    return {"max_tree_depth": options.max_tree_depth, "mass_matrix": options.mass_matrix}
