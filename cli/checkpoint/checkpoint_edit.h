// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/edit/edit.h"
#include "cli/common/cli.h"
#include "cli/output/progress.h"
#include "cli/terminal/interrupt.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* What the subcommands share that make checkpoints: signals, a progress bar, a deadline. */

typedef struct {
  MusterCliOptions options;
  MusterEditOptions edit;
  char **words;               /* (owned) */
  MusterInterrupt *interrupt; /* (owned) */
  MusterProgress *progress;   /* (owned) */
  char *doing;                /* (owned) (nullable) for the bar: "copying m-5" */
  guint64 total;              /* what the bar shows */
  gint64 deadline_us;
} MusterCliEdit;

/* Parses the arguments, of which the entries are the subcommand's own besides --replace and
 * --timeout. FALSE with an exit code. */
gboolean muster_cli_edit_begin (MusterCliEdit *self, int argc, char **argv, const char *usage,
                                const char *summary, const GOptionEntry *entries, guint least,
                                guint most, int *code);
/* If a signal has ended the work it doesn't return. */
void muster_cli_edit_end (MusterCliEdit *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterCliEdit, muster_cli_edit_end)

/* For a part of the work, and its MusterBundleProgress; user_data is the MusterCliEdit. */
void muster_cli_edit_part (MusterCliEdit *self, const char *doing, const char *place);
void muster_cli_edit_progress (guint64 done, guint64 total, gpointer user_data);
GCancellable *muster_cli_edit_cancellable (MusterCliEdit *self);

/* The size of a result's files, and the rate at which its data was written. (transfer full) */
char *muster_cli_edit_transfer (const char *to, const MusterEditReport *report);

/* Reports a failure, and returns the exit code. */
int muster_cli_edit_fail (MusterCliEdit *self, const GError *error);

/* Prints what was made: "VERB TO, 15 tensors, 4.2 GB in 1.4 s (3.0 GB/s)", or a JSON line with the
 * members VERB and from, a list for several. */
void muster_cli_edit_print (MusterCliEdit *self, const char *verb, const char *to, const char *from,
                            char *const *several, const MusterEditReport *report);

/* The members of a report. */
void muster_cli_edit_json (JsonBuilder *builder, const MusterEditReport *report);

G_END_DECLS
