# SPDX-License-Identifier: Apache-2.0
"""`muster` with checkpoints in an S3 store, moto's server: trained, killed and resumed, two chiefs, the subcommands, a
tier, and a TensorFlow program that saves through `muster serve`."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, "tests/checkpoint/s3")
import peer
from peer import BUCKET, KEY_ID, SECRET

FIXTURES = os.path.abspath("tests/fixtures")
MUSTER = os.path.abspath("cli/muster")
SAVE_MEMORY = os.path.abspath("tests/scenarios/save_memory")
RUN = "s3://%s/run" % BUCKET
# Each page meets a third of the commands, others than the page before; with --config=long all.
STEP = 1 if os.environ.get("MUSTER_LONG") else 3

# Saves and restores by the saver's own ops, as a program of TensorFlow's does.
TENSORFLOW = """
import sys
import tensorflow.compat.v1 as tf
target, inside, outside = sys.argv[1:]
with tf.Graph().as_default():
    v = tf.get_variable("v", initializer=tf.constant([1.0, 2.0]), use_resource=True)
    saver = tf.train.Saver(sharded=len(inside) % 2 == 0)
    info = saver.saver_def
    with tf.Session(target) as session:
        session.run(v.initializer)
        session.run(info.save_tensor_name, {info.filename_tensor_name: inside})
        session.run(v.assign([0.0, 0.0]))
        session.run(info.restore_op_name, {info.filename_tensor_name: inside})
        print("restored", session.run(v).tolist())
        try:
            session.run(info.save_tensor_name, {info.filename_tensor_name: outside})
            print("saved outside")
        except tf.errors.OpError as error:
            print("refused", " ".join(error.message.split()))
