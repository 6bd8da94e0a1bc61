// SPDX-License-Identifier: Apache-2.0
/* Reads the data files of a checkpoint: opens them, keeps a bounded number open, and loads many
 * spans in parallel with their checksums (from Run on). */
#include "checkpoint/format/bundle_data_private.h"

#include "base/crc32c_private.h"
#include "base/error.h"
#include "checkpoint/format/bundle_strings_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/store/storage_private.h"
#include "checkpoint/stores/default_storage.h"

#include <string.h>

/* Maximum number of open files; a checkpoint may have thousands of shards. */
#define MAX_OPEN    64
#define BLOCK       (256 * 1024) /* one read of a file: stays in the cache for its checksum */
#define SMALL       (64 * 1024)  /* below this a span is copied from a read that it shares */
#define UNIT        (16 * BLOCK) /* the work of a thread at a time; one request to another store */
#define MAX_WASTE   4096         /* unneeded bytes in one read between two spans */
#define MAX_THREADS 4
#define FAR_THREADS 16 /* of another store, whose requests mostly wait; each may have a buffer */

struct _MusterBundleData {
  MusterStorage *storage; /* (owned) */
  char *prefix;           /* (owned) */
  gint32 n_shards;
  gsize block;     /* of a large span, one read */
  guint n_threads; /* that read at the same time, at most */
  GMutex lock;
  GHashTable *files;      /* (owned) (element-type int MusterDataFile); guarded by lock */
  MusterDataFile *memory; /* (owned) (nullable) the only file, if it is in memory */
};

MusterBundleData *
muster_bundle_data_new (MusterStorage *storage, const char *prefix, gint32 n_shards)
{
  MusterBundleData *self = g_new0 (MusterBundleData, 1);
  self->storage = g_object_ref (storage);
  self->prefix = g_strdup (prefix);
  self->n_shards = n_shards;
  const gboolean is_local = muster_storage_is_local (storage, prefix);
  self->block = is_local ? BLOCK : UNIT;
  self->n_threads = is_local ? MIN (MAX_THREADS, g_get_num_processors ()) : FAR_THREADS;
  self->files = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify)muster_data_file_unref);
  g_mutex_init (&self->lock);
  return self;
}

MusterBundleData *
muster_bundle_data_new_in_memory (MusterStorage *storage, const char *prefix, GBytes *bytes)
{
  MusterBundleData *self = muster_bundle_data_new (storage, prefix, 1);
  self->memory = g_atomic_rc_box_new (MusterDataFile);
  *self->memory = (MusterDataFile){.storage = g_object_ref (storage),
                                   .bytes = g_bytes_ref (bytes),
                                   .path = g_strdup (prefix),
                                   .size = g_bytes_get_size (bytes)};
  return self;
}

void
muster_bundle_data_free (MusterBundleData *self)
{
  if (self == NULL)
    return;
  muster_data_file_unref (self->memory);
  g_hash_table_unref (self->files);
  g_mutex_clear (&self->lock);
  g_object_unref (self->storage);
  g_free (self->prefix);
  g_free (self);
}

/* name follows the NUL in a slice's key. */
gboolean
muster_bundle_data_damaged (MusterBundleData *self, const MusterIndexEntry *entry, const char *why,
                            GError **error)
{
  g_autofree char *path =
      entry->entry.is_sliced || self->memory != NULL
          ? g_strdup (self->prefix)
          : muster_bundle_data_path (self->prefix, entry->entry.shard, self->n_shards);
  const gboolean is_part = muster_index_entry_is_part (entry);
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "%s '%s' in '%s' %s",
                      is_part ? "A slice of the tensor" : "The tensor",
                      (const char *)entry->key + is_part, path, why);
}

static void
clear_file (gpointer data)
{
  MusterDataFile *file = data;
  if (file->input != NULL)
    muster_storage_close_input (file->storage, file->input);
  g_clear_pointer (&file->bytes, g_bytes_unref);
  g_object_unref (file->storage);
  g_free (file->path);
}

void
muster_data_file_unref (MusterDataFile *file)
{
  if (file != NULL)
    g_atomic_rc_box_release_full (file, clear_file);
}

