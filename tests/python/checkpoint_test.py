#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints and their files from Python: the reader, the writer, the state and the stores."""
import gc
import os

import case
from case import Gio, GLib, Muster

# TensorFlow wrote it.
SAVED = case.fixture("mlp_adam_ref.after5")


def open_saved():
    return Muster.BundleReader.open(None, SAVED)


class Reader(case.TestCase):
    def test_tells_names_and_shapes(self):
        reader = open_saved()
        self.assertEqual(reader.prefix(), SAVED)
        self.assertEqual(reader.n_shards(), 1)
        names = reader.names()
        self.assertEqual(len(names), reader.n_entries())
        self.assertEqual(names[:4], ["beta1_power", "beta2_power", "global_step", "hidden/bias"])
        kernel = reader.find("hidden/kernel")
        self.assertEqual((kernel.name, kernel.dtype, kernel.shape(), kernel.size, kernel.shard, kernel.is_sliced),
                         ("hidden/kernel", Muster.DType.FLOAT, [8, 4], 128, 0, False))
        self.assertEqual(reader.entry(2).name, "global_step")
        self.assertEqual(reader.entry(2).shape(), [])
        self.assertIsNone(reader.find("nothing"))
        self.assertEqual(reader.n_slices("hidden/kernel"), 0)

    def test_an_entry_outlives_its_reader(self):
        entry = open_saved().find("hidden/kernel")
        gc.collect()
        self.assertEqual((entry.name, entry.shape()), ("hidden/kernel", [8, 4]))

    def test_reads_tensors_and_parts_of_them(self):
        reader = open_saved()
        whole = case.values(reader.read("hidden/kernel"))
        self.assertEqual(len(whole), 32)
        self.assertEqual(case.values(reader.read_slice("hidden/kernel", "2,1:-")), whole[8:12])
        both = reader.read_all(["global_step", "hidden/kernel"], ["", "0,1:-"], None)
        self.assertEqual([case.values(tensor) for tensor in both], [[5], whole[:4]])
        self.assertEqual([tensor.shape() for tensor in reader.read_all(reader.names(), None, None)],
                         [reader.find(name).shape() for name in reader.names()])

    def test_fails_by_code(self):
        reader = open_saved()
        self.assertFails(Muster.Error.NOT_FOUND, "no file", Muster.BundleReader.open, None, self.folder + "/none")
        self.assertFails(Muster.Error.NOT_FOUND, "'nothing'", reader.read, "nothing")
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "9,1", reader.read_slice, "hidden/kernel", "9,1:-")
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "1 slices for 2 tensors", reader.read_all,
                         ["global_step", "hidden/kernel"], [""], None)

    def test_finds_a_changed_bit(self):
        for suffix in (".index", ".data-00000-of-00001"):
            with open(SAVED + suffix, "rb") as file, open(self.folder + "/m" + suffix, "wb") as copy:
                copy.write(file.read())
        seen = []
        reader = Muster.BundleReader.open(None, self.folder + "/m")
        self.assertTrue(reader.verify(lambda done, total, data: seen.append((done, total, data)), "data", None))
        size = os.path.getsize(self.folder + "/m.data-00000-of-00001")
        self.assertEqual(seen[-1], (size, size, "data"))
        with open(self.folder + "/m.data-00000-of-00001", "r+b") as file:
            file.seek(100)
            byte = file.read(1)[0]
            file.seek(100)
            file.write(bytes([byte ^ 1]))
        reader = Muster.BundleReader.open(None, self.folder + "/m")
        self.assertFails(Muster.Error.DATA_LOSS, "m.data-00000-of-00001", reader.verify, None, None, None)

    def test_stops_where_it_is_cancelled(self):
        cancelled = Gio.Cancellable()
        cancelled.cancel()
        with self.assertRaises(GLib.Error) as caught:
            open_saved().verify(None, None, cancelled)
        self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED))


