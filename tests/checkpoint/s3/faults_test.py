# SPDX-License-Identifier: Apache-2.0
"""What the S3 store does when the network, the store or the credentials fail: a proxy before moto's server disturbs requests."""
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peer
from peer import BUCKET, DIR, error

peer.S3Test.program = os.path.abspath(sys.argv.pop(1))

PART = 8 << 20
# Retries are over soon, where they don't help.
SOON = {"RETRY_MS": "20000", "STALL_MS": "5000"}
# Every third of a save's requests is disturbed, the last one among them; with --config=long each.
STEP = 1 if os.environ.get("MUSTER_LONG") else 3


class First:
    """Disturbs the first n requests that match."""

    def __init__(self, verdict, n=1, matches=lambda request: True):
        self.verdict, self.left, self.matches = verdict, n, matches

    def __call__(self, request):
        if self.left == 0 or not self.matches(request):
            return None
        self.left -= 1
        return self.verdict


class RetryTest(peer.S3Test):

    def save(self, store):
        """A large file, and a small one that is replaced if it is still the one that was read."""
        store.do("write", DIR + "/model", 2 * PART + 1)
        version = store.do("put", DIR + "/state", "none", "one")["version"]
        store.do("put", DIR + "/state", version, "two")

    def assert_saved(self):
        self.assertEqual(peer.digest(self.object("run/model")), peer.digest(peer.content(2 * PART + 1)))
        self.assertEqual(self.object("run/state"), b"two")
        self.assertEqual((self.keys(), self.uploads()), (["run/model", "run/state"], []))

    def n_requests(self):
        self.proxy.requests.clear()
        self.save(self.store())
        n = len(self.proxy.requests)
        for key in self.keys():
            self.s3.delete_object(Bucket=BUCKET, Key=key)
        return n

    def test_a_save_survives_a_connection_cut_at_each_of_its_requests(self):
        for verdict in ("cut", "cut_answer"):
            for i in range(self.n_requests() - 1, -1, -STEP):
                self.proxy.requests.clear()
                self.proxy.rule = lambda request, i=i, verdict=verdict: verdict if len(self.proxy.requests) == i + 1 else None
                store = self.store(fake_clock=True)
                with self.subTest(verdict=verdict, request=i):
                    self.save(store)
                    self.assertGreaterEqual(store.do("metrics")["lost"], 1, self.sent())
                    self.proxy.rule = None
                    # an upload that began without an answer is for a sweep
                    store.do("sweep", DIR)
                    self.assert_saved()
                store.close()
                for key in self.keys():
                    self.s3.delete_object(Bucket=BUCKET, Key=key)
            self.proxy.rule = None

    def test_nothing_is_half_published_where_every_request_is_cut(self):
        n = self.n_requests()
        for i in range(n - 1, -1, -STEP):
            self.proxy.requests.clear()
            self.proxy.rule = lambda request, i=i: "cut" if len(self.proxy.requests) > i else None
            store = self.store(fake_clock=True)
            written = store.ask("write", DIR + "/model", 2 * PART + 1)
            if "error" in written:
                self.assert_fails(written, "unavailable", "'%s/model'" % DIR, "the connection was lost", "attempts")
            store.close()
            self.proxy.rule = None
            self.assertEqual("run/model" in self.keys(), "error" not in written)
            self.store().do("sweep", DIR)
            for key in self.keys():
                self.assertEqual(peer.digest(self.object(key)), peer.digest(peer.content(2 * PART + 1)))
                self.s3.delete_object(Bucket=BUCKET, Key=key)

    def test_storms_of_503_and_429_pass_with_jitter_in_the_clocks_time(self):
        for status, code in ((503, "SlowDown"), (429, "TooManyRequests")):
            self.proxy.rule = First(error(status, code), 6)
            store = self.store(fake_clock=True)
            store.do("list", DIR)
            counts = store.do("metrics")
            self.assertEqual((counts["throttled"], counts["requests"], counts["failures"]), (6, 7, 0))
            # half of 0.1 + 0.2 + … + 3.2 s, as the clock draws 0.5
            self.assertAlmostEqual(counts["elapsed_us"] / 1e6, 3.15, delta=0.01)

    def test_retry_after_is_kept(self):
        self.proxy.rule = First(error(429, "TooManyRequests", retry_after="17"))
        store = self.store(fake_clock=True)
        store.do("list", DIR)
        self.assertEqual(store.do("metrics")["elapsed_us"], 17000000)

    def test_a_pause_that_does_not_fit_the_deadline_ends_at_once(self):
        self.proxy.rule = lambda request: error(503, "SlowDown", "Please reduce your request rate.", retry_after="60")
        store = self.store(fake_clock=True)
        store.do("within", 5000)
        self.assert_fails(store.ask("list", DIR), "deadline exceeded", "ListObjectsV2", "in 1 attempt",
                          "503 SlowDown: Please reduce your request rate.")
        self.assertEqual(store.do("metrics")["elapsed_us"], 0)

    def test_a_storm_that_does_not_end_is_named_when_the_deadline_comes(self):
        self.proxy.rule = lambda request: error(500, "InternalError", "We encountered an internal error.")
        store = self.store(fake_clock=True)
        store.do("within", 60000)
        self.assert_fails(store.ask("write", DIR + "/a", 10), "deadline exceeded", DIR + "/a", "500 InternalError")
        counts = store.do("metrics")
        self.assertGreater(counts["failed"], 10)
        self.assertLess(counts["elapsed_us"], 60000000)
        self.assertEqual(self.keys(), [])

    def test_without_a_deadline_a_minute_of_retries_is_the_end(self):
        self.proxy.rule = lambda request: error(503, "SlowDown")
        store = self.store(fake_clock=True)
        self.assert_fails(store.ask("list", DIR), "unavailable", "while it was retried", "SlowDown")
        self.assertLess(store.do("metrics")["elapsed_us"], 60000000)

    def test_a_transfer_that_stalls_is_named_and_tried_again(self):
        self.proxy.rule = First("stall")
        store = self.store(**SOON)
        store.do("list", DIR)
        self.assertEqual(store.do("metrics")["stalled"], 1)
        self.proxy.rule = lambda request: "stall"
        store.do("within", 6000)
        answer = store.ask("write", DIR + "/a", 10)
        self.assert_fails(answer, "deadline exceeded", DIR + "/a")
        self.assertEqual(self.keys(), [])

    def test_a_stalled_request_is_cancelled_at_once(self):
        for command in (("list", DIR), ("write", DIR + "/a", 10), ("write", DIR + "/a", 4 * PART)):
            self.proxy.rule = lambda request: "stall"
            store = self.store()
            store.do("cancel", 300)
            began = time.monotonic()
            self.assert_fails(store.ask(*command), "stopped")
            self.assertLess(time.monotonic() - began, 15)  # far below what a stall takes

    def test_a_read_goes_on_where_it_was_cut(self):
        size = 3 * PART
        self.s3.put_object(Bucket=BUCKET, Key="run/a", Body=peer.content(size))
        self.proxy.rule = First("cut_body", 3, lambda request: "if-match" in request.headers)
        store = self.store(fake_clock=True)
        self.assertEqual(store.do("read", DIR + "/a")["sha256"], peer.digest(peer.content(size)))
        counts = store.do("metrics")
        self.assertEqual(counts["lost"], 3)
        self.assertLess(counts["bytes_received"], size + (70 << 10))  # nothing twice

    def test_an_answer_without_its_end_is_no_answer(self):
        self.proxy.rule = First((200, {}, "<ListBucketResult><Contents><Key>run/a</Key>"))
        store = self.store(fake_clock=True)
        self.assertEqual(store.do("list", DIR)["names"], [])
        self.assertEqual(store.do("metrics")["failed"], 1)

    def test_completing_an_upload_can_fail_after_200(self):
        self.proxy.rule = First((200, {}, peer.SLOW % ("InternalError", "again")), 1,
                                lambda request: request.method == "POST" and "uploadId" in request.target)
        store = self.store(fake_clock=True)
        store.do("write", DIR + "/model", 2 * PART)
        self.assertEqual(store.do("metrics")["failed"], 1)
        self.assertEqual(self.keys(), ["run/model"])

    def test_bytes_that_change_on_their_way_are_sent_again_a_few_times(self):
        damage = error(400, "XAmzContentSHA256Mismatch", "The provided x-amz-content-sha256 doesn't match.")
        self.proxy.rule = First(damage, 2, lambda request: request.method == "PUT")
        store = self.store(fake_clock=True)
        store.do("write", DIR + "/a", 10)
        self.assertEqual(store.do("metrics")["damaged"], 2)
        self.proxy.rule = First(error(400, "BadDigest"), 99, lambda request: request.method == "PUT")
        self.assert_fails(store.ask("write", DIR + "/b", 10), "unavailable", DIR + "/b", "checksum mismatch", "4 attempts")
        self.assertEqual(self.keys(), ["run/a"])


