// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/common/cli.h"
#include "cli/doctor/findings.h"
#include "rpc/proto/muster.pb-c.h"

G_BEGIN_DECLS

/* The places that `muster doctor` looks at. A check is a function that adds what it finds. */

typedef struct {
  const MusterCliOptions *options;
  MusterFindings *findings; /* (not owned) */
  GPtrArray *holders; /* (not owned) (element-type utf8) which chief saves where, as the masters
                         that were looked at say: "CHIEF, in DIRECTORY" */
  gint64 patience_us; /* how long a wait or a step may take */
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
