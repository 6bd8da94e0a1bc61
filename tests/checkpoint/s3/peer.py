# SPDX-License-Identifier: Apache-2.0
"""What the tests of the S3 store share: moto's server, a proxy in front of it that records and disturbs requests, and the
program `store` that they drive."""
import base64
import ctypes
import glob
import hashlib
import http.client
import http.server
import json
import logging
import os
import signal
import socket
import ssl
import subprocess
import sysconfig
import threading
import unittest

os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = "50"  # a list's page

import boto3
from moto.server import ThreadedMotoServer
from werkzeug.serving import WSGIRequestHandler

# A header and a body are two writes: the second would wait 40 ms for the client to acknowledge the first.
WSGIRequestHandler.disable_nagle_algorithm = True

logging.getLogger("werkzeug").setLevel(logging.ERROR)

KEY_ID = "AKIDMUSTEREXAMPLE"
SECRET = "very/Secret+Key0123456789"
TOKEN = "A+Session/Token=="
BUCKET = "models"
DIR = "s3://%s/run" % BUCKET

SLOW = """<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>%s</Message></Error>"""


def content(size):
    """What `store` writes."""
    period = bytes(range(251))
    return (period * (size // len(period) + 1))[:size]


def digest(data):
    return hashlib.sha256(data).hexdigest()


def crc32c(data):
    """As S3 writes it: in base64, from the highest byte."""
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    state = 0xFFFFFFFF
    for byte in data:
        state = state >> 8 ^ table[(state ^ byte) & 255]
    return base64.b64encode((state ^ 0xFFFFFFFF).to_bytes(4, "big")).decode()


def make_certificate(folder):
    """The files of one for this machine, and of its key."""
    certificate, key = (os.path.join(folder, name) for name in ("certificate", "key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    "/CN=store", "-addext", "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key], check=True,
                   capture_output=True, timeout=60)
    return certificate, key


def newer_curl(directory):
    """What makes `store` load the libcurl that pycurl brings along, which is newer than Debian's; None without one."""
    folder = glob.glob(os.path.join(sysconfig.get_path("platlib"), "pycurl.libs"))
    found = glob.glob(os.path.join(folder[0], "libcurl-*.so.4*")) if folder else []
    if not found:
        return None
    os.symlink(found[0], os.path.join(directory, "libcurl.so.4"))
    return "%s:%s" % (directory, folder[0])


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Store:
    """The program, with only what it is given in its environment."""

    def __init__(self, program, endpoint, fake_clock=False, **environment):
        kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy") and not name.startswith("AWS")}
        kept.update({
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REGION": "eu-central-1",
            "AWS_CONFIG_FILE": "/nonexistent",
            "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        })
        if endpoint is not None:
            kept["AWS_ENDPOINT_URL"] = endpoint
        kept.update(environment)
        kept = {name: value for name, value in kept.items() if value is not None}
        self.process = subprocess.Popen([program] + (["--fake-clock"] if fake_clock else []), env=kept, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        preexec_fn=die_with_parent)
        self.heard = ""

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def ask(self, *words):
        """The answer, which may be an error."""
        self.process.stdin.write("\t".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("it ended: %s" % self.process.stderr.read())
        self.heard += line
        return json.loads(line)

    def do(self, *words):
        """The answer of what succeeds."""
        answer = self.ask(*words)
        if "error" in answer:
            raise AssertionError("%s: %s" % (words, answer))
        return answer

    def close(self):
        if self.process.stdin.closed:
            return
        self.process.stdin.close()
        self.heard += self.process.stderr.read()
        if self.process.wait(30) != 0:
            raise AssertionError("it ended with %d: %s" % (self.process.returncode, self.heard))
        self.process.stdout.close()
        self.process.stderr.close()


class Request:

    def __init__(self, handler, body):
        self.method = handler.command
        self.target = handler.path
        self.headers = handler.headers
        self.body = body

    def __repr__(self):
        return "%s %s" % (self.method, self.target)


class Cut(Exception):
    """Ends the connection without another byte."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *unused):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (Cut, ConnectionError):
            self.close_connection = True
            try:
                self.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def reply(self, status, headers, body, cut_at=None):
        self.send_response(status)
        length = headers.pop("content-length", None)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", length if length is not None and self.command == "HEAD" else str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:cut_at])
        self.wfile.flush()
        if cut_at is not None:
            raise Cut

    def serve(self):
        if self.server.refuses is not None and self.server.refuses(self):
            raise Cut  # while the body is on its way
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(length)
        if len(body) < length:
            raise Cut  # it was cancelled
        request = Request(self, body)
        with self.server.lock:
            self.server.requests.append(request)
            rule = self.server.rule
        verdict = rule(request) if rule is not None else None
        if verdict == "cut":
            raise Cut
        if verdict == "stall":
            self.server.ended.wait(30)
            raise Cut
        if isinstance(verdict, tuple):
            self.reply(verdict[0], dict(verdict[1]), verdict[2].encode())
            return
        status, headers, answer = self.forward(request)
        if verdict == "cut_answer":
            raise Cut
        if verdict == "cut_body":
            self.reply(status, headers, answer, len(answer) // 2)
        if callable(verdict):
            status, headers, answer = verdict(status, headers, answer)
        self.reply(status, headers, answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve

    def forward(self, request):
        connection = http.client.HTTPConnection(*self.server.backend, timeout=60)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in ("expect", "connection")}
        connection.request(request.method, request.target, request.body, headers)
        response = connection.getresponse()
        body = response.read()
        kept = {
            name.lower(): value for name, value in response.getheaders()
            if name.lower() not in ("connection", "transfer-encoding", "server", "date") and
            (name.lower() != "content-length" or request.method == "HEAD")
        }
        connection.close()
        return response.status, kept, body


class Proxy(http.server.ThreadingHTTPServer):
    """In front of a server: records requests; rule(request) may answer one itself, or say what is to go wrong."""
    daemon_threads = True

    def __init__(self, backend, certificate=None):
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.backend = backend
        self.requests = []
        self.rule = None
        self.refuses = None
        self.scheme = "http"
        super().__init__(("127.0.0.1", 0), Handler)
        if certificate is not None:
            self.scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return "%s://127.0.0.1:%d" % (self.scheme, self.server_address[1])

    def handle_error(self, *unused):
        pass  # of a client that doesn't trust it

    def stop(self):
        self.ended.set()
        self.shutdown()
        self.server_close()


def error(status, code, message="no more", **headers):
    """A verdict: the store's own answer."""
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, SLOW % (code, message)


class S3Test(unittest.TestCase):
    """A bucket of its own for each test, and a proxy in front of it."""
    program = None

    @classmethod
    def setUpClass(cls):
        cls.moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        cls.moto.start()
        cls.backend = cls.moto.get_host_and_port()

    @classmethod
    def tearDownClass(cls):
        cls.moto.stop()

    def setUp(self):
        url = "http://%s:%d" % self.backend
        connection = http.client.HTTPConnection(*self.backend)
        connection.request("POST", "/moto-api/reset")
        connection.getresponse().read()
        connection.close()
        self.s3 = boto3.client("s3", endpoint_url=url, aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1")
        self.s3.create_bucket(Bucket=BUCKET)
        self.proxy = Proxy(self.backend)

    def tearDown(self):
        self.proxy.stop()
        self.s3.close()

    def store(self, **how):
        store = Store(self.program, how.pop("endpoint", self.proxy.url), **how)
        self.addCleanup(store.close)
        return store

    def object(self, key):
        return self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()

    def keys(self):
        return [one["Key"] for one in self.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]

    def uploads(self):
        return [one["Key"] for one in self.s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])]

    def sent(self):
        return [repr(request) for request in self.proxy.requests]

    def assert_fails(self, answer, code, *words):
        self.assertIn("error", answer)
        self.assertEqual(answer["code"], code, answer)
        for word in words:
            self.assertIn(word, answer["error"])
