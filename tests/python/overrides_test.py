#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What gi/overrides/Muster.py adds to the raw names."""
import array
import asyncio
import datetime
import fractions
import gc
import os
import pathlib
import sys
import threading
import weakref

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../../python")))
import case
from case import FOREVER, GLib, Muster, MusterEngine
from gi import _gi

try:
    import numpy
except ImportError:
    print("skipped: needs NumPy, which `bazel/setup --tests` installs")
    sys.exit(0)


def address(of):
    return of.__array_interface__["data"][0]


def resident():
    """The bytes of this process in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def state(*shape):
    """v, a variable that "set" sets to the placeholder "new"; "same" is what was fed, through a Reshape and an Identity."""
    builder = Muster.GraphBuilder.new()
    builder.placeholder("new", Muster.DType.FLOAT, shape)
    builder.variable("v", Muster.Tensor(numpy.zeros(shape, numpy.float32)))
    builder.node("Assign", "set")
    for name in ("v", "new"):
        builder.input(name)
    builder.attr_type("T", Muster.DType.FLOAT)
    builder.constant("flat", Muster.Tensor([-1]))
    builder.node("Reshape", "column")
    for name in ("new", "flat"):
        builder.input(name)
    builder.attr_type("T", Muster.DType.FLOAT)
    builder.attr_type("Tshape", Muster.DType.INT32)
    builder.node("Identity", "same")
    builder.input("column")
    builder.attr_type("T", Muster.DType.FLOAT)
    builder.group("init", ["v/Assign"])
    session = MusterEngine.Master.new().create_session(builder.end(), None, FOREVER, None)
    session.run("init")
    return session


class Tensors(case.TestCase):
    def test_numpy_sees_a_tensors_own_memory(self):
        tensor = Muster.Tensor([[1, 2, 3], [4, 5, 6]])
        view = numpy.asarray(tensor)
        self.assertEqual(address(view), tensor.data())
        self.assertFalse(view.flags.writeable)
        self.assertEqual(view.tolist(), [[1, 2, 3], [4, 5, 6]])
        with self.assertRaises(ValueError):
            view[0] = 7

    def test_a_view_keeps_its_tensor(self):
        view = numpy.asarray(Muster.Tensor(numpy.arange(100000)))
        gc.collect()
        self.assertEqual(view.sum(), 99999 * 50000)

    def test_each_type_goes_there_and_back(self):
        for kind in "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 ? c8 c16".split():
            given = numpy.array([[0, 1], [1, 0]], kind)
            tensor = Muster.Tensor(given)
            self.assertEqual(numpy.asarray(tensor).dtype, given.dtype)
            self.assertEqual(numpy.asarray(tensor).tolist(), given.tolist())
            self.assertEqual(tensor.tolist(), given.tolist())

    def test_bfloat16_is_read_and_written(self):
        tensor = Muster.Tensor([1.5, -2], Muster.DType.BFLOAT16)
        self.assertEqual(tensor.tolist(), [1.5, -2])
        self.assertEqual(Muster.Tensor(numpy.asarray(tensor)), tensor)

    def test_strings_are_bytes_of_any_content(self):
        tensor = Muster.Tensor([["a", b"b\0c"], ["", "ü"]])
        self.assertEqual(tensor.tolist(), [[b"a", b"b\0c"], [b"", "ü".encode()]])
        self.assertEqual(numpy.asarray(tensor)[0, 1], b"b\0c")
        self.assertEqual(Muster.Tensor(numpy.array(["x", "yz"])).tolist(), [b"x", b"yz"])
        self.assertEqual(Muster.Tensor("abc"), "abc")

    def test_odd_shapes_and_orders(self):
        for given in (numpy.zeros((0, 3), "f4"), numpy.zeros((2, 0), "f4"), numpy.array(3.0), numpy.arange(6).reshape(2, 3).T,
                      numpy.arange(10)[::2], numpy.arange(3).astype(">i4"), numpy.float32(2)):
            tensor = Muster.Tensor(given)
            self.assertEqual(tensor.shape(), list(given.shape))
            self.assertEqual(tensor.tolist(), given.tolist())

    def test_types_are_guessed_as_tensorflow_does(self):
        for value, dtype in ((1, "int32"), (2**40, "int64"), (1.0, "float"), (True, "bool"), ([1, 2.5], "float"), (1j, "complex128")):
            self.assertEqual(Muster.dtype_name(Muster.Tensor(value).dtype()), dtype)

    def test_what_fits_no_tensor_is_refused(self):
        pair = numpy.array([(1, 2)], "u1,u1")  # of the size of a bfloat16
        for value, dtype in ((object(), None), ([[1], [1, 2]], None), (300, Muster.DType.UINT8), (numpy.zeros(2, "M8[s]"), None), (pair, None),
                             (pair, Muster.DType.BFLOAT16), (Muster.Tensor([1]), Muster.DType.STRING), (Muster.Tensor("a"), Muster.DType.FLOAT)):
            with self.assertRaises((TypeError, ValueError)):
                Muster.Tensor(value, dtype)

    def test_what_is_no_dtype_is_refused(self):
        for value in (1, numpy.ones(2)):
            with self.assertRaisesRegex(TypeError, r"invalid dtype 'float' \(use a value of muster.DType"):
                Muster.Tensor(value, "float")

    def test_scalars_are_numbers(self):
        self.assertEqual(float(Muster.Tensor(2.5)), 2.5)
        self.assertEqual(int(Muster.Tensor([7])), 7)
        self.assertEqual([10, 20][Muster.Tensor(1)], 20)
        self.assertTrue(Muster.Tensor(True))
        self.assertFalse(Muster.Tensor(0))
        with self.assertRaises(Muster.InvalidArgument):
            float(Muster.Tensor([1, 2]))

    def test_equality(self):
        self.assertEqual(Muster.Tensor([1, 2]), Muster.Tensor([1, 2]))
        self.assertNotEqual(Muster.Tensor([1, 2]), Muster.Tensor([1, 3]))
        self.assertNotEqual(Muster.Tensor([1, 2]), Muster.Tensor([1.0, 2.0]))
        self.assertEqual(Muster.Tensor(3), 3)
        self.assertEqual((Muster.Tensor([1, 2]) == numpy.array([1, 3])).tolist(), [True, False])
        self.assertEqual(len({Muster.Tensor(3), Muster.Tensor(3)}), 1)

    def test_length_items_and_text(self):
        tensor = Muster.Tensor([[1, 2], [3, 4]])
        self.assertEqual(len(tensor), 2)
        self.assertEqual(tensor[1].tolist(), [3, 4])
        self.assertEqual([row.tolist() for row in tensor], [[1, 2], [3, 4]])
        self.assertEqual(repr(tensor), "<muster.Tensor int32 [2,2] [[1, 2], [3, 4]]>")
        with self.assertRaises(TypeError):
            len(Muster.Tensor(1))

    def test_a_buffer_is_taken_too(self):
        self.assertEqual(Muster.Tensor(array.array("d", [1, 2])).tolist(), [1, 2])

    def test_what_has_its_elements_elsewhere_is_read_as_numpy_does(self):
        class Picture:
            """As Pillow's: "data" has the elements themselves."""

            __array_interface__ = {"shape": (2, 2), "typestr": "|u1", "version": 3, "data": bytes([7, 8, 9, 10])}

        class Part:
            """From the second element of a buffer on."""

            __array_interface__ = {"shape": (2,), "typestr": "<f8", "version": 3, "data": array.array("d", [1, 2, 3]), "offset": 8}

        self.assertEqual(Muster.Tensor(Picture()).tolist(), [[7, 8], [9, 10]])
        self.assertEqual(Muster.Tensor(Part()).tolist(), [2, 3])
        self.assertEqual(state(2, 2).run("same:0", {"new:0": Picture()}).tolist(), [7, 8, 9, 10])

    def test_an_array_for_bfloat16_is_rounded_as_each_number_is(self):
        bits = numpy.random.default_rng(7).integers(0, 2**32, 10000, "u4")
        bits[:8] = [0x3f808000, 0x3f818000, 0x3f818001, 0x7f7fffff, 0x7f800000, 0x7f800001, 0xffc00000, 0xffffffff]  # ties, infinities, NaNs
        given = bits.view("f4")
        rounded = numpy.asarray(Muster.Tensor(given, Muster.DType.BFLOAT16)).view("u2").tolist()
        self.assertEqual(rounded, [Muster.bfloat16_from_float(each) for each in given.tolist()])
        for value in (numpy.arange(6.0).reshape(2, 3).T, numpy.array(3), numpy.float32(1.5), [numpy.ones(2), numpy.zeros(2)], numpy.zeros((0, 2))):
            self.assertEqual(Muster.Tensor(value, Muster.DType.BFLOAT16).tolist(), numpy.asarray(value).tolist())

    def test_a_tensor_is_converted_as_an_array_is(self):
        for value, dtype, wanted in (([1, 2], None, "FLOAT"), ([1.5, -2], "BFLOAT16", "FLOAT"), (1.5, "BFLOAT16", "DOUBLE"), ([1.5], None, "BFLOAT16")):
            given, wanted = Muster.Tensor(value, dtype and getattr(Muster.DType, dtype)), getattr(Muster.DType, wanted)
            self.assertEqual((Muster.Tensor(given, wanted).dtype(), Muster.Tensor(given, wanted).tolist()), (wanted, value))
        with self.assertRaisesRegex(Muster.InvalidArgument, "int32"):  # where it is fed it isn't
            state(2).run("same:0", {"new:0": Muster.Tensor([1, 2])})

    def test_a_tensor_is_a_copy(self):
        given = numpy.arange(4)
        tensor = Muster.Tensor(given)
        given[0] = 9
        self.assertEqual(tensor.tolist(), [0, 1, 2, 3])


