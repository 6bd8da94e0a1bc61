// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/background.h"

#include "base/background.h"

static void
clear_reader (MusterBundleReader **reader)
{
  g_clear_pointer (reader, muster_bundle_reader_unref);
}

static void
clear_tensor (MusterTensor **tensor)
{
  g_clear_pointer (tensor, muster_tensor_unref);
}

static MusterBundleReader *
open_reader (MusterStorage *storage, const char *prefix, GCancellable *cancellable, GError **error)
{
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  return muster_bundle_reader_open (storage, prefix, error);
}

/* The verbs for one tensor can't be cancelled; the one for several can. */
static MusterTensor *
read_slice (MusterBundleReader *self, const char *name, const char *slice,
            GCancellable *cancellable, GError **error)
{
  MusterTensor *tensor = NULL;

  if (self == NULL || name == NULL)
    return muster_bundle_reader_read_slice (self, name, slice, error);
  return muster_bundle_reader_read_many (self, &name, &slice, 1, &tensor, cancellable, error)
             ? tensor
             : NULL;
}

static MusterTensor *
read_whole (MusterBundleReader *self, const char *name, GCancellable *cancellable, GError **error)
{
  if (self == NULL || name == NULL)
    return muster_bundle_reader_read (self, name, error);
  return read_slice (self, name, NULL, cancellable, error);
}

/* As a list that ends with NULL, so that it can be freed without its length. */
static MusterTensor **
read_all (MusterBundleReader *self, const char *const *names, const char *const *slices,
          gsize *n_tensors, GCancellable *cancellable, GError **error)
{
  MusterTensor **tensors =
      muster_bundle_reader_read_all (self, names, slices, n_tensors, cancellable, error);

  if (tensors == NULL)
    return NULL;
  tensors = g_renew (MusterTensor *, tensors, *n_tensors + 1);
  tensors[*n_tensors] = NULL;
  return tensors;
}

static void
clear_tensors (MusterTensor ***tensors)
{
  for (MusterTensor **each = *tensors; each != NULL && *each != NULL; each++)
    muster_tensor_unref (*each);
  g_clear_pointer (tensors, g_free);
}

static gboolean
verify (MusterBundleReader *self, GCancellable *cancellable, GError **error)
{
  return muster_bundle_reader_verify (self, NULL, NULL, cancellable, error);
}

#define READER(X)     X (SELF, MusterBundleReader, muster_bundle_reader_ref, muster_bundle_reader_unref)
#define TEXT(X, name) X (KEPT, const char *, name, g_strdup, MUSTER_FREE_STRING)

#define OPEN(X)                                                                                    \
  X (KEPT, MusterStorage *, storage, g_object_ref, g_object_unref)                                 \
  TEXT (X, prefix)
MUSTER_ASYNC (muster_bundle_reader_open, open_reader, "muster-open", MusterBundleReader *,
              clear_reader, OPEN)

#define READ(X) READER (X) TEXT (X, name)
MUSTER_ASYNC (muster_bundle_reader_read, read_whole, "muster-read", MusterTensor *, clear_tensor,
              READ)

#define READ_SLICE(X) READER (X) TEXT (X, name) TEXT (X, slice)
MUSTER_ASYNC (muster_bundle_reader_read_slice, read_slice, "muster-read", MusterTensor *,
              clear_tensor, READ_SLICE)

#define READ_MANY(X)                                                                               \
  READER (X)                                                                                       \
  X (ARRAY, const char *const *, names, n, muster_strings_copy, muster_strings_free)               \
  X (ARRAY, const char *const *, slices, n, muster_strings_copy, muster_strings_free)              \
  X (VALUE, gsize, n)                                                                              \
  X (OUTS, MusterTensor *, tensors, CALL->n, muster_tensor_unref)
MUSTER_ASYNC (muster_bundle_reader_read_many, muster_bundle_reader_read_many, "muster-read",
              gboolean, MUSTER_PLAIN, READ_MANY)

#define READ_ALL(X)                                                                                \
  READER (X)                                                                                       \
  X (KEPT, const char *const *, names, MUSTER_KEEP_STRINGS, MUSTER_FREE_STRINGS)                   \
  X (KEPT, const char *const *, slices, MUSTER_KEEP_STRINGS, MUSTER_FREE_STRINGS)                  \
  X (OUT, gsize, n_tensors, MUSTER_PLAIN)
MUSTER_ASYNC (muster_bundle_reader_read_all, read_all, "muster-read", MusterTensor **,
              clear_tensors, READ_ALL)

MUSTER_ASYNC (muster_bundle_reader_verify, verify, "muster-verify", gboolean, MUSTER_PLAIN, READER)