static MusterDataFile *
open_file (MusterBundleData *self, gint32 shard, GError **error)
{
  g_autofree char *path = muster_bundle_data_path (self->prefix, shard, self->n_shards);
  g_autoptr (GError) why = NULL;
  guint64 size = 0;
  MusterStorageInput *input = muster_storage_open (self->storage, path, &size, &why);
  if (input != NULL) {
    MusterDataFile *file = g_atomic_rc_box_new (MusterDataFile);
    *file = (MusterDataFile){.storage = g_object_ref (self->storage),
                             .input = input,
                             .path = g_steal_pointer (&path),
                             .size = size};
    return file;
  }
  if (muster_storage_failure_is_absent (why))
    muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                 "The checkpoint '%s' has an index, but its data file '%s' is missing",
                 self->prefix, path);
  else
    g_propagate_error (error, g_steal_pointer (&why));
  return NULL;
}

MusterDataFile *
muster_bundle_data_open (MusterBundleData *self, gint32 shard, GError **error)
{
  if (self->memory != NULL)
    return g_atomic_rc_box_acquire (self->memory);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  MusterDataFile *file = g_hash_table_lookup (self->files, GINT_TO_POINTER (shard));
  if (file != NULL)
    return g_atomic_rc_box_acquire (file);
  file = open_file (self, shard, error);
  if (file == NULL)
    return NULL;
  if (g_hash_table_size (self->files) >=
      MAX_OPEN) /* files that are being read keep their references */
    g_hash_table_remove_all (self->files);
  g_hash_table_insert (self->files, GINT_TO_POINTER (shard), g_atomic_rc_box_acquire (file));
  return file;
}

gboolean
muster_bundle_data_check_place (MusterBundleData *self, const MusterIndexEntry *entry,
                                GError **error)
{
  g_autoptr (MusterDataFile) file = muster_bundle_data_open (self, entry->entry.shard, error);
  return file != NULL && muster_data_file_check_place (file, self, entry, error);
}

gboolean
muster_data_file_check_place (const MusterDataFile *file, MusterBundleData *self,
                              const MusterIndexEntry *entry, GError **error)
{
  const MusterBundleEntry *e = &entry->entry;
  if ((guint64)e->offset > file->size || (guint64)e->size > file->size - (guint64)e->offset)
    return muster_bundle_data_damaged (
        self, entry, "extends past the end of the file: the file is truncated", error);
  /* Each string's length takes at least a byte, and the lengths have a checksum. */
  const gint64 n_elements = muster_shape_n_elements (e->n_dims, e->dims);
  if (e->dtype == MUSTER_STRING && n_elements > 0 && n_elements > e->size - 4)
    return muster_bundle_data_damaged (self, entry, "has more strings than bytes", error);
  return TRUE;
}

/* Reads many spans of data files in parallel. Spans are divided into units, which a few threads
 * take in turn: small neighbours are one read through a buffer, a large span is several reads
 * directly to its destination. The checksum of a span in pieces is combined from theirs, in any
 * order: it is the XOR of each piece's, shifted by the bytes after it. */

typedef struct {
  MusterBundleData *data;
  MusterDataSpan *spans;
  gsize n;
  const MusterDataLoad *how;
  guint64 total;
  GMutex lock;
  gsize next;    /* guarded by lock: the next span */
  guint64 skip;  /* guarded by lock: bytes of it already assigned */
  guint64 done;  /* guarded by lock */
  GError *error; /* (owned) guarded by lock: the first one */
  gint is_over;  /* atomic: there is an error */
} Run;

/* The work of a thread at a time: whole spans, or a piece of one. */
typedef struct {
  MusterDataSpan *first;
  gsize n;
  guint64 skip;
  guint64 size;
} Unit;

typedef struct {
  Run *run;
  guint8 *buffer;       /* (owned) (nullable) */
  gsize capacity;       /* its bytes, at most a block */
  MusterDataFile *file; /* (owned) (nullable) the last one */
  gint32 shard;
} Worker;

