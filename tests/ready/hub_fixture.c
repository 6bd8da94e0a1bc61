// SPDX-License-Identifier: Apache-2.0
#include "tests/ready/hub_fixture.h"

#define PATIENCE (30 * G_TIME_SPAN_SECOND)

/* --- a master that counts: its sessions answer what the test says --- */

typedef struct {
  GObjectClass parent;
} MusterCountingMasterClass;

typedef struct {
  MusterSessionClass parent;
} MusterCountingSessionClass;

static void muster_counting_master_iface (MusterMasterInterface *iface);

G_DEFINE_TYPE_WITH_CODE (MusterCountingMaster, muster_counting_master, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (MUSTER_TYPE_MASTER, muster_counting_master_iface))
G_DEFINE_TYPE (MusterCountingSession, muster_counting_session, MUSTER_TYPE_SESSION)

static gulong
counting_on_changed (MusterMaster *base, MusterReadinessChanged callback, gpointer user_data)
{
  MusterCountingMaster *self = (MusterCountingMaster *)base;
  self->callback = callback;
  self->callback_data = user_data;
  return self->can_watch ? 1 : 0;
}

static void
counting_off_changed (MusterMaster *base, gulong id)
{
  MusterCountingMaster *self = (MusterCountingMaster *)base;
  MUSTER_EXPECT_EQ (id, 1ul);
  self->callback = NULL;
}

static void
muster_counting_master_iface (MusterMasterInterface *iface)
{
  iface->on_readiness_changed = counting_on_changed;
  iface->off_readiness_changed = counting_off_changed;
}

static void
counting_master_finalize (GObject *object)
{
  MusterCountingMaster *self = (MusterCountingMaster *)object;
  g_free (self->missing);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  G_OBJECT_CLASS (muster_counting_master_parent_class)->finalize (object);
}

static void
muster_counting_master_class_init (MusterCountingMasterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = counting_master_finalize;
}

static void
muster_counting_master_init (MusterCountingMaster *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->missing = g_strdup ("a,b");
  self->gate_open = TRUE;
}

/* The lock is held. */
static MusterTensor *
answer (MusterCountingMaster *self, const char *fetch)
{
  gboolean is_gate = g_str_has_prefix (fetch, "gate");
  const char *missing = is_gate ? (self->gate_open ? "" : "shut") : self->missing;
  g_auto (GStrv) names = *missing != '\0' ? g_strsplit (missing, ",", -1) : g_new0 (char *, 1);
  return muster_tensor_new_strv ((const char *const *)names);
}

static gboolean
counting_run (MusterSession *base, const MusterStep *step, MusterTensor **fetched,
              GBytes **metadata G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
              GError **error)
{
  MusterCountingSession *self = (MusterCountingSession *)base;
  MusterCountingMaster *master = self->master;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&master->lock);
  master->n_runs++;
  /* What it computes is what holds when it begins. */
  g_autoptr (MusterTensor) value = answer (master, step->fetches[0]);
  master->n_entered++;
  g_cond_broadcast (&master->changed);
  while (master->is_held)
    g_cond_wait (&master->changed, &master->lock);
  if (self->is_gone) {
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED, "Session H is not found.");
    return FALSE;
  }
  fetched[0] = g_steal_pointer (&value);
  return TRUE;
}

static void
muster_counting_session_class_init (MusterCountingSessionClass *klass)
{
  ((MusterSessionClass *)klass)->run = counting_run;
}

static void
muster_counting_session_init (MusterCountingSession *self G_GNUC_UNUSED)
{
}

/* --- a subscriber --- */

Ear *
ear_new (void)
{
  Ear *ear = g_new0 (Ear, 1);
  g_mutex_init (&ear->lock);
  g_cond_init (&ear->received_more);
  ear->heard = g_ptr_array_new_with_free_func (g_free);
  return ear;
}

void
ear_free (Ear *ear)
{
  g_ptr_array_unref (ear->heard);
  g_mutex_clear (&ear->lock);
  g_cond_clear (&ear->received_more);
  g_free (ear);
}