class Steps(case.TestCase):
    def test_fetches_keep_their_structure(self):
        scaffold = case.linreg()
        session = case.session(scaffold)
        feeds = {"x:0": [1.0, 2.0], "y:0": numpy.array([1, 2], "f4")}
        self.assertIsInstance(session.run("loss:0", feeds), Muster.Tensor)
        loss, (train, step), more = session.run(["loss:0", (scaffold.train_op(), scaffold.global_step()), {"l": "loss:0"}], feeds)
        self.assertIsNone(train)
        self.assertEqual(float(loss), more["l"])
        self.assertEqual(int(session.run(scaffold.global_step())), 1)
        self.assertEqual(session.run((), targets=scaffold.train_op(), feeds=feeds), ())
        self.assertEqual(int(session.run(scaffold.global_step())), 2)

    def test_values_get_the_placeholders_type(self):
        session = state(2)
        for value in ([1, 2], numpy.array([1, 2]), numpy.array([1.0, 2.0]), (True, 2)):
            self.assertEqual(session.run("same:0", {"new:0": value}).tolist()[1], 2.0)

    def test_a_fed_array_is_borrowed_not_copied(self):
        session = state(1000, 1000)
        given = numpy.ones((1000, 1000), numpy.float32)
        borrowed = []
        new_borrowed = Muster.Tensor.new_borrowed
        Muster.Tensor.new_borrowed = lambda *args: borrowed.append(new_borrowed(*args)) or borrowed[-1]
        try:
            session.run("set", {"new:0": given})
        finally:
            Muster.Tensor.new_borrowed = new_borrowed
        self.assertEqual(borrowed[0].data(), address(given))

    def test_an_array_is_let_go_after_the_call(self):
        class Array(numpy.ndarray):
            pass

        session = state(1000)
        given = numpy.ones(1000, numpy.float32).view(Array)
        alive = weakref.ref(given)
        session.run(["set", "same:0", "column:0"], {"new:0": given})
        del given
        gc.collect()
        self.assertIsNone(alive())

    def test_feeding_arrays_takes_no_memory(self):
        session, given = state(2), numpy.zeros(2, "f4")

        def grown(n=20000):
            before = resident()
            for _ in range(n):
                session.run("same:0", {"new:0": given})
                Muster.Tensor(given)
            return resident() - before

        grown(2000)
        self.assertLess(min(grown() for _ in range(2)), 2 << 20)  # 50 bytes for each

    def test_what_is_kept_of_a_fed_array_is_a_copy(self):
        session = state(1000)
        given = numpy.ones(1000, numpy.float32)
        same, column, _ = session.run(["same:0", "column:0", "set"], {"new:0": given})
        given[:] = 5
        self.assertEqual(numpy.asarray(same).sum(), 1000)
        self.assertEqual(numpy.asarray(column).sum(), 1000)
        self.assertEqual(numpy.asarray(session.run("v:0")).sum(), 1000)

    def test_what_a_queue_keeps_of_a_fed_array_is_a_copy(self):
        builder = Muster.GraphBuilder.new()
        builder.placeholder("new", Muster.DType.FLOAT, [1000])
        builder.node("FIFOQueueV2", "queue")
        builder.attr_types("component_types", [Muster.DType.FLOAT])
        builder.node("QueueEnqueueV2", "put")
        builder.input("queue")
        builder.input("new")
        builder.attr_types("Tcomponents", [Muster.DType.FLOAT])
        builder.node("QueueDequeueV2", "take")
        builder.input("queue")
        builder.attr_types("component_types", [Muster.DType.FLOAT])
        session = MusterEngine.Master.new().create_session(builder.end(), None, FOREVER, None)
        given = numpy.ones(1000, numpy.float32)
        session.run("put", {"new:0": given})
        given[:] = 5
        self.assertEqual(numpy.asarray(session.run("take:0")).sum(), 1000)

    def test_a_fetched_tensor_is_not_copied(self):
        session = state(1000)
        session.run("set", {"new:0": numpy.ones(1000, numpy.float32)})
        first, again = session.run("v:0"), session.run("v:0")
        self.assertEqual(address(numpy.asarray(first)), address(numpy.asarray(again)))

    def test_a_session_is_closed_by_with(self):
        with state(1) as session:
            session.run("v:0")
        with self.assertRaises(Muster.StatusError):
            session.run("v:0")


