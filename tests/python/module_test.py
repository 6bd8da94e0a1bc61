#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""import muster: all of the library by its names, with signatures, and what mistakes say."""
import asyncio
import functools
import inspect
import os
import pathlib
import pickle
import pydoc
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../../python")))
import case
import muster
import pythons
from case import GLib, GObject, Muster, MusterEngine
from gi import _gi
from muster import _callbacks


REQUIRED = {  # what options can't be without
    "backup_dir": lambda: "backup", "checkpoint_dir": lambda: "run", "directory": lambda: "run", "tensors": lambda: ["loss:0"],
    "scaffold": case.linreg, "master": MusterEngine.Master.new,
    "program": lambda: muster.SessionProgram(case.linreg().meta_graph(), case.session(), None, None)}


def infos(*kinds):
    return [info for info in _gi.Repository.get_default().get_infos("Muster") if isinstance(info, kinds)]


def manage(scaffold):
    return muster.SessionManager.new_for_ops(scaffold.graph(), scaffold.ready_op(), None, scaffold.local_init_op(), None, None)


class Module(case.TestCase):
    def test_has_all_that_the_bindings_have(self):
        for info in infos(_gi.RegisteredTypeInfo, _gi.FunctionInfo, _gi.ConstantInfo):
            if not isinstance(info, _gi.CallbackInfo):
                self.assertIs(getattr(muster, info.get_name()), getattr(Muster, info.get_name()))
                self.assertIn(info.get_name(), dir(muster))
        self.assertIs(muster.LocalMaster, MusterEngine.Master)
        self.assertEqual(muster.__version__, Muster.version())

    def test_each_name_that_completion_offers_is_there(self):
        self.assertEqual([name for name in dir(muster) if not hasattr(muster, name)], [])
        self.assertTrue({"train", "train_async", "latest_checkpoint_async", "NotReady", "checkpoint", "tensor", "__version__"} <= {*dir(muster)})
        names = {}
        exec("from muster import *", names)  # pylint: disable=exec-used
        self.assertIs(names["Saver"], muster.Saver)

    def test_knows_the_masters_of_this_process(self):
        for target in ("local", "tensorflow"):
            self.assertFalse(Muster.Master.is_offered(target))
        self.assertEqual(muster.Master.new_for_target("local").target(), "local")
        self.assertTrue(Muster.Master.is_offered("local"))

    def test_a_misspelled_name_is_no_attribute(self):
        for module in (muster, Muster):
            for name, near in (("Sevar", "Saver"), ("SesionManager", "SessionManager"), ("latest_checkpoints", "latest_checkpoint")):
                with self.assertRaisesRegex(AttributeError, "did you mean '%s'" % near):
                    getattr(module, name)


class Signatures(case.TestCase):
    def assertSigned(self, callable_, text):
        self.assertEqual(str(inspect.signature(callable_)), text)

    def test_are_those_of_the_functions(self):
        self.assertSigned(muster.Scaffold.load, "(path)")
        self.assertSigned(muster.Session.fetch, "(self, tensor, deadline_us=None, cancellable=None, *, timeout=None)")
        self.assertSigned(muster.latest_checkpoint, "(storage, directory)")
        self.assertSigned(muster.deadline_remaining, "(deadline_us, now_us)")
        self.assertSigned(muster.Claim, "(model, task=None)")
        self.assertSigned(muster.checkpoint_copy_async, str(inspect.signature(muster.checkpoint_copy)))
        prepare = inspect.signature(muster.SessionManager.prepare_session)
        self.assertTrue(str(prepare).startswith("(self, master, options=None, report=None, cancellable=None, *, "), prepare)
        for name in ("init_op", "init_feeds", "init_func", "saver", "checkpoint_dir", "restore"):
            self.assertEqual((prepare.parameters[name].kind, prepare.parameters[name].default), (inspect.Parameter.KEYWORD_ONLY, None))
        self.assertIs(prepare.parameters["overwrite"].default, False)
        said = pydoc.render_doc(muster.SessionManager, renderer=pydoc.plaintext)
        self.assertRegex(said, r"prepare_session\([\s|]*self,[\s|]*master,[\s|]*options=None,")

    def test_are_everywhere(self):
        for info in infos(_gi.ObjectInfo, _gi.InterfaceInfo, _gi.StructInfo):
            for method in info.get_methods():
                inspect.signature(getattr(getattr(muster, info.get_name()), method.__name__))
        for info in infos(_gi.FunctionInfo):
            inspect.signature(getattr(muster, info.get_name()))

    def test_the_defaults_of_options_are_what_they_are_without(self):
        for info in infos(_gi.StructInfo):
            cls = getattr(muster, info.get_name())
            if not info.get_name().endswith(("Options", "SaverBuild", "RpcSecurity")):
                continue
            parameters = inspect.signature(cls).parameters
            required = {name: REQUIRED[name]() for name, each in parameters.items() if each.default is inspect.Parameter.empty}
            for name, parameter in parameters.items():
                if parameter.default is not ... and name not in required:
                    with self.subTest(struct=info.get_name(), keyword=name):
                        cls(**{**required, name: parameter.default})


