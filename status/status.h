// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "rpc/proto/muster.pb-c.h"
#include "status/json.h"

G_BEGIN_DECLS

/* A server's status as it is shown: by `muster status`, and by the server's page and API. */

typedef enum {
  MUSTER_STATUS_GOOD,
  MUSTER_STATUS_WARNING,
  MUSTER_STATUS_BAD,
  MUSTER_STATUS_IDLE,
} MusterStatusKind;

/* A model's state in a word: "ready", "not ready", "over", the phase while it is prepared, "waiting
 * for tasks" if its job has too few, or how its chief's run ended: "failed", "preempted",
 * "finished", "chief lost". */
typedef struct {
  const char *word; /* static */
  MusterStatusKind kind;
} MusterStatusState;

MusterStatusState muster_status_state (const Muster__StatusResponse *status,
                                       const Muster__Announcement *model);

/* The chief's run reached its last step, and didn't end the job. */
gboolean muster_status_has_finished (const Muster__Announcement *model);

/* The steps that run now. */
gint64 muster_status_n_running (const Muster__StatusResponse *status);

/* From when on a step that doesn't end is shown. */
#define MUSTER_STATUS_STALL_US (10 * MUSTER_SECOND)

/* "no step has ended for 45 s, 1 running", while steps run or a chief trains; NULL below least_us
 * (transfer full) */
char *muster_status_stall (const Muster__StatusResponse *status, gint64 least_us);

/* A chief has prepared a model, and no step has run here: this server is a coordinator. */
gboolean muster_status_has_steps_elsewhere (const Muster__StatusResponse *status);
#define MUSTER_STATUS_STEPS_ELSEWHERE "the job's steps run at other masters"

/* "training for 12 s", "training, holding for a drain for another 20 s", "lost 3 s ago, while
 * initialising", "failed 3 s ago, while training: the loss is NaN" (transfer full) */
char *muster_status_chief (const Muster__Announcement *model);

/* "worker:3 (host:71)  slot 3, worker for 12 s, 140 batches, 11.5/s", "…  slot 3, 2 s ago: silent
 * for 15 s, after 40 s and 140 batches" (transfer full) */
char *muster_status_member (const Muster__Member *member);

/* "worker:3 (host:71)  ready for 12 s" (transfer full) */
char *muster_status_task (const Muster__Task *task);

/* "waiting for tasks: 1 of at least 3", or NULL if the job has enough (transfer full) */
char *muster_status_waits (const Muster__Members *job);
/* The same after "no chief: no checkpoints are written", if a job that had a chief has none and
 * isn't over; NULL if it lacks nothing (transfer full) */
char *muster_status_lacks (const Muster__StatusResponse *status, const Muster__Members *job);

/* Adds the members of a status to the current object: what `muster status --json` prints. */
void muster_status_json (JsonBuilder *builder, const Muster__StatusResponse *status);

G_END_DECLS