class AnswerLostTest(peer.S3Test):
    """A write that succeeded, but whose answer was lost, is no lost race: its writer recognises its own."""

    def test_of_a_new_file(self):
        self.proxy.rule = First("cut_answer", 1, lambda request: "if-none-match" in request.headers)
        self.store(fake_clock=True).do("write", DIR + "/a", 10)

    def test_of_a_large_file(self):
        self.proxy.rule = First("cut_answer", 1, lambda request: request.method == "POST" and "uploadId" in request.target)
        self.store(fake_clock=True).do("write", DIR + "/a", 2 * PART)
        self.assertEqual(self.object("run/a"), peer.content(2 * PART))

    def test_of_a_replaced_file(self):
        store = self.store(fake_clock=True)
        version = store.do("put", DIR + "/a", "none", "one")["version"]
        self.proxy.rule = First("cut_answer", 1, lambda request: "if-match" in request.headers)
        now = store.do("put", DIR + "/a", version, "two")["version"]
        self.assertEqual(store.do("get", DIR + "/a"), {"text": "two", "version": now})

    def test_but_another_writers_file_is_a_lost_race(self):
        store = self.store(fake_clock=True)
        version = store.do("put", DIR + "/a", "none", "one")["version"]

        def lose(request):
            if "if-match" not in request.headers:
                return None
            self.s3.put_object(Bucket=BUCKET, Key="run/a", Body=b"two")
            self.proxy.rule = None
            return "cut"

        self.proxy.rule = lose
        self.assert_fails(store.ask("put", DIR + "/a", version, "two"), "aborted", "another writer has changed it")