class Construction(case.TestCase):
    def test_a_class_is_called_as_its_new(self):
        scaffold = case.linreg()
        self.assertIsInstance(muster.Saver(scaffold.meta_graph(), max_to_keep=3), muster.Saver)
        self.assertIsInstance(muster.SessionManager(scaffold.graph(), ready_op=scaffold.ready_op()), muster.SessionManager)
        self.assertEqual(muster.Claim("m", task="chief:0").task, "chief:0")
        self.assertEqual(muster.Join("m", None, 4).n_slots, 4)
        self.assertEqual(muster.LocalMaster().target(), "local")
        self.assertIsInstance(muster.StepBuilder(), muster.StepBuilder)
        with self.assertRaisesRegex(TypeError, "misses the argument 'meta_graph'"):
            muster.Saver()
        with self.assertRaises(muster.InvalidArgument):
            muster.SessionManager(scaffold.graph(), ready_op="no such op")

    def test_a_subclass_is_made_as_python_does(self):
        class Mine(muster.Hook):
            def __init__(self, n):
                super().__init__()
                self.n = n

        self.assertEqual(Mine(3).n, 3)


class Mistakes(case.TestCase):
    """What a person mistypes: the exception, and the name that it tells."""

    def assertTold(self, kind, near, call):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn("did you mean '%s'?" % near, str(caught.exception))

    def test_tell_the_name_that_was_meant(self):
        scaffold, session = case.linreg(), case.session()
        manager, saver = manage(scaffold), muster.Saver(scaffold.meta_graph())
        job = muster.Training(scaffold=scaffold, master=MusterEngine.Master.new())
        self.assertTold(TypeError, "init_op", lambda: manager.prepare_session(MusterEngine.Master.new(), init_opp="init"))
        self.assertTold(TypeError, "timeout", lambda: session.fetch("loss:0", time_out=3))
        self.assertTold(TypeError, "timeout", lambda: session.run("loss:0", {}, time_out=3))
        self.assertTold(TypeError, "max_to_keep", lambda: muster.SaverOptions(max_to_kep=3))
        self.assertTold(TypeError, "max_to_keep", lambda: muster.Saver(scaffold.meta_graph(), max_to_kep=3))
        self.assertTold(TypeError, "checkpoint_dir", lambda: muster.train(job, checkpint_dir="run") if False else muster.Training(
            scaffold=scaffold, master=MusterEngine.Master.new(), checkpint_dir="run"))
        self.assertTold(AttributeError, "latest_checkpoint", lambda: saver.latest_chekpoint("run"))
        self.assertTold(AttributeError, "run", lambda: session.rum("loss:0"))
        self.assertTold(AttributeError, "handle", lambda: setattr(session, "handel", 7))
        self.assertTold(AttributeError, "until_step", lambda: setattr(job, "untill_step", 7))
        self.assertTold(AttributeError, "set_interval", lambda: setattr(saver, "set_intervall", 7))
        self.assertTold(TypeError, "directory", lambda: saver.latest_checkpoint(directry="run"))
        self.assertTold(AttributeError, "load", lambda: muster.Scaffold.lod("digits.meta"))
        self.assertTold(AttributeError, "max_to_keep", lambda: muster.SaverOptions.max_to_kep)

    def test_of_every_class_tell_its_name(self):
        for info in infos(_gi.ObjectInfo, _gi.InterfaceInfo, _gi.StructInfo):
            cls = getattr(muster, info.get_name())
            with self.subTest(cls=cls.__name__):
                self.assertFalse(hasattr(cls, "no_such_name"))
                self.assertTold(AttributeError, "copy", lambda: cls.copi) if hasattr(cls, "copy") else None
                with self.assertRaisesRegex(AttributeError, "%s has no attribute 'no_such_name'" % cls.__name__) as caught:
                    cls.no_such_name  # pylint: disable=pointless-statement
                self.assertEqual(str(pickle.loads(pickle.dumps(caught.exception))), str(caught.exception))

    def test_name_the_argument_that_is_no_text(self):
        manager = manage(case.linreg())
        for name, call in (("init_op", lambda: manager.prepare_session(MusterEngine.Master.new(), init_op=5)), ("path", lambda: muster.Scaffold.load(5)),
                           ("model", lambda: muster.Claim(5, "chief:0")), ("task", lambda: muster.Claim("m", task=5))):
            with self.assertRaisesRegex(TypeError, "needs a text for '%s', not 5" % name):
                call()


