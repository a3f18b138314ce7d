"""What every store is held to, on real engines, with races. A store of your own passes it: see test_stores.py."""

import threading
import time
from dataclasses import replace

from till.store import ENDED, LAPSED, LOST, NEEDS_ATTENTION, PAYMENT, PAYOUT, REFUSED, SENDING, TAKEN, WRITTEN, Cursor, Decision, Row, Settlement

START = 1794721913123
SECOND = 1000


def row(order, attempt=1, **changes):
    key = "00000000-0000-4000-8000-%s%d" % (order, attempt)
    return replace(Row(key, PAYMENT, order, attempt, b'{"a": 1}', next_at=START, send_until=START + 60 * SECOND, created_at=START), **changes)


class No(Exception):
    pass


class StoreSuite:
    """A test case says: store(), which is empty and installed; update(store, fn), which runs fn(tx) in a transaction of your own; set(tx,
    value) and get(store), which keep a value of yours; again(store), which opens the same database as another program."""

    def setUp(self):
        super().setUp()
        self.s = self.store()

    def put(self, *rows):
        def work(tx):
            for r in rows:
                self.assertTrue(self.s.put(tx, r))

        self.update(self.s, work)

    def newest(self, order="a"):
        found = self.s.newest(PAYMENT, order)
        self.assertIsNotNone(found)
        return found

    def names(self, rows):
        return ["%s%d" % (r.order, r.attempt) for r in rows]

    def together(self, n, work):
        errors = []

        def one(i):
            try:
                work(i)
            except Exception as e:
                errors.append(e)
            finally:
                self.s.release()

        threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(errors, [])

    def test_install_twice_changes_nothing(self):
        self.put(row("a"))
        self.s.install()
        self.newest()

    def test_put_is_seen_after_the_commit(self):
        self.put(row("a"))
        self.assertEqual(self.newest(), row("a"))

    def test_put_goes_with_its_transaction(self):
        def work(tx):
            self.s.put(tx, row("a"))
            raise No()

        self.assertRaises(No, self.update, self.s, work)
        self.assertIsNone(self.s.newest(PAYMENT, "a"))

    def test_put_keeps_the_bytes(self):
        body = '{"text": "a\\u00e9 é 😀 \\n", "n": 123456789012.123456,  "x":\t1}'.encode()
        self.put(row("a", body=body))
        self.assertEqual(self.newest().body, body)

    def test_put_of_an_attempt_that_is_there_leaves_it(self):
        self.put(row("a"))

        def work(tx):
            self.assertFalse(self.s.put(tx, row("a", key="00000000-0000-4000-8000-other", body=b"{}")))
            self.assertEqual(self.names(self.s.attempts(tx, PAYMENT, "a")), ["a1"])  # it goes on

        self.update(self.s, work)
        self.assertEqual(self.newest().body, b'{"a": 1}')

    def test_put_in_the_same_transaction_is_seen_by_attempts(self):
        def work(tx):
            self.s.put(tx, row("a"))
            self.assertEqual(self.names(self.s.attempts(tx, PAYMENT, "a")), ["a1"])

        self.update(self.s, work)

    def test_attempts_are_oldest_first_by_kind_and_order(self):
        self.put(row("a"), row("a", 2), row("b"), row("a", kind=PAYOUT, key="00000000-0000-4000-8000-payout"))

        def work(tx):
            self.assertEqual(self.names(self.s.attempts(tx, PAYMENT, "a")), ["a1", "a2"])
            self.assertEqual(self.names(self.s.attempts(tx, PAYOUT, "a")), ["a1"])
            self.assertEqual(self.s.attempts(tx, PAYMENT, "c"), [])

        self.update(self.s, work)

    def test_newest(self):
        self.assertIsNone(self.s.newest(PAYMENT, "a"))
        self.put(row("a"), row("a", 2))
        self.assertEqual(self.newest().attempt, 2)

    def test_due_holds_to_the_time_the_state_and_the_limit(self):
        self.put(row("a", next_at=START + SECOND), row("b", next_at=START - SECOND), row("c", state=SENDING), row("d", state=TAKEN))
        self.assertEqual(self.names(self.s.due(START, 10)), ["b1", "c1"])
        self.assertEqual(self.names(self.s.due(START, 1)), ["b1"])
        self.assertEqual(self.names(self.s.due(START + SECOND, 10)), ["b1", "c1", "a1"])

    def test_count_is_a_compare_and_swap(self):
        self.put(row("a"))
        r = self.newest()
        self.assertTrue(self.s.count(r, START + 10 * SECOND, START + 11 * SECOND))
        got = self.newest()
        self.assertEqual((got.state, got.tries, got.lease, got.next_at), (SENDING, 1, START + 10 * SECOND, START + 11 * SECOND))
        self.assertFalse(self.s.count(r, START + 12 * SECOND, START))
        self.assertTrue(self.s.count(got, START + 12 * SECOND, START))
        self.assertEqual(self.newest().tries, 2)

    def test_count_refuses_what_is_taken(self):
        self.put(row("a"))
        r = self.newest()
        self.s.settle(Settlement(r.key, state=TAKEN))
        self.assertFalse(self.s.count(r, START + SECOND, START))
        self.assertEqual(self.newest().state, TAKEN)

    def test_count_by_many_succeeds_once(self):
        self.put(row("a"))
        r, won = self.newest(), []
        self.together(8, lambda n: won.append(n) if self.s.count(r, START + (n + 1) * SECOND, START) else None)
        self.assertEqual((len(won), self.newest().tries), (1, 1))

    def test_settle_holds_to_the_state(self):
        self.put(row("a"))
        key = self.newest().key
        self.assertFalse(self.s.settle(Settlement(key, [SENDING, TAKEN], state=ENDED)))
        self.assertEqual(self.newest().state, WRITTEN)
        self.assertTrue(self.s.settle(Settlement(key, [SENDING, WRITTEN], state=TAKEN)))
        self.assertEqual(self.newest().state, TAKEN)

    def test_settle_holds_to_the_lease(self):
        self.put(row("a"))
        r = self.newest()
        lease = START + 10 * SECOND
        self.s.count(r, lease, START)
        self.assertFalse(self.s.settle(Settlement(r.key, lease=lease + 1, state=WRITTEN)))
        self.assertTrue(self.s.settle(Settlement(r.key, lease=lease, state=WRITTEN)))

    def test_settle_leaves_what_is_not_named(self):
        self.put(row("a"))
        key = self.newest().key
        self.s.settle(Settlement(key, remote_id="r1", status="pending", problem="p"))
        before = self.newest()
        self.s.settle(Settlement(key, next_at=START + 3600 * SECOND))
        self.assertEqual(self.newest(), replace(before, next_at=START + 3600 * SECOND))
        self.assertEqual((before.remote_id, before.status, before.problem), ("r1", "pending", "p"))
        self.s.settle(Settlement(key, problem=""))
        self.assertEqual(self.newest().problem, "")  # an empty text is a value

    def test_settle_of_an_unknown_key_does_nothing(self):
        self.assertFalse(self.s.settle(Settlement("00000000-0000-4000-8000-nobody", state=TAKEN)))

    def test_open_holds_to_the_time_and_the_state(self):
        self.put(row("a", state=TAKEN), row("b", state=TAKEN, next_at=START + 60 * SECOND), row("c", state=ENDED))
        self.assertEqual(self.names(self.s.open(START, 10)), ["a1"])
        self.assertEqual(self.names(self.s.open(START + 60 * SECOND, 10)), ["a1", "b1"])
        self.assertEqual(self.names(self.s.open(START + 60 * SECOND, 1)), ["a1"])

    def test_since_goes_by_key_from_a_time(self):
        self.put(row("a", created_at=START - 3600 * SECOND), row("b"), row("c"), row("d"))
        self.assertEqual(self.names(self.s.since(START, "", 2)), ["b1", "c1"])
        self.assertEqual(self.names(self.s.since(START, row("c").key, 2)), ["d1"])

    def test_attention_lists_what_a_person_should_see(self):
        states = (WRITTEN, SENDING, TAKEN, ENDED, REFUSED, LAPSED, LOST, TAKEN)
        self.put(*(row("abcdefgh"[i], state=s, created_at=START + i * SECOND, problem=NEEDS_ATTENTION if i == 7 else "") for i, s in enumerate(states)))
        self.assertEqual(self.names(self.s.attention(START, 10)), ["e1", "f1", "g1", "h1"])
        self.assertEqual(self.names(self.s.attention(START + 6 * SECOND, 10)), ["g1", "h1"])
        self.assertEqual(self.names(self.s.attention(START, 1)), ["e1"])

    def apply(self, subject, key, fn):
        self.s.apply(subject, PAYMENT, key, lambda tx, s, rows: fn(s, rows))

    def test_apply_saves_what_it_decides(self):
        self.put(row("a"))
        key = self.newest().key

        def fn(s, rows):
            self.assertEqual((s.id, s.rank, s.seen), ("p1", 0, []))
            return Decision(replace(s, rank=3, seen=["success"]), Settlement(key, state=ENDED, remote_id="p1", status="success"))

        self.apply("p1", key, fn)
        got = self.newest()
        self.assertEqual((got.state, got.remote_id, got.status), (ENDED, "p1", "success"))

    def test_apply_shows_what_is_known(self):
        for i in range(3):

            def fn(s, rows):
                self.assertEqual((s.rank, s.seen, s.sequence), (2 * i, ["k%d" % n for n in range(i)], i))
                return Decision(replace(s, rank=s.rank + 2, seen=s.seen + ["k%d" % i], sequence=s.sequence + 1))

            self.apply("p1", "", fn)

    def test_apply_saves_nothing_if_the_function_fails(self):
        self.put(row("a"))

        def fn(tx, s, rows):
            self.set(tx, "yours")
            raise No()

        self.assertRaises(No, self.s.apply, "p1", PAYMENT, self.newest().key, fn)
        seen = []
        self.apply("p1", "", lambda s, rows: seen.append((s.rank, s.seen)) or Decision())
        self.assertEqual(seen, [(0, [])])
        self.assertEqual((self.newest().state, self.s.cursor("log").after, self.get(self.s)), (WRITTEN, 0, ""))

    def test_apply_brings_the_orders_attempts(self):
        self.put(row("a"), row("a", 2), row("b"))
        got = []
        self.apply("p1", row("a", 2).key, lambda s, rows: got.extend(self.names(rows)) or Decision())
        self.assertEqual(got, ["a1", "a2"])

    def test_apply_keeps_kinds_apart(self):
        self.put(row("a", kind=PAYOUT))
        got = []
        self.apply("p1", row("a").key, lambda s, rows: got.extend(rows) or Decision())
        self.assertEqual(got, [])

    def test_apply_of_a_subject_without_a_row(self):
        self.apply("p1", "00000000-0000-4000-8000-nobody", lambda s, rows: self.assertEqual(rows, []) or Decision(replace(s, rank=3)))

    def test_apply_by_many_is_one_after_the_other(self):
        calls = []

        def fn(s, rows):
            if "success" in s.seen:
                return Decision()
            calls.append(1)
            return Decision(replace(s, seen=s.seen + ["success"]))

        self.together(8, lambda n: self.apply("p1", "", fn))
        self.assertEqual(len(calls), 1)

    def test_apply_of_two_attempts_is_one_after_the_other(self):
        self.put(row("a"), row("a", 2))
        first = []

        def one(n):
            key, alone = row("a", n + 1).key, {}

            def fn(s, rows):  # it may be called again after a conflict
                alone["is"] = not any(r.key != key and r.status == "success" for r in rows)
                time.sleep(0.02)
                return Decision(s, Settlement(key, status="success"))

            self.apply("p%d" % n, key, fn)
            first.extend([n] if alone["is"] else [])

        self.together(2, one)
        self.assertEqual(len(first), 1)

    def test_apply_keeps_your_value_in_the_transaction(self):
        self.s.apply("p1", PAYMENT, "", lambda tx, s, rows: self.set(tx, "yours") or Decision(s))
        self.assertEqual(self.get(self.s), "yours")

    def test_apply_moves_the_cursor(self):
        self.apply("p1", "", lambda s, rows: Decision(s, cursor=Cursor("log", "l", 5)))
        self.assertEqual(self.s.cursor("log"), Cursor("log", "l", 5))

    def test_cursor(self):
        self.assertEqual(self.s.cursor("log"), Cursor("log"))
        for after in (5, 3, 5, 9, 8):
            self.s.move_cursor(Cursor("log", "l", after), False)
        self.assertEqual(self.s.cursor("log"), Cursor("log", "l", 9))  # it only goes forward
        self.s.move_cursor(Cursor("log", "m", 11), False)
        self.assertEqual(self.s.cursor("log"), Cursor("log", "l", 9))  # that is another log
        self.s.move_cursor(Cursor("log", "m", 2), True)
        self.assertEqual(self.s.cursor("log"), Cursor("log", "m", 2))
        self.s.move_cursor(Cursor("other", "l", 7), False)
        self.assertEqual((self.s.cursor("log").after, self.s.cursor("other").after), (2, 7))

    def test_put_of_one_attempt_by_many_succeeds_once(self):
        won = []

        def one(n):
            for _ in range(50):  # a transaction that another one undid is yours to repeat
                first = []
                try:
                    self.update(self.s, lambda tx: first.append(self.s.put(tx, row("a", key="00000000-0000-4000-8000-worker%d" % n))))
                except Exception:
                    time.sleep(0.01)
                    continue
                won.extend(f for f in first if f)
                return
            self.fail("it never went through")

        self.together(6, one)
        self.assertEqual(len(won), 1)

    def test_another_program_sees_it_all(self):
        self.put(row("a"))
        other = self.again(self.s)
        r = other.newest(PAYMENT, "a")
        self.assertTrue(other.count(r, START + SECOND, START))
        self.assertEqual(self.newest().tries, 1)

    def test_texts_of_the_world_are_kept(self):
        order = "commande n° 7, 你好 😀 '\"; -- %s ? :p1"
        self.put(replace(row("a"), order=order, key="00000000-0000-4000-8000-text"))
        self.assertEqual(self.newest(order).order, order)
