// SPDX-License-Identifier: Apache-2.0
/* One task of an elastic job: what it makes of the rosters and the answers that it gets. */
#include "train/elastic/elastic_state_private.h"

#include "engine/session/local_master.h"
#include "master/remote/target.h"
#include "server/server.h"
#include "tests/gtest_shim.h"

#define N_SLOTS     4
#define PATIENCE_US (30 * MUSTER_SECOND)

/* A master of which the first join isn't answered in time. */
typedef struct {
  GObject parent;
  MusterMaster *inner; /* (owned) */
  guint n_joins;
} MusterLateMaster;

typedef struct {
  GObjectClass parent;
} MusterLateMasterClass;

static void muster_late_master_iface (MusterMasterInterface *iface);

G_DEFINE_TYPE_WITH_CODE (MusterLateMaster, muster_late_master, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (MUSTER_TYPE_MASTER, muster_late_master_iface))

static MusterMembership *
muster_late_master_join (MusterMaster *master, const MusterJoin *join, gint64 deadline_us,
                         GCancellable *cancellable, GError **error)
{
  MusterLateMaster *self = (MusterLateMaster *)master;
  if (self->n_joins++ > 0)
    return muster_master_join (self->inner, join, deadline_us, cancellable, error);
  muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "the join isn't answered in time");
  return NULL;
}

static const char *
muster_late_master_target (MusterMaster *master G_GNUC_UNUSED)
{
  return "grpc://late:2222";
}

static void
muster_late_master_finalize (GObject *object)
{
  g_clear_object (&((MusterLateMaster *)object)->inner);
  G_OBJECT_CLASS (muster_late_master_parent_class)->finalize (object);
}

static void
muster_late_master_iface (MusterMasterInterface *iface)
{
  iface->join = muster_late_master_join;
  iface->target = muster_late_master_target;
}

static void
muster_late_master_class_init (MusterLateMasterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_late_master_finalize;
}

static void
muster_late_master_init (MusterLateMaster *self G_GNUC_UNUSED)
{
}

typedef struct {
  MusterServer *server;
  MusterMaster *master;
} Fixture;

static Fixture
set_up (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) engine = muster_local_master_new ();
  Fixture f = {.server = muster_server_new (engine, NULL)};
  const int port = muster_server_listen (f.server, "127.0.0.1:0", &error);
  g_assert_no_error (error);
  muster_server_start (f.server);
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", port);
  f.master = muster_master_new_for_target (target, &error);
  g_assert_no_error (error);
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->master);
  muster_server_free (f->server);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static MusterElastic *
make_task (MusterMaster *master, guint min_tasks)
{
  const MusterElasticOptions options = {
      .master = master, .model = "seen", .n_slots = N_SLOTS, .min_tasks = min_tasks};
  return muster_elastic_new (&options);
}

/* The server sends it no other roster meanwhile, since no other task joins. */
static void
receive (MusterElastic *task, gboolean is_gathering)
{
  guint own = 0;
  const MusterRoster roster = {
      .n_slots = N_SLOTS, .n_members = 1, .slots = &own, .is_gathering = is_gathering};
  muster_membership_set_roster (task->membership, own, &roster);
}

/* Joins, and begins a round. */
static gboolean
start (MusterElastic *task, gint64 timeout_us, GError **error)
{
  const gint64 deadline_us = muster_elastic_in_us (timeout_us);
  MusterElasticRole role;
  if (!muster_elastic_join (task, deadline_us, NULL, error) ||
      !muster_elastic_find_role (task, deadline_us, NULL, &role, error))
    return FALSE;
  muster_elastic_begin_round (task, role, NULL);
  return TRUE;
}

static gboolean
has_task (MusterElastic *task, guint slot)
{
  MusterPositionSlots *slots = muster_elastic_slots (task);
  return MUSTER_POSITION_SLOTS_GET_IFACE (slots)->has_task (slots, slot);
}

MUSTER_TEST (ElasticTask, takes_no_slot_for_free_while_the_server_gathers_its_members)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterElastic) task = make_task (f.master, 0);
  MUSTER_ASSERT_TRUE (start (task, PATIENCE_US, NULL));

  receive (task, TRUE);
  MUSTER_EXPECT_TRUE (has_task (task, 1));
  receive (task, FALSE);
  MUSTER_EXPECT_FALSE (has_task (task, 1));
  MUSTER_EXPECT_TRUE (has_task (task, 0));
}

MUSTER_TEST (ElasticTask, joins_again_at_a_server_that_did_not_answer_in_time)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GObject) late = g_object_new (muster_late_master_get_type (), NULL);
  ((MusterLateMaster *)late)->inner = g_object_ref (f.master);
  g_autoptr (MusterElastic) task = make_task (MUSTER_MASTER (late), 0);

  MUSTER_EXPECT_TRUE (start (task, PATIENCE_US, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (((MusterLateMaster *)late)->n_joins, 2u);
}

MUSTER_TEST (ElasticTask, names_what_kept_it_from_joining_until_its_time_was_over)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GObject) late = g_object_new (muster_late_master_get_type (), NULL);
  g_autoptr (MusterElastic) task = make_task (MUSTER_MASTER (late), 0);
  MUSTER_EXPECT_FALSE (start (task, MUSTER_MILLISECOND, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "isn't answered in time");
}

