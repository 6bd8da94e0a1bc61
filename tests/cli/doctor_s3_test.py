#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`muster doctor` of a directory in an object store: moto's server."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, "tests/checkpoint/s3")
import peer

MUSTER = "cli/muster"
RUN = "s3://box/run"
PATIENCE = 60
TRAIN = ["train", "--meta-graph=tests/fixtures/digits.meta", "--master=local", "--feed=x:0=@tests/fixtures/digits_x.npy",
         "--feed=y:0=@tests/fixtures/digits_y.npy", "--steps=20", "--save-every=10", "--save-blocking", "--checkpoint-dir=" + RUN]


class DoctorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = peer.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        cls.server.start()
        cls.addClassCleanup(cls.server.stop)
        url = "http://%s:%d" % cls.server.get_host_and_port()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS") and not name.lower().endswith("_proxy")}
        cls.environment = {**kept, "AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
                           "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/nonexistent",
                           "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent"}
        cls.s3 = peer.boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="id", aws_secret_access_key="secret")
        cls.s3.create_bucket(Bucket="box")
        cls.run_muster(*TRAIN)

    @classmethod
    def run_muster(cls, *words, **environment):
        return subprocess.run([MUSTER, *words], capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                              env={**cls.environment, **environment})

    def first_of(self, *words, **environment):
        """The first finding as (severity, check, its texts)."""
        done = self.run_muster("doctor", "--json", *words, **environment)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        first = json.loads(done.stdout)["findings"][0]
        return first["severity"], first["check"], first["what"] + first["try"]

    def test_finds_nothing_in_a_job_that_is_well(self):
        done = self.run_muster("doctor", RUN)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^nothing found\n  %s  3 checkpoints, the latest model.ckpt-20 \(.*, intact\); its job is over, at step 20\n$" % RUN)

    def test_reads_the_latest_checkpoint(self):
        name = dict(Bucket="box", Key="run/model.ckpt-20.data-00000-of-00001")
        whole = self.s3.get_object(**name)["Body"].read()
        self.addCleanup(self.s3.put_object, Body=whole, **name)
        self.s3.put_object(Body=whole[:100] + bytes([whole[100] ^ 1]) + whole[101:], **name)
        severity, check, said = self.first_of(RUN)
        self.assertEqual((severity, check), ("warning", "checkpoint"), said)
        self.assertIn("'model.ckpt-10'", said)

    def through(self, on_data):
        """A proxy before the store, with that rule for data files."""
        proxy = peer.Proxy(self.server.get_host_and_port())
        proxy.rule = lambda request: on_data(request) if request.method == "GET" and ".data-" in request.target else None
        self.addCleanup(proxy.stop)
        return dict(AWS_ENDPOINT_URL=proxy.url)

    def test_takes_no_silence_for_damage(self):
        severity, check, said = self.first_of(RUN, "--timeout=12", **self.through(lambda _: "stall"))
        self.assertEqual((severity, check), ("warning", "directory"), said)
        self.assertIn("the latest checkpoint couldn't be read in time", said)
        self.assertNotIn("damaged", said)

    def test_reads_the_one_that_was_saved_since(self):
        """A saver removes the latest one while it is read."""
        names = ["checkpoint", "model.ckpt-20.index", "model.ckpt-20.data-00000-of-00001"]
        at = {name: dict(Bucket="box", Key="run/" + name) for name in names}
        kept = {name: self.s3.get_object(**at[name])["Body"].read() for name in names}
        for name, body in kept.items():
            self.addCleanup(self.s3.put_object, Body=body, **at[name])

        def move(request):
            if "ckpt-20" in request.target:
                self.s3.put_object(Body=kept["checkpoint"].replace(b"ckpt-20", b"ckpt-10"), **at["checkpoint"])
                for name in names[1:]:
                    self.s3.delete_object(**at[name])

        done = self.run_muster("doctor", RUN, **self.through(move))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"the latest model.ckpt-10 \(.*, intact\)")

    def test_names_what_is_wrong_with_the_store(self):
        severity, check, said = self.first_of("s3://none/run")
        self.assertEqual((severity, check), ("error", "directory"), said)
        self.assertIn("no bucket 'none'", said)
        severity, check, said = self.first_of(RUN, "--timeout=2", AWS_ENDPOINT_URL="http://127.0.0.1:1")
        self.assertEqual((severity, check), ("error", "directory"), said)
        self.assertIn("no connection", said)


if __name__ == "__main__":
    unittest.main()
