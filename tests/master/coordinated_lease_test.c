// SPDX-License-Identifier: Apache-2.0
#include "master/lease.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"
#include "tests/master/tiny_master.h"

#include <string.h>

/* What a chief says to a coordinator that doesn't answer, and to its own master besides. */
typedef struct {
  TinyMaster coordinator;
  TinyMaster own;
  MusterLease *lease;
} Fixture;

static void
set_up (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static ("", 0);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  const MusterClaim claim = {.model = "digits", .task = "chief:0", .ready_op = "ready"};
  tiny_master_start (&f->coordinator);
  tiny_master_start (&f->own);
  MUSTER_EXPECT_TRUE (muster_master_set_coordinator (f->own.master, f->coordinator.master, &error));
  g_autoptr (MusterSession) session =
      muster_master_create_session (f->own.master, graph, NULL, test_deadline (), NULL, &error);
  f->lease = session != NULL
                 ? muster_session_claim (session, &claim, NULL, test_deadline (), NULL, &error)
                 : NULL;
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->lease);
  tiny_master_clear (&f->own);
  tiny_master_clear (&f->coordinator);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static gboolean
has_heard (TinyMaster *master, const char *what)
{
  g_autofree char *heard = tiny_registry_pop (master->registry.announced);
  return heard != NULL && strstr (heard, what) != NULL;
}

MUSTER_TEST (CoordinatedLease, leaves_the_own_master_time_where_the_coordinator_is_silent)
{
  g_auto (Fixture) f = {0};
  g_autoptr (GError) error = NULL;
  set_up (&f);
  MUSTER_ASSERT_NOT_NULL (f.lease);
  tiny_registry_set (&f.coordinator.registry, &f.coordinator.registry.holds_announce, TRUE);

  const gboolean is_told = muster_lease_announce_phase (
      f.lease, MUSTER_CHIEF_OVER, test_deadline_in (2 * MUSTER_SECOND), NULL, &error);

  MUSTER_EXPECT_TRUE (is_told);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (has_heard (&f.own, "over"));
  g_clear_object (&f.lease);
  tiny_registry_set (&f.coordinator.registry, &f.coordinator.registry.holds_announce, FALSE);
  for (int i = 0; i < 100; i++)
    g_async_queue_push (f.coordinator.registry.answer, &f);
}

typedef struct {
  MusterLease *lease; /* (not owned) */
  gint is_back;       /* atomic */
} Ending;

static gpointer
end_job (gpointer data)
{
  Ending *self = data;
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (
      muster_lease_announce_phase (self->lease, MUSTER_CHIEF_OVER, test_deadline (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_atomic_int_set (&self->is_back, TRUE);
  return NULL;
}

/* Its process ends then, and nobody says it later. */
MUSTER_TEST (CoordinatedLease, says_that_the_job_is_over_until_a_restarted_coordinator_hears_it)
{
  g_auto (Fixture) f = {0};
  set_up (&f);
  MUSTER_ASSERT_NOT_NULL (f.lease);
  TinyRegistry *coordinator = &f.coordinator.registry;
  Ending ending = {.lease = f.lease};
  g_free (tiny_registry_pop (coordinator->asked));
  tiny_registry_set (coordinator, &coordinator->refuse_claim, MUSTER_ERROR_UNAVAILABLE);
  tiny_registry_set (coordinator, &coordinator->refuse_announce, MUSTER_ERROR_UNAVAILABLE);
  tiny_registry_end_claim (coordinator, MUSTER_ERROR_UNAVAILABLE, "it restarts");

  GThread *thread = g_thread_new ("chief", end_job, &ending);
  for (int i = 0; i < 5; i++)
    g_free (tiny_registry_pop (coordinator->asked));
  MUSTER_EXPECT_FALSE (g_atomic_int_get (&ending.is_back));
  tiny_registry_set (coordinator, &coordinator->refuse_announce, 0);
  tiny_registry_set (coordinator, &coordinator->refuse_claim, 0);
  g_thread_join (thread);

  MUSTER_EXPECT_TRUE (has_heard (&f.coordinator, "over"));
  MUSTER_EXPECT_TRUE (has_heard (&f.own, "over"));
}
