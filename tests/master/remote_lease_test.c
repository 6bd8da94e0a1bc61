// SPDX-License-Identifier: Apache-2.0
#include "master/lease.h"
#include "master/remote/remote_private.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"
#include "tests/master/tiny_master.h"

#include <string.h>

static MusterLease *
claim_until (TinyMaster *f, gint64 deadline_us, MusterAnnouncement **before, GError **error)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static ("", 0);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  g_autoptr (MusterSession) session =
      muster_master_create_session (f->master, graph, NULL, test_deadline (), NULL, error);
  MusterClaim claim = {.model = "digits", .task = "worker:0", .ready_op = "ready"};
  return session != NULL ? muster_session_claim (session, &claim, before, deadline_us, NULL, error)
                         : NULL;
}

static MusterLease *
claim (TinyMaster *f)
{
  g_autoptr (GError) error = NULL;
  MusterLease *lease = claim_until (f, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return lease;
}

/* Short enough to see renewals. */
static void
set_short_lease (TinyMaster *f)
{
  g_mutex_lock (&f->registry.lock);
  f->registry.lease_us = 60 * MUSTER_MILLISECOND;
  g_mutex_unlock (&f->registry.lock);
}

static gboolean
announce (MusterLease *lease, MusterChiefPhase phase, GError **error)
{
  return muster_lease_announce_phase (lease, phase, test_deadline (), NULL, error);
}

static void
expect_next (GAsyncQueue *queue, const char *wanted)
{
  g_autofree char *next = tiny_registry_pop (queue);
  MUSTER_EXPECT_STREQ (next, wanted);
}

/* Takes out what is like the first, which comes often, up to the first that isn't. */
static char *
pop_other_than (GAsyncQueue *queue, const char *first)
{
  char *next = tiny_registry_pop (queue);
  while (g_strcmp0 (next, first) == 0) {
    g_free (next);
    next = tiny_registry_pop (queue);
  }
  return next;
}

MUSTER_TEST (RemoteLease, is_claimed_for_the_session)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterAnnouncement) before = NULL;

  g_autoptr (MusterLease) lease = claim_until (&f, test_deadline (), &before, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  expect_next (f.registry.asked, "digits worker:0 epoch=0 tiny ready");
  MUSTER_EXPECT_EQ (muster_lease_epoch (lease), 4);
  MUSTER_EXPECT_STREQ (muster_lease_model (lease), "digits");
  MUSTER_EXPECT_TRUE (muster_lease_check (lease, &error));
  MUSTER_ASSERT_NOT_NULL (before);
  MUSTER_EXPECT_STREQ (before->task, "worker:7");
  MUSTER_EXPECT_EQ (before->phase, MUSTER_CHIEF_TRAINING);
  MUSTER_EXPECT_EQ (before->step, 40);
  MUSTER_EXPECT_EQ (before->durable_step, -1); /* nothing less is a step */
  MUSTER_EXPECT_NULL (before->durable);
}

MUSTER_TEST (RemoteLease, is_refused_as_the_server_says)
{
  static const int codes[] = {MUSTER_ERROR_FAILED_PRECONDITION, MUSTER_ERROR_OUT_OF_RANGE,
                              MUSTER_ERROR_UNIMPLEMENTED};
  for (gsize i = 0; i < G_N_ELEMENTS (codes); i++) {
    g_auto (TinyMaster) f = {0};
    tiny_master_start (&f);
    g_autoptr (GError) error = NULL;
    tiny_registry_set (&f.registry, &f.registry.refuse_claim, codes[i]);

    MUSTER_EXPECT_NULL (claim_until (&f, test_deadline (), NULL, &error));

    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, codes[i]);
    MUSTER_EXPECT_STREQ (error->message, "worker:1 has it");
  }
}