class Paths(case.TestCase):
    def test_are_taken_where_a_text_is(self):
        folder = pathlib.Path(self.folder)
        scaffold = muster.Scaffold.load(pathlib.Path(case.fixture("linreg.meta")))
        session, saver = case.session(scaffold), muster.Saver(scaffold.meta_graph())
        prefix = saver.save(session, folder, 7)
        self.assertEqual(saver.latest_checkpoint(directory=folder), prefix)
        self.assertEqual(muster.latest_checkpoint(None, folder), prefix)
        self.assertTrue(muster.checkpoint_exists(None, pathlib.Path(prefix)))
        self.assertTrue(muster.BundleReader.open(None, pathlib.Path(prefix)).names())
        self.assertTrue(saver.restore(session, muster.RestoreOptions(prefix=pathlib.Path(prefix)), None))
        muster.checkpoint_copy(from_=pathlib.Path(prefix), to=folder / "copy-1")
        self.assertTrue((folder / "copy-1.index").exists())

    def test_a_file_that_is_not_there(self):
        missing = os.path.join(self.folder, "none")
        for call in (lambda: muster.Scaffold.load(missing), lambda: muster.BundleReader.open(None, missing), lambda: muster.npy_load(missing),
                     lambda: muster.MetaGraph.load(pathlib.Path(missing))):
            with self.assertRaises(FileNotFoundError) as caught:
                call()
            self.assertIsInstance(caught.exception, muster.NotFound)
            self.assertEqual((caught.exception.errno, caught.exception.filename), (2, missing))
            self.assertIn(missing, str(caught.exception))

    def test_what_is_not_found_in_a_file_is_no_file(self):
        with self.assertRaises(muster.NotFound) as caught:
            muster.BundleReader.open(None, case.fixture("mlp_adam_ref.after5")).read("no such tensor")
        self.assertNotIsInstance(caught.exception, FileNotFoundError)


class Bytes(case.TestCase):
    def test_are_taken_where_the_library_has_its_own(self):
        with open(case.fixture("linreg.meta"), "rb") as file:
            written = file.read()
        self.assertTrue(muster.MetaGraph(written).graph().n_nodes())
        self.assertEqual(muster.Tensor.new_from_bytes(muster.DType.INT32, [2], bytes(8)).tolist(), [0, 0])


