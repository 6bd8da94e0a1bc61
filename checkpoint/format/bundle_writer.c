// SPDX-License-Identifier: Apache-2.0
/* Collects the entries of a checkpoint and gives their data to bundle_shards.c. Names must be
 * unique, and the slices of a tensor must agree. finish () writes the data, then the index. */
#include "checkpoint/format/bundle_writer.h"

#include "base/error.h"
#include "base/hash_private.h"
#include "base/require_private.h"
#include "checkpoint/format/bundle_publish_private.h"
#include "checkpoint/format/bundle_shards_private.h"
#include "checkpoint/format/slice_private.h"
#include "checkpoint/stores/default_storage.h"

#include <string.h>

/* A key of the index; in its arena. */
typedef struct {
  const guint8 *data;
  gsize size;
  guint entry;
} Key;

struct _MusterBundleWriter {
  gatomicrefcount refs;
  MusterStorage *storage;    /* (owned) */
  char *prefix;              /* (owned) */
  MusterShards *shards;      /* (owned) the data */
  GCancellable *cancellable; /* (owned) (nullable) */
  MusterBundleIndex *index;  /* (owned) */
  MusterBundleNames *names;  /* (owned) (nullable) whose texts the first entries' keys are */
  GHashTable *by_key;        /* (owned) a set of Key, of the first n_by_key entries */
  guint n_by_key;
  gboolean is_finished; /* or has failed to: nothing can be added */
};

static guint
key_hash (gconstpointer data)
{
  static const char seed; /* an address that is unknown to others */
  const Key *key = data;
  return (guint)muster_hash_bytes (key->data, key->size, (guintptr)&seed);
}

static gboolean
key_equal (gconstpointer a, gconstpointer b)
{
  const Key *left = a, *right = b;
  return left->size == right->size && memcmp (left->data, right->data, left->size) == 0;
}

MusterBundleWriter *
muster_bundle_writer_new (MusterStorage *storage, const char *prefix, GError **error)
{
  muster_require (error, NULL, prefix);
  storage = storage != NULL ? storage : muster_default_storage ();
  MusterShards *shards = muster_shards_new (storage, prefix, error);
  if (shards == NULL) {
    g_prefix_error (error, "Writing the checkpoint '%s': ", prefix);
    return NULL;
  }
  MusterBundleWriter *self = g_new0 (MusterBundleWriter, 1);
  g_atomic_ref_count_init (&self->refs);
  self->storage = g_object_ref (storage);
  self->prefix = g_strdup (prefix);
  self->shards = shards;
  self->index = muster_bundle_index_new ();
  self->by_key = g_hash_table_new (key_hash, key_equal);
  return self;
}

MusterBundleWriter *
muster_bundle_writer_ref (MusterBundleWriter *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_bundle_writer_free (MusterBundleWriter *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  muster_shards_free (self->shards);
  g_clear_object (&self->cancellable);
  g_hash_table_unref (self->by_key);
  muster_bundle_index_free (self->index);
  muster_bundle_names_unref (self->names);
  g_free (self->prefix);
  g_object_unref (self->storage);
  g_free (self);
}

void
muster_bundle_writer_set_cancellable (MusterBundleWriter *self, GCancellable *cancellable)
{
  g_return_if_fail (self != NULL);
  g_set_object (&self->cancellable, cancellable);
}

void
muster_bundle_writer_set_n_shards (MusterBundleWriter *self, guint n)
{
  g_return_if_fail (self != NULL);
  muster_shards_set_number (self->shards, n);
}

/* Notes the keys. That isn't needed if all tensors are added at once. */
static void
note_keys (MusterBundleWriter *self)
{
  for (; self->n_by_key < self->index->entries->len; self->n_by_key++) {
    const MusterIndexEntry *entry =
        &g_array_index (self->index->entries, MusterIndexEntry, self->n_by_key);
    Key *key = muster_arena_alloc (self->index->arena, sizeof *key);
    *key = (Key){.data = entry->key, .size = entry->key_size, .entry = self->n_by_key};
    g_hash_table_add (self->by_key, key);
  }
}

static MusterIndexEntry *
lookup (MusterBundleWriter *self, const void *key, gsize key_size)
{
  const Key wanted = {.data = key, .size = key_size};
  note_keys (self);
  const Key *found = g_hash_table_lookup (self->by_key, &wanted);
  return found != NULL ? &g_array_index (self->index->entries, MusterIndexEntry, found->entry)
                       : NULL;
}

static MusterIndexEntry *
record (MusterBundleWriter *self, const void *key, gsize key_size, const MusterBundleEntry *entry)
{
  const MusterIndexEntry wanted = {.entry = *entry, .key = key, .key_size = key_size};
  return muster_bundle_index_add (self->index, &wanted);
}

static gboolean
already_there (const char *name, const char *what, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_ALREADY_EXISTS,
                      "The tensor '%s' was already added to the checkpoint%s", name, what);
}

