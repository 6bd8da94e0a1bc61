#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs and tensors from Python."""
import gc
import math

import case
from case import FOREVER, GLib, Muster, MusterEngine


def line():
    """y = w * x, with w and the way to set it."""
    builder = Muster.GraphBuilder.new()
    builder.placeholder("x", Muster.DType.FLOAT, [-1])
    builder.variable("w", case.tensor("f", [2], []))
    builder.node("Mul", "y")
    builder.input("x")
    builder.input("w/read")
    builder.attr_type("T", Muster.DType.FLOAT)
    builder.group("init", ["w/Assign"])
    return builder.end()


class Builder(case.TestCase):
    def test_a_built_graph_runs(self):
        session = MusterEngine.Master.new().create_session(line(), None, FOREVER, None)
        session.run_op("init", FOREVER, None)
        step = Muster.StepBuilder.new()
        step.feed("x:0", case.tensor("f", [1, 2, 3]))
        step.fetch("y:0")
        self.assertEqual(case.values(step.run(session, FOREVER, None)[0]), [2, 4, 6])

    def test_each_attribute_arrives(self):
        builder = Muster.GraphBuilder.new()
        builder.constant("c", case.tensor("i", [1, 2]))
        builder.node("Op", "n")
        builder.device("/cpu:0")
        builder.attr_type("a", Muster.DType.INT64)
        builder.attr_types("b", [Muster.DType.FLOAT, Muster.DType.STRING])
        builder.attr_int("d", -3)
        builder.attr_float("e", 0.5)
        builder.attr_bool("f", True)
        builder.attr_string("g", "text")
        builder.attr_shape("h", [2, -1])
        builder.attr_tensor("i", case.tensor("q", [7]))
        builder.colocate("c")
        text = builder.end().bytes().get_data()
        for part in (b"/cpu:0", b"\x32\x02\x01\x07", b"text", b"loc:@c"):
            self.assertIn(part, text)

    def test_a_mistake_is_named(self):
        builder = Muster.GraphBuilder.new()
        builder.node("NoOp", "a")
        builder.node("NoOp", "a")
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "two nodes are named 'a'", builder.end)

    def test_nodes_are_added_to_a_graph(self):
        builder = Muster.GraphBuilder.new_extension()
        builder.node("Neg", "z")
        builder.input("y")
        builder.attr_type("T", Muster.DType.FLOAT)
        extended = line().extended(builder.end())
        self.assertTrue(extended.parse())
        self.assertTrue(extended.has_node("z"))
        self.assertEqual(extended.n_nodes(), line().n_nodes() + 1)
        self.assertEqual(extended.placeholder_dtype("x:0"), Muster.DType.FLOAT)
        self.assertEqual(extended.placeholder_dtype("z"), Muster.DType.INVALID)


class DTypes(case.TestCase):
    def test_names_and_sizes(self):
        self.assertEqual(Muster.dtype_name(Muster.DType.INT32), "int32")
        self.assertEqual(Muster.dtype_from_name("double"), Muster.DType.DOUBLE)
        self.assertEqual(Muster.dtype_size(Muster.DType.COMPLEX128), 16)
        self.assertFalse(Muster.dtype_is_supported(Muster.DType.VARIANT))

    def test_short_floats(self):
        self.assertEqual(Muster.half_to_float(Muster.half_from_float(0.5)), 0.5)
        self.assertEqual(Muster.bfloat16_to_float(Muster.bfloat16_from_float(-2)), -2)


class Tensors(case.TestCase):
    def test_shapes(self):
        self.assertEqual(Muster.shape_n_elements([2, 3]), 6)
        self.assertEqual(Muster.shape_n_elements([2, -1]), -1)
        self.assertEqual(Muster.shape_to_string([2, -1]), "[2,?]")

    def test_elements_go_in_and_out(self):
        tensor = Muster.Tensor.new_from_data(Muster.DType.INT32, [2], bytes([1, 0, 0, 0, 2, 0, 0, 0]))
        self.assertEqual((tensor.n_dims(), tensor.n_elements(), tensor.n_bytes(), tensor.n_stored()), (1, 2, 8, 8))
        self.assertTrue(tensor.equal(case.tensor("i", [1, 2])))
        self.assertEqual(tensor.reshape([2, 1]).shape(), [2, 1])
        self.assertEqual(tensor.to_string(1), "[1, …]")
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "", Muster.Tensor.new_from_data, Muster.DType.INT32, [2], b"abc")

    def test_memory_is_given_for_a_shape(self):
        for make in (Muster.Tensor.new, Muster.Tensor.try_new):
            tensor = make(Muster.DType.FLOAT, [4])
            self.assertEqual(tensor.shape(), [4])
            self.assertTrue(tensor.is_exclusive())
            self.assertEqual(tensor.data(), tensor.data_mutable())
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "", Muster.Tensor.try_new, Muster.DType.FLOAT, [-2])

    def test_scalars(self):
        self.assertEqual(Muster.Tensor.new_float(1.5).get_double(), (True, 1.5))
        self.assertEqual(Muster.Tensor.new_int32(-3).get_int64(), (True, -3))
        self.assertEqual(Muster.Tensor.new_int64(1 << 40).get_int64(), (True, 1 << 40))
        self.assertEqual(Muster.Tensor.new_bool(True).get_int64(), (True, 1))
        self.assertEqual(Muster.Tensor.new_string("a").get_string(), (True, "a"))
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "[2]", case.tensor("f", [1, 2]).get_double)

    def test_strings_of_any_bytes(self):
        tensor = Muster.Tensor.new_byte_strings([1, 2], [GLib.Bytes.new(b"a\0b"), GLib.Bytes.new(b"")])
        self.assertEqual([tensor.string_bytes(i).get_data() for i in (0, 1)], [b"a\0b", b""])
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "element 2", tensor.string_bytes, 2)
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "[2,2]", Muster.Tensor.new_byte_strings, [2, 2], [GLib.Bytes.new(b"")])
        self.assertTrue(Muster.Tensor.new_strv(["a", "b"]).equal(
            Muster.Tensor.new_byte_strings([2], [GLib.Bytes.new(b"a"), GLib.Bytes.new(b"b")])))

    def test_an_element_as_text(self):
        text = GLib.String.new("x = ")
        Muster.Tensor.append_element(text, case.tensor("d", [0.1]), 0, 10)
        self.assertEqual(text.str, "x = 0.1")

    def test_statistics(self):
        stats = case.tensor("f", [1, 2, math.nan, 0]).stats()
        self.assertEqual((stats.n, stats.n_nan, stats.n_zero, stats.min_at, stats.max, stats.mean), (4, 1, 1, 3, 2, 1))
        difference = case.tensor("f", [1, 2]).difference(case.tensor("f", [1, 4]))
        self.assertEqual((difference.n_differ, difference.first, difference.max_abs), (1, 1, 2))