class Errors(case.TestCase):
    def test_have_the_class_of_their_code(self):
        session = state(2)
        with self.assertRaises(Muster.InvalidArgument) as caught:
            session.run("same:0", {"new:0": [1, 2, 3]})
        self.assertIsInstance(caught.exception, GLib.Error)
        self.assertTrue(caught.exception.matches(Muster.error_quark(), Muster.Error.INVALID_ARGUMENT))
        self.assertIn("Cannot feed value of shape [3]", str(caught.exception))

    def test_raised_by_the_program_have_it_too(self):
        for name in [each for each in dir(Muster.Error) if each.isupper() and each != "OK"]:
            cls = getattr(Muster, "".join(word.capitalize() for word in name.split("_")), None)
            error = cls("mine")
            self.assertTrue(error.matches(Muster.error_quark(), getattr(Muster.Error, name)), name)
            self.assertEqual(repr(error), "muster.%s('mine')" % cls.__name__)
        self.assertTrue(Muster.JobOver("over").matches(Muster.error_quark(), Muster.Error.OUT_OF_RANGE))
        self.assertTrue(Muster.FileNotFound("f").matches(Muster.error_quark(), Muster.Error.NOT_FOUND))

    def test_raw_calls_raise_them_too(self):
        with self.assertRaises(Muster.InvalidArgument):
            Muster.Tensor.new_from_bytes(Muster.DType.FLOAT, [2], GLib.Bytes.new(b"abc"))

    def test_others_stay_what_they_were(self):
        with self.assertRaises(GLib.Error) as caught:
            GLib.file_get_contents("/none")
        self.assertIs(type(caught.exception), GLib.Error)

    def test_a_programs_own_takes_what_it_likes(self):
        class Own(GLib.Error):
            def __init__(self, text, *places, extra=None):
                super().__init__(text)
                self.places, self.extra = places, extra

        error = Own("no", 1, 2, 3, 4, extra=5)
        self.assertEqual((error.message, error.places, error.extra), ("no", (1, 2, 3, 4), 5))
        self.assertIs(type(GLib.Error("no", domain=GLib.quark_to_string(Muster.error_quark()), code=5)), Muster.NotFound)
        self.assertEqual(GLib.Error().message, "unknown error")


