// SPDX-License-Identifier: Apache-2.0
#include "base/blocking.h"
#include "session/session_private.h"

/* A server may keep CreateSession for ever: TensorFlow's does while a task of its cluster is
 * missing, a stopped one does anyway. When there has been no answer for so long, somebody looks
 * why, and after each such while again. */
#define FIRST_LOOK_US (2 * MUSTER_SECOND)
#define NEXT_LOOK_US  (10 * MUSTER_SECOND)

/* One CreateSession on a thread of its own, which alone writes session and failure until it is
 * joined. */
typedef struct {
  MusterMaster *master;                /* (not owned) */
  const MusterSessionManager *manager; /* (not owned) */
  GCancellable *cancellable;           /* (not owned) (nullable) */
  GCancellable *answered;              /* (not owned) cancelled when the call is over */
  gint64 deadline_us;
  MusterSession *session; /* (owned) (nullable) */
  GError *failure;        /* (owned) (nullable) */
} Call;

static gpointer
ask (gpointer data)
{
  Call *call = data;

  call->session =
      muster_master_create_session (call->master, call->manager->graph, call->manager->config,
                                    call->deadline_us, call->cancellable, &call->failure);
  if (call->answered)
    g_cancellable_cancel (call->answered);

  return NULL;
}

static void
tell_why (MusterVerb *self)
{
  g_autofree char *why = NULL;

  /* What failed before this call is past. */
  g_clear_error (&self->failure);
  muster_verb_hear_again (self);
  why = muster_verb_why (self);
  g_autofree char *message =
      g_strdup_printf ("Creating a session at '%s': %s", muster_master_target (self->master),
                       why ? why : self->server_state);
  muster_verb_tell (self, message, NULL);
}

/* Looks and tells on this thread, until the call is over or has no time left for another look. */
static void
look_out (MusterVerb *self, const Call *call)
{
  gint64 look_us = muster_deadline_after (muster_clock_now_us (self->clock), FIRST_LOOK_US);
  g_autofree char *found = NULL;

  muster_about_to_block ();
  while (look_us < call->deadline_us &&
         muster_clock_wait_until (self->clock, look_us, call->answered, NULL)) {
    if (muster_verb_look_again (self, call->answered, &found))
      tell_why (self);
    look_us = muster_deadline_after (muster_clock_now_us (self->clock), NEXT_LOOK_US);
  }
}

MusterSession *
muster_verb_call_create (MusterVerb *self, gint64 deadline_us, GError **error)
{
  Call call = {.master = self->master,
               .manager = self->manager,
               .cancellable = self->cancellable,
               .deadline_us = deadline_us};
  g_autoptr (GCancellable) answered = NULL;
  GThread *thread = NULL;

  /* A thread costs some 30 µs: where nobody listens, or there is no address to look at, it does
   * without. */
  if (self->manager->progress && muster_verb_can_look (self)) {
    call.answered = answered = g_cancellable_new ();
    thread = g_thread_try_new ("muster-create", ask, &call, NULL);
  }
  if (thread) {
    look_out (self, &call);
    g_thread_join (thread);
  } else {
    ask (&call);
  }
  if (call.failure)
    g_propagate_error (error, call.failure);

  return call.session;
}
