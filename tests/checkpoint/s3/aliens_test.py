# SPDX-License-Identifier: Apache-2.0
"""Answers that aren't the store's: every operation, with each of its requests answered by each kind of proxy, login page and gateway.

Such an answer proves nothing. Nothing is taken for absent, changed or done by it: an operation succeeds as if it hadn't come, or fails
as UNAVAILABLE (PERMISSION_DENIED for a bare 403), and the bucket has what it had, or what the operation was to write."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peer
from moto.s3.models import s3_backends
from peer import BUCKET, DIR

peer.S3Test.program = os.path.abspath(sys.argv.pop(1))

PART = 8 << 20
HTML = {"content-type": "text/html; charset=utf-8", "server": "nginx"}
XHTML = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>Sign in</title></head><body/></html>'


def page(status, title, **headers):
    return status, dict(HTML, **headers), "<html><head><title>%d %s</title></head><body>%s</body></html>" % (status, title, "x" * 500)


# What a gateway's route that comes up, or a page that goes away, is followed by: the request is tried again.
PASSING = {
    "404 in plain text": (404, {"content-type": "text/plain"}, "404 page not found\n"),
    "404 page": page(404, "Not Found"),
    "404 without a body": (404, {}, ""),
    "404 of another API": (404, {"content-type": "application/json"}, '{"Code": "NoSuchKey"}'),
    "404 with half of an answer": (404, {"content-type": "application/xml"}, "<Error><Code>NoSuchKey</Code>"),
    "404 with a code in a page": (404, HTML, "<html><Code>NoSuchKey</Code></html>"),
    "200 page": page(200, "Welcome"),
    "200 page with an ETag": page(200, "Welcome", etag='"5f-1"'),
    "200 login page in XHTML": (200, HTML, XHTML),
    "200 in XML of another kind": (200, {"content-type": "application/xml"}, "<Result><Key>run/a</Key></Result>"),
    "200 without a body": (200, {}, ""),
    "206 of a page": (206, dict(HTML, etag='"5f-1"', **{"content-range": "bytes 0-8/9"}), "<html></ht"[:9]),
    "429 page": page(429, "Too Many Requests"),
    "500 page": page(500, "Oops"),
    "502 page": page(502, "Bad Gateway"),
    "503 page": page(503, "Service Unavailable"),
    "509 page": page(509, "Bandwidth Limit Exceeded"),
    "520 page": page(520, "Web server is returning an unknown error", server="cloudflare"),
    "530 page": page(530, "Origin DNS error", server="cloudflare"),
}
# What somebody has to mend.
LASTING = {
    "301 page": page(301, "Moved Permanently", location="https://store.example/x?secret"),
    "302 page": page(302, "Found", location="https://sso.example/login"),
    "307 page": page(307, "Temporary Redirect", location="https://store.example/x"),
    "308 page": page(308, "Permanent Redirect", location="https://store.example/x"),
    "400 page": page(400, "The plain HTTP request was sent to HTTPS port"),
    "403 page": page(403, "Forbidden", server="squid/5.7"),
    "403 without a body": (403, {}, ""),
    "405 page": page(405, "Not Allowed"),
    "407 page": page(407, "Proxy Authentication Required", server="squid/5.7"),
    "412 page": page(412, "Precondition Failed"),
    "416 page": page(416, "Range Not Satisfiable"),
    "501 page": page(501, "Not Implemented"),
}
OPERATIONS = {
    "write": lambda run, old: ("write", run + "/new", 100),
    "write in parts": lambda run, old: ("write", run + "/new", 2 * PART),
    "read": lambda run, old: ("read", run + "/old"),
    "read in parts": lambda run, old: ("read", run + "/large"),
    "read what is empty": lambda run, old: ("read", run + "/empty"),
    "list": lambda run, old: ("list", run),
    "stat": lambda run, old: ("stat", run + "/old"),
    "remove": lambda run, old: ("remove", run + "/old"),
    "copy": lambda run, old: ("copy", run + "/old", run + "/new"),
    "copy in the store": lambda run, old: ("copy", run + "/large", run + "/new"),
    "sweep": lambda run, old: ("sweep", run),
    "get": lambda run, old: ("get", run + "/old"),
    "put": lambda run, old: ("put", run + "/old", old, "two"),
    "put what is new": lambda run, old: ("put", run + "/new", "none", "two"),
    "put whatever is there": lambda run, old: ("put", run + "/old", "any", "two"),
}
READS = ("read", "read in parts", "read what is empty", "list", "stat", "get")
# Of those that pass, what is tried with an end that never comes.
PERMANENT = ("404 page", "404 with half of an answer", "200 page with an ETag", "200 login page in XHTML", "503 page")
CODES = ("unavailable", "permission denied")


class Nth:
    """Answers the n-th request, and if it is to last, those after it."""

    def __init__(self, n, verdict, lasts):
        self.n, self.verdict, self.lasts, self.seen = n, verdict, lasts, 0

    def __call__(self, request):
        self.seen += 1
        return self.verdict if self.seen - 1 == self.n or (self.lasts and self.seen > self.n) else None


class AlienTest(peer.S3Test):

    def setUp(self):
        super().setUp()
        self.n_buckets = 0
        self.shared = None  # the bucket of what only reads
        self.moto_store = s3_backends["123456789012"]["aws"]  # asked directly: half of the test's time was its preparations
        self.tool = self.store(fake_clock=True, RETRY_MS="2000")

    def lay_out(self):
        """A bucket of its own, each time with the same content: what is known of a bucket's store is to be found out each time."""
        self.n_buckets += 1
        bucket = "bucket-%d" % self.n_buckets
        self.moto_store.create_bucket(bucket, "us-east-1")
        for key, body in (("run/large", b"x" * (2 << 20)), ("run/empty", b"")):
            self.moto_store.put_object(bucket, key, body)
        self.s3.create_multipart_upload(Bucket=bucket, Key="run/left")
        return bucket, self.moto_store.put_object(bucket, "run/old", b"one").etag

    def content(self, bucket):
        keys = self.moto_store.buckets[bucket].keys
        return {name: (key.size, key.etag) for name, key in keys.items() if "muster-conditions" not in name}

    def perform(self, operation, rule):
        """Its answer, without what differs each time, the bucket before and after it, and the number of requests."""
        bucket, old = self.lay_out() if operation not in READS or self.shared is None else self.shared
        self.shared = (bucket, old) if operation in READS else self.shared
        before = self.content(bucket)
        self.assertEqual(before["run/old"], (3, old))
        self.proxy.rule = rule
        answer = self.tool.ask(*OPERATIONS[operation]("s3://%s/run" % bucket, old))
        self.proxy.rule = None
        answer.pop("mtime_us", None)
        after = self.content(bucket)
        if (bucket, old) != self.shared:
            self.moto_store.delete_object(bucket, "run/large")  # the server has them all in memory
        return answer, before, after, rule.seen

    def check_failure(self, answer, before, after, wanted):
        self.assertIn(answer["code"], CODES, answer)
        self.assertNotIn("no such object", answer["error"])
        self.assertNotIn("another region", answer["error"])
        self.assertIn(after, (before, wanted))

    def some(self, answers, turn):
        """All answers with --config=long; else a third of them, under a sanitizer a tenth, other ones for each request."""
        step = 1 if os.environ.get("MUSTER_LONG") else 10 if os.environ.get("MUSTER_SHORT") else 3
        return list(answers.items())[turn % step::step]

    def each(self):
        for operation in OPERATIONS:
            expected, _, wanted, n = self.perform(operation, Nth(-2, None, False))
            self.assertNotIn("error", expected)
            for i in range(n):
                yield operation, i, expected, wanted

    def test_one_that_passes_is_as_if_it_had_not_come(self):
        for operation, i, expected, wanted in self.each():
            for name, verdict in self.some(PASSING, i + len(operation)):
                with self.subTest(operation=operation, request=i, answer=name):
                    answer, _, after, _ = self.perform(operation, Nth(i, verdict, False))
                    self.assertEqual((answer, after), (expected, wanted))

    def test_one_that_lasts_is_no_answer_of_the_store(self):
        for operation, i, expected, wanted in self.each():
            for name, verdict in self.some({**LASTING, **{name: PASSING[name] for name in PERMANENT}}, i + len(operation)):
                with self.subTest(operation=operation, request=i, answer=name):
                    answer, before, after, _ = self.perform(operation, Nth(i, verdict, True))
                    if "error" not in answer:  # an abort or a probe's removal, which a sweep repeats
                        self.assertEqual((answer, after), (expected, wanted))
                    else:
                        self.check_failure(answer, before, after, wanted)

    def test_who_answered_is_named(self):
        for name, words in (("301 page", ("https://store.example/x'", "nginx")), ("302 page", ("sso.example", "302 Found")),
                            ("400 page", ("HTTPS port",)), ("403 page", ("squid/5.7", "Forbidden")), ("407 page", ("squid/5.7", "proxies")),
                            ("404 in plain text", ("404 page not found", "isn't S3's answer")), ("520 page", ("cloudflare",)),
                            ("509 page", ("bandwidth limit exceeded",))):
            self.proxy.rule = lambda request, name=name: {**PASSING, **LASTING}[name]
            answer = self.store(fake_clock=True).ask("get", DIR + "/old")
            self.assert_fails(answer, "unavailable", *words)
            for never in ("secret", "policy", "region"):
                self.assertNotIn(never, answer["error"])

    def test_nothing_is_absent_without_the_stores_word(self):
        store = self.store(fake_clock=True)
        self.proxy.rule = lambda request: (404, {}, "") if request.method == "HEAD" else None
        self.s3.put_object(Bucket=BUCKET, Key="run/old", Body=b"one")
        self.assertEqual(store.do("stat", DIR + "/old")["size"], 3)
        self.assert_fails(store.ask("stat", DIR + "/none"), "absent")

    def test_a_page_that_refuses_conditions_is_not_the_store(self):
        """A store that ignores conditions is written to without them: a page isn't enough for that."""
        self.s3.put_object(Bucket=BUCKET, Key="run/old", Body=b"another's")
        for name in ("501 page", "200 page", "412 page"):
            self.proxy.rule = lambda request, name=name: {**PASSING, **LASTING}[name] if "conditions" in request.target else None
            store = self.store(fake_clock=True)
            self.assert_fails(store.ask("put", DIR + "/old", "none", "lost"), "unavailable")
            store.close()
            self.assertNotIn("ignores If-Match", store.heard)
        self.assertEqual(self.object("run/old"), b"another's")


