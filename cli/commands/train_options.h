// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/common/cli.h"
#include "saver/tiers/tier.h"

G_BEGIN_DECLS

/* The options of `muster train`; strings are (owned) (nullable). Zero-initialise and clear it. */
typedef struct {
  MusterCliOptions common;
  char **feeds;
  char *rows;
  gint64 batch_size;
  gint64 seed;
  gint64 steps;
  gint64 epochs;
  char *directory;
  char **fast_dirs;
  char *save_every;
  char *save_share;
  char *save_secs;
  int keep;
  int keep_best;
  gint64 keep_every_steps;
  char *metric;
  char *log_dir;
  char *loss;
  int tasks;
  int min_tasks;
  int max_tasks;
  char *grace;
  char *step_timeout;
  char *save_timeout;
  gboolean save_blocking;
  gboolean drill;
  gboolean overwrite;
  gboolean restore;
  gboolean allow_missing;
  gboolean from_files;
  gboolean no_positions;
  gboolean example;
  /* parsed from the strings above */
  gint64 save_steps;
  gboolean save_auto;
  double share;
  gint64 save_us;
  gint64 grace_us;
  gint64 step_timeout_us;
  gint64 save_timeout_us;
  MusterTier *fast; /* (owned) (array length=n_fast) */
  gsize n_fast;
} MusterTrainOptions;

void muster_train_options_clear (MusterTrainOptions *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterTrainOptions, muster_train_options_clear)

/* Parses and checks the words of the command line; --help prints and exits. */
gboolean muster_train_options_parse (MusterTrainOptions *self, char *const *words, GError **error);

G_END_DECLS