static char *
state_in_words (const MusterReadiness *readiness)
{
  const char *phase = readiness->chief != NULL ? muster_chief_phase_name (readiness->chief->phase)
                      : readiness->keeps_announcements ? "nobody"
                                                       : "";
  const char *comma = *phase != '\0' ? ", " : "";
  const char *differs = readiness->graph_difference != NULL ? " differs" : "";
  if (!readiness->gate_open)
    return g_strdup_printf ("%s%sgate shut%s", phase, comma, differs);
  if (readiness->is_ready)
    return g_strdup_printf ("%s%sready%s", phase, comma, differs);
  g_autofree char *names = g_strjoinv (",", readiness->missing);
  return g_strdup_printf ("%s%smissing %s%s", phase, comma, names, differs);
}

static char *
in_words (const MusterReadiness *readiness, const GError *error)
{
  if (error != NULL)
    return g_strdup_printf ("error %d", error->code);
  if (readiness->min_tasks == 0)
    return state_in_words (readiness);
  g_autofree char *state = state_in_words (readiness);
  return g_strdup_printf ("%s, %u of %u tasks", state, readiness->n_tasks, readiness->min_tasks);
}

void
listen (const MusterReadiness *readiness, guint64 round, const GError *error, gpointer data)
{
  Ear *ear = data;
  g_mutex_lock (&ear->lock);
  g_ptr_array_add (ear->heard, in_words (readiness, error));
  ear->round = round;
  ear->version = readiness != NULL ? readiness->version : 0;
  if (readiness != NULL && readiness->chief != NULL) {
    ear->phase_age_us = readiness->chief->phase_age_us;
    ear->step = readiness->chief->step;
  }
  g_cond_broadcast (&ear->received_more);
  MusterSubscriber *subscriber = ear->leaves ? g_steal_pointer (&ear->subscriber) : NULL;
  g_mutex_unlock (&ear->lock);
  if (subscriber != NULL)
    muster_readiness_hub_unsubscribe (ear->hub, subscriber);
}

char *
heard (Ear *ear, guint n)
{
  gint64 until = g_get_monotonic_time () + PATIENCE;
  GString *all = g_string_new (NULL);
  g_mutex_lock (&ear->lock);
  while (ear->heard->len < n && g_cond_wait_until (&ear->received_more, &ear->lock, until))
    ;
  for (guint i = 0; i < ear->heard->len; i++)
    g_string_append_printf (all, "%s%s", i > 0 ? "; " : "", (char *)ear->heard->pdata[i]);
  g_mutex_unlock (&ear->lock);
  return g_string_free (all, FALSE);
}

/* --- the fixture --- */

void
fixture_clear (Fixture *f)
{
  muster_readiness_hub_free (f->hub);
  muster_chief_registry_free (f->registry);
  muster_member_registry_free (f->members);
  g_object_unref (f->session);
  ear_free (f->ear);
  g_object_unref (f->clock);
  g_object_unref (f->master);
}

static void
on_members_changed (const char *model, gboolean is_takeover G_GNUC_UNUSED, gpointer hub)
{
  muster_readiness_hub_members_changed (hub, model);
}

Fixture
fixture (gboolean can_watch)
{
  Fixture f = {0};
  f.master = g_object_new (muster_counting_master_get_type (), NULL);
  f.master->can_watch = can_watch;
  f.clock = muster_fake_clock_new ();
  muster_fake_clock_hold (f.clock);
  f.registry = muster_chief_registry_new (MUSTER_CLOCK (f.clock), 15 * MUSTER_SECOND);
  f.hub = muster_readiness_hub_new (MUSTER_MASTER (f.master), f.registry, MUSTER_CLOCK (f.clock));
  f.members = muster_member_registry_new (MUSTER_CLOCK (f.clock), 15 * MUSTER_SECOND,
                                          on_members_changed, f.hub);
  muster_readiness_hub_set_members (f.hub, f.members);
  f.session = new_session (&f, 1);
  f.ear = ear_new ();
  return f;
}

