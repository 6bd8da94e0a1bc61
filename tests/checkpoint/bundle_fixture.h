// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/bundle_writer.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/store/forwarding_storage.h"
#include "tests/gtest_shim.h"

G_BEGIN_DECLS

/* Where a recorded file or prefix lies; and one in the test's own folder. (transfer full) */
char *golden (const char *name);
char *in_tmpdir (const char *name);

/* A tensor whose element k is what record_golden.py calls the pattern. */
MusterTensor *pattern (MusterDType dtype, int n_dims, const gint64 *dims);

/* 0, 1, 2, … */
MusterTensor *counting_int32 (int n_dims, const gint64 *dims, gint32 first);

/* Adds a tensor (transfer full), whole or as a slice (nullable). */
void add_tensor (MusterBundleWriter *writer, const char *name, const char *slice,
                 MusterTensor *tensor);
/* TRUE for an error that calls a checkpoint damaged or unsupported. */
gboolean is_verdict (const GError *error);
/* In the test's folder. */
guint count_files (void);

/* A file's bytes, changed or not, as a file of the test's folder. */
void put_file (const char *name, const void *data, gsize size);
GBytes *get_file (const char *path);

/* Copies every file of a recorded prefix into the test's folder under the same names. */
void copy_golden (const char *prefix);

/* MusterStorage over local files that fails its n-th verb, and notes what it was asked. Any thread.
 */
#define MUSTER_TYPE_FAULTY_STORAGE (muster_faulty_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterFaultyStorage, muster_faulty_storage, MUSTER, FAULTY_STORAGE,
                      MusterForwardingStorage)

struct _MusterFaultyStorage {
  MusterForwardingStorage parent;
  int fail_at;        /* counted from 1; 0 is never. Everything after it fails as well: a crash */
  gboolean once;      /* it alone fails */
  guint64 free_bytes; /* bytes that fit on the disk; 0 is without an end */
  gboolean hides_free_space; /* nobody can ask for it: only reserving finds out */
  int n_calls;
  GString *log; /* (owned) "create x.index; sync x.index; …" without the names' unique ends */
};

MusterFaultyStorage *faulty_storage_new (int fail_at);

G_END_DECLS
