# SPDX-License-Identifier: Apache-2.0
"""muster's .proto files declare TensorFlow's messages as the installed TensorFlow has them: each field's number, type and label.

A field may be left out. A message that merely passes may be declared as its bytes, and an enum as int32: on the wire they are the same. And the engine's operations have the attributes that TensorFlow's declare.
"""
import glob
import importlib
import os
import re
import subprocess
import sys

import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool
from tensorflow.python.framework import op_def_registry

import master_rpc
import peer

OPS_TOOL = os.path.abspath("tests/tensorflow/ops_tool")
Field = descriptor_pb2.FieldDescriptorProto
# Packages of ours that hold TensorFlow's messages, and what TensorFlow calls them.
PACKAGES = {"tensorflow": "tensorflow", "tensorflow_text": "tensorflow"}
# A file that can't import another's messages has names of its own for them.
NAMES = {"BundleShape": "TensorShapeProto", "BundleVersion": "VersionDef", "MetaInfoDef": "MetaGraphDef.MetaInfoDef"}
SAME_ON_THE_WIRE = {(Field.TYPE_BYTES, Field.TYPE_MESSAGE), (Field.TYPE_INT32, Field.TYPE_ENUM)}


def import_all():
    """All of TensorFlow's messages into the default pool."""
    root = os.path.dirname(tf.__file__)
    for folder in ("core/framework", "core/protobuf", "core/util", "core/example"):
        for path in sorted(glob.glob(os.path.join(root, folder, "*_pb2.py"))):
            name = os.path.relpath(path, os.path.dirname(root))[:-3].replace(os.sep, ".")
            importlib.import_module(name)


def their_name(name):
    first, *rest = name.split(".")
    return ".".join([NAMES.get(first, first)] + rest)


def messages(file):
    """The messages of a file with their names within the package, those in messages as well, but for a map's entries."""
    def walk(prefix, declared):
        for message in declared:
            if not message.options.map_entry:
                yield prefix + message.name, message
                yield from walk(prefix + message.name + ".", message.nested_type)

    yield from walk("", file.message_type)