static gboolean
invalid (const char *name, const char *why, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "The tensor '%s' can't be added to a checkpoint: %s", name, why);
}

static gboolean
check_unfinished (const MusterBundleWriter *self, GError **error)
{
  if (!self->is_finished)
    return TRUE;
  return muster_fail (
      error, MUSTER_ERROR_FAILED_PRECONDITION,
      "The checkpoint '%s' is finished, or writing it has failed: nothing can be added",
      self->prefix);
}

static MusterBundleEntry
entry_for (MusterTensor *tensor)
{
  return (MusterBundleEntry){.dtype = muster_tensor_dtype (tensor),
                             .n_dims = muster_tensor_n_dims (tensor),
                             .dims = muster_tensor_dims (tensor)};
}

/* What is added: a tensor, or one that comes in parts. */
typedef struct {
  MusterBundleEntry entry;
  MusterTensor *tensor;           /* (nullable) */
  const MusterBundleParts *parts; /* (nullable) */
} Added;

static Added
added_tensor (MusterTensor *tensor)
{
  return (Added){.entry = entry_for (tensor), .tensor = tensor};
}

/* Notes a tensor. Its place is assigned when all are known. */
static gboolean
note (MusterBundleWriter *self, const void *key, gsize key_size, const Added *added, GError **error)
{
  if (!check_unfinished (self, error))
    return FALSE;
  record (self, key, key_size, &added->entry);
  const guint entry = self->index->entries->len - 1;
  if (added->tensor != NULL)
    muster_shards_note (self->shards, entry, added->tensor);
  else
    muster_shards_note_parts (self->shards, entry, added->parts);
  return TRUE;
}

static gboolean
add_whole (MusterBundleWriter *self, const char *name, const Added *added, GError **error)
{
  if (*name == '\0' || !g_utf8_validate (name, -1, NULL))
    return invalid (name, "a name must be UTF-8 and not empty", error);
  if (lookup (self, name, strlen (name)) != NULL)
    return already_there (name, "", error);
  return note (self, name, strlen (name), added, error);
}

gboolean
muster_bundle_writer_add (MusterBundleWriter *self, const char *name, MusterTensor *tensor,
                          GError **error)
{
  muster_require (error, FALSE, self, name, tensor);
  const Added added = added_tensor (tensor);
  return add_whole (self, name, &added, error);
}

/* The names, each ended by a NUL, stay valid; the dims are copied into the arena. */
static MusterIndexEntry
named_entry (MusterBundleWriter *self, const char *name, gsize size, MusterTensor *tensor)
{
  MusterBundleEntry entry = entry_for (tensor);
  const gsize dims_size = (gsize)entry.n_dims * sizeof (gint64);
  gint64 *dims = muster_arena_alloc (self->index->arena, MAX (dims_size, 1));
  if (dims_size > 0)
    memcpy (dims, entry.dims, dims_size);
  entry.name = name;
  entry.dims = dims;
  return (MusterIndexEntry){.entry = entry, .key = (const guint8 *)name, .key_size = size};
}

gboolean
muster_bundle_writer_add_all (MusterBundleWriter *self, MusterBundleNames *names,
                              MusterTensor *const *tensors, GError **error)
{
  muster_require (error, FALSE, self, names, tensors);
  const gsize n = muster_bundle_names_n (names);
  if (!check_unfinished (self, error))
    return FALSE;
  if (self->index->entries->len > 0 || n >= G_MAXUINT)
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                        "muster_bundle_writer_add_all: the writer already has tensors");
  g_autofree MusterTensor **in_order = g_new (MusterTensor *, n);
  MusterIndexEntry *entries = muster_bundle_index_grow (self->index, (guint)n);
  self->names = muster_bundle_names_ref (names);
  for (gsize i = 0; i < n; i++) {
    gsize size, index;
    const char *name = muster_bundle_names_get (names, i, &size, &index);
    in_order[i] = tensors[index];
    entries[i] = named_entry (self, name, size, in_order[i]);
  }
  muster_shards_note_all (self->shards, in_order, (guint)n);
  return TRUE;
}

/* Checks that the part has its slice's size, and that the slice lies inside the shape. */
static gboolean
check_part (const MusterSliceSpec *spec, const char *name, const MusterBundleEntry *entry,
            MusterExtent *place, GError **error)
{
  if (!spec->has_shape)
    return invalid (name, "its slice lacks the whole tensor's shape", error);
  if (muster_shape_n_elements (spec->n_dims, spec->dims) < 0 ||
      !muster_slice_resolve (spec->n_dims, spec->dims, spec->extents, place))
    return invalid (name, "its slice extends outside the whole tensor's shape", error);
  gboolean fits = entry->n_dims == spec->n_dims;
  for (int d = 0; fits && d < spec->n_dims; d++)
    fits = entry->dims[d] == place[d].length;
  return fits || invalid (name, "its shape differs from its slice's", error);
}

