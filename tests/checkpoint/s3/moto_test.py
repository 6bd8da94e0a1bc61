# SPDX-License-Identifier: Apache-2.0
"""The S3 store against moto's server."""
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peer
from peer import BUCKET, DIR

peer.S3Test.program = os.path.abspath(sys.argv.pop(1))

PART = 8 << 20


class FilesTest(peer.S3Test):

    def test_a_file_appears_whole_when_it_is_closed(self):
        store = self.store()
        store.do("begin", DIR + "/model", 1000)
        self.assertEqual(self.keys(), [])
        store.do("end")
        self.assertEqual(self.object("run/model"), peer.content(1000))

    def test_a_file_of_every_size_reads_as_it_was_written(self):
        store = self.store()
        for size in (0, 1, 65535, 65536, 65537, 256 << 10, PART - 1, PART, PART + 1, 2 * PART, 3 * PART + 5):
            path = "%s/%d" % (DIR, size)
            store.do("write", path, size)
            self.assertEqual(peer.digest(self.object("run/%d" % size)), peer.digest(peer.content(size)), size)
            read = store.do("read", path)
            self.assertEqual((read["size"], read["sha256"]), (size, peer.digest(peer.content(size))))
            self.assertEqual(store.do("stat", path)["size"], size)
        self.assertEqual(self.uploads(), [])

    def test_a_range_is_read_wherever_it_is(self):
        size = 2 * PART + 77
        data = peer.content(size)
        self.s3.put_object(Bucket=BUCKET, Key="run/a", Body=data)
        store = self.store()
        for at, n in ((0, 10), (65530, 12), (70000, 5), (size - 3, 100), (size, 1), (size + 9, 1), (5, size)):
            read = store.do("range", DIR + "/a", at, n)
            self.assertEqual(read["sha256"], peer.digest(data[at:at + n]), (at, n))

    def test_a_small_file_takes_one_request_to_read(self):
        self.s3.put_object(Bucket=BUCKET, Key="run/a", Body=b"small")
        self.store().do("read", DIR + "/a")
        self.assertEqual(len(self.proxy.requests), 1, self.sent())

    def test_a_file_that_is_abandoned_is_never_seen_and_leaves_no_parts(self):
        store = self.store()
        for size in (10, 3 * PART):
            store.do("begin", DIR + "/model", size)
            store.do("drop")
        self.assertEqual((self.keys(), self.uploads()), ([], []))

    def test_uploads_hold_less_than_64_mib_however_large_the_file(self):
        store = self.store()
        store.do("write", DIR + "/model", 12 * PART)
        most = store.do("metrics")["buffered_max"]
        self.assertLessEqual(most, 48 << 20)
        self.assertGreater(most, PART)  # several parts at the same time
        self.assertEqual(store.do("read", DIR + "/model")["sha256"], peer.digest(peer.content(12 * PART)))

    def test_a_new_file_never_replaces_another(self):
        store = self.store()
        for size in (5, PART + 1):
            path = "%s/%d" % (DIR, size)
            store.do("write", path, size)
            self.assert_fails(store.ask("write", path, size), "aborted", path, "another writer has changed it")
        self.assertEqual((self.uploads(), store.do("metrics")["failures"]), ([], 0))

    def test_what_is_not_there_is_absent(self):
        store = self.store()
        for command in ("read", "stat", "get"):
            self.assert_fails(store.ask(command, DIR + "/absent"), "absent", DIR + "/absent")
        self.assertEqual(store.ask("get", DIR + "/absent")["version"], "")
        store.do("remove", DIR + "/absent")
        self.assertEqual(store.do("metrics")["failures"], 0)  # that is an answer

    def test_what_is_removed_is_gone(self):
        store = self.store()
        store.do("write", DIR + "/a", 3)
        store.do("remove", DIR + "/a")
        self.assertEqual(self.keys(), [])

    def test_a_replaced_file_is_not_mixed_into_the_one_that_is_read(self):
        self.s3.put_object(Bucket=BUCKET, Key="run/a", Body=peer.content(200000))
        store = self.store()
        store.do("keep", DIR + "/a")
        store.do("again", 100000, 10)
        self.s3.put_object(Bucket=BUCKET, Key="run/a", Body=b"x" * 200000)
        self.assert_fails(store.ask("again", 100000, 10), "aborted", "another writer has changed it")

    def test_a_copy_is_whole_whatever_its_size(self):
        store = self.store()
        for size in (0, 1000, PART + 3):
            store.do("write", "%s/%d" % (DIR, size), size)
            store.do("copy", "%s/%d" % (DIR, size), "s3://%s/other/ä=%d" % (BUCKET, size))
            self.assertEqual(self.object("other/ä=%d" % size), peer.content(size))
        self.assertEqual(self.uploads(), [])


