#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Object stores from Python: S3's, over a server that holds a dictionary, and what their interface means for local files."""
import hashlib
import http.server
import os
import sys
import threading

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../../python")))
import case
from case import Gio, GLib, Muster
import muster.checkpoint

NO_UPLOADS = b"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>"


def refusal(code):
    return b"<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>as S3 says it</Message></Error>" % code


class Handler(http.server.BaseHTTPRequestHandler):
    disable_nagle_algorithm = True  # the body follows the header at once
    protocol_version = "HTTP/1.1"

    def log_message(self, *unused):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def etag(self):
        data = self.server.objects.get(self.path)
        return None if data is None else '"%s"' % hashlib.md5(data).hexdigest()

    def do_PUT(self):
        data = self.rfile.read(int(self.headers["content-length"]))
        if "if-match" in self.headers and self.headers["if-match"] != self.etag() or \
           "if-none-match" in self.headers and self.etag() is not None:
            self.reply(412, refusal(b"PreconditionFailed"))
        else:
            self.server.objects[self.path] = data
            self.reply(200, etag=self.etag())

    def do_GET(self):
        if "uploads=" in self.path:
            self.reply(200, NO_UPLOADS)
        elif self.etag() is None:
            self.reply(404, refusal(b"NoSuchKey"))
        else:
            data = self.server.objects[self.path]
            first, _, last = self.headers.get("range", "bytes=0-").partition("=")[2].partition("-")
            part = data[int(first):int(last) + 1 if last else None]
            self.reply(206, part, etag=self.etag(), content_range="bytes %s-%d/%d" % (first, int(first) + len(part) - 1, len(data)))

    def do_HEAD(self):
        self.send_response(404 if self.etag() is None else 200)
        self.send_header("content-length", str(len(self.server.objects.get(self.path, b""))))
        self.send_header("etag", self.etag() or "none")
        self.end_headers()


class ObjectStore(case.TestCase):

    def setUp(self):
        super().setUp()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.objects = {}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        os.environ.update(AWS_ACCESS_KEY_ID="id", AWS_SECRET_ACCESS_KEY="secret", no_proxy="127.0.0.1")
        options = Muster.S3Options()
        options.endpoint_url = "http://127.0.0.1:%d" % self.server.server_address[1]
        options.region = "eu-central-1"
        options.clock = Muster.system_clock()
        self.store = Muster.s3_storage_new(options)

    def test_a_file_is_replaced_only_if_nobody_else_has(self):
        path = "s3://bucket/run/checkpoint"
        done, first = self.store.replace(path, b"one", "")
        self.assertTrue(done)
        data, version = self.store.read_versioned(path)
        self.assertEqual((data.get_data(), version), (b"one", first))
        self.store.replace(path, b"two", first)
        self.assertFails(Muster.Error.ABORTED, "another writer", self.store.replace, path, b"three", first)
        self.assertEqual(self.server.objects, {"/bucket/run/checkpoint": b"two"})

    def test_a_file_that_is_abandoned_is_never_there(self):
        self.assertFalse(self.store.can_rename("s3://bucket/run"))
        file = self.store.create("s3://bucket/run/a")
        self.store.append(file, b"x")
        self.store.abandon(file)
        self.store.sweep("s3://bucket/run", GLib.MAXINT64)
        self.assertEqual(self.server.objects, {})

    def test_a_bound_store_ends_by_its_deadline(self):
        clock = Muster.system_clock()
        bound = self.store.bound(clock.now_us(), clock, None)
        self.assertFails(Muster.Error.DEADLINE_EXCEEDED, "deadline", bound.read, "s3://bucket/run/a")
        cancelled = Gio.Cancellable()
        bound = self.store.bound(Muster.WAIT_FOREVER, None, cancelled)
        bound.publish("s3://bucket/run/a", b"x")
        self.assertEqual(self.server.objects, {"/bucket/run/a": b"x"})

    def test_what_is_sent_is_counted(self):
        before = Muster.s3_metrics().requests
        self.store.publish("s3://bucket/run/a", b"x")
        self.assertEqual(Muster.s3_metrics().requests, before + 1)

    def test_each_path_goes_to_the_store_of_its_scheme(self):
        store = Muster.default_storage()
        self.assertEqual([store.is_local(path) for path in ("run/a", "s3://bucket/run/a")], [True, False])
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "gs://", store.read, "gs://bucket/a")
        within = Muster.default_storage_new_within(["s3://bucket/run"])
        for path in "/etc/hostname", "s3://bucket/other":
            self.assertFails(Muster.Error.PERMISSION_DENIED, path, within.read, path)

    def test_a_directory_of_it_is_its_latest_checkpoint(self):
        os.environ.update(AWS_ENDPOINT_URL="http://127.0.0.1:%d" % self.server.server_address[1], AWS_REGION="eu-central-1")
        self.addCleanup(os.environ.pop, "AWS_ENDPOINT_URL")
        for suffix in (".index", ".data-00000-of-00001"):
            with open(case.fixture("mlp_adam_ref.after5") + suffix, "rb") as file:
                self.store.publish("s3://bucket/run/m-5" + suffix, file.read())
        self.store.publish("s3://bucket/run/checkpoint", b'model_checkpoint_path: "m-5"\n')
        for path in ("s3://bucket/run", "s3://bucket/run/m-5"):
            self.assertEqual(muster.checkpoint.open(path).prefix, "s3://bucket/run/m-5")
        with self.assertRaises(Muster.NotFound):
            muster.checkpoint.open("s3://bucket/none")


if __name__ == "__main__":
    case.main()
