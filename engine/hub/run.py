"""All files of a plan, several at once, on threads that end together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

from engine.errors import LoadCancelled
from engine.hub import errors
from engine.hub.connection import Connection
from engine.hub.plan import SMALL, Plan, require_index, require_room
from engine.hub.ranges import RangeClient
from engine.hub.rate import Rate
from engine.hub.transfer import Planned, fetch_file
from engine.hub.types import DownloadProgress, Step

_TICK = 0.2  # seconds
_DISK_TICK = 2.0


def trouble(error: errors.HubError, seconds: float) -> str:
    """What goes wrong and is tried again after a wait."""
    return f"{error.what} Trying again in {max(1, round(seconds))} s."


class Run:
    """One run over a plan, on several threads that end together."""

    def __init__(
        self, connection: Connection, plans: Plan, progress: Callable[[DownloadProgress], None], at_once: int
    ) -> None:
        self._plans = plans
        self._progress = progress
        self._at_once = at_once
        self._stop = connection.stop
        self._halt = threading.Event()
        self._connection = connection.for_threads(self._halt, self._told)
        self._clients: list[RangeClient] = []
        self._waiting = 0
        self._lock = threading.Lock()
        self._trouble, self._trouble_until = "", 0.0
        self._rate = Rate()

    def run(self) -> int:
        """Returns the bytes received."""
        small = [file for file in self._plans.files if file.size <= SMALL]
        large = [file for file in self._plans.files if file.size > SMALL]
        with ThreadPoolExecutor(self._at_once, thread_name_prefix="download") as pool:
            try:
                self._watch({pool.submit(self._one, file) for file in small})
                require_index(self._plans)
                self._watch({pool.submit(self._one, file) for file in large})
            finally:
                self._halt.set()
                pool.shutdown(wait=True, cancel_futures=True)
        return sum(client.fetched for client in self._clients)

    def _watch(self, futures: set[Future[None]]) -> None:
        checked = time.monotonic()
        pending = futures
        while pending:
            finished, pending = wait(pending, timeout=_TICK, return_when=FIRST_EXCEPTION)
            for future in finished:
                future.result()
            if self._stop.is_set():
                raise LoadCancelled
            self._tell()
            if time.monotonic() - checked > _DISK_TICK:
                checked = time.monotonic()
                require_room(self._plans, preflight=False)

    def _one(self, file: Planned) -> None:
        client = RangeClient(self._connection)
        with self._lock:
            self._clients.append(client)
        fetch_file(client, self._plans.repo, file, self._plans.cache, self._waits)

    def _waits(self, waits: bool) -> None:
        with self._lock:
            self._waiting += 1 if waits else -1

    def _told(self, error: errors.HubError, seconds: float) -> None:
        with self._lock:
            self._trouble = trouble(error, seconds)
            self._trouble_until = time.monotonic() + seconds + 1.0

    def _tell(self) -> None:
        done, total, now = self._plans.done, self._plans.total, time.monotonic()
        self._rate.note(now, done)
        files_done, files = self._plans.files_done, len(self._plans.files)
        with self._lock:
            alone = self._waiting >= min(self._at_once, files - files_done) > 0
            trouble = self._trouble if now < self._trouble_until else ""
        self._progress(
            DownloadProgress(
                step=Step.WAITING if alone else Step.FETCHING,
                done=done,
                total=total,
                speed=self._rate.speed,
                left=self._rate.left(total - done),
                files_done=files_done,
                files=files,
                trouble=trouble,
            )
        )