class Time(case.TestCase):
    def test_a_timeout_is_seconds_or_a_timedelta(self):
        now_us = Muster.system_clock().now_us()
        for timeout in (3600, 3600.0, datetime.timedelta(hours=1)):
            self.assertGreaterEqual(Muster.deadline(timeout) - now_us, 3600 * Muster.SECOND)
        self.assertEqual(Muster.deadline(), FOREVER)
        self.assertEqual(Muster.deadline(1e300), FOREVER)
        for timeout in ("5", True, float("nan")):
            with self.assertRaises(TypeError):
                Muster.deadline(timeout)

    def test_every_call_with_a_deadline_takes_a_timeout(self):
        scaffold = case.linreg()
        session = case.session(scaffold)
        step = scaffold.global_step()
        for value in (session.fetch(step), session.fetch(step, timeout=60), session.fetch(step, Muster.deadline(60)),
                      session.fetch(step, deadline_us=FOREVER), session.fetch(step, FOREVER, None)):
            self.assertEqual(int(value), 0)
        for wrong in (lambda: session.fetch(timeout=3), lambda: session.fetch(step, FOREVER, timeout=3), lambda: session.fetch(step, patience=3)):
            with self.assertRaises(TypeError):
                wrong()

    def test_a_step_ends_at_its_timeout(self):
        with self.assertRaises(Muster.DeadlineExceeded):
            state(2).run("same:0", {"new:0": [1, 2]}, timeout=0)


