# SPDX-License-Identifier: Apache-2.0
"""moto's S3 server in a process of its own, and boto3's transfers to it. Prints the server's URL; then for each line
"upload FILE KEY", "download KEY FILE" or "remove KEY" a line with the seconds and the processor's seconds of this process."""
import multiprocessing
import resource
import sys
import time

import boto3

BUCKET = "bench"


def serve(pipe):
    import logging
    from moto.server import ThreadedMotoServer
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    pipe.send(server.get_host_and_port())
    try:
        pipe.recv()
    except EOFError:
        pass  # the bench is over


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main():
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url = "http://%s:%d" % ours.recv()
    s3 = boto3.client("s3", endpoint_url=url, aws_access_key_id="id", aws_secret_access_key="secret", region_name="us-east-1")
    s3.create_bucket(Bucket=BUCKET)
    print(url, flush=True)
    for line in sys.stdin:
        words = line.split()
        began, used = time.monotonic(), cpu_s()
        if words[0] == "upload":
            s3.upload_file(words[1], BUCKET, words[2])
        elif words[0] == "download":
            s3.download_file(BUCKET, words[1], words[2])
        else:
            s3.delete_object(Bucket=BUCKET, Key=words[1])
        print(time.monotonic() - began, cpu_s() - used, flush=True)


if __name__ == "__main__":
    main()
