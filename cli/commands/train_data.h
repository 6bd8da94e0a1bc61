// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/scaffold.h"
#include "train/position/batches.h"

G_BEGIN_DECLS

/* The arrays that `muster train` feeds, checked against the graph before any connection. A plain
 * struct; clear it. */

typedef struct {
  char **feeds;          /* (owned) (nullable) "x:0"; NULL: the graph's own input */
  MusterTensor **arrays; /* (owned) one for each feed */
  gsize n_feeds;
  gsize n_batched;        /* of them the first, of which each step gets a batch of rows */
  gint64 n_rows;          /* 0 without feeds of rows */
  const char *first_rows; /* (nullable) the first feed of rows, one of feeds */
  gint64 batch_size;
} MusterTrainData;

void muster_train_data_clear (MusterTrainData *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterTrainData, muster_train_data_clear)

/* arguments (nullable) as in muster_cli_read_feed (): a file has one example a row, a value or list
 * is the same in all steps; rows too (nullable: all).
 * batch_size 0: the placeholders' size, else 32. Errors name the argument, what it contains and
 * what the graph requires. */
gboolean muster_train_data_read (MusterTrainData *self, MusterScaffold *scaffold, char **arguments,
                                 const char *rows, gint64 batch_size, GError **error);

G_END_DECLS
