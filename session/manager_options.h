// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"
#include "master/master.h"
#include "ready/backoff.h"

G_BEGIN_DECLS

/**
 * MusterSessionManagerOptions:
 * @local_init_op: runs after every restore or init, and in each waiter. Without
 *   @ready_for_local_init_op, a waiter that ran it before the model was ready runs it again
 *   (nullable)
 * @local_init_ops: (array zero-terminated=1): a list instead, run in one step (nullable)
 * @ready_op: NULL: readiness isn't checked
 * @ready_for_local_init_op: the gate before local init; needs local_init_op
 * @recovery_wait_us: (attributes flag=recovery-wait of=wait): the maximum poll interval on a master
 *   that doesn't push readiness; 0: 30s. Below 0 is INVALID_ARGUMENT. "local" and TensorFlow's
 *   servers don't push: they are polled every 10 ms at first, 5 times a second after 2 s, and more
 *   rarely after 20 s
 * @local_init_run_options: a serialised RunOptions (nullable)
 * @config: a serialised ConfigProto for every session (nullable)
 * @clock: NULL: the machine's
 * @model: The model's name in announcements, on muster's servers, the same in all tasks; the
 * command uses the meta graph's file name without `.meta`. With a name, the chief claims the model
 * before it runs anything; waiters see the chief's phase, aren't ready before its init function has
 * ended, and are notified when the job is over. A name that no chief has claimed isn't an error: as
 * with NULL, only the variables count, and the report's reason "chief" is "never-registered". NULL:
 * no claim, no announcements.
 * @task: this task's name in messages, such as "worker:3" (nullable)
 * @meta_graph: gives the task that owns a variable, for reasons (nullable)
 * @cluster: (array zero-terminated=1): "ps:0=HOST:PORT": probed when the master doesn't answer
 *   (nullable)
 * @chief: "chief:0=HOST:PORT": the chief's master, in a cluster whose tasks have their own masters;
 *   for remedies in reasons (nullable)
 * @will_run: (array zero-terminated=1): the ops and tensors that the session will run: a master
 * that lacks an operation they need is refused (UNIMPLEMENTED) before anything is claimed, restored
 * or initialised (nullable)
 * @will_feed: (array zero-terminated=1): the tensors that these runs are fed with (nullable)
 * @waiting: the retries of waiters; %NULL: muster_retry_waiting; copied
 * @preparing: the retries of the chief; %NULL: muster_retry_preparing; copied
 *
 * What a manager is made of.
 */
typedef struct {
  const char *local_init_op;
  const char *const *local_init_ops;
  const char *ready_op;
  const char *ready_for_local_init_op;
  gint64 recovery_wait_us;
  GBytes *local_init_run_options;
  GBytes *config;
  MusterClock *clock;
  const char *model;
  const char *task;
  MusterMetaGraph *meta_graph;
  const char *const *cluster;
  const char *chief;
  const char *const *will_run;
  const char *const *will_feed;
  const MusterRetryPolicy *waiting;
  const MusterRetryPolicy *preparing;
} MusterSessionManagerOptions;

#define MUSTER_TYPE_SESSION_MANAGER_OPTIONS (muster_session_manager_options_get_type ())
GType muster_session_manager_options_get_type (void);

G_END_DECLS