class Options(case.TestCase):
    def test_are_keywords(self):
        options = Muster.PrepareOptions(init_op="init", checkpoint_dir="run", timeout=3, max_wait=0, reset_master=True)
        self.assertEqual((options.init_op, options.checkpoint_dir, options.timeout_us, options.reset_master), ("init", "run", 3000000, True))
        self.assertEqual(options.max_wait_us, 1)  # 0 would be the default, two hours
        self.assertEqual(Muster.PrepareOptions(timeout=None).timeout_us, FOREVER)
        with self.assertRaisesRegex(TypeError, "has no option 'patience'; its options are .*timeout_us"):
            Muster.PrepareOptions(patience=3)

    def test_are_fields_of_every_type(self):
        meta_graph, hook = case.linreg().meta_graph(), Muster.stop_at_step_hook_new(0, 4)
        options = Muster.MonitoredTrainingOptions(scaffold=case.linreg(), master=MusterEngine.Master.new(), hooks=[hook, hook], save_share=0.5)
        options.hooks = (hook,)
        options.saver = Muster.Saver.new(meta_graph, None)
        options.cluster, options.recovery = ["ps:0=HOST:1"], Muster.RetryPolicy.new_preparing()
        del meta_graph
        gc.collect()
        copy = options.copy()
        del options
        self.assertEqual((copy.n_hooks, copy.save_share, copy.cluster), (1, 0.5, ["ps:0=HOST:1"]))
        self.assertEqual(copy.recovery.first_pause_us, Muster.RetryPolicy.new_preparing().first_pause_us)
        self.assertIsInstance(copy.saver, Muster.Saver)
        copy.saver, copy.hooks = None, []
        self.assertEqual((copy.saver, copy.n_hooks), (None, 0))

    def test_a_value_of_another_type_or_out_of_range_is_refused(self):
        options = Muster.CheckpointSaverOptions(checkpoint_dir="run")
        for name, value, message in (
                ("save_share", 1.5, "invalid save_share 1.5 of MusterCheckpointSaverOptions (use a number from 0 to 1)"),
                ("save_share", "1", "invalid save_share of MusterCheckpointSaverOptions: it is a gchararray (use a number)"),
                ("saver", "x", "invalid saver of MusterCheckpointSaverOptions: it is a gchararray (use a MusterSaver)"),
                ("checkpoint_dir", 1, "invalid checkpoint_dir of MusterCheckpointSaverOptions: it is a gint64 (use a gchararray)")):
            with self.assertRaises(Muster.InvalidArgument) as caught:
                setattr(options, name, value)
            self.assertEqual(str(caught.exception), message)
            with self.assertRaises((Muster.InvalidArgument, TypeError)):
                Muster.CheckpointSaverOptions(**{"checkpoint_dir": "run", name: value})
        self.assertEqual((options.save_share, options.checkpoint_dir), (0, "run"))

    def assertRefused(self, options, name, value, message):
        with self.assertRaises(Muster.InvalidArgument) as caught:
            setattr(options, name, value)
        self.assertEqual(str(caught.exception), message)

    def test_an_empty_list_of_strings_is_not_none(self):
        options = Muster.SaverBuild(variables=["v"])
        options.variables = []
        self.assertEqual(options.variables, [])
        with self.assertRaisesRegex(Muster.InvalidArgument, "No variables to save"):
            Muster.saver_build(case.linreg().meta_graph(), options)
        options.variables = None
        self.assertIsNotNone(Muster.saver_build(case.linreg().meta_graph(), options))

    def test_options_free_what_they_own(self):
        storage = Muster.local_storage()
        before = storage.__grefcount__
        options = Muster.SaverOptions(storage=storage)
        self.assertEqual(storage.__grefcount__, before + 1)
        del options
        self.assertEqual(storage.__grefcount__, before)
        with self.assertRaises(TypeError):
            Muster.Saved(step=1)  # a result has no keywords

    def test_numbers_are_of_any_type(self):
        options = Muster.CheckpointSaverOptions(checkpoint_dir=pathlib.Path("run"), save_steps=numpy.int64(3), save_share=numpy.float32(0.5))
        self.assertEqual((options.checkpoint_dir, options.save_steps, options.save_share), ("run", 3, 0.5))
        options.save_steps, options.save_share = fractions.Fraction(4), numpy.array(0.25)
        self.assertEqual((options.save_steps, options.save_share), (4, 0.25))
        self.assertIs(Muster.SaverBuild(sharded=numpy.bool_(True), max_to_keep=numpy.int32(2)).sharded, True)
        self.assertEqual(Muster.SaverBuild(keep_every_n_hours=float("inf")).keep_every_n_hours, float("inf"))
        for value, name in ((numpy.zeros(1), "a ndarray"), (numpy.complex64(1), "a complex64"), (1j, "a complex"), ({}, "a dict"), (print, None)):
            name = name or "a builtin_function_or_method"
            self.assertRefused(options, "save_share", value, "invalid save_share of MusterCheckpointSaverOptions: it is %s (use a number)" % name)
        self.assertRefused(options, "save_steps", None, "invalid save_steps of MusterCheckpointSaverOptions: it is None (use a number)")
        self.assertRefused(options, "save_steps", 2**70, "invalid save_steps 1.1805916207174113034e+21 of MusterCheckpointSaverOptions "
                           "(use a whole number from -9223372036854775808 to 9223372036854775807)")

    def test_bytes_and_paths_are_taken(self):
        options = Muster.MonitoredTrainingOptions(scaffold=case.linreg(), master=MusterEngine.Master.new(), config=b"\x08\x01", cluster=[pathlib.Path("a"), "b"])
        self.assertEqual((options.config.get_data(), options.cluster), (b"\x08\x01", ["a", "b"]))
        for value, name in (({"a": 1}, "a dict"), (["a", 1], "a list of int and str"), ((1,), "a tuple of int")):
            self.assertRefused(options, "cluster", value, "invalid cluster of MusterSessionManagerOptions: it is %s (use a GStrv)" % name)
        self.assertRefused(options, "config", 5.0, "invalid config of MusterSessionManagerOptions: it is a gdouble (use a GBytes)")
        self.assertEqual(options.cluster, ["a", "b"])

    def test_setters_are_assigned_to(self):
        freq = Muster.SaveFreq()
        freq.kind = Muster.SaveFreqKind.NEVER
        options = Muster.WorkerTrainingStateOptions(directory="run")
        options.save_freq = freq
        self.assertEqual(options.save_freq.kind, Muster.SaveFreqKind.NEVER)
        restore, prepare = Muster.RestoreOptions(), Muster.PrepareOptions()
        restore.names, prepare.init_func = {"v": "w"}, lambda *_: True
        self.assertEqual(restore.names, {"v": "w"})
        restore.names = prepare.init_func = None
        self.assertIsNone(restore.names)

    def test_of_a_struct_in_a_struct_are_its_own(self):
        master = MusterEngine.Master.new()
        job = Muster.Training(scaffold=case.linreg(), master=master, max_to_keep=3, timeout=2, model="m", allow_missing=True)
        self.assertEqual((job.saver.max_to_keep, job.session.timeout_us, job.session.manager.model), (3, 2000000, "m"))
        job.saver.max_to_keep, job.session.manager.task, job.save_steps = 4, "worker:1", 5
        self.assertEqual((job.max_to_keep, job.task, job.session.save_steps, job.timeout_us), (4, "worker:1", 5, 2000000))
        job.restore.progress = lambda *_: None
        job.restore.set_names({"v": "w"})
        self.assertEqual((job.session.restore.names, job.names, job.allow_missing), ({"v": "w"}, {"v": "w"}, True))
        job.session.hooks = [Muster.stop_at_step_hook_new(0, 4)]
        part = job.copy().saver
        part.max_to_keep = 9
        self.assertEqual((job.session.n_hooks, part.max_to_keep, job.saver.max_to_keep), (1, 9, 4))
        job.saver = Muster.SaverOptions(keep_best=2)
        job.saver.keep_best += 1
        self.assertEqual((job.saver.keep_best, job.max_to_keep), (3, 0))
        self.assertRefused(job, "save_share", 2, "invalid save_share 2 of MusterCheckpointSaverOptions (use a number from 0 to 1)")
        self.assertRefused(job.saver, "keep_best", "x", "invalid keep_best of MusterSaverOptions: it is a gchararray (use a number)")
        with self.assertRaisesRegex(AttributeError, "Training has no attribute 'save_step'; did you mean 'save_steps'"):
            job.save_step = 5
        with self.assertRaisesRegex(AttributeError, "Training has no attribute 'patience'"):
            print(job.patience)
        with self.assertRaisesRegex(TypeError, "has no option 'patience'; its options are .*max_to_keep"):
            Muster.Training(scaffold=case.linreg(), master=master, patience=3)

    def training(self, **fields):
        return Muster.Training(scaffold=case.linreg(), master=MusterEngine.Master.new(), **fields)

    def test_a_kept_part_is_of_the_whole(self):
        job = self.training()
        session, saver, restore, manager = job.session, job.saver, job.restore, job.session.manager
        job.model, job.checkpoint_dir, session.save_steps = "m", "run", 5
        self.assertEqual((job.model, job.checkpoint_dir, job.save_steps, session.checkpoint_dir, manager.model), ("m", "run", 5, "run", "m"))
        saver.max_to_keep, job.metric, saver.keep_best = 3, "loss:min", 2
        self.assertEqual((job.max_to_keep, job.metric, job.saver.keep_best, saver.metric), (3, "loss:min", 2, "loss:min"))
        other = job.session
        session.task, other.save_share, session.stop_grace_us = "worker:1", 0.5, 7
        self.assertEqual((session.save_share, other.stop_grace_us, job.task, manager.task), (0.5, 7, "worker:1", "worker:1"))
        session.hooks, other.chief_only_hooks = [Muster.stop_at_step_hook_new(0, 4)], [Muster.stop_at_step_hook_new(0, 5)]
        self.assertEqual((job.session.n_hooks, job.session.n_chief_only_hooks), (1, 1))
        restore.set_names({"v": "w"})
        job.restore.allow_missing = True
        restore.progress = lambda *_: None
        self.assertEqual((job.names, restore.allow_missing, session.restore.names), ({"v": "w"}, True, {"v": "w"}))
        with self.assertRaisesRegex(AttributeError, "MonitoredTrainingOptions has no attribute 'check_point_dir'; did you mean 'checkpoint_dir'"):
            session.check_point_dir = "other"

    def test_a_kept_part_outlives_the_whole_and_its_replacement(self):
        manager, of_copy = self.training(model="m" * 100).session.manager, self.training(model="m" * 100).session.copy().manager
        gc.collect()
        self.assertEqual((manager.model, of_copy.model), ("m" * 100, "m" * 100))
        job = self.training(metric="loss:min")
        saver = job.saver
        job.saver = Muster.SaverOptions(keep_best=2)
        saver.max_to_keep = 3
        self.assertEqual((saver.metric, saver.keep_best, job.max_to_keep), (None, 2, 3))
        job.saver = saver
        of_saver, of_job = saver.copy(), job.copy()
        of_saver.max_to_keep = of_job.saver.max_to_keep = 5
        self.assertEqual((job.keep_best, job.max_to_keep, saver.max_to_keep), (2, 3, 3))

    def test_a_job_trains_twice_with_what_its_kept_parts_have(self):
        batches = Muster.Batches.new([Muster.Tensor(numpy.arange(8, dtype=numpy.float32))] * 2, 2, 7)
        job = self.training(batches=batches, feeds=["x:0", "y:0"], loss="loss:0", until_step=2, checkpoint_dir=self.folder, save_steps=1)
        session, saver = job.session, job.saver
        job.max_to_keep, session.save_blocking = 1, True
        for until_step, base_name in ((2, "model.ckpt"), (4, "other")):
            job.until_step, saver.base_name, session.task = until_step, base_name, "chief:0"
            trained = Muster.Trained()
            self.assertTrue(Muster.train(job, trained))
            self.assertEqual((trained.step, session.save_steps, saver.max_to_keep), (until_step, 1, 1))
            self.assertEqual(Muster.latest_checkpoint(None, self.folder), "%s/%s-%d" % (self.folder, base_name, until_step))
        part = job.session
        job.checkpoint_dir = None
        with Muster.monitored_training_session_new(part) as kept:
            self.assertEqual(int(kept.run(job.scaffold.global_step())), 0)

    def test_of_two_parts_with_the_same_name_the_one_that_can_be_set_has_it(self):
        policy = Muster.RetryPolicy.new_preparing()
        policy.first_pause_us = 12345
        job = self.training(waiting=policy)
        self.assertEqual((job.waiting.first_pause_us, job.session.waiting.first_pause_us, job.session.manager.waiting.first_pause_us), (12345,) * 3)
        job.waiting = None
        self.assertIsNone(job.session.manager.waiting)
        for name in ("n_hooks", "waiting_data", "user_data", "progress_owner"):
            with self.assertRaisesRegex(AttributeError, "Training has no attribute '%s'" % name):
                setattr(job, name, 3)
        with self.assertRaises(TypeError) as caught:
            self.training(patience=3)
        listed = set(str(caught.exception).partition("its options are ")[2].split(", "))
        self.assertTrue({"hooks", "waiting", "n_tasks", "names", "progress", "paused"} <= listed)
        self.assertEqual([name for name in listed if name.endswith(("_data", "_owner"))], [])
        self.assertFalse(listed & {"n_hooks", "n_chief_only_hooks", "n_feeds", "n_fast"})

    def test_a_name_of_two_parts_is_refused(self):
        job, message = self.training(), r"clock of Training is ambiguous \(use session.manager.clock or saver.clock\)"
        for use in (lambda: setattr(job, "clock", None), lambda: job.clock, lambda: self.training(clock=None)):
            with self.assertRaisesRegex(AttributeError, message):
                use()
        job.session.clock = Muster.system_clock()
        self.assertEqual((job.session.manager.clock, job.saver.clock), (job.session.clock, None))

    def test_an_enumeration_has_no_other_values(self):
        options = Muster.SaverOptions(when_full=Muster.WhenFull.PAUSE)
        self.assertRefused(options, "when_full", 99, "invalid when_full 99 of MusterSaverOptions (use a whole number from 0 to 2)")
        self.assertEqual(options.when_full, Muster.WhenFull.PAUSE)

    def test_an_array_is_replaced_whole_or_not_at_all(self):
        hook = Muster.stop_at_step_hook_new(0, 4)
        options = Muster.MonitoredTrainingOptions(scaffold=case.linreg(), master=MusterEngine.Master.new(), hooks=[hook, hook])
        for value, name in (([hook, 5], "a gint64"), ([None], "a NoneType"), ({}, "a dict"), (["a"], "a GStrv")):
            self.assertRefused(options, "hooks", value, "invalid hooks of MusterMonitoredTrainingOptions: it is %s (use a MusterHook)" % name)
            self.assertEqual(options.n_hooks, 2)
        for value, n in ((hook, 1), (hook, 1), ([hook, hook, hook], 3), ([], 0), (hook, 1), (None, 0)):
            options.hooks = value
            self.assertEqual(options.n_hooks, n)
        tiered, tier = Muster.SaverOptions(), Muster.Tier.new("fast")
        tiered.fast = tiered.fast = tier
        self.assertRefused(tiered, "fast", [tier, 5], "invalid fast of MusterSaverOptions: it is a gint64 (use a MusterTier)")
        self.assertEqual(tiered.n_fast, 1)
        saver = Muster.Saver.new(case.linreg().meta_graph(), None)
        self.assertRefused(options, "saver", [saver], "invalid saver of MusterCheckpointSaverOptions: it is a list of Saver (use a MusterSaver)")

    def test_of_a_call_are_its_keywords(self):
        manager, scaffold = manage()
        session = manager.prepare_session(MusterEngine.Master.new(), init_op=scaffold.init_op(), timeout=60)
        self.assertEqual(int(session.run(scaffold.global_step())), 0)
        with self.assertRaises(TypeError):
            manager.prepare_session(MusterEngine.Master.new(), Muster.PrepareOptions(), init_op=scaffold.init_op())