class MetaGraphs(case.TestCase):
    def setUp(self):
        super().setUp()
        self.meta_graph = Muster.MetaGraph.load(case.fixture("linreg.meta"))

    def test_a_graph_is_its_bytes(self):
        graph = self.meta_graph.graph()
        same = Muster.Graph.new(graph.bytes())
        self.assertTrue(graph.equal(same))
        self.assertEqual(graph.hash(), same.hash())
        self.assertFalse(graph.equal(line()))
        self.assertEqual(Muster.Graph.split_input("^a"), (-1, "a"))
        self.assertEqual(Muster.Graph.split_input("a:3"), (3, "a"))
        self.assertTrue(Muster.Graph.load(case.fixture("linreg.meta")).equal(graph))
        self.assertIn("VariableV2", graph.print_().str)

    def test_collections(self):
        self.assertEqual(self.meta_graph.collection("train_op"), [self.meta_graph.op("train_op")])
        self.assertIsNone(self.meta_graph.op("nothing"))
        again = Muster.MetaGraph.new(self.meta_graph.bytes())
        self.assertEqual(again.op("init_op"), self.meta_graph.op("init_op"))

    def test_what_is_borrowed_lives_on(self):
        variables, savers = self.meta_graph.variables(), self.meta_graph.savers()
        saver = self.meta_graph.saver()
        del self.meta_graph
        gc.collect()
        for _ in range(20):
            Muster.MetaGraph.load(case.fixture("digits.meta"))
        self.assertEqual([variable.name for variable in variables], ["global_step", "w", "b", "local_scale"])
        self.assertEqual(variables[1].copy().dtype, Muster.DType.FLOAT)
        self.assertEqual(variables[1].shape(), [])
        self.assertEqual(saver.copy().save_tensor, savers[0].save_tensor)

    def test_a_model_without_tensorflow(self):
        model = Muster.MetaGraph.new_for_graph(line()).with_op("init_op", "init")
        self.assertEqual(model.op("init_op"), "init")
        self.assertIsNone(model.with_op("init_op", None).op("init_op"))
        graph, op = Muster.graph_with_ready_op(model, True)
        session = MusterEngine.Master.new().create_session(graph, None, FOREVER, None)
        self.assertEqual(session.fetch(op, FOREVER, None).to_string(9), '["w"]')
        session.run_op("init", FOREVER, None)
        self.assertEqual(session.fetch(op, FOREVER, None).shape(), [0])

    def test_variables_and_a_saver_are_added(self):
        variable, collected, saver = Muster.VariableInfo.new(), Muster.CollectedOp(), Muster.SaverInfo()
        variable.name, variable.initializer = "w2", "w2/Assign"
        collected.key, collected.op = "train_op", "w2/Assign"
        builder = Muster.GraphBuilder.new_extension()
        builder.variable("w2", case.tensor("f", [1], []))
        graph = self.meta_graph.graph().extended(builder.end())
        changed = self.meta_graph.with_variables(graph, [variable], [collected])
        self.assertIn("w2", [info.name for info in changed.variables()])
        self.assertEqual(changed.op("train_op"), "w2/Assign")
        saver.filename_tensor, saver.save_tensor, saver.restore_op = "f:0", "s:0", "r"
        self.assertEqual(changed.with_saver(graph, saver, True).savers()[-1].restore_op, "r")
        self.assertIsNone(Muster.MetaGraph.new_for_graph(line()).with_saver(line(), None, False).saver())

    def test_export_and_import(self):
        how, back = Muster.Export(), Muster.Import()
        how.clear_devices = True
        back.import_scope = "copy"
        self.assertTrue(self.meta_graph.export(how.copy()).graph().has_node("w"))
        self.assertTrue(self.meta_graph.import_(back.copy()).graph().has_node("copy/w"))
        path = self.folder + "/model.meta"
        self.assertTrue(Muster.export_meta_graph(self.meta_graph, how, path, True))
        self.assertTrue(Muster.import_meta_graph(path, back).graph().has_node("copy/w"))
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "", Muster.import_meta_graph, case.fixture("digits_x.npy"), None)

    def test_a_graph_becomes_a_model_by_its_train_op(self):
        plain = Muster.MetaGraph.new_for_graph(line())
        self.assertEqual(plain.with_op("train_op", "y").op("train_op"), "y")
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "'no'", plain.with_op, "train_op", "no")


if __name__ == "__main__":
    case.main()
