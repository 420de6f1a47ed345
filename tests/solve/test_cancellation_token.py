"""The switch that cancels one solve."""

from __future__ import annotations

import threading

from smtspool.solve import Cancellation, CancelReason


def test_the_first_reason_stays_and_listeners_hear_it_once() -> None:
    token, heard = Cancellation(), []
    with token.listening(heard.append):
        assert token.reason is None
        assert token.cancel(CancelReason.LEASE_LOST)
        assert not token.cancel(CancelReason.USER)
    assert heard == [CancelReason.LEASE_LOST]
    assert token.reason is CancelReason.LEASE_LOST


def test_who_listens_too_late_is_told_at_once() -> None:
    token, heard = Cancellation(), []
    token.cancel(CancelReason.USER)
    with token.listening(heard.append):
        assert heard == [CancelReason.USER]


def test_who_has_stopped_listening_is_not_told() -> None:
    token, heard = Cancellation(), []
    with token.listening(heard.append):
        pass
    token.cancel(CancelReason.USER)
    assert heard == []


def test_of_many_threads_that_cancel_exactly_one_is_the_first() -> None:
    token, heard, won = Cancellation(), [], []
    start = threading.Barrier(8)

    def cancel() -> None:
        start.wait()
        if token.cancel(CancelReason.USER):
            won.append(True)

    with token.listening(heard.append):
        threads = [threading.Thread(target=cancel) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(won), len(heard)) == (1, 1)