def manage():
    scaffold = case.linreg()
    return Muster.SessionManager.new_for_ops(scaffold.graph(), scaffold.ready_op(), None, scaffold.local_init_op(), None, None), scaffold


class NotReady(case.TestCase):
    def test_carries_the_report_and_the_reasons(self):
        manager, _ = manage()
        with self.assertRaises(Muster.NotReady) as caught:
            manager.wait_for_session(MusterEngine.Master.new(), timeout=0.1)
        self.assertIsInstance(caught.exception, Muster.DeadlineExceeded)
        self.assertEqual(caught.exception.report.outcome, Muster.Outcome.NOT_READY)
        self.assertIn("variables", [reason.component for reason in caught.exception.reasons])


class WaitEvents(case.TestCase):
    def test_tell_the_reasons_and_at_last_give_the_session(self):
        manager, scaffold = manage()
        master = MusterEngine.Master.new()
        chief, seen = [], []
        for event in manager.wait_events(master, timeout=60):
            seen.append(event)
            if not chief:
                chief.append(manage()[0].prepare_session(master, init_op=scaffold.init_op()))
        self.assertIn("variables", [reason.component for reason in seen[0].reasons])
        self.assertIsNone(seen[0].session)
        self.assertEqual(int(seen[-1].session.run(scaffold.global_step())), 0)

    def test_fail_as_the_wait_does(self):
        with self.assertRaises(Muster.NotReady) as caught:
            for event in manage()[0].wait_events(MusterEngine.Master.new(), timeout=0.1):
                self.assertIsNone(event.session)
        self.assertIn("variables", [reason.component for reason in caught.exception.reasons])

    def test_leaving_the_loop_ends_the_wait(self):
        events = manage()[0].wait_events(MusterEngine.Master.new())
        self.assertIn("Waiting", next(events).message)
        before = [thread for thread in threading.enumerate() if thread.name == "muster-wait"]
        events.close()
        for thread in before:
            thread.join(60)
            self.assertFalse(thread.is_alive())