class Functions(case.TestCase):
    def test_an_init_function_may_return_none_and_take_the_session_only(self):
        scaffold = case.linreg()
        with manage(scaffold).prepare_session(MusterEngine.Master.new(), init_func=lambda session: session.run_op(scaffold.init_op()) and None) as session:
            self.assertEqual(int(session.run(scaffold.global_step())), 0)

    def test_a_default_argument_is_the_programs(self):
        scaffold, seen = case.linreg(), []

        def initialise(name, session):
            seen.append((name, session.run_op(scaffold.init_op())))

        class Initialise:
            def __call__(self, session, *, name="object"):
                initialise(name, session)

        def with_time(session, deadline_us=None, cancellable=3, name="with a time"):  # C's names are C's arguments
            initialise((name, deadline_us > 0, cancellable is not None), session)

        for function in (lambda session, name="lambda": initialise(name, session), functools.partial(initialise, "partial"), Initialise(), with_time):
            manage(scaffold).prepare_session(MusterEngine.Master.new(), init_func=function).close()
        self.assertEqual(seen, [("lambda", True), ("partial", True), ("object", True), (("with a time", True, True), True)])

    def test_a_default_argument_of_a_hook_or_a_loop_is_the_programs(self):
        seen, name = [], "mine"

        class Hook(muster.Hook):
            def do_end(self, session, deadline_us=None, name=name):
                seen.append((name, deadline_us > 0))

        muster.MonitoredSession(scaffold=case.linreg(), master=MusterEngine.Master.new(), hooks=[Hook()]).end()
        fit = muster.Fit(1, 2)
        fit.set_train(lambda at, n, name=name: seen.append((name, n)))
        muster.fit(fit)
        self.assertEqual(seen, [("mine", True), ("mine", 1), ("mine", 1)])

    def test_a_function_that_cannot_fail_may_take_fewer_arguments_too(self):
        seen, session, saver = [], case.session(), muster.Saver(case.linreg().meta_graph())
        saver.save(session, self.folder, 1)
        saver.restore(session, directory=self.folder, progress=lambda read, name="mine": seen.append((name, read > 0)))
        self.assertEqual(set(seen), {("mine", True)})

    def test_what_it_raises_is_the_cause(self):
        def fail(session):
            raise KeyError("my table")

        with self.assertRaises(muster.Unknown) as caught:
            manage(case.linreg()).prepare_session(MusterEngine.Master.new(), init_func=fail)
        self.assertIsInstance(caught.exception.__cause__, KeyError)
        self.assertIn("KeyError: 'my table'", str(caught.exception))
        with self.assertRaises(muster.StatusError) as caught:
            manage(case.linreg()).prepare_session(MusterEngine.Master.new(), init_func=lambda session: session.fetch("no_such:0"))
        self.assertIn("no_such", str(caught.exception))

    def test_a_hook_too(self):
        class Hook(muster.Hook):
            n = 0

            def do_after_run(self, context):
                self.n += 1
                if self.n == 2:
                    raise ValueError("twice")

        hook, scaffold = Hook(), case.linreg()
        opened = muster.MonitoredSession(scaffold=scaffold, master=MusterEngine.Master.new(), hooks=[hook])
        opened.run(scaffold.global_step())
        with self.assertRaises(muster.Unknown) as caught:
            opened.run(scaffold.global_step())
        self.assertIsInstance(caught.exception.__cause__, ValueError)

    def test_a_master_in_part_fails_in_the_rest(self):
        class Half(GObject.Object, muster.Master):
            def do_create_session(self, graph):
                pass  # `return` is forgotten

        scaffold, half = case.linreg(), Half()
        with self.assertRaisesRegex(muster.Unknown, r"do_create_session \(\) returned None"):
            half.create_session(scaffold.graph())
        with self.assertRaisesRegex(muster.StatusError, r"do_create_session \(\) returned None"):
            manage(scaffold).prepare_session(half, init_op=scaffold.init_op(), timeout=60)
        with self.assertRaisesRegex(muster.Unimplemented, r"Half.* implements no list_devices \(\)"):
            half.list_devices()
        self.assertIn("Half", half.target())

    def test_a_clock_in_part_is_the_machines_in_the_rest(self):
        class Half(GObject.Object, muster.Clock):
            def do_wall_us(self):
                return 5

        scaffold = case.linreg()
        manager = muster.SessionManager(scaffold.graph(), ready_op=scaffold.ready_op(), clock=Half())
        with self.assertRaises(muster.NotReady):
            manager.wait_for_session(MusterEngine.Master.new(), timeout=0.1)

    def test_what_exits_is_raised_where_the_call_ends(self):
        seen, exits, saver = [], [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError("cancelled")], muster.Saver(case.linreg().meta_graph())

        def leave(by):
            raise by

        class Hook(muster.Hook):
            def do_after_run(self, context):
                leave(self.by)

            def do_on_error(self, error):
                seen.append(error.message)

        for each in exits:
            hook = Hook()
            hook.by = each
            with self.assertRaises(type(each)) as caught:
                with muster.MonitoredSession(scaffold=case.linreg(), master=MusterEngine.Master.new(), hooks=[hook]) as opened:
                    opened.run("global_step:0")
            self.assertIs(caught.exception, each)
            with case.session() as session, self.assertRaises(type(each)):  # of one that can't fail
                saver.save(session, self.folder, 1)
                saver.restore(session, directory=self.folder, progress=lambda *_: leave(each))
        self.assertEqual(seen, ["SystemExit: 3", "KeyboardInterrupt", "CancelledError: cancelled"])

    def test_what_exits_leaves_the_calls_of_other_hooks_alone(self):
        seen = []

        class First(muster.Hook):
            def do_end(self, session):
                sys.exit(3)

        class Second(muster.Hook):
            def do_end(self, session):
                seen.append(int(session.run("global_step:0")))

        opened = muster.MonitoredSession(scaffold=case.linreg(), master=MusterEngine.Master.new(), hooks=[First(), Second()])
        with self.assertRaises(SystemExit):
            opened.end()
        self.assertEqual(seen, [0])

    def test_what_was_raised_without_a_word_is_no_other_errors_cause(self):
        _callbacks._raised.last = AssertionError()  # as of a function whose error a call has passed over
        with self.assertRaises(muster.StatusError) as caught:
            case.session().fetch("no_such:0")
        self.assertNotIsInstance(caught.exception.__cause__, AssertionError)
        self.assertNotIsInstance(getattr(caught.exception.__cause__, "__cause__", None), AssertionError)

    def test_feeds_of_the_init_ops_are_a_dict(self):
        builder = muster.GraphBuilder()
        builder.placeholder("start", muster.DType.DOUBLE, [])
        builder.variable("v", muster.Tensor(0.0, muster.DType.DOUBLE))
        builder.node("Assign", "set")
        builder.input("v")
        builder.input("start")
        builder.attr_type("T", muster.DType.DOUBLE)
        graph = builder.end()
        manager = muster.SessionManager(graph)
        self.assertTrue(manager.graph().has_node("set"))
        options = muster.ScaffoldOptions(init_op="set", ready_op="", init_feeds={"start:0": muster.Tensor(7, muster.DType.DOUBLE)})
        scaffold = muster.Scaffold.new_with(muster.MetaGraph.new_for_graph(graph), options)
        with muster.MonitoredSession(scaffold=scaffold, master=MusterEngine.Master.new()) as session:
            self.assertEqual(float(session.run("v:0")), 7)
        for value in (5.0, 5, muster.Tensor(5, muster.DType.DOUBLE)):  # of the placeholder's type
            with manager.prepare_session(MusterEngine.Master.new(), init_op="set", init_feeds={"start:0": value}) as session:
                self.assertEqual(float(session.run("v:0")), 5)
        with self.assertRaises(muster.InvalidArgument):
            manager.prepare_session(MusterEngine.Master.new(), init_op="set", init_feeds={"start:0": muster.Tensor(5)})
        scaffold = muster.Scaffold.new_with(muster.MetaGraph.new_for_graph(graph), init_op="set", ready_op="", init_feeds={"start:0": 6})
        with muster.MonitoredSession(scaffold=scaffold, master=MusterEngine.Master.new()) as session:
            self.assertEqual(float(session.run("v:0")), 6)