/* Checks that the parts of a tensor agree in type and shape, and don't overlap. */
static gboolean
check_whole (const MusterIndexEntry *whole, const MusterSliceSpec *spec, const MusterExtent *place,
             const char *name, MusterDType dtype, GError **error)
{
  const int n_dims = spec->n_dims;
  MusterExtent other[MUSTER_MAX_DIMS], common[MUSTER_MAX_DIMS];
  if (!whole->entry.is_sliced)
    return already_there (name, " as a whole", error);
  if (whole->entry.dtype != dtype || whole->entry.n_dims != n_dims ||
      memcmp (whole->entry.dims, spec->dims, (gsize)n_dims * sizeof (gint64)) != 0)
    return invalid (name, "its slices differ in type or in the whole tensor's shape", error);
  for (gsize i = 0; i < whole->n_slices; i++)
    if (muster_slice_resolve (n_dims, spec->dims, whole->slices + i * (gsize)n_dims, other) &&
        muster_slice_intersect (n_dims, other, place, common))
      return already_there (name, " with a slice that overlaps this one", error);
  return TRUE;
}

static gboolean
add_slice (MusterBundleWriter *self, const char *name, const char *slice, const Added *added,
           GError **error)
{
  MusterSliceSpec spec;
  MusterExtent place[MUSTER_MAX_DIMS];
  const MusterDType dtype = added->entry.dtype;
  if (!muster_slice_spec_parse (&spec, slice, error) ||
      !check_part (&spec, name, &added->entry, place, error))
    return FALSE;
  MusterIndexEntry *whole = lookup (self, name, strlen (name));
  if (whole != NULL && !check_whole (whole, &spec, place, name, dtype, error))
    return FALSE;
  if (muster_slice_is_whole (spec.n_dims, spec.dims, place))
    return add_whole (self, name, added, error);
  if (*name == '\0' || !g_utf8_validate (name, -1, NULL))
    return invalid (name, "a name must be UTF-8 and not empty", error);

  g_autoptr (GByteArray) key = g_byte_array_new ();
  muster_slice_append_key (key, name, spec.n_dims, spec.extents);
  if (!note (self, key->data, key->len, added, error))
    return FALSE;
  const MusterBundleEntry entry = {
      .dtype = dtype, .n_dims = spec.n_dims, .dims = spec.dims, .is_sliced = TRUE};
  /* The entry is looked up again, because adding the part may have moved it. */
  whole = lookup (self, name, strlen (name));
  if (whole == NULL)
    whole = record (self, name, strlen (name), &entry);
  muster_bundle_index_add_slice (self->index, whole, spec.extents);
  return TRUE;
}

gboolean
muster_bundle_writer_add_slice (MusterBundleWriter *self, const char *name, const char *slice,
                                MusterTensor *tensor, GError **error)
{
  muster_require (error, FALSE, self, name, slice, tensor);
  const Added added = added_tensor (tensor);
  return add_slice (self, name, slice, &added, error);
}

gboolean
muster_bundle_writer_add_parts (MusterBundleWriter *self, const char *name, const char *slice,
                                const MusterBundleParts *parts, GError **error)
{
  const Added added = {
      .entry = {.dtype = parts->dtype, .n_dims = parts->n_dims, .dims = parts->dims},
      .parts = parts};
  return *slice ? add_slice (self, name, slice, &added, error)
                : add_whole (self, name, &added, error);
}

static gboolean
finish (MusterBundleWriter *self, GError **error)
{
  gboolean is_published = FALSE;
  if (!muster_shards_write (self->shards, self->index, self->cancellable, error))
    return FALSE;
  const gboolean is_durable =
      muster_bundle_publish_files (self->storage, self->index, muster_shards_paths (self->shards),
                                   self->prefix, &is_published, error);
  if (is_published)
    muster_shards_keep (self->shards);
  return is_durable;
}

gboolean
muster_bundle_writer_finish (MusterBundleWriter *self, GError **error)
{
  muster_require (error, FALSE, self);
  if (self->is_finished) {
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                        "The checkpoint '%s' is already finished, or writing it has failed",
                        self->prefix);
  }
  self->is_finished = TRUE;
  if (finish (self, error))
    return TRUE;
  g_prefix_error (error, "Writing the checkpoint '%s': ", self->prefix);
  return FALSE;
}