class Monitored(case.TestCase):
    def open(self, *hooks):
        return Muster.MonitoredSession.new(scaffold=case.linreg(), master=MusterEngine.Master.new(), hooks=hooks)

    def test_runs_with_its_hooks_and_ends_with_the_block(self):
        seen = []

        class Hook(Muster.Hook):
            def do_after_run(self, context):
                seen.append("run")
                return True

            def do_end(self, session, deadline_us, cancellable):
                seen.append("end")
                return True

        scaffold = case.linreg()
        with self.open(Hook()) as session:
            loss, _ = session.run(["loss:0", scaffold.train_op()], {"x:0": [1, 2], "y:0": numpy.array([1, 2])}, timeout=60)
            session.run("loss:0", {"x:0": [1], "y:0": [1]}, with_hooks=False)
        self.assertGreater(float(loss), 0)
        self.assertEqual(seen, ["run", "end"])

    def test_a_hooks_methods_may_call_those_of_its_class(self):
        seen = []

        class Hook(Muster.Hook):
            def do_begin(self, scaffold):
                super().do_begin(scaffold)

            def do_claims(self):
                return super().do_claims()

            def do_after_run(self, context):
                seen.append(super().do_after_run(context))

            def do_end(self, session, deadline_us, cancellable):
                seen.append(super().do_end(session, deadline_us, cancellable))

        with self.open(Hook()) as session:
            session.run("global_step:0")
        self.assertEqual(seen, [None, None])

    def test_a_hook_that_was_not_made_is_named(self):
        class Count(Muster.Hook):
            def __init__(self):
                self.n = 0

        with self.assertRaisesRegex(TypeError, r"Count's __init__ \(\) doesn't call super \(\).__init__ \(\)"):
            self.open(Count())

    def test_the_end_of_the_input_is_no_failure(self):
        seen = []

        class Hook(Muster.Hook):
            def do_end(self, session):
                seen.append("end")

            def do_on_error(self, error):
                seen.append(error)

        def rows(failure):
            raise failure

        class Reads(Muster.Hook):
            def do_before_run(self, context):
                rows(self.failure)

        for failure in (Muster.OutOfRange("no more rows"), StopIteration("no more rows"), StopIteration()):
            with self.open(Hook()):
                rows(failure)
            with self.open(Hook(), Muster.feed_list_hook_new(["x:0"], lambda: rows(failure))) as session:
                session.run("loss:0")
            reads = Reads()
            reads.failure = failure
            with self.open(Hook(), reads) as session:
                session.run("loss:0")
        self.assertEqual(seen, ["end"] * 9)

    def test_a_failure_goes_on(self):
        for failure in (KeyError("k"), Muster.DataLoss("d")):
            with self.assertRaises(type(failure)):
                with self.open():
                    raise failure

    def test_a_session_that_a_hook_calls_lost_is_replaced(self):
        failures = [Muster.Aborted("lost"), Muster.Unavailable("away")]

        class Loses(Muster.Hook):
            def do_after_run(self, context):
                if failures:
                    raise failures.pop()

        with self.open(Loses()) as session:
            session.run("global_step")
            self.assertEqual(session.n_recoveries(), 2)


