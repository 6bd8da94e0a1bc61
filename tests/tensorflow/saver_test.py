# SPDX-License-Identifier: Apache-2.0
"""Savers that muster_saver_build () builds: equal to TensorFlow's own, and each side reads what the
other saves with them."""
import glob
import os
import subprocess

import numpy as np
import tensorflow as tf
from google.protobuf import text_format

import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()

TOOL = os.path.abspath("tests/saver/saver_tool")


def build(*arguments, code=0):
    done = subprocess.run([TOOL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=peer.COMMAND_SECONDS, stdin=subprocess.DEVNULL)
    if done.returncode != code:
        raise AssertionError("saver_tool %s ended with %d\n%s" % (" ".join(arguments), done.returncode, done.stderr))
    return done.stderr


def reference(name, value):
    return v1.get_variable(name, initializer=tf.constant(value), use_resource=False)


def resource(name, value):
    return v1.get_variable(name, initializer=tf.constant(value), use_resource=True)


def parts(name, n, axis=0, use_resource=False):
    return v1.get_variable(name, shape=[6, 4], initializer=v1.random_uniform_initializer(), use_resource=use_resource,
                           partitioner=v1.fixed_size_partitioner(n, axis))


def mixed():
    reference("b", [1., 2.])
    resource("a", 3)
    resource("deep/er", [[7., 8., 9.]])
    reference("flag", True)


def on_two_devices(first="/job:worker/task:0/cpu:0", second="/job:worker/task:0/device:CPU:1"):
    with tf.device(first):
        reference("b", [1., 2.])
        resource("c", [4, 5, 6])
    with tf.device(second):
        resource("a", 3)


def partitioned(n=2, axis=0, use_resource=False):
    parts("p", n, axis, use_resource)
    reference("z", [1., 2.])


def whole():
    reference("p", np.ones((6, 4), np.float32))
    reference("z", [1., 2.])


def other_shapes():
    reference("b", [[0.], [0.]])
    resource("deep/er", [0., 0., 0.])


def attr(node, key, value):
    if node.op == "Const" and key == "value":
        array = tf.make_ndarray(value.tensor)
        return (str(array.dtype), array.shape, array.tolist())
    return value.SerializeToString(deterministic=True)


def nodes_of(meta_graph, scope):
    """The nodes below a scope as TensorFlow has them after an import, and the saver's words."""
    with tf.Graph().as_default() as graph:
        saver = v1.train.import_meta_graph(meta_graph)
        found = {}
        for node in graph.as_graph_def().node:
            # a note to GPUs that nothing runs
            if node.name.startswith(scope + "/") and node.op != "DisableCopyOnRead":
                found[node.name] = (node.op, list(node.input), node.device,
                                    {k: attr(node, k, v) for k, v in node.attr.items()})
        return found, saver.saver_def


class Equal(peer.TestCase):
    maxDiff = None

    def check(self, model, words=(), scope="save", **options):
        """The saver that TensorFlow builds and muster's are alike."""
        folder = self.folder()
        bare, built, wanted = (os.path.join(folder, name) for name in ("bare", "built", "wanted"))
        with tf.Graph().as_default():
            model()
            v1.train.export_meta_graph(bare)
            saver = v1.train.Saver(**{k: v() if callable(v) else v for k, v in options.items()})
            saver.export_meta_graph(wanted)
        build("build", bare, built, *words)
        got_nodes, got_saver = nodes_of(built, scope)
        wanted_nodes, wanted_saver = nodes_of(wanted, scope)
        self.assertEqual(got_nodes, wanted_nodes)
        self.assertEqual(got_saver, wanted_saver)
        self.assertTrue(got_nodes)

    def test_of_all_variables(self):  # SAV.20, SAV.28, SAV.29
        self.check(mixed)

    def test_of_a_list(self):  # SAV.21
        self.check(mixed, ["--list=deep/er", "--list=b"],
                   var_list=lambda: [v for v in v1.global_variables() if v.op.name in ("b", "deep/er")])

    def test_of_a_map(self):  # SAV.21
        self.check(mixed, ["--map=zz=a", "--map=other/name=b", "--filename=foo", "--keep=9"], filename="foo",
                   max_to_keep=9, var_list=lambda: {"zz": v1.global_variables()[1],
                                                    "other/name": v1.global_variables()[0]})

    def test_that_reshapes(self):
        self.check(mixed, ["--reshape"], reshape=True)

    def test_that_restores_one_after_the_other(self):  # SAV.35: TensorFlow's has no other nodes for it, so none is offered
        self.check(mixed, restore_sequentially=True)
        self.check(on_two_devices, ["--sharded"], sharded=True, restore_sequentially=True)

    def test_that_keeps_all(self):
        self.check(mixed, ["--keep=-1"], max_to_keep=None)

    def test_sharded(self):  # SAV.30
        self.check(on_two_devices, ["--sharded"], sharded=True)

    def test_sharded_without_devices(self):
        self.check(mixed, ["--sharded"], sharded=True)

    def test_not_sharded_on_two_devices(self):
        self.check(on_two_devices)

    def test_of_a_gpu(self):
        self.check(lambda: on_two_devices(second="/job:worker/task:0/gpu:0"), ["--sharded"], sharded=True)

    def test_of_parts(self):  # SAV.31
        self.check(partitioned)

    def test_of_parts_that_are_resources(self):
        self.check(lambda: partitioned(3, use_resource=True))

    def test_of_twelve_parts_in_tensorflows_order(self):
        self.check(lambda: v1.get_variable("p", shape=[12, 2], use_resource=False,
                                           partitioner=v1.fixed_size_partitioner(12)))

    def test_of_parts_in_a_map(self):
        self.check(partitioned, ["--map=elsewhere=p", "--map=q=z"],
                   var_list=lambda: {"elsewhere": v1.global_variables()[:2], "q": v1.global_variables()[2]})

    def test_of_one_part_as_a_whole(self):
        self.check(partitioned, ["--map=half=p/part_0"], var_list=lambda: {"half": v1.global_variables()[0]})

    def test_of_another_name(self):
        self.check(mixed, ["--scope=hey"], name="hey", scope="hey")

    def test_with_another_in_the_graph(self):  # several savers, each with a scope of its own
        folder = self.folder()
        bare, one, two = (os.path.join(folder, name) for name in ("bare", "one", "two"))
        with tf.Graph().as_default():
            mixed()
            v1.train.export_meta_graph(bare)
            v1.train.Saver()
            saver = v1.train.Saver([v1.global_variables()[0]])
            wanted = {n.name for n in tf.compat.v1.get_default_graph().as_graph_def().node}
        build("build", bare, one, "--collect")
        build("build", one, two, "--list=b")
        with tf.Graph().as_default() as graph:
            own = v1.train.import_meta_graph(two)
            self.assertEqual({n.name for n in graph.as_graph_def().node}, wanted)
            self.assertEqual(own.saver_def, saver.saver_def)
            self.assertEqual([s.saver_def.restore_op_name for s in v1.get_collection("savers")], ["save/restore_all"])

    def test_the_default_one_is_sharded_and_registered(self):  # SAV.33
        folder = self.folder()
        bare, built = os.path.join(folder, "bare"), os.path.join(folder, "built")
        with tf.Graph().as_default():
            mixed()
            v1.train.export_meta_graph(bare)
        build("build", bare, built, "--default")
        with tf.Graph().as_default():
            own = v1.train.import_meta_graph(built)
            self.assertTrue(own.saver_def.sharded)
            self.assertEqual([s.saver_def for s in v1.get_collection("savers")], [own.saver_def])


class Shared(peer.TestCase):
    """Checkpoints by savers that muster built, over both engines."""

    def make(self, model, *words):
        """A meta graph of the model with a saver of muster's and an init op in its collection."""
        bare = os.path.join(self.folder(), "bare.meta")
        built = os.path.join(self.folder(), "built.meta")
        with tf.Graph().as_default():
            model()
            v1.add_to_collection(v1.GraphKeys.INIT_OP, v1.global_variables_initializer())
            v1.train.export_meta_graph(bare)
        build("build", bare, built, *words)
        return built

    def values(self, prefix):
        return {name: tf.train.load_checkpoint(prefix).get_tensor(name) for name, _ in tf.train.list_variables(prefix)}

    def saved_by_tensorflow(self, meta_graph):
        """Initialised and saved by TensorFlow through muster's nodes: the prefix and what it holds."""
        prefix = os.path.join(self.folder(), "model.ckpt")
        with tf.Graph().as_default():
            saver = v1.train.import_meta_graph(meta_graph)
            with v1.Session(config=v1.ConfigProto(device_count={"CPU": 2})) as session:
                session.run(v1.get_collection(v1.GraphKeys.INIT_OP))
                saver.save(session, prefix)
        return prefix

    def restored_by_tensorflow(self, meta_graph, prefix):
        with tf.Graph().as_default():
            saver = v1.train.import_meta_graph(meta_graph)
            with v1.Session(config=v1.ConfigProto(device_count={"CPU": 2})) as session:
                saver.restore(session, prefix)
                again = saver.save(session, os.path.join(self.folder(), "again"))
        return self.values(again)

    def saved_by(self, server, meta_graph):
        folder = self.folder()
        with server() as target:
            where = ["--meta-graph=" + meta_graph, "--master=" + target, "--timeout=60"]
            peer.muster("prepare", *where)
            peer.muster("save", *where, "--checkpoint-dir=" + folder)
        return v1.train.latest_checkpoint(folder)

    def restored_by(self, server, meta_graph, prefix):
        folder = self.folder()
        with server() as target:
            where = ["--meta-graph=" + meta_graph, "--master=" + target, "--timeout=60"]
            peer.muster("prepare", *where, "--checkpoint-dir=" + os.path.dirname(prefix))
            peer.muster("save", *where, "--checkpoint-dir=" + folder)
        return self.values(v1.train.latest_checkpoint(folder))

    def check_same(self, got, wanted):
        self.assertEqual(sorted(got), sorted(wanted))
        for name, value in wanted.items():
            np.testing.assert_array_equal(got[name], value, err_msg=name)

    def check_both_ways(self, meta_graph, keys, n_files=1):
        tensorflows = self.saved_by_tensorflow(meta_graph)
        self.assertEqual(sorted(self.values(tensorflows)), keys)
        for server in (peer.muster_server, lambda: peer.tensorflow_server(cpus=2)):
            saved = self.saved_by(server, meta_graph)
            self.assertEqual(sorted(self.values(saved)), keys)
            self.assertEqual(len(glob.glob(saved + ".data-*-of-*")), n_files)
            self.check_same(self.restored_by_tensorflow(meta_graph, saved), self.values(saved))
        self.check_same(self.restored_by(peer.muster_server, meta_graph, tensorflows), self.values(tensorflows))

    def test_of_a_list(self):
        self.check_both_ways(self.make(mixed, "--list=flag", "--list=b", "--list=a", "--list=deep/er"),
                             ["a", "b", "deep/er", "flag"])

    def test_of_a_map(self):
        self.check_both_ways(self.make(mixed, "--map=else=b", "--map=where/a=a", "--map=deep=deep/er",
                                       "--map=flag=flag"), ["deep", "else", "flag", "where/a"])

    def test_that_is_sharded_over_two_devices(self):  # SAV.30, SAV.47
        meta_graph = self.make(lambda: on_two_devices("/cpu:0", "/cpu:1"), "--sharded")
        self.check_both_ways(meta_graph, ["a", "b", "c"], n_files=2)

    def test_of_parts_that_are_restored_whole_and_into_other_parts(self):  # SAV.31
        split = self.make(partitioned)
        tensorflows = self.saved_by_tensorflow(split)
        musters = self.saved_by(peer.muster_server, split)
        others = [self.make(lambda: partitioned(3)), self.make(lambda: partitioned(2, axis=1)),
                  self.make(lambda: partitioned(3, use_resource=True)), self.make(whole)]
        for other in others:
            self.check_same(self.restored_by_tensorflow(other, musters), self.values(musters))
            self.check_same(self.restored_by(peer.muster_server, other, tensorflows), self.values(tensorflows))
        in_one = self.saved_by(peer.muster_server, others[-1])
        self.check_same(self.restored_by_tensorflow(split, in_one), self.values(in_one))
        self.check_same(self.restored_by(peer.muster_server, split, in_one), self.values(in_one))

    def test_that_reshapes(self):
        saved = self.saved_by_tensorflow(self.make(mixed))
        reshaped = self.make(other_shapes, "--reshape")
        for got in (self.restored_by_tensorflow(reshaped, saved),
                    self.restored_by(peer.tensorflow_server, reshaped, saved)):
            np.testing.assert_array_equal(got["b"], [[1.], [2.]])
            np.testing.assert_array_equal(got["deep/er"], [7., 8., 9.])


def read(path):
    meta_graph = tf.compat.v1.MetaGraphDef()
    with open(path, "rb") as file:
        meta_graph.ParseFromString(file.read())
    return meta_graph


def all_nodes(meta_graph):
    """Nodes without the shapes that exports note."""
    return {n.name: (n.op, list(n.input), n.device, {k: attr(n, k, v) for k, v in n.attr.items()
                                                     if k != "_output_shapes"})
            for n in meta_graph.graph_def.node}


def scoped():
    """A model with a part below "inner/" that takes nothing from outside but "x"."""
    with tf.device("/cpu:0"):
        x = v1.placeholder(tf.float32, [2], name="x")
        outside = reference("outside", [1., 2.])
    with v1.variable_scope("inner"):
        a = reference("a", [3., 4.])
        r = resource("r", [5., 6.])
        v1.add_to_collection("mine", tf.identity(a * r, name="own"))
    v1.add_to_collection("mine", tf.identity(outside, name="others"))
    v1.add_to_collection("numbers", 7)
    return x


def leaky():
    x = scoped()
    with v1.name_scope("inner/"):
        tf.add(x, x, name="twice_x")


class Exchange(peer.TestCase):
    """SAV.70 to SAV.74: what muster exports and imports is what TensorFlow does."""
    maxDiff = None

    def export(self, model, with_saver=True, **how):
        """The model as TensorFlow exports it plainly, and in this way."""
        folder = self.folder()
        plain, special = os.path.join(folder, "plain"), os.path.join(folder, "special")
        with tf.Graph().as_default():
            model()
            saver = v1.train.Saver() if with_saver else v1.train
            saver.export_meta_graph(plain)
            saver.export_meta_graph(special, **how)
        return plain, read(special)

    def run_tool(self, verb, path, *words):
        out = os.path.join(self.folder(), "out")
        build(verb, path, out, *words)
        return out

    def check_alike(self, got, wanted):
        self.assertEqual(all_nodes(got), all_nodes(wanted))
        self.assertEqual(got.saver_def, wanted.saver_def)
        self.assertEqual(sorted(got.collection_def), sorted(wanted.collection_def))
        for key in wanted.collection_def:
            self.assertEqual(got.collection_def[key], wanted.collection_def[key], key)

    def test_nothing_changes_where_nothing_is_asked(self):
        plain, _ = self.export(scoped)
        self.assertEqual(read(self.run_tool("export", plain)), read(plain))

    def test_the_contents_go_along(self):  # SAV.71
        def full():
            mixed()
            v1.add_to_collection("ints", 1 << 40)
            v1.add_to_collection("floats", 2.5)
            v1.add_to_collection("bytes", b"\xff\x00")
            v1.add_to_collection("nodes", tf.constant(1, name="one"))
        plain, wanted = self.export(full, clear_devices=True)
        got = read(self.run_tool("export", plain, "--clear-devices"))
        self.check_alike(got, wanted)
        self.assertEqual(got.saver_def.restore_op_name, "save/restore_all")
        self.assertEqual(got.graph_def.versions, read(plain).graph_def.versions)
        names = [op.name for op in got.meta_info_def.stripped_op_list.op]
        self.assertEqual(names, sorted({node.op for node in got.graph_def.node}))
        self.assertFalse(any(op.description or op.summary for op in got.meta_info_def.stripped_op_list.op))
        self.assertTrue(all("_output_shapes" in node.attr for node in got.graph_def.node if node.op == "VariableV2"))
        kinds = {key: got.collection_def[key].WhichOneof("kind") for key in ("ints", "floats", "bytes", "nodes",
                                                                                 "variables")}
        self.assertEqual(kinds, {"ints": "int64_list", "floats": "float_list", "bytes": "bytes_list",
                                 "nodes": "node_list", "variables": "bytes_list"})

    def test_devices_are_cleared(self):  # SAV.74
        plain, wanted = self.export(scoped, clear_devices=True)
        got = read(self.run_tool("export", plain, "--clear-devices"))
        self.check_alike(got, wanted)
        self.assertEqual({n.device for n in got.graph_def.node}, {""})
        self.assertEqual(read(self.run_tool("import", plain, "--clear-devices")), got)
        self.assertEqual(got.meta_info_def, read(plain).meta_info_def)

    def test_default_attributes_are_stripped(self):  # SAV.48
        plain, wanted = self.export(scoped, strip_default_attrs=True)
        got = read(self.run_tool("export", plain, "--strip"))
        self.check_alike(got, wanted)
        self.assertTrue(got.meta_info_def.stripped_default_attrs)
        self.assertNotEqual(all_nodes(got), all_nodes(read(plain)))

    def test_other_savers_are_cleared(self):  # SAV.74
        def two():
            scoped()
            v1.add_to_collection("savers", v1.train.Saver())
        plain, wanted = self.export(two, clear_extraneous_savers=True)
        got = read(self.run_tool("export", plain, "--clear-savers"))
        self.check_alike(got, wanted)
        self.assertEqual({n.name.split("/")[0] for n in got.graph_def.node if n.op == "SaveV2"}, {"save_1"})
        self.assertEqual(len(got.collection_def["savers"].bytes_list.value), 1)

    def test_a_scope_is_exported(self):  # SAV.74
        plain, wanted = self.export(scoped, with_saver=False, export_scope="inner")
        got = read(self.run_tool("export", plain, "--scope=inner"))
        self.check_alike(got, wanted)
        self.assertFalse(got.HasField("saver_def"))

    def test_a_saver_outside_the_scope_stays_behind(self):  # SAV.28
        plain, _ = self.export(scoped)
        self.assertFalse(read(self.run_tool("export", plain, "--scope=inner")).HasField("saver_def"))

    def test_a_value_from_outside_is_fed(self):  # SAV.74
        plain, _ = self.export(leaky, with_saver=False)
        with tf.Graph().as_default():
            v1.train.import_meta_graph(self.run_tool("export", plain, "--scope=inner"))
            with v1.Session() as session:
                got = session.run("twice_x:0", {"unbound_inputs_x:0": [1., 2.]})
        np.testing.assert_array_equal(got, [2., 4.])

    def test_a_scope_is_imported(self):  # SAV.72
        plain, _ = self.export(mixed)
        got = read(self.run_tool("import", plain, "--scope=deep/there"))
        with tf.Graph().as_default():
            saver = v1.train.import_meta_graph(plain, import_scope="deep/there")
            wanted = v1.train.export_meta_graph(saver_def=saver.saver_def)
        self.check_alike(got, wanted)

    def test_what_is_imported_below_a_scope_saves_and_restores(self):  # SAV.72
        plain, _ = self.export(partitioned)
        there = self.run_tool("import", plain, "--scope=there")
        with tf.Graph().as_default():
            saver = v1.train.import_meta_graph(there)
            self.assertEqual(saver.saver_def.restore_op_name, "there/save/restore_all")
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                prefix = saver.save(session, os.path.join(self.folder(), "model"))
                saver.restore(session, prefix)
        self.assertEqual([name for name, _ in tf.train.list_variables(prefix)], ["p", "z"])

    def test_a_scope_that_is_imported_and_exported_is_the_same(self):  # SAV.73
        for model in (mixed, on_two_devices, partitioned):
            plain, _ = self.export(model)
            there = self.run_tool("import", plain, "--scope=there")
            self.assertEqual(read(self.run_tool("export", there, "--scope=there")), read(plain))

    def test_text_is_read_and_written(self):  # SAV.70
        for model in (mixed, leaky, partitioned):
            plain, _ = self.export(model)
            text = plain + ".txt"
            with open(text, "w") as file:
                file.write(text_format.MessageToString(read(plain)))
            self.assertEqual(read(self.run_tool("import", text)), read(plain))
            with open(self.run_tool("export", plain, "--text")) as file:
                self.assertEqual(text_format.Parse(file.read(), v1.MetaGraphDef()), read(plain))

    def test_every_kind_of_field_goes_through_text(self):
        meta_graph = v1.MetaGraphDef()
        node = meta_graph.graph_def.node.add(name="c", op="Const")
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto([1.5, -0.0, float("inf"), float("nan"), 1e-45]))
        node.attr["doubles"].tensor.CopyFrom(tf.make_tensor_proto(np.array([0.1, 1e300]), shape=[2]))
        node.attr["doubles"].tensor.double_val.extend([0.1, 1e300, -5e-324])
        node.attr["floats"].list.f.extend([0.1, 3e38])
        node.attr["ints"].list.i.extend([-1, 2 ** 63 - 1, -2 ** 63])
        node.attr["bools"].list.b.extend([True, False])
        node.attr["types"].list.type.extend([1, 101])
        node.attr["zero"].i = 0
        node.attr["bytes"].s = bytes(range(256))
        node.attr["text"].placeholder = "h\u00e4, \u4e2d\""
        node.attr["shape"].shape.dim.add(size=-1)
        meta_graph.collection_def["f"].float_list.value.extend([1.25, 1e10])
        meta_graph.signature_def["s"].inputs["x"].name = "c:0"
        meta_graph.graph_def.library.function.add().signature.name = "f"
        folder = self.folder()
        path, text = os.path.join(folder, "binary"), os.path.join(folder, "text")
        with open(path, "wb") as file:
            file.write(meta_graph.SerializeToString())
        with open(text, "w") as file:
            file.write(text_format.MessageToString(meta_graph))
        wanted = meta_graph.SerializeToString(deterministic=True)
        self.assertEqual(read(self.run_tool("import", text)).SerializeToString(deterministic=True), wanted)
        with open(self.run_tool("export", path, "--text")) as file:
            got = text_format.Parse(file.read(), v1.MetaGraphDef())
        self.assertEqual(got.SerializeToString(deterministic=True), wanted)


if __name__ == "__main__":
    peer.main()