MUSTER_TEST (RemoteLease, is_given_up_where_no_grant_comes_in_time)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) connected = claim (&f);
  tiny_registry_set (&f.registry, &f.registry.is_mute, TRUE);
  gint64 soon_us = test_deadline_in (MUSTER_SECOND);

  MUSTER_EXPECT_NULL (claim_until (&f, soon_us, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_TRUE (g_async_queue_timeout_pop (f.registry.left, 30 * MUSTER_SECOND) != NULL);
}

MUSTER_TEST (RemoteLease, reports_phases_and_keeps_what_they_leave_open)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  MusterAnnouncement restoring = MUSTER_ANNOUNCEMENT_INIT;
  MusterAnnouncement saved = MUSTER_ANNOUNCEMENT_INIT;
  restoring.phase = MUSTER_CHIEF_RESTORING;
  restoring.detail = (char *)"model.ckpt-7";
  saved.durable_step = 9;
  saved.durable = (char *)"model.ckpt-9";
  saved.durable_age_us = 3600 * MUSTER_SECOND;

  MUSTER_EXPECT_TRUE (muster_lease_announce (lease, &restoring, test_deadline (), NULL, &error));
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_TRAINING, &error));
  MUSTER_EXPECT_TRUE (muster_lease_announce (lease, &saved, test_deadline (), NULL, &error));
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_OVER, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  expect_next (f.registry.announced, "epoch=4 restoring step=-1 durable=-1  model.ckpt-7");
  expect_next (f.registry.announced, "epoch=4 training step=-1 durable=-1  ");
  expect_next (f.registry.announced, "epoch=4 unknown step=9 durable=9 model.ckpt-9 (old) ");
  expect_next (f.registry.announced, "epoch=4 over step=9 durable=9 model.ckpt-9 (old) ");
}

static const char *const renewal = "epoch=4 unknown step=-1 durable=-1  ";

/* What a reset or a restart has undone isn't to be told again. */
MUSTER_TEST (RemoteLease, is_renewed_without_a_word_on_the_phase)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  set_short_lease (&f);
  g_autoptr (MusterLease) lease = claim (&f);

  expect_next (f.registry.announced, renewal);
  expect_next (f.registry.announced, renewal);
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_PREPARED, &error));

  g_autofree char *next = pop_other_than (f.registry.announced, renewal);
  MUSTER_EXPECT_STREQ (next, "epoch=4 prepared step=-1 durable=-1  ");
  expect_next (f.registry.announced, renewal);
}

MUSTER_TEST (RemoteLease, reports_a_phase_until_it_is_received)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  tiny_registry_set (&f.registry, &f.registry.refuse_announce, MUSTER_ERROR_UNAVAILABLE);

  MUSTER_EXPECT_FALSE (announce (lease, MUSTER_CHIEF_PREPARED, &error));
  tiny_registry_set (&f.registry, &f.registry.refuse_announce, 0);

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  expect_next (f.registry.announced, "epoch=4 prepared step=-1 durable=-1  ");
}

static gpointer
announce_training (gpointer lease)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_TRAINING, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return NULL;
}

/* As at a coordinator that was slow. */
MUSTER_TEST (RemoteLease, reports_a_phase_that_is_posted_while_another_is_under_way)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  set_short_lease (&f);
  g_autoptr (MusterLease) lease = claim (&f);
  MusterAnnouncement over = MUSTER_ANNOUNCEMENT_INIT;
  over.phase = MUSTER_CHIEF_OVER;
  tiny_registry_set (&f.registry, &f.registry.holds_announce, TRUE);
  GThread *thread = g_thread_new ("announces", announce_training, lease);
  for (g_autofree char *next = NULL; g_strcmp0 (next, "epoch=4 training step=-1 durable=-1  ");) {
    g_free (next);
    next = tiny_registry_pop (f.registry.announced);
    if (g_strcmp0 (next, renewal) == 0)
      g_async_queue_push (f.registry.answer, &f);
  }

  muster_remote_lease_post (lease, &over);
  tiny_registry_set (&f.registry, &f.registry.holds_announce, FALSE);
  g_async_queue_push (f.registry.answer, &f);
  g_thread_join (thread);

  g_autofree char *last = pop_other_than (f.registry.announced, renewal);
  MUSTER_EXPECT_STREQ (last, "epoch=4 over step=-1 durable=-1  ");
}

