# SPDX-License-Identifier: Apache-2.0
"""moto's S3 server in a process of its own, and boto3's transfers to it. Prints a file with the server's certificate, and
its URLs by HTTP and HTTPS; then for each line "upload URL FILE KEY", "download URL KEY FILE" or "remove URL KEY" a line with
the seconds and the processor's seconds of this process."""
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

import boto3

BUCKET = "bench"


def make_certificate(folder):
    certificate, key = (os.path.join(folder, name) for name in ("certificate", "key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    "/CN=store", "-addext", "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key], check=True,
                   capture_output=True, timeout=60)
    return certificate, key


def serve(pipe, certificate):
    """Does what moto's own threaded server does, by HTTP and by TLS."""
    import logging
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    urls = []
    for scheme, context in (("http", None), ("https", certificate)):
        app = DomainDispatcherApplication(create_backend_app)
        server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=MotoRequestHandler, ssl_context=context)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        urls.append("%s://127.0.0.1:%d" % (scheme, server.server_address[1]))
    pipe.send(urls)
    try:
        pipe.recv()
    except EOFError:
        pass  # the bench is over


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main():
    folder = tempfile.TemporaryDirectory()
    certificate = make_certificate(folder.name)
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs, certificate), daemon=True)
    server.start()
    urls = ours.recv()
    clients = {
        url: boto3.client("s3", endpoint_url=url, aws_access_key_id="id", aws_secret_access_key="secret", region_name="us-east-1",
                          verify=certificate[0]) for url in urls
    }
    clients[urls[0]].create_bucket(Bucket=BUCKET)
    print("\n".join([certificate[0]] + urls), flush=True)
    for line in sys.stdin:
        verb, url, *names = line.split()
        s3 = clients[url]
        began, used = time.monotonic(), cpu_s()
        if verb == "upload":
            s3.upload_file(names[0], BUCKET, names[1])
        elif verb == "download":
            s3.download_file(BUCKET, names[0], names[1])
        else:
            s3.delete_object(Bucket=BUCKET, Key=names[0])
        print(time.monotonic() - began, cpu_s() - used, flush=True)


if __name__ == "__main__":
    main()