class NamesTest(peer.S3Test):

    def put(self, *keys):
        for key in keys:
            self.s3.put_object(Bucket=BUCKET, Key=key, Body=b"x")

    def test_a_list_has_the_names_of_the_directory_sorted(self):
        self.put("run/b", "run/a", "run/sub/deep/c", "run/sub", "run/", "running/d", "e", "run/ä b+c%41&=", "run/~")
        store = self.store()
        self.assertEqual(store.do("list", DIR)["names"], ["a", "b", "sub", "~", "ä b+c%41&="])
        self.assertEqual(store.do("list", DIR + "/")["names"], ["a", "b", "sub", "~", "ä b+c%41&="])
        self.assertEqual(store.do("list", "s3://" + BUCKET)["names"], ["e", "run", "running"])
        self.assertEqual(store.do("list", DIR + "/none")["names"], [])

    def test_a_list_of_more_than_a_page_is_whole(self):
        names = ["n%04d" % i for i in range(120)]
        self.put(*["run/" + name for name in names])
        self.assertEqual(self.store().do("list", DIR)["names"], names)
        self.assertEqual(len(self.proxy.requests), 3)

    def test_odd_names_are_written_read_and_removed(self):
        store = self.store()
        for name in ("a b", "ä", "a+b", "100%", "a%20b", "q?x=1&y", "#1", "c:d", "!$'()*,;=@[]", "~a_b-c.d", "日本"):
            path = DIR + "/" + name
            store.do("write", path, 9)
            self.assertEqual(self.keys(), ["run/" + name])
            self.assertEqual(store.do("read", path)["size"], 9)
            store.do("remove", path)
            self.assertEqual(self.keys(), [])

    def test_a_path_that_no_store_can_have_is_refused_without_a_request(self):
        store = self.store()
        for path in ("s3://", "s3:///a", "s3://b", "s3://x/a", "s3://Bu cket/a", DIR + "/../a", DIR + "/./a", DIR + "//a",
                     DIR + "/" + "n" * 1025, DIR + "/a\x01"):
            self.assert_fails(store.ask("read", path), "invalid argument", "invalid path")
        self.assertEqual(self.sent(), [])


