#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints made of checkpoints, from Python: at once and in the background."""
import os
import struct

import case
from case import FOREVER, Gio, GLib, Muster


class Edit(case.TestCase):
    def setUp(self):
        super().setUp()
        self.options = Muster.EditOptions()
        self.a, self.b = (self.write("m-%d" % value, value) for value in (1, 3))

    def write(self, name, value):
        prefix = self.folder + "/" + name
        writer = Muster.BundleWriter.new(None, prefix)
        writer.add("x", Muster.Tensor.new_float(value))
        writer.add("y", Muster.Tensor.new_int64(value))
        writer.finish()
        return prefix

    def read(self, prefix):
        reader = Muster.BundleReader.open(None, prefix)
        return {name: case.values(reader.read(name))[0] for name in reader.names()}

    def test_copies_with_options(self):
        seen = []
        self.options.storage = Muster.local_storage()
        self.options.clock = Muster.system_clock()
        options = self.options.copy()
        options.latest = Muster.CopyLatest.NEVER
        to = self.folder + "/to/m-1"
        done, report = Muster.checkpoint_copy(self.a, to, options, lambda done, total, data: seen.append((done, total, data)),
                                              "data", FOREVER, None)
        self.assertTrue(done)
        self.assertEqual((report.n_tensors, report.bytes, report.kept_bytes, report.was_there, report.is_latest),
                         (2, 12, 0, False, False))
        self.assertEqual(seen[-1], (24, 24, "data"))
        self.assertEqual(self.read(to), {"x": 1, "y": 1})
        self.assertIsNone(Muster.latest_checkpoint(None, self.folder + "/to"))
        self.assertTrue(Muster.checkpoint_copy(self.a, to, None, None, None, FOREVER, None)[1].was_there)
        self.assertEqual(Muster.latest_checkpoint(None, self.folder + "/to"), to)

    def test_averages_extracts_and_renames(self):
        mean, part, other = (self.folder + "/" + name for name in ("mean", "part", "other"))
        Muster.checkpoint_merge([self.a, self.b], mean, None, None, None, FOREVER, None)
        self.assertEqual(self.read(mean), {"x": 2, "y": 3})
        Muster.checkpoint_extract(mean, ["x"], part, None, None, None, FOREVER, None)
        self.assertEqual(self.read(part), {"x": 2})
        Muster.checkpoint_rename(mean, ["x", "z/x"], other, None, None, None, FOREVER, None)
        self.assertEqual(self.read(other), {"y": 3, "z/x": 2})
        Muster.checkpoint_extract_npy(mean, ["?"], self.folder + "/npy", None, None, None, FOREVER, None)
        self.assertEqual(case.values(Muster.npy_load(self.folder + "/npy/x.npy")), [2])
        self.assertFails(Muster.Error.NOT_FOUND, "nothing", Muster.checkpoint_extract, mean, ["nothing"], part + "2", None, None,
                         None, FOREVER, None)
        self.assertFails(Muster.Error.ALREADY_EXISTS, "exists", Muster.checkpoint_merge, [self.a], mean, None, None, None, FOREVER,
                         None)
        self.options.replaces = True
        Muster.checkpoint_merge([self.a], mean, self.options, None, None, FOREVER, None)
        self.assertEqual(self.read(mean), {"x": 1, "y": 1})

    def test_makes_a_numpy_header(self):
        header = Muster.npy_header(Muster.DType.FLOAT, [2, 1]).get_data()
        array = Muster.npy_read(GLib.Bytes.new(header + struct.pack("<2f", 1, 2)))
        self.assertEqual((case.values(array), array.shape()), ([1, 2], [2, 1]))

    def test_is_cancelled(self):
        cancelled = Gio.Cancellable()
        cancelled.cancel()
        with self.assertRaises(GLib.Error) as caught:
            Muster.checkpoint_copy(self.a, self.folder + "/to/m", None, None, None, FOREVER, cancelled)
        self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED))
        self.assertFalse(os.path.exists(self.folder + "/to"))


if __name__ == "__main__":
    case.main()
