# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow 1's classes do around a session, told on a master: each story gives its results, which
are those of any other master."""
import contextlib
import logging
import os

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from programs.model import Line, events, failure, files, v1

train = v1.train


class Diary(train.SessionRunHook, train.CheckpointSaverListener):
    """A hook and a listener of a user's own."""

    def __init__(self):
        self.lines = []

    def begin(self):
        self.lines.append("begin")

    def after_create_session(self, session, coord):
        self.lines.append("created")

    def before_run(self, run_context):
        return train.SessionRunArgs(train.get_global_step())

    def after_run(self, run_context, run_values):
        self.lines.append("step %d" % run_values.results)

    def before_save(self, session, global_step_value):
        self.lines.append("saving %d" % global_step_value)

    def after_save(self, session, global_step_value):
        self.lines.append("saved %d" % global_step_value)

    def end(self, session, global_step_value=None):
        self.lines.append("end")


@contextlib.contextmanager
def logged():
    """What hooks say in the log, without times."""
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage().split(" (")[0])
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def chief_and_worker(target, folder):
    """MonitoredTrainingSession with all the hooks that TensorFlow has."""
    diary, model, results = Diary(), Line(), {}
    final = train.FinalOpsHook(model.weights)
    with model.graph.as_default(), logged() as log:
        hooks = [diary, final, train.StopAtStepHook(last_step=12), train.NanTensorHook(model.loss),
                 train.LoggingTensorHook({"loss": model.loss}, every_n_iter=4),
                 train.FeedFnHook(lambda: {model.x: [[1.0, 1.0]]})]
        chief_only = [train.StepCounterHook(every_n_steps=3, output_dir=folder),
                      train.CheckpointSaverHook(folder, save_steps=5, listeners=[diary]),
                      train.SummarySaverHook(2, output_dir=folder, summary_op=model.merged),
                      train.ProfilerHook(save_steps=5, output_dir=folder)]
        with train.MonitoredTrainingSession(target, is_chief=True, checkpoint_dir=folder, hooks=hooks,
                                            chief_only_hooks=chief_only, save_checkpoint_steps=4,
                                            save_summaries_steps=3, log_step_count_steps=5) as chief:
            for _ in range(3):
                results["loss at %d" % chief.run(model.step)] = chief.run([model.loss, model.train])[0]
            results["the worker"] = worker(target)
            while not chief.should_stop():
                chief.run(model.train)
    results.update(final=final.final_ops_values, diary=diary.lines, files=files(folder), events=events(folder))
    results["timelines"] = sorted(name for name in os.listdir(folder) if name.startswith("timeline"))
    results["log"] = [line for line in log if line.startswith("loss =")]
    return results


def worker(target):
    model, diary = Line(), Diary()
    with model.graph.as_default():
        hooks = [diary, train.GlobalStepWaiterHook(3), train.StopAtStepHook(num_steps=3)]
        with train.MonitoredTrainingSession(target, is_chief=False, hooks=hooks) as session:
            losses = []
            while not session.should_stop():
                losses.append(session.run([model.loss, model.train])[0])
    return {"losses": np.array(losses), "diary": diary.lines}


def chief_again(target, folder):
    """A chief that is started again on a master that knows nothing goes on from the checkpoint."""
    results = {}
    for last_step in (4, 7):
        v1.Session.reset(target)
        model = Line()
        with model.graph.as_default():
            hooks = [train.StopAtStepHook(last_step=last_step)]
            with train.MonitoredTrainingSession(target, checkpoint_dir=folder, hooks=hooks) as chief:
                results["begins before %d" % last_step] = chief.run_step_fn(
                    lambda step_context: step_context.session.run(model.step))
                while not chief.should_stop():
                    results["loss before %d" % last_step] = chief.run([model.loss, model.train])[0]
    results["files"] = files(folder)
    return results


def master_restarts(target, folder):
    """Its sessions are lost under a chief: the chief recovers by itself, from the checkpoint."""
    model, diary = Line(), Diary()
    with model.graph.as_default():
        with train.MonitoredTrainingSession(target, checkpoint_dir=folder, save_checkpoint_steps=2,
                                            hooks=[diary, train.StopAtStepHook(last_step=6)]) as chief:
            for _ in range(3):
                chief.run(model.train)
            v1.Session.reset(target)
            while not chief.should_stop():
                loss = chief.run([model.loss, model.train])[0]
    return {"diary": diary.lines, "loss": loss, "files": files(folder)}