class Storage(case.TestCase):
    def test_writes_and_reads_files(self):
        store, path = Muster.local_storage(), self.folder + "/file"
        file = store.create(path)
        store.reserve(file, 5)
        store.append(file, b"hel")
        store.append(file, b"lo")
        store.sync(file)
        store.close(file)
        self.assertEqual(store.read(path).get_data(), b"hello")
        opened, size = store.open(path)
        self.assertEqual(size, 5)
        self.assertEqual(store.read_bytes_at(opened, 3, 10).get_data(), b"lo")
        store.close_input(opened)
        store.publish(path, b"other")
        store.rename(path, self.folder + "/new")
        store.make_directory(self.folder + "/a/b")
        store.sync_directory(self.folder)
        self.assertEqual(store.list(self.folder), ["a", "new"])
        found, info = store.stat(self.folder + "/new")
        self.assertEqual((found, info.size), (True, 5))
        self.assertEqual(info.mtime_us // 1000, os.stat(self.folder + "/new").st_mtime_ns // 1000000)
        self.assertGreater(store.free_space(self.folder)[1], 0)
        store.remove(self.folder + "/new")
        self.assertEqual(store.list(self.folder), ["a"])

    def test_locks_files(self):
        store, path = Muster.local_storage(), self.folder + "/lock"
        lock = store.lock(path, Muster.LockMode.EXCLUSIVE)
        with self.assertRaises(GLib.Error) as caught:
            store.lock(path, Muster.LockMode.SHARED)
        self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.BUSY))
        store.unlock(lock)
        store.unlock(store.lock(path, Muster.LockMode.SHARED))

    def test_refuses_paths(self):
        store = Muster.local_storage()
        self.assertTrue(store.check_path("checkpoint", self.folder))
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "s3://", store.check_path, "checkpoint", "s3://bucket/run")
        within = Muster.local_storage_new_within([self.folder])
        within.publish(self.folder + "/in", b"")
        self.assertFails(Muster.Error.PERMISSION_DENIED, "out", within.publish, self.folder + "/../out", b"")


def field(number, *parts):
    """A length-delimited field of a protocol buffer, of fewer than 128 bytes."""
    text = "".join(parts)
    return chr(number << 3 | 2) + chr(len(text)) + text


def write(prefix, tensors, n_shards=1):
    writer = Muster.BundleWriter.new(None, prefix)
    writer.set_n_shards(n_shards)
    for name, tensor in tensors.items():
        writer.add(name, tensor)
    writer.finish()


class Writer(case.TestCase):
    def test_writes_what_is_read(self):
        write(self.folder + "/m-1", {"b": case.tensor("f", [1, 2]), "a": Muster.Tensor.new_strv(["x", "y"])}, 2)
        reader = Muster.BundleReader.open(Muster.local_storage(), self.folder + "/m-1")
        self.assertEqual(reader.names(), ["a", "b"])
        self.assertEqual(case.values(reader.read("b")), [1, 2])
        self.assertEqual(reader.read("a").to_string(2), '["x", "y"]')

    def test_joins_slices(self):
        writer = Muster.BundleWriter.new(None, self.folder + "/m-1")
        writer.add_slice("v", "4 0,2", case.tensor("f", [1, 2]))
        writer.add_slice("v", "4 2,2", case.tensor("f", [3, 4]))
        writer.finish()
        reader = Muster.BundleReader.open(None, self.folder + "/m-1")
        self.assertEqual(reader.n_slices("v"), 2)
        self.assertEqual(reader.slice("v", 1), ("2,2", 0))
        self.assertTrue(reader.find("v").is_sliced)
        self.assertEqual(case.values(reader.read("v")), [1, 2, 3, 4])

    def test_a_writer_that_is_dropped_leaves_nothing(self):
        writer = Muster.BundleWriter.new(None, self.folder + "/m-1")
        writer.add("a", case.tensor("f", [1]))
        self.assertFails(Muster.Error.ALREADY_EXISTS, "a", writer.add, "a", case.tensor("f", [1]))
        del writer
        gc.collect()
        self.assertEqual(os.listdir(self.folder), [])

    def test_stops_where_it_is_cancelled(self):
        cancelled = Gio.Cancellable()
        cancelled.cancel()
        writer = Muster.BundleWriter.new(None, self.folder + "/m-1")
        writer.add("a", case.tensor("f", [1]))
        writer.set_cancellable(cancelled)
        with self.assertRaises(GLib.Error):
            writer.finish()
        self.assertFalse(Muster.checkpoint_exists(None, self.folder + "/m-1"))

    def test_merges_checkpoints(self):
        write(self.folder + "/a", {"a": case.tensor("f", [1])})
        write(self.folder + "/b", {"b": case.tensor("f", [2])})
        self.assertTrue(Muster.bundle_merge(None, [self.folder + "/a", self.folder + "/b"], self.folder + "/m"))
        reader = Muster.BundleReader.open(None, self.folder + "/m")
        self.assertEqual((reader.names(), reader.n_shards()), (["a", "b"], 2))

    def test_sorts_names(self):
        names = Muster.BundleNames.new(Muster.Tensor.new_strv(["b", "a"]))
        self.assertEqual([names.get(i) for i in range(names.n())], [("a", 1, 1), ("b", 1, 0)])
        with self.assertRaises(TypeError):  # PyGObject's, for a constructor that returns NULL
            Muster.BundleNames.new(Muster.Tensor.new_strv(["a", "a"]))