class Structs(case.TestCase):
    def test_a_misspelled_field_is_refused(self):
        for info in _gi.Repository.get_default().get_infos("Muster"):
            if isinstance(info, _gi.StructInfo) and not info.is_gtype_struct():
                cls = getattr(Muster, info.get_name())
                made = cls.__new__(cls) if info.get_name() in ("Readiness", "Diagnosis", "SessionReport") else None
                with self.subTest(struct=info.get_name()), self.assertRaisesRegex(AttributeError, "no attribute 'no_such_field'"):
                    cls.__setattr__(made, "no_such_field", 1)

    def test_the_error_names_what_is_near(self):
        options = Muster.PrepareOptions()
        for name, near in ("init_opp", "init_op"), ("max_wait", "max_wait_us"), ("savr", "saver"), ("set_init_fun", "set_init_func"):
            with self.assertRaises(AttributeError) as caught:
                setattr(options, name, None)
            self.assertEqual(str(caught.exception), "PrepareOptions has no attribute '%s'; did you mean '%s'?" % (name, near))
        options.init_op = "init"
        self.assertEqual(options.init_op, "init")


class Asyncio(case.TestCase):
    def test_awaits_what_is_asynchronous(self):
        manager, scaffold = manage()

        async def prepare():
            session = await manager.prepare_session_async(MusterEngine.Master.new(), init_op=scaffold.init_op())
            return int(session.run(scaffold.global_step()))

        self.assertEqual(asyncio.run(prepare()), 0)

    def test_awaits_what_has_no_object(self):
        scaffold = case.linreg()
        saver, session = Muster.Saver.new(scaffold.meta_graph(), None), case.session(scaffold)
        step = Muster.StepBuilder.new()
        step.fetch("global_step")

        async def read():
            prefix = await saver.save_async(session, self.folder, 7)
            reader = await Muster.BundleReader.open_async(None, prefix)
            (fetched,) = await step.run_async(session)
            return int(await reader.read_async("global_step")), int(fetched)

        self.assertEqual(asyncio.run(read()), (0, 0))

    def test_errors_are_raised_at_the_await(self):
        async def wait():
            with self.assertRaises(Muster.NotReady):
                await manage()[0].wait_for_session_async(MusterEngine.Master.new(), timeout=0.1)

        asyncio.run(wait())

    def test_cancelling_the_task_cancels_the_call(self):
        async def wait():
            cancellable = case.Gio.Cancellable()
            task = asyncio.ensure_future(manage()[0].wait_for_session_async(MusterEngine.Master.new(), cancellable=cancellable))
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            return cancellable.is_cancelled()

        self.assertFalse(asyncio.run(wait()))

    def test_a_callback_is_still_a_callback(self):
        manager, scaffold = manage()
        loop, sessions = GLib.MainLoop(), []

        def ready(owner, result, data):
            sessions.append(owner.prepare_session_finish(result, None))
            loop.quit()

        manager.prepare_session_async(MusterEngine.Master.new(), Muster.PrepareOptions.new(scaffold.init_op(), None, None), None, ready, None)
        loop.run()
        self.assertIsInstance(sessions[0], Muster.Session)


if __name__ == "__main__":
    case.main()