def loss_is_nan(target, folder):
    model = Line()
    with model.graph.as_default():
        def run():
            with train.MonitoredTrainingSession(target, hooks=[train.NanTensorHook(model.loss)]) as session:
                session.run(model.train, {model.x: [[np.nan, 1]]})
        return {"failure": failure(run, train.NanLossDuringTrainingError)}


def scaffolds(target, folder):
    """Creators of sessions and scaffolds, as MonitoredTrainingSession makes them."""
    model, results = Line(), {}
    with model.graph.as_default():
        init, more = model.bias.assign([9.0]), model.weights.assign_add([[1], [1]])
        scaffold = train.Scaffold(init_op=v1.global_variables_initializer(), local_init_op=tf.group(init),
                                  init_fn=lambda scaffold, session: session.run(more),
                                  ready_for_local_init_op=v1.report_uninitialized_variables(), summary_op=model.merged)
        creator = train.ChiefSessionCreator(scaffold, target, checkpoint_dir=folder)
        with train.MonitoredSession(creator) as session:
            results["chief"] = model.values(session)
            results["step function"] = session.run_step_fn(
                lambda step_context: step_context.run_with_hooks(model.loss))
        with train.SingularMonitoredSession(master=target) as session:
            results["singular"] = model.values(session)
            results["raw"] = session.raw_session().run(model.loss)
    model = Line()
    with model.graph.as_default():
        with train.MonitoredSession(train.WorkerSessionCreator(master=target)) as session:
            results["worker"] = model.values(session)
    return results


def supervisor(target, folder):
    """A Supervisor as chief, started twice, and one that isn't chief."""
    results = {}
    for last_step in (3, 5):
        v1.Session.reset(target)
        model = Line()
        with model.graph.as_default():
            chief = train.Supervisor(logdir=folder, summary_op=None, save_model_secs=0, global_step=model.step)
            with chief.managed_session(target) as session:
                results["begins before %d" % last_step] = model.values(session)
                while not chief.should_stop() and session.run(model.step) < last_step:
                    summary, _ = session.run([model.merged, model.train])
                    chief.summary_computed(session, summary)
                chief.saver.save(session, chief.save_path, global_step=model.step)
                results["chief at %d" % last_step] = model.values(session)
                results["worker at %d" % last_step] = supervised_worker(target)
            results["stopped at %d" % last_step] = chief.should_stop()
        # A second one of the same second takes the first one's name for its file.
        results.setdefault("events", events(folder))
    results["files"] = files(folder)
    return results


def supervised_worker(target):
    model = Line("/job:%s/task:0" % job(target))
    with model.graph.as_default():
        one = train.Supervisor(is_chief=False, recovery_wait_secs=1)
        with one.managed_session(target) as session:
            return model.values(session)


def job(target):
    """The name of the master's job: programs that set devices know it from their cluster."""
    with tf.Graph().as_default(), v1.Session(target) as session:
        return v1.DeviceSpec.from_string(session.list_devices()[0].name).job


def session_manager(target, folder):
    """prepare_session with each of its ways to a model, wait_for_session and recover_session."""
    model, results = Line(), {}
    with model.graph.as_default():
        ready, saver = v1.report_uninitialized_variables(), train.Saver()
        init = v1.global_variables_initializer()
        manager = train.SessionManager(ready_op=ready, ready_for_local_init_op=ready, recovery_wait_secs=1,
                                       local_init_op=model.step.assign_add(0))
        results["nothing to begin with"] = failure(lambda: manager.prepare_session(target, None), RuntimeError)
        results["nobody prepares"] = failure(lambda: manager.wait_for_session(target, max_wait_secs=2))
        session, recovered = manager.recover_session(target, saver, checkpoint_dir=folder)
        results["recovers nothing"] = [recovered, sorted(session.run(ready))]
        with manager.prepare_session(target, init, init_fn=lambda s: s.run(model.train)) as session:
            results["prepared"] = model.values(session)
            saver.save(session, os.path.join(folder, "model"), global_step=model.step)
        with manager.wait_for_session(target, max_wait_secs=10) as session:
            results["joined"] = model.values(session)
        v1.Session.reset(target)
        with manager.prepare_session(target, init, saver, folder) as session:
            results["restored"] = model.values(session)
        v1.Session.reset(target)
        session, recovered = manager.recover_session(target, saver, checkpoint_filename_with_path=train.
                                                     latest_checkpoint(folder))
        results["recovered"] = {"found": recovered, "loss": session.run(model.loss)}
        session.close()
    return results