class ObjectNames(case.TestCase):
    KEY = "w/.ATTRIBUTES/VARIABLE_VALUE"

    def test_are_read(self):
        child = field(1, "\x08\x01", field(2, "w"))
        attribute = field(2, field(1, "VARIABLE_VALUE"), field(2, "net/w"), field(3, self.KEY))
        graph = field(1, child) + field(1, attribute)
        write(self.folder + "/m", {self.KEY: case.tensor("f", [1]),
                                   Muster.OBJECT_GRAPH_KEY: Muster.Tensor.new_string(graph)})
        names = Muster.ObjectNames.read(Muster.BundleReader.open(None, self.folder + "/m"))
        self.assertEqual(names.n(), 1)
        name = names.at(0)
        self.assertEqual((name.key, name.path, name.full_name), (self.KEY, "w", "net/w"))
        self.assertEqual(names.find(self.KEY).path, "w")
        self.assertIsNone(names.find("none"))
        self.assertEqual(names.key_of("net/w")[0], self.KEY)
        self.assertEqual(names.key_of("none"), (None, 0))
        del names
        gc.collect()
        self.assertEqual((name.key, name.path), (self.KEY, "w"))

    def test_are_none_of_a_graphs_checkpoint(self):
        self.assertIsNone(Muster.ObjectNames.read(open_saved()))


