// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/common/cli.h"

G_BEGIN_DECLS

/* MusterLive shows a verb of the session manager while it waits: on a terminal a block that is
 * redrawn in place, a line for each component and the time that is left; elsewhere a line whenever
 * the reason changes and every 30 s; with --json nothing, or a line of JSON for each change. A
 * service's manager is told the same (cli/output/notify.h). It draws on a thread of its own,
 * which also hears SIGINT and its kin: the first cancels the verb, which closes its session; a
 * second ends the process at once. The terminal is left as it was. */

typedef struct _MusterLive MusterLive;

/* Before any thread is started, since all must inherit its mask of signals. doing is "waiting for",
 * json_lines asks for a line of JSON for each change. */
MusterLive *muster_live_new (const char *doing, const MusterCliOptions *options,
                             gboolean json_lines);

/* For the verb. */
GCancellable *muster_live_cancellable (MusterLive *self);
/* A MusterSessionProgress; user_data is the MusterLive. */
void muster_live_progress (const char *message, const MusterReadiness *readiness,
                           GPtrArray *reasons, gpointer user_data);

/* A MusterRestoreProgress: a bar below the block. user_data is the MusterLive. */
void muster_live_restoring (guint64 done, guint64 total, gpointer user_data);

/* After the wait: a line that is drawn over itself in the block's place, until the next wait
 * begins. Elsewhere than on a terminal it isn't shown, and what is waited for isn't repeated. */
void muster_live_line (MusterLive *self, const char *line);
/* How wide such a line may be; 0: there is no terminal. */
guint muster_live_width (MusterLive *self);
gboolean muster_live_is_coloured (MusterLive *self);
/* Prints a line of text that stays, above what is drawn. Any thread. */
void muster_live_say (MusterLive *self, FILE *to, const char *text);

/* A GLogFunc for the whole process: what the library logs, above what is drawn if there is such. */
void muster_live_log (const char *domain, GLogLevelFlags level, const char *message,
                      gpointer user_data);

/* Who sees to the first signal that would end the process: TRUE if it is seen to, and the verb
 * isn't cancelled. On the thread that draws. Before there can be one. */
typedef gboolean (*MusterLiveSignal) (int number, gpointer user_data);
void muster_live_set_signal (MusterLive *self, MusterLiveSignal signal, gpointer user_data);

/* Ends it: the block is gone, the cursor is back. Doesn't return if a signal has come: the process
 * ends by it. */
void muster_live_end (MusterLive *self);

G_END_DECLS