class ListTest(peer.S3Test):
    CUT = "<%s><IsTruncated>true</IsTruncated></%s>"

    def test_a_cut_list_without_a_token_is_an_error(self):
        for command, root in ((("list", DIR), "ListBucketResult"), (("sweep", DIR), "ListMultipartUploadsResult")):
            self.proxy.rule = lambda request, root=root: (200, {}, self.CUT % (root, root))
            self.assert_fails(self.store(fake_clock=True).ask(*command), "internal", "cut its list")


class CodeTest(peer.S3Test):
    """The store's own codes."""
    THROTTLING = ("BandwidthLimitExceeded EC2ThrottledException LimitExceededException PriorRequestNotComplete "
                  "ProvisionedThroughputExceededException RequestLimitExceeded RequestThrottled RequestThrottledException SlowDown "
                  "ThrottledException Throttling ThrottlingException TooManyRequestsException TransactionInProgressException").split()

    def setUp(self):
        super().setUp()
        self.tool = self.store(fake_clock=True)

    def times(self, verdict):
        """How often a request is made, which is answered so twice."""
        seen = []

        def rule(request):
            seen.append(request)
            return verdict if len(seen) <= 2 else None

        self.proxy.rule = rule
        self.tool.ask("list", DIR)
        return len(seen)

    def test_throttling_is_tried_again_whatever_its_status(self):
        for status in (400, 403, 429, 503):
            for code in self.THROTTLING:
                with self.subTest(status=status, code=code):
                    self.assertEqual(self.times(peer.error(status, code)), 3)

    def test_all_5xx_but_501_and_505_are_tried_again(self):
        for status in range(500, 600):
            for verdict in (page(status, "x"), peer.error(status, "Unknown"), (status, {}, "")):
                with self.subTest(status=status, verdict=verdict):
                    self.assertEqual(self.times(verdict), 1 if status in (501, 505) else 3)

    def test_a_full_store_is_told_at_once(self):
        self.proxy.rule = lambda request: peer.error(507, "XMinioStorageFull")
        self.assert_fails(self.store(fake_clock=True).ask("put", DIR + "/a", "any", "x"), "resource exhausted", "is full")
        self.proxy.rule = lambda request: page(507, "x")
        self.assert_fails(self.store(fake_clock=True).ask("put", DIR + "/a", "any", "x"), "unavailable", "insufficient storage")

    def test_a_denied_read_names_the_right_to_list(self):
        self.proxy.rule = lambda request: peer.error(403, "AccessDenied")
        for command in (("get", DIR + "/a"), ("stat", DIR + "/a")):
            self.assert_fails(self.store(fake_clock=True).ask(*command), "permission denied", "s3:ListBucket")


if __name__ == "__main__":
    unittest.main()