class ConditionsTest(peer.S3Test):

    def test_a_file_is_replaced_only_if_its_version_is_still_that_one(self):
        store, path = self.store(), DIR + "/checkpoint"
        first = store.do("put", path, "none", "one")["version"]
        self.assertEqual(store.do("get", path), {"text": "one", "version": first})
        second = store.do("put", path, first, "two")["version"]
        for version in ("none", first):
            self.assert_fails(store.ask("put", path, version, "lost"), "aborted", path, "another writer has changed it")
        self.assertEqual(store.do("get", path), {"text": "two", "version": second})
        store.do("put", path, "any", "three")
        self.assertEqual(self.object("run/checkpoint"), b"three")

    def test_a_file_that_was_removed_is_a_lost_race(self):
        store, path = self.store(), DIR + "/checkpoint"
        version = store.do("put", path, "none", "one")["version"]
        self.s3.delete_object(Bucket=BUCKET, Key="run/checkpoint")
        self.assert_fails(store.ask("put", path, version, "two"), "aborted", "another writer has changed it")

    def test_whether_conditions_are_heeded_is_asked_once_and_leaves_nothing(self):
        store = self.store()
        store.do("put", DIR + "/a", "none", "x")
        store.do("put", DIR + "/b", "none", "x")
        self.assertEqual(len([line for line in self.sent() if "conditions" in line]), 1)
        self.assertEqual(self.keys(), ["run/a", "run/b"])

    def test_a_store_that_ignores_conditions_is_found_out(self):

        def ignore(request):
            del request.headers["if-match"]
            del request.headers["if-none-match"]

        self.proxy.rule = ignore
        store, path = self.store(), DIR + "/checkpoint"
        version = store.do("put", path, "none", "one")["version"]
        self.assert_fails(store.ask("put", path, "none", "lost"), "aborted", "another writer has changed it")
        store.do("put", path, version, "two")
        self.assert_fails(store.ask("put", path, version, "lost"), "aborted", "another writer has changed it")
        self.assertEqual(self.keys(), ["run/checkpoint"])
        store.close()
        self.assertIn("ignores If-Match", store.heard)
        self.assertEqual(store.heard.count("ignores If-Match"), 1)

    def test_a_store_that_refuses_conditions_is_one_that_ignores_them(self):
        self.proxy.rule = lambda request: peer.error(501, "NotImplemented") if "if-match" in request.headers else None
        store = self.store()
        store.do("put", DIR + "/a", "none", "x")
        self.assert_fails(store.ask("put", DIR + "/a", "none", "x"), "aborted", "another writer")


class SweepTest(peer.S3Test):

    def test_parts_that_a_crash_left_are_aborted(self):
        for key in ("run/a", "run/b", "run/sub/c", "running/d"):
            self.s3.create_multipart_upload(Bucket=BUCKET, Key=key)
        store = self.store()
        store.do("begin", DIR + "/mine", 2 * PART)
        store.do("sweep", DIR)
        self.assertEqual(sorted(self.uploads()), ["run/mine", "run/sub/c", "running/d"])
        store.do("end")
        self.assertEqual(self.keys(), ["run/mine"])

    def test_parts_that_may_be_somebodys_stay(self):
        self.s3.create_multipart_upload(Bucket=BUCKET, Key="run/a")
        begun = int(self.s3.list_multipart_uploads(Bucket=BUCKET)["Uploads"][0]["Initiated"].timestamp())
        store = self.store()
        store.do("sweep", DIR, begun)
        self.assertEqual(self.uploads(), ["run/a"])
        store.do("sweep", DIR, begun + 1)
        self.assertEqual(self.uploads(), [])

    def test_a_writer_that_is_killed_leaves_what_a_sweep_finds(self):
        with peer.Store(self.program, self.proxy.url) as store:
            store.do("begin", DIR + "/a", 3 * PART)
            store.process.kill()
            store.process.wait()
            store.process.stdin.close()
            store.process.stdout.close()
            store.process.stderr.close()
        self.assertEqual((self.keys(), self.uploads()), ([], ["run/a"]))
        self.store().do("sweep", DIR)
        self.assertEqual(self.uploads(), [])


