// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/common/cli.h"
#include "cli/common/flags.h"
#include "train/training.h"

G_BEGIN_DECLS

/* The options of `muster train`; strings are (owned) (nullable), also those of the structs, unless
 * their fields have flags. What the command line doesn't say, such as the model, isn't set there.
 * Zero-initialise and clear it. */
typedef struct {
  MusterFlags *flags; /* (owned), with the texts of fields */
  MusterCliOptions common;
  MusterTraining training; /* its saver's fast is (owned) */
  char **feeds;
  char *rows;
  gint64 batch_size;
  gint64 seed;
  char **fast_dirs;
  char *save_every;
  char *loss;
  int tasks;
  char *grace;
  gboolean positions;
  gboolean drill;
  gboolean example;
  gint64 grace_us; /* parsed */
} MusterTrainOptions;

void muster_train_options_clear (MusterTrainOptions *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterTrainOptions, muster_train_options_clear)

/* Parses and checks the words of the command line; --help prints and exits. */
gboolean muster_train_options_parse (MusterTrainOptions *self, char *const *words, GError **error);

G_END_DECLS