class Texts(case.TestCase):
    def test_values_of_enumerations_are_named(self):
        self.assertEqual((str(muster.DType.FLOAT), repr(muster.DType.FLOAT), muster.DType.FLOAT.name), ("DType.FLOAT", "<DType.FLOAT: 1>", "FLOAT"))
        self.assertEqual("%s, {}".format(muster.Outcome.READY) % muster.Error.NOT_FOUND, "Error.NOT_FOUND, Outcome.READY")

    def test_objects_tell_what_they_are(self):
        scaffold = case.linreg()
        self.assertEqual(repr(MusterEngine.Master.new()), "<muster.LocalMaster target='local'>")
        self.assertEqual(repr(muster.Saver(scaffold.meta_graph())), "<muster.Saver>")
        self.assertRegex(repr(scaffold), r"<muster.Scaffold n_variables=\d+>")
        self.assertEqual(repr(muster.PrepareOptions(init_op="init", timeout=3)), "muster.PrepareOptions(init_op='init', timeout_us=3000000)")
        self.assertEqual(repr(muster.Claim("m", "chief:0")), "<muster.Claim model='m' task='chief:0'>")
        self.assertIn("saver=muster.SaverOptions(max_to_keep=3)", repr(muster.Training(scaffold=scaffold, master=MusterEngine.Master.new(), max_to_keep=3)))

    def test_each_object_has_one_that_names_its_class(self):
        for info in infos(_gi.ObjectInfo, _gi.InterfaceInfo, _gi.StructInfo):
            cls = getattr(muster, info.get_name())
            self.assertIn("muster.", cls.__repr__.__code__.co_consts.__repr__(), cls)


class Training(case.TestCase):
    def test_gives_what_it_has_done(self):
        batches = muster.Batches([muster.Tensor([1.0, 2, 3, 4])] * 2, 2, 7)
        trained = muster.train(scaffold=case.linreg(), master=MusterEngine.Master.new(), batches=batches, feeds=["x:0", "y:0"], loss="loss:0",
                               until_step=3, checkpoint_dir=pathlib.Path(self.folder))
        self.assertEqual((trained.step, trained.is_reached), (3, True))


