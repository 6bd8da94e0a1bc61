# SPDX-License-Identifier: Apache-2.0
"""Every kind of request that the S3 store sends has the signature that botocore gives the same request: moto checks none."""
import os
import sys
import tempfile
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peer
from peer import BUCKET, DIR

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

peer.S3Test.program = os.path.abspath(sys.argv.pop(1))

PART = 8 << 20
ODD = ("a b", "ä日", "a+b", "100%", "a%2Fb", "q?x=1&y", "#1", "c:d;e", "!$'()*,=@[]", "~a_b-c.d", "x\\y^z`{|}\"<>")


def expected(request, base, token):
    """botocore's Authorization for what was sent."""
    given = request.headers["authorization"]
    signed = given.split("SignedHeaders=")[1].split(",")[0].split(";")
    region = given.split("Credential=")[1].split("/")[2]
    headers = {name: request.headers[name] for name in signed if name != "host"}
    aws = AWSRequest(request.method, base + request.target, headers, request.body)
    aws.context["timestamp"] = request.headers["x-amz-date"]
    # a URL that was sent stays as it was; what isn't in the query is in params
    path, _, query = request.target.partition("?")
    aws.url = base + path
    aws.params = urllib.parse.parse_qsl(query, keep_blank_values=True)
    auth = S3SigV4Auth(Credentials(peer.KEY_ID, peer.SECRET, token), "s3", region)
    canonical = auth.canonical_request(aws)
    signature = auth.signature(auth.string_to_sign(aws, canonical), aws)
    return "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s" % (peer.KEY_ID, auth.credential_scope(aws), ";".join(signed),
                                                                                   signature), canonical


def payload(request, base):
    """What botocore gives as the body's hash: none of a part by TLS that has a checksum."""
    aws = AWSRequest(request.method, base + request.target, dict(request.headers), request.body)
    is_part = "partNumber" in request.target and "x-amz-copy-source" not in request.headers
    aws.context["has_streaming_input"] = is_part
    if is_part:
        aws.context["checksum"] = {"request_algorithm": {"in": "header", "name": "x-amz-checksum-crc32c"}}
    return S3SigV4Auth(Credentials(peer.KEY_ID, peer.SECRET), "s3", "us-east-1").payload(aws)


def canonical_target(target):
    """As S3 writes what it has decoded, before it computes a signature: botocore signs what it is given."""
    path, mark, query = target.partition("?")
    pairs = sorted((urllib.parse.quote(name, safe="~"), urllib.parse.quote(value, safe="~"))
                   for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True))
    return urllib.parse.quote(urllib.parse.unquote(path), safe="/~") + mark + "&".join("=".join(pair) for pair in pairs)


class SignatureTest(peer.S3Test):

    def check(self, token, *kinds):
        seen = set()
        for request in self.proxy.requests:
            with self.subTest(repr(request)):
                signed = request.headers["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
                present = {name.lower() for name in request.headers if name.lower().startswith("x-amz-") or name.lower() == "content-type"}
                self.assertLessEqual(present | {"host"}, set(signed))
                self.assertEqual(request.headers["x-amz-content-sha256"], payload(request, self.proxy.url))
                authorization, canonical = expected(request, self.proxy.url, token)
                self.assertEqual(request.headers["authorization"], authorization, canonical)
                self.assertEqual(request.target, canonical_target(request.target))
            query = urllib.parse.parse_qs(request.target.partition("?")[2], keep_blank_values=True)
            seen.add(" ".join([request.method] + sorted(query) + sorted(set(signed) - {"host", "content-type"} -
                                                                        {name for name in signed if name.startswith("x-amz-")})))
        for kind in kinds:
            self.assertIn(kind, seen)

    def exercise(self, store):
        store.do("write", DIR + "/small", 10)
        store.do("write", DIR + "/large", 2 * PART + 9)
        store.do("begin", DIR + "/dropped", 2 * PART)
        store.do("drop")
        store.do("read", DIR + "/small")
        store.do("range", DIR + "/large", PART, 10)
        store.do("stat", DIR + "/large")
        version = store.do("put", DIR + "/checkpoint", "none", "one")["version"]
        store.do("put", DIR + "/checkpoint", version, "two")
        store.do("copy", DIR + "/large", DIR + "/copied")
        store.do("list", DIR)
        store.do("sweep", DIR)
        store.do("remove", DIR + "/small")

    KINDS = ("GET range", "GET if-match range", "HEAD", "PUT if-none-match", "PUT if-match", "POST uploads", "PUT partNumber uploadId",
             "POST uploadId if-none-match", "DELETE uploadId", "DELETE", "GET delimiter encoding-type list-type prefix",
             "GET encoding-type prefix uploads")

    def test_every_kind_of_request(self):
        self.exercise(self.store())
        self.check(None, *self.KINDS)

    def test_every_kind_of_request_with_a_session(self):
        self.exercise(self.store(AWS_SESSION_TOKEN=peer.TOKEN))
        self.check(peer.TOKEN, *self.KINDS)
        for request in self.proxy.requests:
            self.assertEqual(request.headers["x-amz-security-token"], peer.TOKEN)

    def use_tls(self):
        """The certificate to trust."""
        certificate = peer.make_certificate(self.enterContext(tempfile.TemporaryDirectory()))
        self.proxy.stop()
        self.proxy = peer.Proxy(self.backend, certificate)
        return certificate[0]

    def test_every_kind_of_request_by_tls(self):
        certificate = self.use_tls()
        self.exercise(self.store(AWS_SESSION_TOKEN=peer.TOKEN, AWS_CA_BUNDLE=certificate))
        self.check(peer.TOKEN, *self.KINDS)
        self.assertIn("UNSIGNED-PAYLOAD", [request.headers["x-amz-content-sha256"] for request in self.proxy.requests])

    def test_every_kind_of_request_with_a_newer_libcurl(self):
        library = peer.newer_curl(self.enterContext(tempfile.TemporaryDirectory()))
        if library is None:
            self.skipTest("pycurl brought no libcurl along")
        self.exercise(self.store(AWS_SESSION_TOKEN=peer.TOKEN, LD_LIBRARY_PATH=library))
        self.exercise_names(self.store(AWS_SESSION_TOKEN=peer.TOKEN, LD_LIBRARY_PATH=library))
        self.check(peer.TOKEN, *self.KINDS)

    def test_odd_names(self):
        self.exercise_names(self.store())
        self.check(None)

    def exercise_names(self, store):
        for name in ODD:
            path = "%s/%s/%s" % (DIR, name.replace("/", ""), name)
            store.do("write", path, 9)
            store.do("read", path)
            store.do("list", os.path.dirname(path))
            store.do("copy", path, path + "2")
            store.do("remove", path)

    def test_pages_of_a_list(self):
        for i in range(60):
            self.s3.put_object(Bucket=BUCKET, Key="run/%03d" % i, Body=b"")
        self.store().do("list", DIR)
        self.check(None, "GET continuation-token delimiter encoding-type list-type prefix")


if __name__ == "__main__":
    unittest.main()