Fixture
fixture_that_asked (gboolean can_watch, const char *missing)
{
  Fixture f = fixture (can_watch);
  g_autofree char *words = *missing != '\0' ? g_strconcat ("missing ", missing, NULL) : NULL;
  set_missing (&f, missing);
  ask (&f, f.ear, f.session, NULL, "ready");
  EXPECT_RECEIVED (f.ear, 1, words != NULL ? words : "ready");
  return f;
}

MusterSession *
new_session (Fixture *f, char version)
{
  const char def[] = {0x18, version};
  g_autoptr (GBytes) bytes = g_bytes_new (def, sizeof def);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  MusterCountingSession *session = g_object_new (muster_counting_session_get_type (), NULL);
  session->master = f->master;
  muster_session_set_identity (MUSTER_SESSION (session), "H", graph);
  return MUSTER_SESSION (session);
}

void
ask (Fixture *f, Ear *ear, MusterSession *session, const char *gate, const char *ready)
{
  ask_for (f, ear, session, &(MusterWatchFor){.ready_for_local_init_op = gate, .ready_op = ready});
}

void
ask_for (Fixture *f, Ear *ear, MusterSession *session, const MusterWatchFor *what)
{
  g_mutex_lock (&ear->lock);
  ear->hub = f->hub;
  ear->subscriber = muster_readiness_hub_subscribe (f->hub, session, what, listen, ear);
  g_mutex_unlock (&ear->lock);
}

void
ask_for_digits (Fixture *f, Ear *ear)
{
  ask_for (f, ear, f->session, &(MusterWatchFor){.ready_op = "ready", .model = "digits"});
}

void
lose_session (Fixture *f)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&f->master->lock);
  ((MusterCountingSession *)f->session)->is_gone = TRUE;
}

gint64
claim_over (Fixture *f, MusterGraph *graph)
{
  g_autoptr (GError) error = NULL;
  MusterClaim claim = {.model = "digits", .task = "worker:0", .take_over = TRUE};
  gint64 epoch = muster_chief_registry_claim (f->registry, &claim, "host:1", graph, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return epoch;
}

gint64
claim (Fixture *f)
{
  return claim_over (f, NULL);
}

void
announce (Fixture *f, gint64 epoch, MusterChiefPhase phase, gint64 step)
{
  g_autoptr (GError) error = NULL;
  MusterAnnouncement announced = MUSTER_ANNOUNCEMENT_INIT;
  announced.model = (char *)"digits";
  announced.epoch = epoch;
  announced.phase = phase;
  announced.step = step;
  muster_chief_registry_announce (f->registry, &announced, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

guint64
join (Fixture *f, gint min_tasks)
{
  const MusterMemberRequest request = {
      .model = "digits", .task = "", .who = "", .slot = -1, .n_slots = 4, .min_tasks = min_tasks};
  guint slot;
  const guint64 id = muster_member_registry_join (f->members, &request, &slot, NULL);
  MUSTER_EXPECT_TRUE (id != 0);
  return id;
}

void
set_missing (Fixture *f, const char *missing)
{
  g_mutex_lock (&f->master->lock);
  g_free (f->master->missing);
  f->master->missing = g_strdup (missing);
  g_mutex_unlock (&f->master->lock);
}

void
signal_change (Fixture *f)
{
  f->master->callback (f->master->callback_data);
}

guint
n_runs (Fixture *f)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&f->master->lock);
  return f->master->n_runs;
}

void
hold_runs (Fixture *f, gboolean is_held)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&f->master->lock);
  f->master->is_held = is_held;
  g_cond_broadcast (&f->master->changed);
}

void
wait_for_run (Fixture *f, guint n)
{
  gint64 until = g_get_monotonic_time () + PATIENCE;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&f->master->lock);
  while (f->master->n_entered < n &&
         g_cond_wait_until (&f->master->changed, &f->master->lock, until))
    ;
  MUSTER_EXPECT_GE (f->master->n_entered, n);
}