MusterDataSpan
muster_data_span (const MusterIndexEntry *entry, guint8 *into)
{
  return (MusterDataSpan){.entry = entry,
                          .shard = entry->entry.shard,
                          .offset = (guint64)entry->entry.offset,
                          .size = (guint64)entry->entry.size,
                          .into = into};
}

int
muster_data_span_compare (gconstpointer a, gconstpointer b)
{
  const MusterDataSpan *left = a, *right = b;
  if (left->shard != right->shard)
    return left->shard < right->shard ? -1 : 1;
  if (left->offset != right->offset)
    return left->offset < right->offset ? -1 : 1;
  return (left->size > right->size) - (left->size < right->size);
}

static gboolean
is_strings (const MusterDataSpan *span)
{
  return span->entry != NULL &&
         (span->entry->entry.dtype == MUSTER_STRING || span->entry->entry.dtype == MUSTER_VARIANT);
}

static gboolean
is_small (const MusterDataSpan *span)
{
  return span->whole == NULL && span->size <= (span->into != NULL ? SMALL : BLOCK);
}

/* Returns TRUE if one read from first can include next. Only sorted neighbours are passed, but
 * in a malicious file they may overlap. */
static gboolean
is_shared (const MusterDataSpan *first, const MusterDataSpan *last, const MusterDataSpan *next)
{
  return is_small (next) && next->shard == first->shard &&
         next->offset + next->size - first->offset <= BLOCK &&
         next->offset <= last->offset + last->size + MAX_WASTE;
}

static gboolean
next_unit (Run *run, Unit *unit)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&run->lock);
  if (run->next == run->n || run->error != NULL)
    return FALSE;
  MusterDataSpan *first = &run->spans[run->next];
  if (!is_small (first)) {
    /* Strings can't be checked from the middle on. */
    const gboolean is_whole = is_strings (first) && first->into == NULL;
    const guint64 left = first->size - run->skip;
    *unit = (Unit){first, 1, run->skip, is_whole ? left : MIN (left, UNIT)};
    run->skip += unit->size;
    if (run->skip == first->size) {
      run->next++;
      run->skip = 0;
    }
    return TRUE;
  }
  *unit = (Unit){first, 1, 0, first->size};
  while (run->next + unit->n < run->n && is_shared (first, &first[unit->n - 1], &first[unit->n])) {
    const guint64 end = first[unit->n].offset + first[unit->n].size - first->offset;
    unit->size = MAX (unit->size, end);
    unit->n++;
  }
  run->next += unit->n;
  return TRUE;
}

/* FALSE without an error if another thread failed. */
static gboolean
advance (Run *run, guint64 bytes, GError **error)
{
  if (g_atomic_int_get (&run->is_over) ||
      g_cancellable_set_error_if_cancelled (run->how->cancellable, error))
    return FALSE;
  if (run->how->progress == NULL || bytes == 0)
    return TRUE;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&run->lock);
  run->done += bytes;
  run->how->progress (run->done, run->total, run->how->user_data);
  return TRUE;
}

static gboolean
cut_off (Worker *self, const MusterDataSpan *span, GError **error)
{
  if (span->entry != NULL)
    return muster_bundle_data_damaged (self->run->data, span->entry,
                                       "is truncated: the file became shorter while it was read",
                                       error);
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "'%s' became shorter while it was read",
                      self->file->path);
}

static gboolean
damaged (Worker *self, const MusterDataSpan *span, GError **error)
{
  if (span->entry != NULL)
    return muster_bundle_data_damaged (self->run->data, span->entry,
                                       "is damaged: its checksum doesn't match", error);
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                      "'%s' is damaged: the %" G_GUINT64_FORMAT " bytes from %" G_GUINT64_FORMAT
                      " belong to no tensor, but aren't zero",
                      self->file->path, span->size, span->offset);
}

static gboolean
read_block (Worker *self, guint64 offset, guint8 *into, gsize size, gsize *n_read, GError **error)
{
  const MusterDataFile *file = self->file;
  if (file->bytes != NULL) {
    *n_read = (gsize)MIN (size, file->size - MIN (offset, file->size));
    if (*n_read > 0)
      memcpy (into, (const guint8 *)g_bytes_get_data (file->bytes, NULL) + offset, *n_read);
    return TRUE;
  }
  const gssize n =
      muster_storage_read_at (self->file->storage, self->file->input, offset, into, size, error);
  *n_read = (gsize)MAX (n, 0);
  return n >= 0;
}