class TlsTest(peer.S3Test):

    def setUp(self):
        super().setUp()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.certificate = peer.make_certificate(folder)
        self.proxy.stop()
        self.proxy = peer.Proxy(self.backend, self.certificate)

    def test_a_store_is_trusted_by_its_authority(self):
        store = self.store(AWS_CA_BUNDLE=self.certificate[0])
        store.do("write", DIR + "/a", 3 * PART)
        self.assertEqual(store.do("read", DIR + "/a")["sha256"], peer.digest(peer.content(3 * PART)))

    def test_parts_are_sent_with_sums_that_the_store_checks(self):
        store = self.store(AWS_CA_BUNDLE=self.certificate[0])
        store.do("write", DIR + "/a", 2 * PART + 9)
        sums = {}
        for request in self.proxy.requests:
            if "partNumber" in request.target:
                self.assertEqual(request.headers["x-amz-content-sha256"], "UNSIGNED-PAYLOAD")
                sums[request.target.split("partNumber=")[1].split("&")[0]] = request.headers["x-amz-checksum-crc32c"]
                self.assertEqual(request.headers["x-amz-checksum-crc32c"], peer.crc32c(request.body))
        self.assertEqual(len(sums), 3)
        completed = next(request.body.decode() for request in self.proxy.requests if request.body.startswith(b"<Complete"))
        for number, checksum in sums.items():
            self.assertRegex(completed, "<PartNumber>%s</PartNumber><ETag>[^<]*</ETag><ChecksumCRC32C>%s<" % (number, re.escape(checksum)))
        self.assertEqual(store.do("read", DIR + "/a")["sha256"], peer.digest(peer.content(2 * PART + 9)))

    def test_a_part_whose_sum_is_wrong_is_sent_again(self):
        store = self.store(AWS_CA_BUNDLE=self.certificate[0])
        left = [1]

        def damage(request):
            if "partNumber=2" in request.target and left[0] > 0:
                left[0] -= 1
                return peer.error(400, "BadDigest", "The CRC32C you specified did not match the calculated checksum.")

        self.proxy.rule = damage
        store.do("write", DIR + "/a", 3 * PART)
        self.assertEqual((left, store.do("metrics")["damaged"]), ([0], 1))
        self.assertEqual(self.object("run/a"), peer.content(3 * PART))

    def check_signed(self, rule):
        self.proxy.rule = rule
        store = self.store(AWS_CA_BUNDLE=self.certificate[0])
        store.do("write", DIR + "/a", 2 * PART)
        for request in self.proxy.requests:
            self.assertNotIn("x-amz-checksum-crc32c", request.headers)
            self.assertEqual(request.headers["x-amz-content-sha256"], peer.digest(request.body))
            self.assertNotIn(b"CRC32C", request.body)
        self.assertEqual(self.object("run/a"), peer.content(2 * PART))

    def test_a_store_that_ignores_sums_gets_signed_parts(self):

        def ignore(request):
            if "uploads" in request.target:
                return lambda status, headers, body: (status, {k: v for k, v in headers.items() if "checksum" not in k}, body)

        self.check_signed(ignore)

    def test_a_store_that_refuses_sums_gets_signed_parts(self):

        def refuse(request):
            if "x-amz-checksum-algorithm" in request.headers:
                return peer.error(501, "NotImplemented", "A header you provided implies functionality that is not implemented")

        self.check_signed(refuse)

    def test_another_store_gets_no_request(self):
        self.assert_fails(self.store().ask("list", DIR), "invalid argument", "certificate", "AWS_CA_BUNDLE")
        self.assertEqual(self.sent(), [])

    def test_a_connection_that_is_cut_in_the_middle_of_a_part_ends_no_process(self):
        left = [4]

        def refuse(handler):
            left[0] -= handler.command == "PUT"
            return handler.command == "PUT" and left[0] >= 0

        self.proxy.refuses = refuse
        store = self.store(AWS_CA_BUNDLE=self.certificate[0])
        store.do("write", DIR + "/a", 3 * PART)
        self.assertGreaterEqual(store.do("metrics")["lost"], 1)


