// SPDX-License-Identifier: Apache-2.0
#include "tests/server/lasting_step.h"

static gint64
make_callable (MusterSession *session, const MusterStep *step)
{
  g_autoptr (GError) error = NULL;
  const gint64 callable =
      muster_session_make_callable (session, step, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return callable;
}

gint64
lasting_make_callable (MusterSession *session)
{
  static const char *const fetch = "stuck:0";
  const MusterFeed feed = {"muster/position:0", NULL};
  const MusterStep step = {.feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
  return make_callable (session, &step);
}

static void
run_callable (LastingStep *self, const MusterStep *step, MusterTensor **got)
{
  const gint64 callable =
      self->callable != 0 ? self->callable : make_callable (self->session, step);
  muster_session_run_callable (self->session, callable, &step->feeds[0].tensor, 1, test_deadline (),
                               got, NULL, self->cancellable, &self->error);
}

static void
run_part (LastingStep *self, const MusterStep *step, MusterTensor **got)
{
  g_autofree char *parts =
      muster_session_set_up_partial_run (self->session, step, test_deadline (), NULL, &self->error);
  MUSTER_EXPECT_NO_ERROR (self->error);
  muster_session_run_part (self->session, parts, step, got, NULL, self->cancellable, &self->error);
}

static gpointer
run_step (gpointer data)
{
  LastingStep *self = data;
  g_autoptr (MusterTensor) position = muster_tensor_new_int64 (4);
  g_autoptr (MusterTensor) got = NULL;
  const MusterFeed feed = {self->feed != NULL ? self->feed : "muster/position:0", position};
  const char *fetch = self->fetch != NULL ? self->fetch : "stuck:0";
  const MusterStep step = {.feeds = &feed,
                           .n_feeds = 1,
                           .fetches = &fetch,
                           .n_fetches = 1,
                           .deadline_us = test_deadline ()};
  if (self->way == LASTING_CALLABLE)
    run_callable (self, &step, &got);
  else if (self->way == LASTING_PART)
    run_part (self, &step, &got);
  else
    muster_session_run (self->session, &step, &got, NULL, self->cancellable, &self->error);
  return NULL;
}

void
lasting_step_start (LastingStep *self)
{
  self->thread = g_thread_new ("step", run_step, self);
}

void
lasting_step_join (LastingStep *self)
{
  g_thread_join (self->thread);
}

gboolean
lasting_wait_for_sessions (Served *served, int n)
{
  const gint64 until_us = test_deadline ();
  for (;;) {
    g_autoptr (MusterArena) arena = muster_arena_new ();
    const Muster__StatusResponse *status = served_status (served, arena);
    if (status == NULL || (int)status->sessions == n)
      return status != NULL;
    if (muster_clock_now_us (muster_system_clock ()) > until_us)
      return FALSE;
  }
}

gpointer
lasting_close (gpointer data)
{
  LastingClose *self = data;
  muster_session_close (self->session, test_deadline (), NULL, &self->error);
  return NULL;
}