/* The time of a pause is over at once, since the options have none. */
MUSTER_TEST (ElasticTask, forgets_in_another_round_that_it_gave_up)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterElastic) task = make_task (f.master, 2);
  g_autoptr (MusterCoordinator) coordinator = muster_coordinator_new (NULL, FALSE);
  g_autoptr (MusterMembership) other =
      muster_master_join (f.master, &(MusterJoin){.model = "seen", .slot = 3, .n_slots = N_SLOTS},
                          muster_elastic_in_us (PATIENCE_US), NULL, NULL);
  MUSTER_ASSERT_TRUE (start (task, PATIENCE_US, &error));

  muster_elastic_pause (task, 0, coordinator);
  MUSTER_EXPECT_FALSE (muster_elastic_check_pause (task, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED, "of at least 2 tasks");

  muster_elastic_pause (task, 0, coordinator);
  MUSTER_ASSERT_TRUE (start (task, PATIENCE_US, NULL));
  MUSTER_EXPECT_TRUE (muster_elastic_check_pause (task, NULL));
}

/* Ends a round. */
static gboolean
goes_on (MusterElastic *task, gboolean is_fenced)
{
  g_autoptr (GError) failure = g_error_new_literal (
      MUSTER_ERROR, is_fenced ? MUSTER_ERROR_FAILED_PRECONDITION : MUSTER_ERROR_CANCELLED, "why");
  return muster_elastic_goes_on (task, is_fenced, failure);
}

/* Refused as chiefs, tasks wait for one another in turn: none of them can prepare the model. */
static guint
count_refusals (MusterElastic *task, MusterCoordinator *coordinator, guint most)
{
  guint n = 1;
  for (; n < most && goes_on (task, TRUE); n++) {
    muster_elastic_begin_round (task, MUSTER_ELASTIC_WORKER, NULL);
    muster_elastic_set_session (task, coordinator);
    muster_elastic_give_way (task);
    MUSTER_EXPECT_TRUE (goes_on (task, FALSE));
    muster_elastic_begin_round (task, MUSTER_ELASTIC_CHIEF, NULL);
  }
  return n;
}

MUSTER_TEST (ElasticTask, fails_in_the_end_where_no_task_can_be_the_chief)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterElastic) task = make_task (f.master, 0);
  g_autoptr (MusterCoordinator) coordinator = muster_coordinator_new (NULL, FALSE);
  MUSTER_EXPECT_TRUE (start (task, PATIENCE_US, &error));
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_EQ (count_refusals (task, coordinator, 100), 100u); /* it gets a session */
  MUSTER_EXPECT_LT (count_refusals (task, NULL, 100), 100u);
}

/* As where its directory hasn't the checkpoints of the model that a chief has left. */
MUSTER_TEST (ElasticTask, works_on_without_a_chief_where_its_claims_are_refused)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterElastic) task = make_task (f.master, 0);
  MusterElasticRole role = MUSTER_ELASTIC_LOST;
  MUSTER_EXPECT_TRUE (start (task, PATIENCE_US, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  for (int i = 0; i < 5; i++) {
    MUSTER_EXPECT_TRUE (goes_on (task, TRUE));
    muster_elastic_begin_round (task, MUSTER_ELASTIC_CHIEF, NULL);
  }
  MUSTER_EXPECT_TRUE (goes_on (task, TRUE));

  MUSTER_EXPECT_TRUE (
      muster_elastic_find_role (task, muster_elastic_in_us (PATIENCE_US), NULL, &role, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ ((int)role, (int)MUSTER_ELASTIC_WORKER);
  MUSTER_EXPECT_TRUE (task->said != NULL && g_str_has_prefix (task->said, "no chief, so no"));
  muster_elastic_begin_round (task, role, NULL);
  MUSTER_EXPECT_FALSE (g_cancellable_is_cancelled (muster_elastic_cancellable (task)));
  MUSTER_EXPECT_GT (task->not_before_us, muster_elastic_in_us (2 * MUSTER_SECOND));
}

/* Its wait was short since it began without one. */
MUSTER_TEST (ElasticTask, waits_on_for_a_model_whose_chief_came_back_meanwhile)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) late =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED, "not ready in time");
  g_autoptr (MusterElastic) task = make_task (f.master, 0);
  guint own = 0;
  const MusterRoster led = {
      .n_slots = N_SLOTS, .n_members = 1, .slots = &own, .has_chief = TRUE, .epoch = 3};
  MUSTER_EXPECT_TRUE (start (task, PATIENCE_US, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  (void)muster_elastic_goes_on (task, FALSE, NULL);
  muster_elastic_note_may_lead (task, late);
  muster_elastic_begin_round (task, MUSTER_ELASTIC_WORKER, NULL);
  MUSTER_EXPECT_LT (muster_elastic_timeout (task, PATIENCE_US), PATIENCE_US);

  muster_membership_set_roster (task->membership, own, &led);

  MUSTER_EXPECT_TRUE (muster_elastic_goes_on (task, FALSE, late));
}