class Pickling(case.TestCase):
    def test_errors_and_tensors_go_to_another_process(self):
        error = pickle.loads(pickle.dumps(muster.NotFound("gone", GLib.quark_to_string(Muster.error_quark()), int(Muster.Error.NOT_FOUND))))
        self.assertEqual((type(error), str(error), error.code), (muster.NotFound, "gone", 5))
        for tensor in (muster.Tensor([[1, 2]]), muster.Tensor(["a", "bc"]), muster.Tensor(2.5, muster.DType.BFLOAT16), muster.Tensor([])):
            self.assertEqual(pickle.loads(pickle.dumps(tensor)), tensor)


THREADS = """
import sys, threading
import muster

sys.setswitchinterval(1e-6)
raw, begin = set(), threading.Barrier(8)

def use(first):
    begin.wait()
    for name in NAMES[first:] + NAMES[:first]:
        found = getattr(muster, name)
        methods = [getattr(found, method.__name__) for method in found.__info__.get_methods()] if isinstance(found, type) else [found]
        raw.update(name for method in methods if hasattr(method, "get_symbol"))

NAMES = ["LocalMaster", "Saver", "SessionManager", "Training", "Scaffold", "Master", "Session", "train", "latest_checkpoint_async"]
threads = [threading.Thread(target=use, args=[first]) for first in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not raw, raw
"""
LOGGING = """
import logging, sys
import muster
from gi.repository import GLib

class Keep(logging.Handler):
    records = []
    def emit(self, record):
        self.records.append(record)

logger = logging.getLogger("muster")
logger.addHandler(Keep())
logger.propagate = False
logger.setLevel(logging.INFO)
for wrong in "LOUD", 1.5:
    try:
        muster.use_logging(level=wrong)
    except (TypeError, ValueError):
        continue
    raise SystemExit("took level %r" % wrong)
muster.use_logging()
scaffold = muster.Scaffold.load(sys.argv[1])
manager = muster.SessionManager(scaffold.graph(), ready_op=scaffold.ready_op(), local_init_op=scaffold.local_init_op())
manager.prepare_session(muster.LocalMaster(), init_op=scaffold.init_op())
said = [(record.levelname, record.getMessage()) for record in Keep.records]
assert ("INFO", "Running local_init_op.") in said, said
assert all(record.muster["event"] for record in Keep.records), [record.muster for record in Keep.records]
n = len(said)
muster.use_logging("muster", "WARNING")
manager.prepare_session(muster.LocalMaster(), init_op=scaffold.init_op())
assert len(Keep.records) == n, said
GLib.log_variant("Other", GLib.LogLevelFlags.LEVEL_WARNING, GLib.Variant("a{sv}", {"MESSAGE": GLib.Variant("s", "of another")}))
assert len(Keep.records) == n, said
"""


class Processes(case.TestCase):
    """What can be tried once in a process."""

    def setUp(self):
        super().setUp()
        self.environment = pythons.environment(self.folder)

    def run_program(self, text):
        done = subprocess.run([sys.executable, "-c", text, case.fixture("linreg.meta")], env=self.environment, timeout=60, check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_a_traceback_names_what_is_near_once(self):
        for mistake, near in ("Scaffold.lod", "load"), ("Sevar", "Saver"), ("SaverOptions().max_to_kep", "max_to_keep"):
            done = subprocess.run([sys.executable, "-c", "import muster; muster." + mistake], env=self.environment, timeout=60, check=False, text=True,
                                  stderr=subprocess.PIPE)
            self.assertEqual(re.findall("[Dd]id you mean.*", done.stderr), ["did you mean '%s'?" % near], done.stderr)

    def test_logging_gets_what_is_asked_for(self):
        self.assertIn("of another", self.run_program(LOGGING))

    def test_threads_that_begin_at_once_see_the_same(self):
        for _ in range(10):
            self.run_program(THREADS)


class Blocks(case.TestCase):
    def test_a_preemption_has_the_signals(self):
        seen = []
        self.addCleanup(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, lambda *_: seen.append("mine")))
        with muster.Preemption(0, None) as preemption:
            os.kill(os.getpid(), signal.SIGTERM)
            while not preemption.is_requested():
                pass
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual((preemption.get_report().signal_number, seen), (signal.SIGTERM, ["mine"]))

    def test_a_membership_is_left(self):
        master = muster.Master.new_for_target(self.serve())
        with master.join(muster.Join("m", "worker:0", 4)) as member:
            self.assertEqual(repr(member), "<muster.Membership slot=0>")
        with self.assertRaises(muster.StatusError):
            member.check()


if __name__ == "__main__":
    case.main()