MUSTER_TEST (RemoteLease, that_another_takes_is_lost_for_good)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) announced = NULL;
  g_autoptr (GError) checked = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  tiny_registry_set (&f.registry, &f.registry.refuse_announce, MUSTER_ERROR_FAILED_PRECONDITION);
  tiny_registry_end_claim (&f.registry, MUSTER_ERROR_FAILED_PRECONDITION,
                           "worker:1 has it, epoch 5");

  MUSTER_EXPECT_FALSE (announce (lease, MUSTER_CHIEF_TRAINING, &announced));
  tiny_registry_set (&f.registry, &f.registry.refuse_announce, 0);
  MUSTER_EXPECT_FALSE (announce (lease, MUSTER_CHIEF_TRAINING, NULL));
  MUSTER_EXPECT_FALSE (muster_lease_check (lease, &checked));

  MUSTER_EXPECT_ERROR (announced, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_STREQ (announced->message,
                       "the lease on 'digits' is lost: worker:1 has it, epoch 5");
  MUSTER_EXPECT_ERROR (checked, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

MUSTER_TEST (RemoteLease, is_lost_to_a_refusal_though_its_stream_stays_open)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  tiny_registry_set (&f.registry, &f.registry.refuse_announce, MUSTER_ERROR_FAILED_PRECONDITION);

  MUSTER_EXPECT_FALSE (announce (lease, MUSTER_CHIEF_TRAINING, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_FALSE (muster_lease_check (lease, NULL));
}

MUSTER_TEST (RemoteLease, is_claimed_again_where_the_server_went_away)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  expect_next (f.registry.asked, "digits worker:0 epoch=0 tiny ready");
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_INITIALISING, &error));
  expect_next (f.registry.announced, "epoch=4 initialising step=-1 durable=-1  ");

  tiny_registry_end_claim (&f.registry, MUSTER_ERROR_UNAVAILABLE, "the server restarts");

  expect_next (f.registry.asked, "digits worker:0 epoch=4 tiny ready take_over");
  expect_next (f.registry.announced, renewal);
  MUSTER_EXPECT_TRUE (muster_lease_check (lease, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* The server of this test says that the phase before was "training". */
MUSTER_TEST (RemoteLease, that_is_claimed_again_reports_the_phase_that_still_stood)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_TRAINING, &error));
  expect_next (f.registry.announced, "epoch=4 training step=-1 durable=-1  ");

  tiny_registry_end_claim (&f.registry, MUSTER_ERROR_UNAVAILABLE, "the connection broke");

  expect_next (f.registry.announced, "epoch=4 training step=-1 durable=-1  ");
}

MUSTER_TEST (RemoteLease, is_renewed_though_an_announcement_was_nonsense)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  MusterAnnouncement saved = MUSTER_ANNOUNCEMENT_INIT;
  saved.durable_step = 9;
  saved.durable = (char *)"nonsense";
  tiny_registry_set (&f.registry, &f.registry.refuse_announce, MUSTER_ERROR_INVALID_ARGUMENT);

  MUSTER_EXPECT_FALSE (muster_lease_announce (lease, &saved, test_deadline (), NULL, &error));
  tiny_registry_set (&f.registry, &f.registry.refuse_announce, 0);

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  expect_next (f.registry.announced, renewal);
}