class NamedTest(peer.S3Test):
    """What retries can't help is told at once, by its name, with what to do."""

    def check(self, verdict, code, *words, **how):
        for command in (("write", DIR + "/a", 10), ("read", DIR + "/a"), ("list", DIR), ("put", DIR + "/a", "none", "x")):
            self.proxy.requests.clear()
            self.proxy.rule = lambda request: verdict
            store = self.store(fake_clock=True, **how)
            self.assert_fails(store.ask(*command), code, DIR, *words)
            self.assertEqual(len(self.proxy.requests), 1, self.sent())
            store.close()

    def test_a_bucket_that_is_not_there(self):
        store = self.store(fake_clock=True)
        for command in (("write", "s3://absent/run/a", 10), ("write", "s3://absent/run/a", 2 * PART), ("read", "s3://absent/run/a"),
                        ("list", "s3://absent/run"), ("put", "s3://absent/run/a", "none", "x"), ("sweep", "s3://absent/run")):
            before = store.do("metrics")["failures"]
            self.assert_fails(store.ask(*command), "invalid argument", "there is no bucket 'absent'")
            self.assertGreater(store.do("metrics")["failures"], before)

    def test_no_right(self):
        self.check(error(403, "AccessDenied", "User: arn:aws:iam::1:user/u is not authorized"), "permission denied",
                   "the credentials (from the environment) don't have this right", "not authorized")

    def test_no_right_without_a_reason(self):
        self.proxy.rule = lambda request: (403, {}, "")
        self.assert_fails(self.store().ask("stat", DIR + "/a"), "permission denied", "HeadObject failed")

    def test_a_clock_that_is_wrong(self):
        self.check(error(403, "RequestTimeTooSkewed", "The difference is too large."), "unauthenticated", "this machine's clock differs",
                   "set it")

    def test_expired_credentials_that_cannot_be_renewed(self):
        self.check(error(400, "ExpiredToken", "The provided token has expired."), "unauthenticated", "have expired; renew them",
                   AWS_SESSION_TOKEN=peer.TOKEN)

    def test_a_wrong_secret(self):
        self.check(error(403, "SignatureDoesNotMatch"), "unauthenticated", "the secret access key (from the environment)")

    def test_another_region(self):
        self.check(error(301, "PermanentRedirect", x_amz_bucket_region="ap-south-1"), "invalid argument",
                   "is in another region; set AWS_REGION=ap-south-1")

    def test_expired_credentials_are_renewed_once(self):
        keys = ('{"AccessKeyId": "K%d", "SecretAccessKey": "s", "Token": "t", "Expiration": "2099-01-01T00:00:00Z"}')
        served = []

        def rule(request):
            if request.target == "/keys":
                served.append(1)
                return 200, {}, keys % len(served)
            return error(400, "ExpiredToken") if "K1/" in request.headers["authorization"] else None

        self.proxy.rule = rule
        store = self.store(AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None,
                           AWS_CONTAINER_CREDENTIALS_FULL_URI=self.proxy.url + "/keys")
        store.do("list", DIR)
        self.assertEqual(store.do("metrics")["expired"], 1)
        self.assertEqual(len(served), 2)

    def test_nobody_listens(self):
        store = self.store(endpoint="http://127.0.0.1:1", fake_clock=True)
        self.assert_fails(store.ask("list", DIR), "unavailable", "no connection", "attempts")

    def test_an_answer_that_is_too_long(self):
        self.proxy.rule = lambda request: (206, {"content-range": "bytes 0-65535/65536", "etag": '"e"'}, "x" * 70000)
        self.assert_fails(self.store().ask("read", DIR + "/a"), "unknown", "longer than was asked for")

    def test_a_store_without_ranges(self):
        self.proxy.rule = lambda request: (200, {"etag": '"e"'}, "xyz")
        self.assert_fails(self.store().ask("read", DIR + "/a"), "unknown", "ignores ranges")