def saver(target, folder):
    """Keeps, names, restores, and takes itself along in a meta graph."""
    model, results = Line(), {}
    path = os.path.join(folder, "model")
    with model.graph.as_default(), v1.Session(target) as session:
        two = train.Saver(max_to_keep=2)
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            session.run(model.train)
            two.save(session, path, global_step=model.step)
        results["kept"] = files(folder)
        results["last"] = [os.path.basename(p) for p in train.get_checkpoint_state(folder).all_model_checkpoint_paths]
        reader = train.load_checkpoint(path + "-3")
        results["tensors"] = {name: reader.get_tensor(name) for name in sorted(reader.get_variable_to_shape_map())}
        results["not there"] = failure(lambda: two.restore(session, path + "-9"), ValueError)
        results["a name that it lacks"] = failure(
            lambda: session.run(v1.raw_ops.RestoreV2(prefix=path + "-3", tensor_names=["x"], shape_and_slices=[""],
                                                     dtypes=[tf.float32], name="lacks")))
        results["another's shape"] = failure(lambda: train.Saver({"bias": model.weights}, name="third").restore(
            session, path + "-3"))
    with tf.Graph().as_default() as graph, v1.Session(target) as session:
        imported = train.import_meta_graph(path + "-3.meta")
        imported.restore(session, train.latest_checkpoint(folder))
        results["imported"] = session.run(["weights:0", "bias/Read/ReadVariableOp:0"])[0]
        results["collections"] = len(graph.get_collection(v1.GraphKeys.TRAIN_OP))
    with tf.Graph().as_default(), v1.Session(target) as session:
        weights = v1.get_variable("renamed", [2, 1])
        train.init_from_checkpoint(folder, {"weights": weights})
        session.run(v1.global_variables_initializer())
        results["warm"] = session.run(weights)
    return results


def coordinator(target, folder):
    """Threads around a session, and an error in one of them."""
    model, results = Line(), {}
    with model.graph.as_default(), v1.Session(target) as session:
        session.run(v1.global_variables_initializer())
        together = train.Coordinator()

        def loop():
            if session.run([model.step, model.train])[0] >= 4:
                raise tf.errors.OutOfRangeError(None, None, "enough")

        looper = train.LooperThread(together, None, target=loop)
        looper.start()
        together.wait_for_stop(30)
        together.join([looper])
        results["at the end"] = model.values(session)

        def fail():
            with together.stop_on_exception():
                session.run(v1.check_numerics(model.loss / 0.0, "bad", name="numbers"))

        together.clear_stop()
        fail()
        results["failed"] = failure(lambda: together.join([]))
    return results


def sessions(target, folder):
    """Session and InteractiveSession: what they fetch, and how their steps fail."""
    model, results = Line(), {}
    with model.graph.as_default():
        with v1.Session(target) as session:
            results["uninitialised"] = failure(lambda: session.run(model.weights))[:1]
            results["uninitialised resource"] = failure(lambda: session.run(model.bias))
            session.run(v1.global_variables_initializer())
            results["nested"] = session.run({"a": [model.loss, (model.bias,)], "b": model.step})["a"][0]
            results["evaluated"] = model.loss.eval({model.x: [[2.0, 1.0]]})
            bare = v1.placeholder(tf.float32, [2], name="bare")
            results["not fed"] = failure(lambda: session.run(bare + 1.0))
            loose = v1.placeholder(tf.float32, name="loose")
            product = tf.matmul(loose, model.weights, name="product")
            results["sizes"] = failure(lambda: session.run(product, {loose: np.ones((2, 3))}))
            wrong = v1.assign(model.weights, loose, validate_shape=True, name="wrong")
            results["shape"] = failure(lambda: session.run(wrong, {loose: np.ones(3)}))
            checked = v1.Assert(model.step < 0, [model.step], name="never")
            results["assert"] = failure(lambda: session.run(checked))
            results["numbers"] = failure(lambda: session.run(v1.check_numerics(loose, "bad", name="numbers"),
                                                             {loose: np.inf}))
            results["range"] = failure(lambda: session.run(v1.gather(model.weights, [7], name="range")))
            results["counted"] = failure(lambda: session.run(
                v1.raw_ops.ResourceCountUpTo(resource=counter(session).handle, limit=0, T=tf.int64, name="counts")))
        results["closed"] = failure(lambda: session.run(model.loss), RuntimeError)
        interactive = v1.InteractiveSession(target)
        results["interactive"] = model.loss.eval()
        interactive.close()
        lost = v1.Session(target)
        lost.run(model.loss)
        v1.Session.reset(target)
        results["lost"] = failure(lambda: lost.run(model.loss))
        with v1.Session(target) as session:
            results["after a reset"] = failure(lambda: session.run(model.bias))
    return results


