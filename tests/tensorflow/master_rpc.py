# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's MasterService by hand: every RPC with every field, as no Python client of TensorFlow's sends them.

The messages come from the installed package. Python has no master_pb2 or worker_pb2; their descriptors lie in TensorFlow's library.
"""
import mmap
import os
import threading

import grpc
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
# for their descriptors, which master.proto imports
from tensorflow.core.framework import device_attributes_pb2, graph_pb2, tensor_pb2  # noqa: F401
from tensorflow.core.protobuf import config_pb2, error_codes_pb2, named_tensor_pb2  # noqa: F401

_FOLDER = "tensorflow/core/protobuf/"
_METHODS = ("CreateSession ExtendSession PartialRunSetup RunStep CloseSession ListDevices Reset MakeCallable "
            "RunCallable ReleaseCallable").split()
SECONDS = 30


def library():
    return os.path.join(os.path.dirname(tf.__file__), "libtensorflow_cc.so.2")


def _fields_end(data, at):
    """Where a FileDescriptorProto that begins at `at` ends: after the last field that it can have."""
    def varint(at):
        value = shift = 0
        while True:
            byte = data[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value, at

    known = {field.number for field in descriptor_pb2.FileDescriptorProto.DESCRIPTOR.fields}
    while True:
        tag, after = varint(at)
        if tag >> 3 not in known or tag & 7 not in (0, 2):
            return at
        size, after = varint(after)
        at = after + size if tag & 7 == 2 else after
        if tag >> 3 == 12:  # "syntax", which protoc writes last
            return at


def descriptor(name):
    """The FileDescriptorProto of a file such as master.proto, out of TensorFlow's library."""
    path = (_FOLDER + name).encode()
    with open(library(), "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(b"\x0a" + bytes([len(path)]) + path)
        if at < 0:
            raise RuntimeError("no descriptor of %s in %s" % (name, library()))
        return descriptor_pb2.FileDescriptorProto.FromString(data[at:_fields_end(data, at)])


def load(name):
    """The file's messages by name, in the default pool, which has those that it imports."""
    pool = descriptor_pool.Default()
    try:
        file = pool.FindFileByName(_FOLDER + name)
    except KeyError:
        pool.AddSerializedFile(descriptor(name).SerializeToString())
        file = pool.FindFileByName(_FOLDER + name)
    return {name: message_factory.GetMessageClass(message) for name, message in file.message_types_by_name.items()}


MESSAGES = load("master.proto")


class Failed(Exception):
    """What an RPC, or the body of its answer, says went wrong."""

    def __init__(self, code, message, in_body=False):
        super().__init__("%s: %s" % (code, message))
        self.code, self.message, self.in_body = code, message, in_body


class Master:
    """A MasterService: master.RunStep(session_handle=…, fetch=[…]) gives the response or raises Failed."""

    def __init__(self, target):
        limits = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self._channel = grpc.insecure_channel(target.split("://")[-1], options=limits)
        for name in _METHODS:
            setattr(self, name, self._method(name))

    def _method(self, name):
        call = self._channel.unary_unary(
            "/tensorflow.MasterService/" + name, request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=MESSAGES[name + "Response"].FromString)

        def run(timeout=SECONDS, **fields):
            try:
                response = call(MESSAGES[name + "Request"](**fields), timeout=timeout)
            except grpc.RpcError as error:
                raise Failed(error.code().name, error.details()) from None
            if name == "RunStep" and response.status_code != 0:
                raise Failed(error_codes_pb2.Code.Name(response.status_code), response.status_error_message, True)
            return response

        return run

    def close(self):
        self._channel.close()


def tensor(value, dtype=None):
    return tf.make_tensor_proto(value, dtype=dtype)


def feed(name, value, dtype=None):
    return named_tensor_pb2.NamedTensorProto(name=name, tensor=tensor(value, dtype))


def start(function):
    """Runs function on a thread; the result is a function that waits for it and gives what it gave or raises."""
    got = []

    def run():
        try:
            got.append((function(), None))
        except Exception as error:  # told by wait
            got.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def wait(seconds=SECONDS):
        thread.join(seconds)
        if not got:
            raise TimeoutError("no answer in %g s" % seconds)
        value, error = got[0]
        if error is not None:
            raise error
        return value

    return wait
