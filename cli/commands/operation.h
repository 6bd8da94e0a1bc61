// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/terminal/live.h"
#include "cli/terminal/report.h"

G_BEGIN_DECLS

/* MusterCliOperation runs one verb of the session manager for a command, shown as it goes on: all
 * that prepare and wait have in common. A plain struct; clear it. */

typedef struct {
  const MusterCliOptions *options; /* (not owned) */
  MusterScaffold *scaffold;        /* (owned) */
  MusterMaster *master;            /* (owned) */
  MusterSessionManager *manager;   /* (owned) */
  MusterLive *live;                /* (owned) (nullable) NULL once it has ended */
  gint64 started_us;
  MusterSessionReport report; /* (owned) for the verb to fill */
} MusterCliOperation;

void muster_cli_operation_clear (MusterCliOperation *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterCliOperation, muster_cli_operation_clear)

/* Loads the model, makes the master and its manager as options say, and starts to show the wait.
 * Before any thread is started. doing and json_lines as in muster_live_new (), recovery_wait_us as
 * in muster_cli_manager (). */
gboolean muster_cli_operation_begin (MusterCliOperation *self, const MusterCliOptions *options,
                                     const char *doing, gint64 recovery_wait_us,
                                     gboolean json_lines, GError **error);

/* Closes session (nullable), ends what is shown, and tells whoever reads what came of it, but for
 * the result itself: the trace, a service's manager, a failure's text. *result borrows error
 * (nullable), and the report from self. */
void muster_cli_operation_end (MusterCliOperation *self, const char *command,
                               MusterSession *session, const GError *error,
                               MusterCliResult *result);

G_END_DECLS