class State(case.TestCase):
    def prefix(self, step):
        return "%s/m-%d" % (self.folder, step)

    def save(self, *steps):
        """Checkpoints with a state file that lists them."""
        state = Muster.CheckpointState.new()
        for step in steps:
            write(self.prefix(step), {"a": case.tensor("f", [step])})
            state.add(self.prefix(step), 1000.5 + step)
        Muster.CheckpointState.write(None, self.folder, state)

    def test_is_written_and_read(self):
        self.assertIsNone(Muster.CheckpointState.read(None, self.folder))
        self.save(1, 2)
        state = Muster.CheckpointState.read(None, self.folder)
        self.assertEqual(state.latest, self.prefix(2))
        self.assertEqual(state.prefixes(), [self.prefix(1), self.prefix(2)])
        self.assertEqual(state.times(), [1001.5, 1002.5])
        self.assertEqual(state.copy().prefixes(), state.prefixes())
        with open(self.folder + "/checkpoint", encoding="utf-8") as file:
            self.assertIn('model_checkpoint_path: "m-2"', file.read())

    def test_has_other_names(self):
        self.save(1)
        state = Muster.CheckpointState.read(None, self.folder)
        state.absolute_paths = True
        Muster.CheckpointState.write_named(None, self.folder, "other", state)
        self.assertEqual(Muster.CheckpointState.read_named(None, self.folder, "other").latest, self.prefix(1))
        self.assertEqual(Muster.latest_checkpoint_named(None, self.folder, "other"), self.prefix(1))

    def test_names_the_latest_checkpoint(self):
        self.assertIsNone(Muster.latest_checkpoint(None, self.folder))
        self.save(1, 2)
        self.assertEqual(Muster.latest_checkpoint(None, self.folder), self.prefix(2))
        self.assertEqual(Muster.checkpoint_locate(None, self.folder, "/moved/m-2"), self.prefix(2))
        self.assertTrue(Muster.checkpoint_exists(None, self.prefix(2)))
        self.assertTrue(Muster.checkpoint_matches(None, self.prefix(2)[:-1] + "?"))
        self.assertEqual(len(Muster.checkpoint_mtimes(None, [self.prefix(1), self.prefix(3)])), 1)
        self.assertEqual(Muster.checkpoint_meta_path("m-3-00001-of-00002"), "m-3.meta")

    def test_removes_checkpoints(self):
        self.save(1)
        lock = Muster.local_storage().lock(self.prefix(1) + ".index", Muster.LockMode.SHARED)
        with self.assertRaises(GLib.Error):
            Muster.remove_checkpoint(None, self.prefix(1))
        Muster.local_storage().unlock(lock)
        self.assertTrue(Muster.remove_checkpoint(None, self.prefix(1)))
        self.assertFalse(Muster.checkpoint_exists(None, self.prefix(1)))

    def test_lists_and_quarantines(self):
        self.save(1, 2)
        self.assertEqual(Muster.checkpoint_list(None, self.folder), [self.prefix(1), self.prefix(2)])
        self.assertEqual(Muster.checkpoint_quarantine(None, self.prefix(2), "damaged"), (True, self.prefix(2) + ".bad"))
        self.assertEqual(Muster.checkpoint_list(None, self.folder), [self.prefix(1)])
        self.assertEqual(Muster.checkpoint_list_quarantined(None, self.folder), [self.prefix(2) + ".bad"])
        self.assertTrue(Muster.checkpoint_is_quarantined(self.prefix(2) + ".bad"))
        self.assertEqual(Muster.checkpoint_step(self.prefix(2) + ".bad"), 2)

    def test_pins_and_marks(self):
        self.save(1, 2)
        self.assertTrue(Muster.checkpoint_pin(None, self.prefix(1), "the paper's", Muster.WAIT_FOREVER, None))
        self.assertTrue(Muster.checkpoint_set_metric(None, self.prefix(1), "loss", 0.25, Muster.WAIT_FOREVER, None))
        with open(os.path.join(self.folder, "checkpoint.muster"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn("pinned-for=the paper's\n", text)
        self.assertIn("metrics=loss 0.25\n", text)
        self.assertTrue(Muster.checkpoint_unpin(None, self.prefix(1), Muster.WAIT_FOREVER, None))
        self.assertFails(Muster.Error.FAILED_PRECONDITION, "isn't pinned", Muster.checkpoint_unpin, None, self.prefix(1),
                         Muster.WAIT_FOREVER, None)

    def test_is_inspected(self):
        self.save(1)
        whole, overview = Muster.checkpoint_inspect(None, self.prefix(1))
        self.assertTrue(whole)
        self.assertEqual((overview.n_shards, overview.n_tensors), (1, 1))
        self.assertEqual(overview.bytes, sum(os.path.getsize(self.prefix(1) + suffix)
                                             for suffix in (".index", ".data-00000-of-00001")))
        self.assertTrue(Muster.checkpoint_check_meta_graph(None, self.prefix(1)))
        os.truncate(self.prefix(1) + ".data-00000-of-00001", 1)
        self.assertFails(Muster.Error.DATA_LOSS, "data-00000", Muster.checkpoint_inspect, None, self.prefix(1))


class Counting(Muster.ForwardingStorage, Muster.Storage):
    """Counts the lists that are made, and has the others' directories."""
    n = 0

    def do_list(self, directory):
        self.n += 1
        return self.inner().list(directory)


class Forwarding(case.TestCase):
    def test_a_store_in_python_changes_one_operation(self):
        inner = Muster.local_storage_new_within([self.folder])
        store = Counting()
        store.set_inner(inner)
        self.assertEqual(store.inner(), inner)
        write(self.folder + "/m-1", {"a": case.tensor("f", [1])})
        self.assertEqual(Muster.checkpoint_list(store, self.folder), [self.folder + "/m-1"])
        self.assertEqual(store.n, 1)
        self.assertEqual(case.values(Muster.BundleReader.open(store, self.folder + "/m-1").read("a")), [1])


if __name__ == "__main__":
    case.main()
