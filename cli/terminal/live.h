// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/common/cli.h"

G_BEGIN_DECLS

/* MusterLive displays an operation of the session manager while it waits. On a terminal, a block
 * that is redrawn in place, with a line for each component and the remaining time; elsewhere, a
 * line when the reason changes and every 30 s; with --quiet nothing; with --json nothing, or a JSON
 * line for each change.
 * A service manager is notified of the same (cli/output/notify.h). The log is printed above it. It
 * draws on its own thread, which also receives SIGINT, SIGTERM and SIGHUP: the first cancels the
 * operation, which closes its session; a second exits at once. The terminal is restored. */

typedef struct _MusterLive MusterLive;

/* Must be called before any thread is started, so that all inherit the signal mask. doing is
 * "waiting for"; json_lines enables a JSON line for each change. Signals stay pending until
 * muster_live_begin (). */
MusterLive *muster_live_new (const char *doing, const MusterCliOptions *options,
                             gboolean json_lines);

/* Handles the first signal that would end the process. TRUE: it was handled, and the operation
 * isn't cancelled. Called on the drawing thread. */
typedef gboolean (*MusterLiveSignal) (int number, gpointer user_data);
/* Starts the thread. signal is (nullable): the first signal cancels the operation. */
void muster_live_begin (MusterLive *self, MusterLiveSignal signal, gpointer user_data);

/* Called on the drawing thread from time to time, at most once a second; not with --json. Before
 * muster_live_begin (). */
typedef void (*MusterLiveTick) (gpointer user_data);
void muster_live_set_tick (MusterLive *self, MusterLiveTick tick, gpointer user_data);

/* For the operation. */
GCancellable *muster_live_cancellable (MusterLive *self);
/* A MusterSessionProgress; user_data is the MusterLive. */
void muster_live_progress (const char *message, const MusterReadiness *readiness,
                           GPtrArray *reasons, gpointer user_data);

/* A MusterBundleProgress: a bar below the block. user_data is the MusterLive. */
void muster_live_restoring (guint64 done, guint64 total, gpointer user_data);

/* After the wait: shows a line that is redrawn in place of the block, until the next wait. Only on
 * a terminal. */
void muster_live_line (MusterLive *self, const char *line);
/* The maximum width of such a line; 0: not a terminal. */
guint muster_live_width (MusterLive *self);
gboolean muster_live_is_coloured (MusterLive *self);
/* Prints a permanent line above the display. Any thread. */
void muster_live_say (MusterLive *self, FILE *to, const char *text);

/* After muster_live_begin (): ends the display and restores the cursor. If a signal has arrived it
 * doesn't return: the process ends by that signal. */
void muster_live_end (MusterLive *self);

G_END_DECLS
