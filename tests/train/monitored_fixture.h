// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/doubles/fake_master.h"
#include "train/monitored/monitored_session.h"

G_BEGIN_DECLS

/* A model of one variable and a global step on the fake master: "train" advances the step, and
 * "loss" yields it as a float. */

typedef struct {
  MusterFakeClock *clock;
  MusterFakeMaster *master;
  MusterScaffold *scaffold;
  MusterSessionManager *manager;
  gint64 step;         /* on the master */
  gboolean keeps_step; /* the init op doesn't start it over */
  GPtrArray *hooks;
  MusterMonitoredSessionOptions options; /* a chief's, with these */
  GCancellable *cancellable;             /* the session's */
  MusterMonitoredSession *session;       /* after monitored_open () */
} Monitored;

Monitored monitored_set_up (void);
void monitored_tear_down (Monitored *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Monitored, monitored_tear_down)

/* The fake master calls back with self. */
void monitored_script (Monitored *self);

/* (transfer full) hook; in the order of the calls. */
void monitored_add (Monitored *self, MusterHook *hook);
/* Makes the session, with the hooks added. */
gboolean monitored_open (Monitored *self, GError **error);
/* Runs "train" and fetches "loss" into *loss (nullable). */
gboolean monitored_train (Monitored *self, float *loss, GError **error);

/* A hook that notes what it is called for in a diary, each word behind name. */
MusterHook *diary_hook_new (const char *name, GString *diary);
/* The verb ("before_run", …) fails with code, n times from its first-th call on. */
void diary_hook_fail (MusterHook *self, const char *verb, int first, int n, MusterError code);
/* It fetches, feeds, and asks for a stop at its first-th after_run (0: never). */
void diary_hook_fetch (MusterHook *self, const char *tensor);
void diary_hook_feed (MusterHook *self, const char *tensor, MusterTensor *value);
void diary_hook_options (MusterHook *self, GBytes *options);
void diary_hook_stop (MusterHook *self, int at_run);
/* What it fetched last, as a number. */
double diary_hook_value (MusterHook *self);

G_END_DECLS