static guint8 *
buffer_of (Worker *self, gsize size)
{
  if (self->buffer == NULL || self->capacity < size) {
    g_free (self->buffer);
    self->buffer = g_malloc (MAX (size, 1));
    self->capacity = size;
  }
  return self->buffer;
}

static gboolean
is_zero (const guint8 *data, gsize size)
{
  return size == 0 || (data[0] == 0 && memcmp (data, data + 1, size - 1) == 0);
}

static gboolean
check_strings (const MusterDataSpan *span, const guint8 *data, gsize size)
{
  const MusterBundleEntry *e = &span->entry->entry;
  MusterStringsCheck check;
  muster_strings_check_init (&check, e->dtype, muster_shape_n_elements (e->n_dims, e->dims));
  return (e->size == 0 && check.n_left == 0) || (muster_strings_check_feed (&check, data, size) &&
                                                 muster_strings_check_end (&check, e->crc32c));
}

/* Takes a span that lies in the buffer completely. */
static gboolean
take_small (Worker *self, MusterDataSpan *span, const guint8 *data, GError **error)
{
  const gsize size = (gsize)span->size;
  gboolean is_sound;
  if (span->into != NULL && size > 0)
    memcpy (span->into, data, size);
  if (span->entry == NULL)
    is_sound = is_zero (data, size);
  else if (is_strings (span))
    is_sound = span->into != NULL || check_strings (span, data, size);
  else
    is_sound =
        muster_crc32c_mask (muster_crc32c_extend (0, data, size)) == span->entry->entry.crc32c;
  return is_sound || damaged (self, span, error);
}

static gboolean
read_small (Worker *self, const Unit *unit, GError **error)
{
  const guint64 start = unit->first->offset;
  guint64 taken = 0;
  gsize n_read;
  guint8 *buffer = buffer_of (self, (gsize)unit->size);
  if (!read_block (self, start, buffer, (gsize)unit->size, &n_read, error))
    return FALSE;
  for (gsize i = 0; i < unit->n; i++) {
    MusterDataSpan *span = &unit->first[i];
    if (span->offset + span->size - start > n_read)
      return cut_off (self, span, error);
    if (!take_small (self, span, buffer + (span->offset - start), error))
      return FALSE;
    taken += span->size;
  }
  return advance (self->run, taken, error);
}

/* Reads a large string tensor through the buffer. */
static gboolean
read_strings (Worker *self, const MusterDataSpan *span, GError **error)
{
  const MusterBundleEntry *e = &span->entry->entry;
  MusterStringsCheck check;
  muster_strings_check_init (&check, e->dtype, muster_shape_n_elements (e->n_dims, e->dims));
  for (guint64 at = 0; at < span->size;) {
    const gsize size = (gsize)MIN (span->size - at, self->run->data->block);
    guint8 *buffer = buffer_of (self, size);
    gsize n_read;
    if (!read_block (self, span->offset + at, buffer, size, &n_read, error))
      return FALSE;
    if (n_read < size)
      return cut_off (self, span, error);
    if (!muster_strings_check_feed (&check, buffer, size))
      return damaged (self, span, error);
    if (!advance (self->run, size, error))
      return FALSE;
    at += size;
  }
  return muster_strings_check_end (&check, e->crc32c) || damaged (self, span, error);
}