MUSTER_TEST (RemoteLease, that_is_refused_by_a_server_that_forgot_it_is_claimed_again)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  tiny_registry_set (&f.registry, &f.registry.refuse_claim, MUSTER_ERROR_UNAVAILABLE);
  tiny_registry_end_claim (&f.registry, MUSTER_ERROR_UNAVAILABLE, "the server restarts");
  expect_next (f.registry.asked, "digits worker:0 epoch=0 tiny ready");
  expect_next (f.registry.asked,
               "digits worker:0 epoch=4 tiny ready take_over"); /* and is refused */
  expect_next (f.registry.asked,
               "digits worker:0 epoch=4 tiny ready take_over"); /* and is tried again */

  tiny_registry_set (&f.registry, &f.registry.refuse_claim, 0);
  expect_next (f.registry.announced, renewal);

  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_PREPARED, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (RemoteLease, is_lost_where_another_came_while_the_server_was_away)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  tiny_registry_set (&f.registry, &f.registry.refuse_claim, MUSTER_ERROR_FAILED_PRECONDITION);
  tiny_registry_end_claim (&f.registry, MUSTER_ERROR_UNAVAILABLE, "the server restarts");
  expect_next (f.registry.asked, "digits worker:0 epoch=0 tiny ready");
  expect_next (f.registry.asked, "digits worker:0 epoch=4 tiny ready take_over");

  MUSTER_EXPECT_FALSE (announce (lease, MUSTER_CHIEF_TRAINING, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_STREQ (error->message, "the lease on 'digits' is lost: worker:1 has it");
  MUSTER_EXPECT_FALSE (muster_lease_check (lease, NULL));
}

MUSTER_TEST (RemoteLease, needs_another_session_once_its_own_is_gone)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  tiny_registry_set (&f.registry, &f.registry.refuse_claim, MUSTER_ERROR_ABORTED);
  tiny_registry_end_claim (&f.registry, MUSTER_ERROR_UNAVAILABLE, "the server restarts");
  expect_next (f.registry.asked, "digits worker:0 epoch=0 tiny ready");
  expect_next (f.registry.asked, "digits worker:0 epoch=4 tiny ready take_over");

  MUSTER_EXPECT_FALSE (announce (lease, MUSTER_CHIEF_TRAINING, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  MUSTER_EXPECT_TRUE (muster_lease_check (lease, NULL)); /* nobody has taken it */
  MUSTER_EXPECT_EQ (g_async_queue_length (f.registry.asked), 0);
}

MUSTER_TEST (RemoteLease, that_is_dropped_leaves_at_once)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  set_short_lease (&f);
  MusterLease *lease = claim (&f);

  g_object_unref (lease);

  MUSTER_EXPECT_TRUE (g_async_queue_timeout_pop (f.registry.left, 30 * MUSTER_SECOND) != NULL);
}

MUSTER_TEST (RemoteLease, is_held_no_more_once_the_job_is_over)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_OVER, &error));

  tiny_registry_set (&f.registry, &f.registry.refuse_claim, MUSTER_ERROR_OUT_OF_RANGE);
  tiny_registry_end_claim (&f.registry, MUSTER_ERROR_UNAVAILABLE, "the server restarts");
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_OVER, &error));

  MUSTER_EXPECT_TRUE (muster_lease_check (lease, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  expect_next (f.registry.asked, "digits worker:0 epoch=0 tiny ready");
  MUSTER_EXPECT_EQ (g_async_queue_length (f.registry.asked), 0);
}

MUSTER_TEST (RemoteLease, says_when_its_master_is_out_of_reach)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  tiny_registry_stop (&f.registry);
  muster_rpc_server_stop (f.server, 0);

  MUSTER_EXPECT_FALSE (announce (lease, MUSTER_CHIEF_TRAINING, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  MUSTER_EXPECT_TRUE (muster_lease_check (lease, NULL)); /* nobody has taken it */
}

MUSTER_TEST (RemoteLease, waits_for_other_calls_no_longer_than_it_may)
{
  g_auto (TinyMaster) f = {0};
  tiny_master_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterLease) lease = claim (&f);
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_cancellable_cancel (cancelled);

  MUSTER_EXPECT_FALSE (muster_lease_announce_phase (lease, MUSTER_CHIEF_TRAINING, test_deadline (),
                                                    cancelled, &error));

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_TRUE (muster_lease_check (lease, NULL));
}