class Descriptors(peer.TestCase):
    @classmethod
    def setUpClass(cls):
        import_all()
        assert master_rpc.MESSAGES and master_rpc.load("worker.proto")  # which bring the services'
        read = descriptor_pb2.FileDescriptorSet()
        with open("tests/tensorflow/declared.bin", "rb") as file:
            read.ParseFromString(file.read())
        cls.files = [file for file in read.file if file.package in PACKAGES]

    def check_field(self, where, field, theirs):
        self.assertEqual(field.number, theirs.number, where)
        mine, other = field.type, theirs.type
        self.assertTrue(mine == other or (mine, other) in SAME_ON_THE_WIRE,
                        "%s is %s, but %s in TensorFlow" % (where, Field.Type.Name(mine), Field.Type.Name(other)))
        self.assertEqual(field.label == Field.LABEL_REPEATED, theirs.is_repeated, where)
        if field.label == Field.LABEL_REPEATED and mine not in (Field.TYPE_MESSAGE, Field.TYPE_BYTES, Field.TYPE_STRING):
            self.assertTrue(theirs.is_packed, where)
        if mine == Field.TYPE_MESSAGE and not theirs.message_type.GetOptions().map_entry:
            self.assertEqual(their_name(field.type_name.split(".", 2)[2]), theirs.message_type.full_name.split(".", 1)[1], where)

    def check_map(self, where, entry, theirs):
        self.assertTrue(theirs.message_type.GetOptions().map_entry, where)
        for field in entry.field:
            self.check_field("%s.%s" % (where, field.name), field, theirs.message_type.fields_by_name[field.name])

    def test_every_field_is_tensorflows(self):
        pool, n_fields = descriptor_pool.Default(), 0
        for file in self.files:
            for name, message in messages(file):
                theirs = pool.FindMessageTypeByName("%s.%s" % (PACKAGES[file.package], their_name(name)))
                entries = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
                for field in message.field:
                    where = "%s: %s.%s" % (file.name, name, field.name)
                    if field.name.startswith("muster_"):  # muster's own, which TensorFlow skips
                        self.assertGreaterEqual(field.number, 1000, where)
                        self.assertNotIn(field.number, theirs.fields_by_number, where)
                        continue
                    self.assertIn(field.name, theirs.fields_by_name, where)
                    self.check_field(where, field, theirs.fields_by_name[field.name])
                    entry = entries.get(field.type_name.rsplit(".", 1)[-1])
                    if entry is not None:
                        self.check_map(where, entry, theirs.fields_by_name[field.name])
                    n_fields += 1
        self.assertGreater(n_fields, 200)
        print("%d fields in %d files" % (n_fields, len(self.files)), file=sys.stderr)

    def test_every_value_of_an_enum_is_tensorflows(self):
        pool = descriptor_pool.Default()
        for file in self.files:
            for enum in file.enum_type:
                theirs = pool.FindEnumTypeByName("%s.%s" % (PACKAGES[file.package], enum.name))
                for value in enum.value:
                    self.assertEqual(value.number, theirs.values_by_name[value.name].number, value.name)

    def test_the_methods_are_tensorflows(self):
        declared = {message.name for file in self.files if file.name.endswith("master.proto") for message in file.message_type}
        for name in master_rpc.MESSAGES:
            if name not in ("RunStepRequest", "RunStepResponse", "RunCallableRequest", "RunCallableResponse"):
                self.assertIn(name, declared)

    def test_the_engine_accounts_for_every_attribute(self):
        """Each that an op of TensorFlow declares is read, must be false, or has no effect; and it declares each that we list."""
        ops = {op: attributes for op, attributes, _ in self.all_ops()}
        declared = {op: [attr.name for attr in op_def_registry.get(op).attr] for op in ops}
        self.assertEqual(self.ops_tool(*("%s:%s" % (op, attr) for op in ops for attr in declared[op])), [])
        for op, attributes in ops.items():
            self.assertLessEqual({re.split("[:=>]", word)[0] for word in attributes.split()}, set(declared[op]), op)
        print("%d attributes of %d operations" % (sum(map(len, declared.values())), len(ops)), file=sys.stderr)

    def test_the_engine_wants_as_many_tensors(self):
        """How many there are at least of an argument that is several, and how long a list of types is."""
        for op, attributes, _ in self.all_ops():
            mine = dict(re.findall(r"(\w+)>=(\d+)", attributes))
            declared = op_def_registry.get(op)
            many = {name for arg in [*declared.input_arg, *declared.output_arg] for name in (arg.number_attr, arg.type_list_attr)}
            for attr in declared.attr:
                if attr.name in many:
                    self.assertEqual(int(mine.pop(attr.name, 1)), attr.minimum, "%s of %s" % (attr.name, op))
            self.assertEqual(mine, {}, op)

    def test_the_engine_knows_what_has_a_state(self):
        """What acts or reads has one in TensorFlow, or takes a variable; what only computes hasn't and doesn't."""
        for op, _, effect in self.all_ops():
            declared = op_def_registry.get(op)
            has_state = declared.is_stateful or any(arg.is_ref for arg in declared.input_arg)
            if op == "GenerateVocabRemapping":  # reads files, which are no state there
                has_state = True
            elif op in ("RefMerge", "RefSwitch", "StatelessRandomGetAlg"):  # passes references on; varies by the device
                has_state = False
            self.assertEqual(effect != "", has_state, op)

    def all_ops(self):
        return [line.split("\t") for line in self.ops_tool()]

    def ops_tool(self, *arguments):
        return subprocess.run([OPS_TOOL, *arguments], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout.splitlines()


if __name__ == "__main__":
    peer.main()
