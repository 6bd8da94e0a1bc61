// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/fields_private.h"
#include "base/require_private.h"
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/bundle_writer.h"
#include "checkpoint/format/object_graph.h"

/* The reader's types for other languages: boxed copies, and arrays with their lengths. */

G_DEFINE_BOXED_TYPE (MusterBundleReader, muster_bundle_reader, muster_bundle_reader_ref,
                     muster_bundle_reader_unref)
static MusterBundleEntry *muster_bundle_entry_copy (const MusterBundleEntry *self);
static void muster_bundle_entry_free (MusterBundleEntry *self);

G_DEFINE_BOXED_TYPE (MusterBundleEntry, muster_bundle_entry, muster_bundle_entry_copy,
                     muster_bundle_entry_free)
G_DEFINE_BOXED_TYPE (MusterBundleNames, muster_bundle_names, muster_bundle_names_ref,
                     muster_bundle_names_unref)
G_DEFINE_BOXED_TYPE (MusterBundleWriter, muster_bundle_writer, muster_bundle_writer_ref,
                     muster_bundle_writer_free)
G_DEFINE_BOXED_TYPE (MusterObjectNames, muster_object_names, muster_object_names_ref,
                     muster_object_names_free)

MUSTER_DEFINE_OPTIONS (MusterObjectName, muster_object_name)

static MusterBundleEntry *
muster_bundle_entry_copy (const MusterBundleEntry *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterBundleEntry *copy = g_memdup2 (self, sizeof *self);
  copy->name = g_strdup (self->name);
  copy->dims = g_memdup2 (self->dims, (gsize)self->n_dims * sizeof *self->dims);
  return copy;
}

static void
muster_bundle_entry_free (MusterBundleEntry *self)
{
  if (self == NULL)
    return;
  g_free ((char *)self->name);
  g_free ((gint64 *)self->dims);
  g_free (self);
}

gint64 *
muster_bundle_entry_shape (const MusterBundleEntry *self, int *n_dims)
{
  g_return_val_if_fail (self != NULL && n_dims != NULL, NULL);
  *n_dims = self->n_dims;
  return g_memdup2 (self->dims, (gsize)self->n_dims * sizeof *self->dims);
}

char **
muster_bundle_reader_names (MusterBundleReader *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  const gsize n = muster_bundle_reader_n_entries (self);
  char **names = g_new0 (char *, n + 1);
  for (gsize i = 0; i < n; i++)
    names[i] = g_strdup (muster_bundle_reader_entry (self, i)->name);
  return names;
}

MusterTensor **
muster_bundle_reader_read_all (MusterBundleReader *self, const char *const *names,
                               const char *const *slices, gsize *n_tensors,
                               GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self, names, n_tensors);
  const gsize n = g_strv_length ((char **)names);
  if (slices != NULL && g_strv_length ((char **)slices) != n) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "%u slices for %u tensors (use one for each)", g_strv_length ((char **)slices),
                 (guint)n);
    return NULL;
  }
  g_autofree MusterTensor **tensors = g_new0 (MusterTensor *, MAX (n, 1));
  if (!muster_bundle_reader_read_many (self, names, slices, n, tensors, cancellable, error))
    return NULL;
  *n_tensors = n;
  return g_steal_pointer (&tensors);
}