class SecretsTest(peer.S3Test):

    def test_secrets_are_in_no_error_log_or_command_line(self):
        store = self.store(fake_clock=True, AWS_SESSION_TOKEN=peer.TOKEN, G_MESSAGES_DEBUG="all")
        verdicts = [error(403, code, "the token %s" % code) for code in ("AccessDenied", "SignatureDoesNotMatch", "InvalidToken")]
        verdicts += [error(403, "InvalidToken", "the token %s is no token" % peer.TOKEN), error(400, peer.TOKEN, peer.SECRET)]
        verdicts += [(403, {"server": peer.TOKEN}, peer.SECRET), (302, {"location": "http://x/" + peer.TOKEN}, "")]
        verdicts += [error(400, "ExpiredToken"), error(500, "InternalError"), error(404, "NoSuchBucket"), "cut", (200, {}, "<a>")]
        for verdict in verdicts:
            self.proxy.rule = lambda request, verdict=verdict: verdict
            for command in (("write", DIR + "/a", 10), ("read", DIR + "/a"), ("list", DIR), ("put", DIR + "/a", "none", "x"),
                            ("sweep", DIR), ("stat", DIR + "/a")):
                store.ask(*command)
        with open("/proc/%d/cmdline" % store.process.pid, encoding="utf-8") as file:
            self.assertNotIn(peer.SECRET, file.read())
        store.close()
        self.assertIn("AccessDenied", store.heard)
        for secret in (peer.SECRET, peer.TOKEN):
            self.assertNotIn(secret, store.heard)


if __name__ == "__main__":
    unittest.main()
