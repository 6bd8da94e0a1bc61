# SPDX-License-Identifier: Apache-2.0
"""Where the commands of a test find its files: in its directory, or, for a script that is started with "s3", in a bucket of
moto's server. There each command sees what the directory has at that time, with the times of the files, and the directory
then has what the command left. Names are as long as those of the directory, and what is said is as if it were there, so that
a test says the same of both."""
import datetime
import os
import subprocess
import sys
import unittest

MUSTER = "cli/muster"
BUCKET = "box"
LIMIT_S = 60
on_s3 = sys.argv[1:2] == ["s3"]
local_only = unittest.skipIf(on_s3, "of directories alone")


class Directory:

    def __init__(self, directory):
        self.directory = directory

    def words(self, words):
        return words

    def text(self, text):
        return text

    def send(self):
        pass

    receive = send

    def is_writing(self, name):
        """Whether a command has begun the data of a checkpoint in the folder."""
        return any(".saving-" in file and ".data-" in file for file in os.listdir(os.path.join(self.directory, name)))

    def left(self, name):
        """What a command left in the folder."""
        return [file for file in os.listdir(os.path.join(self.directory, name)) if file != ".muster.lock"]


class Bucket:
    server = None

    @classmethod
    def serve(cls):
        sys.path.insert(0, "tests/checkpoint/s3")
        import peer
        cls.server = peer.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        cls.server.start()
        url = "http://%s:%d" % cls.server.get_host_and_port()
        for name in [name for name in os.environ if name.startswith("AWS") or name.lower().endswith("_proxy")]:
            del os.environ[name]
        os.environ.update(AWS_ENDPOINT_URL=url, AWS_ACCESS_KEY_ID="id", AWS_SECRET_ACCESS_KEY="secret", AWS_REGION="us-east-1",
                          AWS_EC2_METADATA_DISABLED="true", AWS_CONFIG_FILE="/nonexistent", AWS_SHARED_CREDENTIALS_FILE="/nonexistent")
        cls.s3 = peer.boto3.client("s3", endpoint_url=url, region_name="us-east-1")
        cls.s3.create_bucket(Bucket=BUCKET)

    def __init__(self, directory):
        if Bucket.server is None:
            Bucket.serve()
        self.directory = directory
        start = "s3://%s/" % BUCKET
        self.prefix = directory[len(start):].replace("/", "_")
        self.url = start + self.prefix
        self.sent = {}  # by name, the file's state in both places

    def words(self, words):
        return [word if word.startswith(("--map-file=", "--to=")) else word.replace(self.directory, self.url) for word in words]

    def text(self, text):
        return text.replace(self.url, self.directory)

    def local(self):
        files = {}
        for folder, _, names in os.walk(self.directory):
            for name in names:
                path = os.path.join(folder, name)
                found = os.stat(path)
                files[os.path.relpath(path, self.directory)] = (found.st_size, found.st_mtime_ns)
        return files

    def remote(self):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=self.prefix + "/")
        return {
            one["Key"][len(self.prefix) + 1:]: (one["ETag"], one["LastModified"]) for page in pages for one in page.get("Contents", [])
        }

    def note(self):
        local, remote = self.local(), self.remote()
        self.sent = {name: (local[name], remote[name]) for name in local.keys() & remote.keys()}

    def send(self):
        from moto.s3.models import s3_backends
        local = self.local()
        for name in self.sent.keys() - local.keys():
            self.s3.delete_object(Bucket=BUCKET, Key="%s/%s" % (self.prefix, name))
        for name, state in local.items():
            if name in self.sent and self.sent[name][0] == state:
                continue
            key = "%s/%s" % (self.prefix, name)
            with open(os.path.join(self.directory, name), "rb") as file:
                self.s3.put_object(Bucket=BUCKET, Key=key, Body=file.read())
            when = datetime.datetime.fromtimestamp(state[1] / 1e9, datetime.timezone.utc).replace(tzinfo=None)
            s3_backends["123456789012"]["aws"].buckets[BUCKET].keys[key].last_modified = when
        self.note()

    def receive(self):
        remote = self.remote()
        for name in self.sent.keys() - remote.keys():
            os.unlink(os.path.join(self.directory, name))
        for name, state in remote.items():
            if name in self.sent and self.sent[name][1] == state:
                continue
            path = os.path.join(self.directory, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(self.s3.get_object(Bucket=BUCKET, Key="%s/%s" % (self.prefix, name))["Body"].read())
            os.utime(path, (state[1].timestamp(),) * 2)
        self.note()

    def uploads(self, name):
        uploads = self.s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
        return ["upload of " + one["Key"] for one in uploads if one["Key"].startswith("%s/%s/" % (self.prefix, name))]

    def is_writing(self, name):
        """Whether an upload has a part: its writer then knows of it."""
        uploads = self.s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
        start = "%s/%s/" % (self.prefix, name)
        return any(self.s3.list_parts(Bucket=BUCKET, Key=one["Key"], UploadId=one["UploadId"]).get("Parts", []) for one in uploads
                   if one["Key"].startswith(start))

    def left(self, name):
        return [key for key in self.remote() if key.startswith(name + "/")] + self.uploads(name)


current = None


def use(directory):
    """The place of a directory, for the commands from now on."""
    global current
    current = (Bucket if on_s3 else Directory)(directory)
    return current


def start(*words):
    """`muster checkpoint WORDS…`, without what it says."""
    current.send()
    return subprocess.Popen([MUSTER, "checkpoint", *current.words(words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run(*words):
    """The exit code, standard output and standard error of `muster checkpoint WORDS…`."""
    if current is not None:
        current.send()
    given = current.words(words) if current is not None else words
    done = subprocess.run([MUSTER, "checkpoint", *given], capture_output=True, text=True, timeout=LIMIT_S)
    if current is None:
        return done.returncode, done.stdout, done.stderr
    current.receive()
    return done.returncode, current.text(done.stdout), current.text(done.stderr)
