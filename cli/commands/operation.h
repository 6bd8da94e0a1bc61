// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/terminal/live.h"
#include "cli/terminal/report.h"

G_BEGIN_DECLS

/* MusterCliOperation runs one operation of the session manager for a command and displays it: what
 * prepare and wait share. A plain struct; clear it. */

typedef struct {
  const MusterCliOptions *options; /* (not owned) */
  guint n_tasks;                   /* set before begin: positions are added for so many; 0: none */
  MusterScaffold *scaffold;        /* (owned) */
  MusterMaster *master;            /* (owned) */
  MusterSessionManager *manager;   /* (owned) */
  MusterLive *live;                /* (owned) (nullable) NULL after the end */
  gint64 started_us;
  MusterSessionReport report; /* (owned) set by the operation */
} MusterCliOperation;

void muster_cli_operation_clear (MusterCliOperation *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterCliOperation, muster_cli_operation_clear)

/* Loads the model, creates the master and the manager from options, and starts the display. Must be
 * called before any thread is started. doing and json_lines as in muster_live_new (),
 * recovery_wait_us as in muster_cli_manager (). */
gboolean muster_cli_operation_begin (MusterCliOperation *self, const MusterCliOptions *options,
                                     const char *doing, gint64 recovery_wait_us,
                                     gboolean json_lines, GError **error);

/* Closes session (nullable), ends the display, and reports to the trace, the service manager and
 * stderr; the caller prints the result. *result borrows error (nullable), and the report from self.
 */
void muster_cli_operation_end (MusterCliOperation *self, const char *command,
                               MusterSession *session, const GError *error,
                               MusterCliResult *result);

G_END_DECLS