def counter(session):
    made = v1.get_variable("counter", initializer=np.int64(0), use_resource=True)
    session.run(made.initializer)
    return made


def calls(target, folder):
    """Each call of MasterService, by what a client does for it."""
    model, results = Line(), {}
    with model.graph.as_default():
        a, b = v1.placeholder(tf.float32, [], name="a"), v1.placeholder(tf.float32, [], name="b")
        first = tf.add(a, 1.0, name="first")
        second = tf.multiply(first, b, name="second")
        with v1.Session(target) as session:
            session.run(v1.global_variables_initializer())  # CreateSession, RunStep
            results["extended"] = session.run(tf.negative(model.step))  # ExtendSession
            results["made"] = session.make_callable(second, [a, b])(2, 3)
            options = config_pb2.CallableOptions()
            options.feed.extend([a.name, b.name])
            options.fetch.append(second.name)
            call = session._make_callable_from_options(options)  # MakeCallable
            results["called"] = call(np.float32(2), np.float32(3))[0]  # RunCallable
            del call  # ReleaseCallable
            devices = session.list_devices()  # ListDevices
            results["devices"] = sorted({device.device_type for device in devices} - {"XLA_CPU"})
            metadata = v1.RunMetadata()
            traced = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, timeout_in_ms=60000)
            session.run(second, {a: 1, b: 2}, options=traced, run_metadata=metadata)
            traced = {stats.node_name for device in metadata.step_stats.dev_stats for stats in device.node_stats}
            results["traced"] = sorted({"second"} & traced)
        v1.Session.reset(target, [job(target), "other"])  # Reset: what has no other name is in the job's container
        session = v1.Session(target)
        results["gone"] = failure(lambda: session.run(model.bias))
        session.close()  # CloseSession
    return results


def partial_runs(target, folder):
    """A step in parts."""
    results = {}
    with tf.Graph().as_default(), v1.Session(target) as session:
        a, b = v1.placeholder(tf.float32, [], name="a"), v1.placeholder(tf.float32, [], name="b")
        first = tf.add(a, 1.0, name="first")
        second = tf.multiply(first, b, name="second")
        handle = session.partial_run_setup([first, second], [a, b])
        results["first"] = session.partial_run(handle, first, {a: 1})
        results["second"] = session.partial_run(handle, second, {b: 4})
        results["again"] = failure(lambda: session.partial_run(handle, first, {a: 1}))
    return results


STORIES = {
    "chief_and_worker": (chief_and_worker, """MonitoredTrainingSession SessionRunHook SessionRunArgs
        SessionRunContext SessionRunValues CheckpointSaverListener StopAtStepHook NanTensorHook LoggingTensorHook FeedFnHook
        FinalOpsHook StepCounterHook CheckpointSaverHook SummarySaverHook ProfilerHook GlobalStepWaiterHook SecondOrStepTimer"""),
    "chief_again": (chief_again, "MonitoredTrainingSession"),
    "master_restarts": (master_restarts, "MonitoredTrainingSession"),
    "loss_is_nan": (loss_is_nan, "NanTensorHook NanLossDuringTrainingError"),
    "scaffolds": (scaffolds, """Scaffold SessionCreator ChiefSessionCreator WorkerSessionCreator MonitoredSession
        SingularMonitoredSession"""),
    "supervisor": (supervisor, "Supervisor"),
    "session_manager": (session_manager, "SessionManager"),
    "saver": (saver, "Saver"),
    "coordinator": (coordinator, "Coordinator LooperThread"),
    "sessions": (sessions, "Session InteractiveSession"),
    "calls": (calls, ""),
    "partial_runs": (partial_runs, ""),
}
