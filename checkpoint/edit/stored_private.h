// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/edit/edit_work_private.h"
#include "checkpoint/edit/span_check_private.h"

G_BEGIN_DECLS

/* Reads the stored tensors and slices of a checkpoint in blocks, through one buffer, and checks
 * their sums. Neighbours share a read. */
typedef struct {
  MusterEditWork *work;     /* (not owned) */
  MusterStorageLock *lock;  /* (owned) (nullable) it isn't removed meanwhile */
  MusterBundleIndex *index; /* (owned) */
  MusterBundleData *data;   /* (owned) */
  MusterDataFile *file;     /* (owned) (nullable) the last one */
  gint32 shard;             /* its number */
  guint8 *buffer;           /* (owned) */
  guint64 start;            /* of the buffer's bytes in the file */
  gsize length;             /* their number */
  MusterSpanCheck check;
  guint64 at; /* in the entry */
} MusterStoredReader;

/* Opens a checkpoint, and checks its index and slices. */
gboolean muster_stored_reader_open (MusterStoredReader *self, MusterEditWork *work,
                                    const char *prefix, GError **error);
/* Gives the lock back, once all is read: what is made may replace it, and then removes its data
 * unless somebody else reads them. */
void muster_stored_reader_release (MusterStoredReader *self);
void muster_stored_reader_clear (MusterStoredReader *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterStoredReader, muster_stored_reader_clear)

/* The stored slice number i of a partitioned variable, which must be there. */
const MusterIndexEntry *muster_stored_reader_part (MusterStoredReader *self,
                                                   const MusterIndexEntry *whole, gsize i);

gboolean muster_stored_reader_begin (MusterStoredReader *self, const MusterIndexEntry *entry,
                                     GError **error);
/* The entry's next bytes (borrowed): as many as most, at most MUSTER_EDIT_BLOCK, unless fewer are
 * left; 0 at the end, when its sum has been checked. */
gboolean muster_stored_reader_next (MusterStoredReader *self, gsize most, const guint8 **bytes,
                                    gsize *n, GError **error);

/* Writes stored tensors and slices one after the other to one data file, and then the index. */
typedef struct {
  MusterEditWork *work; /* (not owned) */
  const char *prefix;   /* (not owned) */
  MusterEditFile file;
  MusterBundleIndex *index; /* (owned) */
  guint8 *buffer;           /* (owned) */
  gsize n_buffered;
  guint64 offset; /* of the next byte */
  guint64 bytes;  /* of tensors */
} MusterStoredWriter;

gboolean muster_stored_writer_open (MusterStoredWriter *self, MusterEditWork *work,
                                    const char *prefix, GError **error);
void muster_stored_writer_clear (MusterStoredWriter *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterStoredWriter, muster_stored_writer_clear)

/* An entry like this one, whose bytes follow; a partitioned variable has none. */
gboolean muster_stored_writer_begin (MusterStoredWriter *self, const MusterIndexEntry *like,
                                     GError **error);
gboolean muster_stored_writer_append (MusterStoredWriter *self, const void *data, gsize size,
                                      GError **error);
/* crc32c: masked, of its bytes. */
void muster_stored_writer_end (MusterStoredWriter *self, guint32 crc32c);
gboolean muster_stored_writer_finish (MusterStoredWriter *self, GError **error);

/* An entry as it is. */
gboolean muster_stored_copy (MusterStoredReader *from, const MusterIndexEntry *entry,
                             MusterStoredWriter *to, GError **error);
/* A variable as it is, with its slices. */
gboolean muster_stored_copy_whole (MusterStoredReader *from, const MusterIndexEntry *whole,
                                   MusterStoredWriter *to, GError **error);
/* The bytes of a variable with its slices. */
guint64 muster_stored_size (MusterStoredReader *self, const MusterIndexEntry *whole);

G_END_DECLS
