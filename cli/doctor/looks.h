// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/common/cli.h"
#include "cli/doctor/findings.h"
#include "rpc/proto/muster.pb-c.h"

G_BEGIN_DECLS

/* The places that `muster doctor` looks at. A check is a function that adds what it finds. */

/* Which chief saves where, as a master says. */
typedef struct {
  char *text;        /* (owned) "CHIEF, in DIRECTORY" */
  gboolean is_alive; /* the chief; or it failed, perhaps since it was replaced there */
} MusterHolder;

MusterHolder *muster_holder_new (const char *text, gboolean is_alive);
void muster_holder_free (gpointer self);

typedef struct {
  const MusterCliOptions *options;
  MusterFindings *findings; /* (not owned) */
  GPtrArray *holders;       /* (not owned) (element-type MusterHolder) of the masters that were
                               looked at */
  gint64 patience_us;       /* how long a wait or a step may take */
  gint64 deadline_us;
} MusterDoctor;

/* Asks the master. The target must be valid. */
void muster_doctor_look_at_master (const MusterDoctor *self, const char *target);
/* Probes each task of the options' cluster; place is what they are called together. */
void muster_doctor_look_at_tasks (const MusterDoctor *self, const char *place);
/* The master's answer. */
void muster_doctor_look_at_status (const MusterDoctor *self, const char *target,
                                   const Muster__StatusResponse *status);

/* After the masters. */
void muster_doctor_look_at_directory (const MusterDoctor *self, const char *directory);

G_END_DECLS