/* Reads a piece of a large span. The thread that reads the last piece checks the checksum. */
static gboolean
read_piece (Worker *self, const Unit *unit, GError **error)
{
  MusterDataSpan *span = unit->first;
  const gboolean has_sum = span->entry != NULL && !is_strings (span);
  guint32 sum = 0;
  for (guint64 at = unit->skip; at < unit->skip + unit->size;) {
    const gsize size = (gsize)MIN (unit->skip + unit->size - at, self->run->data->block);
    guint8 *into = span->into != NULL ? span->into + at : buffer_of (self, size);
    gsize n_read;
    if (!read_block (self, span->offset + at, into, size, &n_read, error))
      return FALSE;
    if (n_read < size)
      return cut_off (self, span, error);
    if (has_sum)
      sum = muster_crc32c_extend (sum, into, size);
    else if (span->entry == NULL && !is_zero (into, size))
      return damaged (self, span, error);
    if (!advance (self->run, size, error))
      return FALSE;
    at += size;
  }
  if (!has_sum)
    return TRUE;
  MusterDataSpan *whole = span->whole != NULL ? span->whole : span;
  const guint64 end = span->offset + unit->skip + unit->size;
  g_atomic_int_xor (&whole->sum, muster_crc32c_combine (sum, 0, whole->offset + whole->size - end));
  /* The old value is the remaining size: this piece's size if it is the last. */
  const gsize left = (gsize)g_atomic_pointer_add (&whole->left, -(gssize)unit->size);
  if (left > unit->size)
    return TRUE;
  return muster_crc32c_mask ((guint32)g_atomic_int_get (&whole->sum)) ==
             span->entry->entry.crc32c ||
         damaged (self, span, error);
}

static gboolean
read_unit (Worker *self, const Unit *unit, GError **error)
{
  const MusterDataSpan *first = unit->first;
  if (self->file == NULL || self->shard != first->shard) {
    g_clear_pointer (&self->file, muster_data_file_unref);
    self->file = muster_bundle_data_open (self->run->data, first->shard, error);
    self->shard = first->shard;
    if (self->file == NULL)
      return FALSE;
  }
  if (is_small (first))
    return read_small (self, unit, error);
  return is_strings (first) && first->into == NULL ? read_strings (self, first, error)
                                                   : read_piece (self, unit, error);
}

static void
note_error (Run *run, GError *error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&run->lock);
  g_atomic_int_set (&run->is_over, TRUE);
  if (run->error == NULL)
    run->error = error;
  else
    g_clear_error (&error);
}

static gpointer
work (gpointer data)
{
  Run *run = data;
  Worker self = {.run = run};
  GError *error = NULL;
  Unit unit;
  while (next_unit (run, &unit) && read_unit (&self, &unit, &error))
    ;
  if (error != NULL)
    note_error (run, error);
  muster_data_file_unref (self.file);
  g_free (self.buffer);
  return NULL;
}

/* Sorts only if necessary, since spans usually are sorted. */
static void
sort (MusterDataSpan *spans, gsize n)
{
  for (gsize i = 1; i < n; i++)
    if (muster_data_span_compare (&spans[i - 1], &spans[i]) > 0) {
      qsort (spans, n, sizeof *spans, muster_data_span_compare);
      return;
    }
}

/* Number of threads besides the caller's: none if the read is done before they have started. */
static guint
n_helpers (const MusterBundleData *self, guint64 total)
{
  return total < 2 * UNIT ? 0 : (guint)MIN (total / UNIT, self->n_threads) - 1;
}

gboolean
muster_bundle_data_load (MusterBundleData *self, MusterDataSpan *spans, gsize n,
                         const MusterDataLoad *how, GError **error)
{
  Run run = {.data = self, .spans = spans, .n = n, .how = how};
  GThread *threads[FAR_THREADS] = {NULL};
  for (gsize i = 0; i < n; i++) {
    spans[i].sum = 0;
    spans[i].left = (gsize)spans[i].size;
    run.total += spans[i].size;
  }
  sort (spans, n);
  if (!advance (&run, 0, error))
    return FALSE;
  g_mutex_init (&run.lock);
  const guint n_threads = n_helpers (self, run.total);
  for (guint i = 0; i < n_threads; i++)
    threads[i] = g_thread_try_new ("muster-read", work, &run,
                                   NULL); /* with fewer threads it is only slower */
  work (&run);
  for (guint i = 0; i < n_threads; i++)
    if (threads[i] != NULL)
      g_thread_join (threads[i]);
  g_mutex_clear (&run.lock);
  if (run.error != NULL)
    g_propagate_error (error, run.error);
  return run.error == NULL;
}
