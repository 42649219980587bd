"""Questions to what may hang."""

import threading

import pytest

from storage.asking import Asking


def test_where_the_machine_had_no_thread_to_give_the_next_one_asks_again(monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    asking = Asking(lambda: "fine")
    with monkeypatch.context() as no_threads:
        no_threads.setattr(threading.Thread, "start", refuse)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                asking()
    assert asking() == "fine"


def test_what_hangs_is_asked_once_and_answers_all_who_wait(monkeypatch):
    monkeypatch.setattr("storage.asking.SECONDS", 0.05)
    asked, goes_on = [], threading.Event()

    def question():
        asked.append(1)
        assert goes_on.wait(10)
        return "fine"

    asking = Asking(question)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            asking()
    assert len(asked) == 1
    monkeypatch.setattr("storage.asking.SECONDS", 10)
    goes_on.set()
    assert asking() == "fine"