class CredentialsTest(peer.S3Test):
    NONE = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}

    def used(self):
        request = self.proxy.requests[-1]
        user = request.headers["authorization"].split("Credential=")[1].split("/")[0]
        return user, request.headers.get("x-amz-security-token")

    def file(self, text):
        file = self.enterContext(tempfile.NamedTemporaryFile("w"))
        file.write(text)
        file.flush()
        return file.name

    def test_the_environment_comes_with_its_session_token(self):
        self.store(AWS_SESSION_TOKEN=peer.TOKEN).do("list", DIR)
        self.assertEqual(self.used(), (peer.KEY_ID, peer.TOKEN))

    def test_a_profile_has_keys_in_either_file(self):
        config = self.file("[profile  two]\naws_access_key_id=FROMCONFIG\naws_secret_access_key = x\nregion=eu-west-1\n"
                           "s3 =\n  addressing_style = path\n")
        keys = self.file("# mine\n[default]\naws_access_key_id = DEFAULT\naws_secret_access_key = y\naws_session_token = t\n\n"
                         "[two]\naws_access_key_id = FROMKEYS\naws_secret_access_key = z\n")
        both = dict(self.NONE, AWS_CONFIG_FILE=config, AWS_SHARED_CREDENTIALS_FILE=keys)
        self.store(**both).do("list", DIR)
        self.assertEqual(self.used(), ("DEFAULT", "t"))
        self.store(AWS_PROFILE="two", AWS_REGION=None, **both).do("list", DIR)
        self.assertEqual(self.used(), ("FROMKEYS", None))
        self.assertIn("/eu-west-1/", self.proxy.requests[-1].headers["authorization"])
        self.store(**dict(both, AWS_PROFILE="two", AWS_SHARED_CREDENTIALS_FILE="/nonexistent")).do("list", DIR)
        self.assertEqual(self.used(), ("FROMCONFIG", None))

    def test_a_profile_that_asks_for_what_muster_lacks_says_what_to_do(self):
        config = self.file("[default]\ncredential_process = /bin/keys --secret\n")
        answer = self.store(AWS_CONFIG_FILE=config, **self.NONE).ask("list", DIR)
        self.assert_fails(answer, "unimplemented", "'credential_process'", "aws configure export-credentials")
        self.assertNotIn("/bin/keys", answer["error"])

    def test_without_credentials_the_error_says_how_to_give_them(self):
        self.assert_fails(self.store(**self.NONE).ask("list", DIR), "unauthenticated", "AWS_ACCESS_KEY_ID", DIR)
        self.assertEqual(self.sent(), [])

    def test_web_identity_exchanges_the_token_and_renews_the_keys(self):
        token = self.file("a.web/identity+token\n")
        self.proxy.rule = self.answer_identity
        self.identities = 0
        store = self.store(AWS_WEB_IDENTITY_TOKEN_FILE=token, AWS_ROLE_ARN="arn:aws:iam::1:role/r", **self.NONE)
        store.do("list", DIR)
        self.assertEqual(self.used(), ("STS1", "sts-token"))
        form = self.proxy.requests[0]
        self.assertEqual((form.method, form.target), ("POST", "/"))
        self.assertIn(b"WebIdentityToken=a.web%2Fidentity%2Btoken", form.body)
        self.assertNotIn("authorization", form.headers)
        store.do("list", DIR)  # they expire in a minute: others are fetched before that
        self.assertEqual(self.used(), ("STS2", "sts-token"))

    def answer_identity(self, request):
        if request.method != "POST":
            return None
        self.identities += 1
        import datetime
        expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=60 if self.identities == 1 else 7200)
        return 200, {}, ("<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
                         "<AccessKeyId>STS%d</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
                         "<SessionToken>sts-token</SessionToken><Expiration>%s</Expiration></Credentials>"
                         "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>" %
                         (self.identities, expires.strftime("%Y-%m-%dT%H:%M:%SZ")))

    JSON = '{"Code": "Success", "AccessKeyId": "%s", "SecretAccessKey": "s", "Token": "t", "Expiration": "2099-01-01T00:00:00Z"}'

    def test_a_containers_service_gets_the_token_in_its_file(self):
        self.proxy.rule = lambda request: (200, {}, self.JSON % "CONTAINER") if request.target == "/keys" else None
        token = self.file("Bearer abc\n")
        store = self.store(AWS_CONTAINER_CREDENTIALS_FULL_URI=self.proxy.url + "/keys",
                           AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=token, **self.NONE)
        store.do("list", DIR)
        self.assertEqual(self.used(), ("CONTAINER", "t"))
        self.assertEqual(self.proxy.requests[0].headers["authorization"], "Bearer abc")

    def test_a_containers_token_goes_to_no_other_machine_without_tls(self):
        store = self.store(AWS_CONTAINER_CREDENTIALS_FULL_URI="http://example.org/keys", **self.NONE)
        self.assert_fails(store.ask("list", DIR), "unauthenticated", "must be an address of this machine")

    def test_the_machines_service_is_asked_in_its_second_version(self):
        answers = {"/latest/api/token": "imds-token", "/latest/meta-data/iam/security-credentials/": "my role\n",
                   "/latest/meta-data/iam/security-credentials/my%20role": self.JSON % "MACHINE"}
        self.proxy.rule = lambda request: (200, {}, answers[request.target]) if request.target in answers else None
        store = self.store(AWS_EC2_METADATA_DISABLED=None, AWS_EC2_METADATA_SERVICE_ENDPOINT=self.proxy.url + "/", **self.NONE)
        store.do("list", DIR)
        self.assertEqual(self.used(), ("MACHINE", "t"))
        first, second = self.proxy.requests[:2]
        self.assertEqual(first.method, "PUT")
        self.assertEqual(second.headers["x-aws-ec2-metadata-token"], "imds-token")

    def write_keys(self, name, key, secret="s"):
        with open(name + ".new", "w", encoding="utf-8") as file:
            file.write("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\naws_session_token = t%s\n" % (key, secret, key))
        os.rename(name + ".new", name)

    def refuse(self, key, code, then=lambda: None):
        """Requests with that key are refused, those to HEAD without a body."""

        def rule(request):
            if "Credential=%s/" % key not in request.headers.get("authorization", ""):
                return None
            then()
            return (400, {}, "") if request.method == "HEAD" else peer.error(400 if "Expired" in code else 403, code)

        self.proxy.rule = rule

    def test_keys_that_were_replaced_in_their_file_are_read_again(self):
        self.s3.put_object(Bucket=peer.BUCKET, Key="run/a", Body=b"one")
        for code in ("ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"):
            for command in (("list", DIR), ("stat", DIR + "/a"), ("put", DIR + "/a", "any", "x"), ("get", DIR + "/a")):
                with self.subTest(code=code, command=command[0]):
                    keys = self.file("")
                    self.write_keys(keys, "OLD")
                    store = self.store(fake_clock=True, AWS_SHARED_CREDENTIALS_FILE=keys, **self.NONE)
                    self.proxy.rule = None
                    store.do("list", DIR)
                    self.write_keys(keys, "NEW")
                    self.refuse("OLD", code)
                    store.do(*command)
                    self.assertEqual(self.used(), ("NEW", "tNEW"))
                    store.close()

    def test_a_file_of_keys_that_is_half_written_is_read_once_more(self):
        keys = self.file("")
        self.write_keys(keys, "OLD", "another")
        store = self.store(fake_clock=True, AWS_SHARED_CREDENTIALS_FILE=keys, **self.NONE)
        self.refuse("OLD", "SignatureDoesNotMatch", lambda: len(self.proxy.requests) == 2 and self.write_keys(keys, "NEW"))
        store.do("list", DIR)
        self.assertEqual(self.used(), ("NEW", "tNEW"))

    def test_keys_that_stay_refused_are_looked_up_again_a_few_times_and_at_the_next_request(self):
        keys = self.file("")
        self.write_keys(keys, "OLD")
        store = self.store(fake_clock=True, AWS_SHARED_CREDENTIALS_FILE=keys, **self.NONE)
        self.refuse("OLD", "ExpiredToken")
        self.assert_fails(store.ask("list", DIR), "unauthenticated", "have expired; renew them")
        self.assertEqual(len(self.proxy.requests), 4)
        self.write_keys(keys, "NEW")
        store.do("list", DIR)

    def test_a_date_that_cannot_be_read_is_not_never(self):
        served = []

        def rule(request):
            if request.target == "/keys":
                served.append(1)
                return 200, {}, self.JSON.replace("2099-01-01T00:00:00Z", "soon") % ("K%d" % len(served))
            slow = self.proxy.requests[-2:-1] and self.proxy.requests[-2].target == "/keys" and len(served) == 1
            return peer.error(503, "SlowDown", retry_after="700") if slow else None

        self.proxy.rule = rule
        store = self.store(fake_clock=True, RETRY_MS="1000000", AWS_CONTAINER_CREDENTIALS_FULL_URI=self.proxy.url + "/keys", **self.NONE)
        store.do("list", DIR)
        self.assertEqual(self.used(), ("K2", "t"))

    def test_what_a_service_refuses_for_a_while_is_asked_again(self):
        token = self.file("token")
        answers = {"/latest/api/token": "imds-token", "/latest/meta-data/iam/security-credentials/": "role",
                   "/latest/meta-data/iam/security-credentials/role": self.JSON % "MACHINE"}
        machine = dict(self.NONE, AWS_EC2_METADATA_DISABLED=None, AWS_EC2_METADATA_SERVICE_ENDPOINT=self.proxy.url)
        identity = dict(self.NONE, AWS_WEB_IDENTITY_TOKEN_FILE=token, AWS_ROLE_ARN="r")
        of_sts = "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>m</Message></Error></ErrorResponse>"
        for environment, verdict in ((machine, (401, {}, "")), (machine, (404, {}, "Not Found")), (machine, (429, {}, "")),
                                     (identity, (400, {}, of_sts % "IDPCommunicationError")), (identity, (400, {}, of_sts % "Throttling")),
                                     (identity, (503, {}, ""))):
            with self.subTest(verdict=verdict):
                left = [verdict]
                self.identities = 1

                def rule(request, left=left):
                    if request.target == "/" or "security-credentials" in request.target:
                        if left:
                            return left.pop()
                        if request.target == "/":
                            return self.answer_identity(request)
                    return (200, {}, answers[request.target]) if request.target in answers else None

                self.proxy.rule = rule
                self.store(fake_clock=True, **environment).do("list", DIR)
        self.proxy.rule = lambda request: (403, {}, of_sts % "AccessDenied")
        self.proxy.requests.clear()
        self.assert_fails(self.store(fake_clock=True, **identity).ask("list", DIR), "unauthenticated", "403 AccessDenied: m")
        self.assertEqual(len(self.proxy.requests), 1)

    def test_keys_with_a_line_break_become_no_headers(self):
        answers = [self.JSON.replace('"t"', '"t\\r\\nx-amz-acl: public-read"') % "A", self.JSON % "A\\nb", self.JSON.replace('"s"', '"s s"') % "A"]
        for answer in answers:
            self.proxy.requests.clear()
            self.proxy.rule = lambda request, answer=answer: (200, {}, answer)
            store = self.store(AWS_CONTAINER_CREDENTIALS_FULL_URI=self.proxy.url + "/keys", **self.NONE)
            self.assert_fails(store.ask("list", DIR), "unauthenticated", "a line break")
            self.assertEqual(self.sent(), ["GET /keys"])
        self.assert_fails(self.store(AWS_SESSION_TOKEN="t\tu").ask("list", DIR), "unauthenticated", "session token with a blank")

    def test_an_endpoint_or_a_profile_that_cannot_be_is_refused_at_once(self):
        for environment, words in (({"AWS_ENDPOINT_URL": "ftp://x"}, "invalid endpoint 'ftp://x'"),
                                   ({"AWS_ENDPOINT_URL": "http://user:hidden@x"}, "invalid endpoint"),
                                   ({"AWS_REGION": "a/b"}, "invalid region"),
                                   ({"AWS_PROFILE": "nobody"}, "the AWS profile 'nobody'")):
            process = peer.Store(self.program, self.proxy.url, **environment).process
            _, heard = process.communicate(timeout=30)
            self.assertEqual(process.returncode, 1)
            self.assertIn(words, heard)
            self.assertNotIn("hidden", heard)


if __name__ == "__main__":
    unittest.main()
