// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"
#include "engine/resources/lookup.h"

G_BEGIN_DECLS

/* Fills a static table from a text file in the master's store, one line for each key. Columns count
 * from 0; -1 is the line's number and -2 the whole line, as in TensorFlow. Lines end with LF or
 * CRLF and must not be empty. */

#define MUSTER_LOOKUP_LINE_NUMBER (-1)
#define MUSTER_LOOKUP_WHOLE_LINE  (-2)
/* Longer lines, in bytes, are INVALID_ARGUMENT. */
#define MUSTER_LOOKUP_MAX_LINE (16 * 1024 * 1024)

typedef struct {
  const char *filename;
  gint64 vocab_size; /* number of lines to read, which must exist; -1: all */
  char delimiter;    /* between columns */
  gint64 key_index, value_index;
  gint64 offset; /* added to line numbers, and to int32 values */
} MusterLookupText;

/* NOT_FOUND, INVALID_ARGUMENT or OUT_OF_RANGE (empty file) in TensorFlow's words. A filled table
 * isn't changed, once the file's first line has been read. May wait for the store. */
gboolean muster_lookup_table_fill_from_text (MusterLookupTable *table, const MusterLookupText *text,
                                             MusterStorage *storage, GCancellable *cancellable,
                                             MusterBudget *budget, GError **error);

G_END_DECLS