"""


class ObjectStoreTest(peer.S3Test):

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS") and name != "TF_CONFIG"}
        kept.update(AWS_ACCESS_KEY_ID=KEY_ID, AWS_SECRET_ACCESS_KEY=SECRET, AWS_REGION="eu-central-1",
                    AWS_EC2_METADATA_DISABLED="true", AWS_CONFIG_FILE="/nonexistent", AWS_SHARED_CREDENTIALS_FILE="/nonexistent",
                    AWS_ENDPOINT_URL="http://%s:%d" % self.backend)
        kept.update(more)
        return kept

    def muster(self, *words, code=0, **environment):
        done = subprocess.run([MUSTER, *words], env=self.environment(**environment), capture_output=True, text=True, timeout=120)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def start(self, *words):
        process = subprocess.Popen([MUSTER, *words], env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, preexec_fn=peer.die_with_parent)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        process.kill()
        process.wait()
        process.stdout.close()

    def trained(self, directory, *more, master="local"):
        return ["train", "--meta-graph=%s/digits.meta" % FIXTURES, "--master=" + master, "--save-blocking",
                "--feed=x:0=@%s/digits_x.npy" % FIXTURES, "--feed=y:0=@%s/digits_y.npy" % FIXTURES,
                "--checkpoint-dir=" + directory, *more]

    def wait_for_step(self, step, process):
        """Until there is a checkpoint of this step or a later one: the job may have removed that of this step again."""
        for _ in range(600):
            if any(int(found) >= step for found in re.findall(r"run/model\.ckpt-(\d+)\.index", "\n".join(self.keys()))):
                return
            if process.poll() is not None:
                break
            time.sleep(0.1)
        self.fail("step %d never came: %s\n%s" % (step, self.keys(), process.communicate()[0]))

    def listed(self, directory=RUN):
        return [json.loads(line) for line in self.muster("checkpoint", "list", "--json", directory).splitlines()]

    def left_over(self):
        """Data files without an index, and what is hidden."""
        keys = self.keys()
        return [key for key in keys if "/." in key or (".data-" in key and key.split(".data-")[0] + ".index" not in keys)]

    def test_a_job_is_killed_and_resumes(self):
        job = self.start(*self.trained(RUN, "--steps=1000000", "--save-every=20", "--keep=3"))
        self.wait_for_step(40, job)
        job.send_signal(signal.SIGKILL)
        job.wait()
        self.s3.put_object(Bucket=BUCKET, Key="run/model.ckpt-7.data-00000-of-00001", Body=b"left")
        self.s3.create_multipart_upload(Bucket=BUCKET, Key="run/model.ckpt-8.data-00000-of-00001")
        before = max(int(re.search(r"ckpt-(\d+)", one["prefix"]).group(1)) for one in self.listed())
        said = self.muster(*self.trained(RUN, "--steps=%d" % (before + 40), "--save-every=20", "--keep=3"))
        self.assertIn("trained digits to step %d" % (before + 40), said)
        self.assertRegex(said, r"restored.*step \d+|restored s3://")
        self.assertEqual((self.left_over(), self.uploads()), ([], []))
        self.assertLessEqual(len(self.listed()), 3)
        self.assertIn("intact", self.muster("checkpoint", "verify", RUN))

    def test_the_same_ones_are_the_best_over_restarts(self):
        rules = ("--save-every=10", "--keep=2", "--keep-best=2", "--metric=loss:min", "--keep-every-steps=40")
        job = self.start(*self.trained(RUN, "--steps=1000000", *rules))
        self.wait_for_step(60, job)
        job.send_signal(signal.SIGKILL)
        job.wait()
        rows = self.listed()
        latest, = (row["step"] for row in rows if row["latest"])
        # What it had published beyond its last word of it is trained again, in another branch and without a metric.
        before = {row["step"]: row for row in rows if row["step"] <= latest}
        steps = latest // 40 * 40 + 80
        self.muster(*self.trained(RUN, "--steps=%d" % steps, "--save-every=10", "--keep=2"))  # the rest by the bucket's rules
        seen = {row["step"]: row for row in self.listed() if not row["quarantined"]}
        self.assertEqual(max(seen), steps)
        losses = {step: row["metrics"]["loss"] for step, row in {**before, **seen}.items() if "loss" in row["metrics"]}
        best = sorted(step for step, row in seen.items() if any(why.startswith("best (loss ") for why in row["kept"]))
        self.assertEqual(best, sorted(sorted(losses, key=losses.get)[:2]), (before, seen))
        self.assertEqual([step for step, row in seen.items() if "newest" in row["kept"]], [steps, steps - 10])
        self.assertLessEqual({40, 80, steps}, set(seen))
        self.assertTrue(all(row["kept"] for row in seen.values()), seen)
        self.assertEqual((self.left_over(), self.uploads()), ([], []))

    def test_what_an_evaluator_marked_and_what_is_pinned_stay_over_restarts(self):
        rules = ("--save-every=10", "--keep=3", "--keep-best=1", "--metric=eval/accuracy:max")
        self.muster(*self.trained(RUN, "--steps=30", *rules))
        self.muster("checkpoint", "mark", RUN + "/model.ckpt-10", "--metric=eval/accuracy=0.97")
        self.muster("checkpoint", "pin", RUN + "/model.ckpt-20", "--why=the paper's")
        self.muster(*self.trained(RUN, "--steps=90", "--save-every=10", "--keep=3"))
        self.assertEqual({row["step"]: row["kept"] for row in self.listed()},
                         {10: ["best (eval/accuracy 0.97)"], 20: ["pinned (the paper's)"], 70: ["newest"], 80: ["newest"],
                          90: ["latest", "newest"]})

    def test_the_subcommands_read_and_prune_a_run(self):
        said = self.muster(*self.trained(RUN, "--steps=40", "--save-every=20", "--log-level=info"))
        self.assertRegex(said, r"object store: [1-9]\d* requests, sent \d.*, 0 retries")
        steps = [one["prefix"] for one in self.listed()]
        self.assertEqual(steps, [RUN + "/model.ckpt-40", RUN + "/model.ckpt-20", RUN + "/model.ckpt-0"])
        self.assertEqual(self.muster("checkpoint", "latest", RUN).strip(), RUN + "/model.ckpt-40")
        self.assertIn("step 40", self.muster("checkpoint", "show", RUN))
        self.muster("checkpoint", "diff", RUN + "/model.ckpt-40", RUN + "/model.ckpt-20", code=1)
        self.s3.create_multipart_upload(Bucket=BUCKET, Key="run/model.ckpt-8.data-00000-of-00001")  # in 2010, moto says
        self.assertIn("would remove 2 of 3", self.muster("checkpoint", "prune", "--keep=1", "--dry-run", RUN))
        self.assertEqual(len(self.uploads()), 1)
        self.assertIn("removed 2 of 3", self.muster("checkpoint", "prune", "--keep=1", RUN))
        self.assertEqual(self.uploads(), [])
        self.assertEqual([one["prefix"] for one in self.listed()], [RUN + "/model.ckpt-40"])
        self.assertEqual(self.left_over(), [])

    def test_a_store_that_stalls_ends_each_command_by_its_timeout(self):
        prefix, folder = RUN + "/model.ckpt-20", self.enterContext(tempfile.TemporaryDirectory())
        self.muster(*self.trained(RUN, "--steps=20", "--save-every=20"))
        self.proxy.rule = lambda request: "stall"
        for words in (["list", RUN], ["latest", RUN], ["prune", "--keep=1", RUN], ["pin", prefix], ["unpin", prefix],
                      ["mark", "--metric=loss=1", prefix], ["show", prefix], ["verify", prefix], ["diff", prefix, RUN],
                      ["copy", prefix, folder]):
            done = subprocess.run([MUSTER, "checkpoint", words[0], "--timeout=300ms", *words[1:]], capture_output=True, text=True,
                                  env=self.environment(AWS_ENDPOINT_URL=self.proxy.url), timeout=60)
            self.assertEqual(done.returncode, 1, (words, done.stdout + done.stderr))
            self.assertRegex(done.stderr, "before the deadline|not done in time", words)

    PAGES = {
        "404": (404, {"content-type": "text/plain"}, "404 page not found\n"),
        "bare 404": (404, {}, ""),
        "200": (200, {"content-type": "text/html"}, "<html><head><title>Sign in</title></head></html>"),
        "XHTML": (200, {"content-type": "text/html"}, "<html xmlns='http://www.w3.org/1999/xhtml'><head/><body/></html>"),
        "403": (403, {"content-type": "text/html", "server": "squid"}, "<html></html>"),
    }

    def content(self):
        listed = self.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return {one["Key"]: one["ETag"] for one in listed}

    def test_a_page_in_place_of_the_store_lets_nothing_start_afresh_or_go(self):
        self.muster(*self.trained(RUN, "--steps=20", "--save-every=10"))
        before = self.content()
        prepare = ("prepare", "--meta-graph=%s/digits.meta" % FIXTURES, "--master=local", "--checkpoint-dir=" + RUN, "--timeout=800ms")
        others = [("checkpoint", *words, "--timeout=400ms") for words in (
            ("latest", RUN), ("list", RUN), ("verify", RUN), ("prune", RUN, "--keep=1"), ("pin", RUN + "/model.ckpt-10"),
            ("copy", RUN + "/model.ckpt-10", "s3://%s/other/model.ckpt-10" % BUCKET))]
        for i, (name, page) in enumerate(self.PAGES.items()):
            self.proxy.rule = lambda request, page=page: page
            for words in (prepare, *others[i % STEP::STEP]):
                with self.subTest(page=name, command=words[:2]):
                    said = self.muster(*words, code=None, AWS_ENDPOINT_URL=self.proxy.url)
                    self.assertRegex(said, "isn't S3's answer|before the deadline")
                    for never in ("initialised", "no checkpoint", "has no file", "removed", "damaged"):
                        self.assertNotIn(never, said)
        self.assertEqual(self.content(), before)

    def test_a_gateway_whose_route_comes_up_delays_a_job_and_no_more(self):
        self.muster(*self.trained(RUN, "--steps=20", "--save-every=10"))
        for i, n in enumerate((1, 5, 9)):
            for name in ("404", "bare 404", "200", "XHTML")[i % STEP::STEP]:
                with self.subTest(page=name, requests=n):
                    left = [self.PAGES[name]] * n
                    self.proxy.rule = lambda request, left=left: left.pop() if left else None
                    steps = 30 + 10 * i
                    said = self.muster(*self.trained(RUN, "--steps=%d" % steps, "--save-every=10", "--keep=-1"),
                                       AWS_ENDPOINT_URL=self.proxy.url)
                    self.assertNotIn("initialised", said)
                    self.assertIn("digits at step", said)
        self.assertEqual(self.left_over(), [])
        self.assertEqual([one["prefix"].split("-")[-1] for one in self.listed()], ["50", "40", "30", "20", "10", "0"])

    def test_a_save_holds_little_besides_the_tensors(self):
        size = 1024 if os.environ.get("MUSTER_LONG") else 160
        done = subprocess.run([SAVE_MEMORY, str(size), RUN], env=self.environment(), capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        tensors, besides, buffered = map(int, done.stdout.split())
        self.assertEqual(tensors, size << 20)
        self.assertGreater(buffered, 8 << 20)
        self.assertLessEqual(buffered, 48 << 20)
        if "ASAN_OPTIONS" not in os.environ and "TSAN_OPTIONS" not in os.environ:  # these keep memory of their own
            self.assertLessEqual(besides, 64 << 20)
        data = [one["Size"] for one in self.s3.list_objects_v2(Bucket=BUCKET)["Contents"] if ".data-" in one["Key"]]
        self.assertGreaterEqual(sum(data), tensors)

    def test_an_evaluator_that_cannot_look_does_not_end_well(self):
        """Each checkpoint looks as if it weren't there, and the job is over."""
        self.muster(*self.trained(RUN, "--steps=20", "--save-every=10"))
        self.proxy.rule = lambda request: (403, {}, "") if "model.ckpt" in request.target else None
        said = self.muster("evaluate", "--meta-graph=%s/digits.meta" % FIXTURES, "--feed=x:0=@%s/digits_x.npy" % FIXTURES,
                           "--feed=y:0=@%s/digits_y.npy" % FIXTURES, "--metric=accuracy", "--checkpoint-dir=" + RUN, code=3,
                           AWS_ENDPOINT_URL=self.proxy.url)
        self.assertIn("model.ckpt-20", said)

    def test_a_tier_is_local_and_the_durable_one_a_bucket(self):
        with tempfile.TemporaryDirectory() as fast:
            self.muster(*self.trained(RUN, "--steps=60", "--save-every=20", "--fast-dir=%s,every=10" % fast))
            self.assertTrue(os.path.exists(fast + "/model.ckpt-60.index"))
            self.assertEqual(self.listed()[0]["prefix"], RUN + "/model.ckpt-60")
            self.assertIn("intact", self.muster("checkpoint", "verify", RUN))
            said = self.muster("checkpoint", "list", fast, RUN)
            self.assertRegex(said, r"model.ckpt-60 +%s .*latest" % re.escape(fast))
        # The store may have done what a copy that was given up had asked for, after its removal: the next job removes it.
        self.muster(*self.trained(RUN, "--steps=61", "--save-blocking"))
        self.assertEqual(self.left_over(), [])

    def served(self, *more):
        server = self.start("serve", "--listen=localhost:0", *more)
        line = server.stdout.readline()
        return re.search(r"grpc://\S+", line).group(0)

    def test_of_two_chiefs_the_older_one_saves_no_more(self):
        one, other = (self.served("--data-dir=s3://%s/run" % BUCKET) for _ in range(2))
        old = self.start(*self.trained(RUN, "--steps=1000000", "--save-every=20", master=one))
        self.wait_for_step(20, old)
        # Another master's chief takes the directory with the job.
        new = self.start(*self.trained(RUN, "--steps=1000000", "--save-every=20", master=other))
        out = old.communicate(timeout=120)[0]
        self.assertNotEqual(old.returncode, 0, out)
        self.assertIn("was taken over by the chief of 'digits'", out)
        new.send_signal(signal.SIGTERM)
        new.communicate(timeout=120)
        self.assertEqual(self.left_over(), [])
        self.assertIn("intact", self.muster("checkpoint", "verify", RUN))

    def test_tensorflow_saves_and_restores_by_ops_where_the_server_may(self):
        python = os.environ.get("MUSTER_TENSORFLOW", os.path.expanduser("~/.cache/muster/tensorflow")) + "/bin/python3"
        if not os.path.exists(python):
            self.skipTest("no TensorFlow; bazel/setup --tests installs it")
        address = self.served("--data-dir=s3://%s/tf" % BUCKET)
        for inside in ("s3://%s/tf/m" % BUCKET, "s3://%s/tf/mm" % BUCKET):
            # The client has no credentials.
            without = {name: value for name, value in self.environment().items() if not name.startswith("AWS")}
            done = subprocess.run([python, "-c", TENSORFLOW, address, inside, "s3://%s/other/m" % BUCKET],
                                  env=without, capture_output=True, text=True, timeout=240)
            self.assertIn("restored [1.0, 2.0]", done.stdout, done.stderr[-2000:])
            self.assertRegex(done.stdout, "refused .*is outside the server's data directories")
            self.assertNotIn(SECRET, done.stdout + done.stderr)
            self.assertIn("intact", self.muster("checkpoint", "verify", inside))
        self.assertEqual([key for key in self.keys() if not key.startswith("tf/m")], [])
        # A server that wasn't told of the prefix opens no store to clients, whatever its own credentials are.
        done = subprocess.run([python, "-c", TENSORFLOW, self.served(), "s3://%s/none/m" % BUCKET, "unused"], env=without,
                              capture_output=True, text=True, timeout=240)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no store supports 's3://'", done.stderr)
        self.assertEqual([key for key in self.keys() if key.startswith("none")], [])
        self.assertEqual(self.left_over(), [])

    def test_tensorflow_s_own_master_saves_and_resumes_by_way_of_the_chief(self):
        home = os.environ.get("MUSTER_TENSORFLOW", os.path.expanduser("~/.cache/muster/tensorflow"))
        if not os.path.exists(home + "/bin/python3"):
            self.skipTest("no TensorFlow; bazel/setup --tests installs it")
        for steps in (20, 40):
            said = self.muster(*self.trained(RUN, "--steps=%d" % steps, "--save-every=20", master="tensorflow:" + home))
            self.assertIn("trained digits to step %d" % steps, said)
        self.assertIn("restored %s/model.ckpt-20" % RUN, said)
        self.assertEqual(self.listed()[0]["prefix"], RUN + "/model.ckpt-40")
        self.assertEqual((self.left_over(), self.uploads()), ([], []))

    def test_a_server_without_the_prefix_refuses_it_and_the_chief_sends_the_checkpoint(self):
        address = self.served()
        said = self.muster(*self.trained(RUN, "--steps=40", "--save-every=20", master=address))
        self.assertIn("trained digits to step 40", said)
        self.assertEqual(self.listed()[0]["prefix"], RUN + "/model.ckpt-40")
        self.assertEqual((self.left_over(), self.uploads()), ([], []))
        said = self.muster(*self.trained(RUN, "--steps=60", "--save-every=20", "--restore", master=self.served()))
        self.assertIn("trained digits to step 60", said)


if __name__ == "__main__":
    unittest.main()
