// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"
#include "engine/resources/lookup.h"

G_BEGIN_DECLS

/* A static table out of a text file on the master's store: a line for each key. A column is counted
 * from 0; -1 is the number of the line and -2 the whole line, as in TensorFlow. Lines end with LF
 * or CRLF and aren't empty. */

#define MUSTER_LOOKUP_LINE_NUMBER (-1)
#define MUSTER_LOOKUP_WHOLE_LINE  (-2)
/* INVALID_ARGUMENT for a longer line, in bytes. */
#define MUSTER_LOOKUP_MAX_LINE (16 * 1024 * 1024)

typedef struct {
  const char *filename;
  gint64 vocab_size; /* so many lines are read and must be there; -1: all */
  char delimiter;    /* between columns */
  gint64 key_index, value_index;
  gint64 offset; /* added to the number of a line, and to values of int32 */
} MusterLookupText;

/* NOT_FOUND, INVALID_ARGUMENT, OUT_OF_RANGE (nothing in it) in TensorFlow's words. A table that has
 * its keys stays as it is, once the file's first line has been read. May wait for the store. */
gboolean muster_lookup_table_fill_from_text (MusterLookupTable *table, const MusterLookupText *text,
                                             MusterStorage *storage, GCancellable *cancellable,
                                             MusterBudget *budget, GError **error);

G_END_DECLS
