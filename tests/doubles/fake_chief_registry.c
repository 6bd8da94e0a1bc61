// SPDX-License-Identifier: Apache-2.0
#include "master/lease.h"
#include "tests/doubles/fake_session_private.h"

/* The rules of claiming in miniature, for one model, and the leases that come of them. */

struct _MusterFakeChiefRegistry {
  MusterFakeClock *clock; /* (owned) */
  GMutex lock;
  /* guarded by lock */
  gboolean announcing;
  MusterAnnouncement *chief; /* (owned) (nullable) its ages count from the instants below */
  gint64 phase_us, durable_us, lost_us, saves_us, goodput_us;
  gint64 highest;    /* epoch ever seen */
  char *holder;      /* (owned) (nullable) the handle of the chief's session */
  GHashTable *ended; /* (owned) a set of handles: sessions of chiefs that lost */
  char *difference;  /* (owned) (nullable) of the waiter's graph */
};

#define MUSTER_TYPE_FAKE_LEASE (muster_fake_lease_get_type ())
G_DECLARE_FINAL_TYPE (MusterFakeLease, muster_fake_lease, MUSTER, FAKE_LEASE, MusterLease)

struct _MusterFakeLease {
  MusterLease parent;
  MusterFakeMaster *master; /* (owned) */
  char *handle;             /* (owned) its session's */
  char *task;               /* (owned) (nullable) */
  MusterChiefPhase phase;   /* the last one announced */
};

G_DEFINE_FINAL_TYPE (MusterFakeLease, muster_fake_lease, MUSTER_TYPE_LEASE)

MusterFakeChiefRegistry *
muster_fake_chief_registry_new (MusterFakeClock *clock)
{
  MusterFakeChiefRegistry *self = g_new0 (MusterFakeChiefRegistry, 1);
  self->clock = g_object_ref (clock);
  g_mutex_init (&self->lock);
  self->ended = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return self;
}

void
muster_fake_chief_registry_free (MusterFakeChiefRegistry *self)
{
  g_clear_pointer (&self->chief, muster_announcement_free);
  g_free (self->holder);
  g_hash_table_unref (self->ended);
  g_free (self->difference);
  g_mutex_clear (&self->lock);
  g_object_unref (self->clock);
  g_free (self);
}

static gint64
now_us (MusterFakeChiefRegistry *self)
{
  return muster_clock_now_us (MUSTER_CLOCK (self->clock));
}

static void
put_chief_locked (MusterFakeChiefRegistry *self, const MusterAnnouncement *chief,
                  const char *holder)
{
  if (self->holder != NULL && g_strcmp0 (self->holder, holder) != 0)
    g_hash_table_add (self->ended, g_strdup (self->holder));
  g_free (self->holder);
  self->holder = g_strdup (holder);
  g_clear_pointer (&self->chief, muster_announcement_free);
  if (chief == NULL)
    return;
  self->chief = muster_announcement_copy (chief);
  self->highest = MAX (self->highest, chief->epoch);
  self->phase_us = now_us (self) - chief->phase_age_us;
  self->durable_us = now_us (self) - chief->durable_age_us;
  self->lost_us = now_us (self) - chief->lost_age_us;
}

static MusterAnnouncement *
describe_locked (MusterFakeChiefRegistry *self)
{
  if (self->chief == NULL)
    return NULL;
  MusterAnnouncement *chief = muster_announcement_copy (self->chief);
  chief->phase_age_us = now_us (self) - self->phase_us;
  chief->durable_age_us = chief->durable != NULL ? now_us (self) - self->durable_us : 0;
  chief->lost_age_us = chief->alive ? 0 : now_us (self) - self->lost_us;
  if (chief->saves != NULL)
    muster_save_status_add_age (chief->saves, now_us (self) - self->saves_us);
  if (chief->goodput != NULL)
    chief->goodput->age_us += now_us (self) - self->goodput_us;
  return chief;
}

/* The world outside, as tests script it. */

void
muster_fake_master_set_announcing (MusterFakeMaster *self)
{
  MusterFakeChiefRegistry *registry = muster_fake_master_registry (self);
  g_mutex_lock (&registry->lock);
  registry->announcing = TRUE;
  g_mutex_unlock (&registry->lock);
}

void
muster_fake_master_set_chief (MusterFakeMaster *self, const MusterAnnouncement *chief)
{
  MusterFakeChiefRegistry *registry = muster_fake_master_registry (self);
  g_mutex_lock (&registry->lock);
  registry->announcing = TRUE;
  put_chief_locked (registry, chief, NULL);
  g_mutex_unlock (&registry->lock);
}

void
muster_fake_master_usurp (MusterFakeMaster *self)
{
  MusterFakeChiefRegistry *registry = muster_fake_master_registry (self);
  MusterAnnouncement other = MUSTER_ANNOUNCEMENT_INIT;
  other.task = (char *)"worker:9";
  other.who = (char *)"elsewhere:1";
  other.phase = MUSTER_CHIEF_STARTING;
  other.alive = TRUE;
  g_mutex_lock (&registry->lock);
  g_autofree char *model = g_strdup (registry->chief != NULL ? registry->chief->model : NULL);
  other.model = model;
  other.epoch = registry->highest + 1;
  registry->announcing = TRUE;
  put_chief_locked (registry, &other, NULL);
  g_mutex_unlock (&registry->lock);
}

void
muster_fake_master_set_graph_difference (MusterFakeMaster *self, const char *difference)
{
  MusterFakeChiefRegistry *registry = muster_fake_master_registry (self);
  g_mutex_lock (&registry->lock);
  registry->announcing = TRUE;
  g_free (registry->difference);
  registry->difference = g_strdup (difference);
  g_mutex_unlock (&registry->lock);
}

MusterAnnouncement *
muster_fake_master_chief (MusterFakeMaster *self)
{
  MusterFakeChiefRegistry *registry = muster_fake_master_registry (self);
  g_mutex_lock (&registry->lock);
  MusterAnnouncement *chief = describe_locked (registry);
  g_mutex_unlock (&registry->lock);
  return chief;
}

void
muster_fake_chief_registry_forget (MusterFakeChiefRegistry *self)
{
  g_mutex_lock (&self->lock);
  g_clear_pointer (&self->chief, muster_announcement_free);
  g_clear_pointer (&self->holder, g_free);
  self->highest = 0;
  g_mutex_unlock (&self->lock);
}

gboolean
muster_fake_chief_registry_has_ended (MusterFakeChiefRegistry *self, const char *handle)
{
  g_mutex_lock (&self->lock);
  gboolean has_ended = g_hash_table_contains (self->ended, handle);
  g_mutex_unlock (&self->lock);
  return has_ended;
}

/* What a turn says of the chief; while one prepares the model, it isn't ready. */
void
muster_fake_chief_registry_fill (MusterFakeChiefRegistry *self, MusterReadiness *readiness)
{
  g_mutex_lock (&self->lock);
  readiness->keeps_announcements = self->announcing;
  readiness->chief = self->announcing ? describe_locked (self) : NULL;
  readiness->graph_difference = g_strdup (self->difference);
  g_mutex_unlock (&self->lock);
  const MusterAnnouncement *chief = readiness->chief;
  if (chief == NULL || !chief->alive || !muster_chief_phase_is_preparing (chief->phase))
    return;
  readiness->gate_open = readiness->is_ready = FALSE;
  g_free (readiness->why_gate);
  readiness->why_gate =
      g_strdup_printf ("%s is at work: %s", chief->task != NULL ? chief->task : "The chief",
                       muster_chief_phase_name (chief->phase));
}

/* Claiming. */

static gboolean
may_claim_locked (MusterFakeChiefRegistry *self, const MusterClaim *claim, GError **error)
{
  const MusterAnnouncement *chief = self->chief;
  gboolean is_low = claim->epoch != 0 && claim->epoch < self->highest;
  const gboolean is_spared =
      claim->spares_living && chief != NULL && chief->alive && chief->phase != MUSTER_CHIEF_OVER;
  if (chief == NULL || (claim->take_over && !is_low && !is_spared))
    return TRUE;
  if (chief->phase == MUSTER_CHIEF_OVER) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE,
                 "'%s' is finished: its chief ended the job at step %" G_GINT64_FORMAT,
                 claim->model, chief->step);
    return FALSE;
  }
  if ((claim->epoch == 0 || claim->epoch >= self->highest) &&
      (!chief->alive || claim->epoch > chief->epoch))
    return TRUE;
  g_autofree char *who = muster_announcement_describe (chief);
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION, "'%s' has a chief: %s",
               claim->model, who);
  return FALSE;
}

static gint64
grant_locked (MusterFakeChiefRegistry *self, const MusterClaim *claim, const char *handle)
{
  MusterAnnouncement chief = MUSTER_ANNOUNCEMENT_INIT;
  chief.model = (char *)claim->model;
  chief.task = (char *)claim->task;
  chief.who = (char *)"fake:1";
  chief.phase = MUSTER_CHIEF_STARTING;
  chief.epoch = claim->epoch ? claim->epoch : self->highest + 1;
  chief.alive = TRUE;
  put_chief_locked (self, &chief, handle);
  return chief.epoch;
}

static gint64
claim_in_registry (MusterFakeChiefRegistry *self, const MusterClaim *claim, const char *handle,
                   MusterAnnouncement **before, GError **error)
{
  g_mutex_lock (&self->lock);
  gboolean may_claim = self->announcing && may_claim_locked (self, claim, error);
  if (!self->announcing)
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED,
                         "This master doesn't store the chief's state");
  g_autoptr (MusterAnnouncement) stood = may_claim ? describe_locked (self) : NULL;
  gint64 epoch = may_claim ? grant_locked (self, claim, handle) : 0;
  g_mutex_unlock (&self->lock);
  if (epoch && before != NULL)
    *before = g_steal_pointer (&stood);
  return epoch;
}

MusterLease *
muster_fake_chief_registry_claim (MusterFakeMaster *master, const char *handle,
                                  const MusterClaim *claim, MusterAnnouncement **before,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  if (!muster_fake_master_ask (master, "claim", "%s", deadline_us, cancellable, error))
    return NULL;
  gint64 epoch =
      claim_in_registry (muster_fake_master_registry (master), claim, handle, before, error);
  if (epoch == 0)
    return NULL;

  MusterFakeLease *self = g_object_new (MUSTER_TYPE_FAKE_LEASE, NULL);
  self->master = g_object_ref (master);
  self->handle = g_strdup (handle);
  self->task = g_strdup (claim->task);
  self->phase = MUSTER_CHIEF_STARTING;
  muster_lease_set_identity (MUSTER_LEASE (self), claim->model, epoch);
  return MUSTER_LEASE (self);
}

/* A master that has restarted knows of no chief: then the lease is claimed again, as a client does
 * behind the scenes. */
static gboolean
hold_locked (MusterFakeLease *self, MusterFakeChiefRegistry *registry, GError **error)
{
  MusterLease *lease = MUSTER_LEASE (self);
  if (registry->chief == NULL) {
    MusterClaim claim = {.model = muster_lease_model (lease),
                         .task = self->task,
                         .epoch = muster_lease_epoch (lease)};
    grant_locked (registry, &claim, self->handle);
    registry->chief->phase = self->phase;
  }
  if (registry->chief->epoch == muster_lease_epoch (lease))
    return TRUE;
  g_autofree char *who = muster_announcement_describe (registry->chief);
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
               "The lease on '%s' was lost to %s", muster_lease_model (lease), who);
  return FALSE;
}

static gboolean
muster_fake_lease_check (MusterLease *lease, GError **error)
{
  MusterFakeLease *self = MUSTER_FAKE_LEASE (lease);
  MusterFakeChiefRegistry *registry = muster_fake_master_registry (self->master);
  g_mutex_lock (&registry->lock);
  gboolean holds = hold_locked (self, registry, error);
  g_mutex_unlock (&registry->lock);
  return holds;
}

static void
take_in_locked (MusterFakeChiefRegistry *self, const MusterAnnouncement *announced)
{
  MusterChiefPhase before = self->chief->phase;
  muster_announcement_merge (self->chief, announced);
  if (self->chief->phase != before)
    self->phase_us = now_us (self);
  if (announced->durable_step >= 0)
    self->durable_us = now_us (self) - announced->durable_age_us;
  if (announced->saves != NULL)
    self->saves_us = now_us (self);
  if (announced->goodput != NULL)
    self->goodput_us = now_us (self);
  self->chief->prepared |= self->chief->phase >= MUSTER_CHIEF_PREPARED;
}

static gboolean
muster_fake_lease_announce (MusterLease *lease, const MusterAnnouncement *announcement,
                            gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterFakeLease *self = MUSTER_FAKE_LEASE (lease);
  MusterFakeChiefRegistry *registry = muster_fake_master_registry (self->master);
  g_autofree char *note =
      g_strdup_printf ("announce %s", muster_chief_phase_name (announcement->phase));

  if (!muster_fake_master_ask (self->master, "announce", note, deadline_us, cancellable, error))
    return FALSE;
  g_mutex_lock (&registry->lock);
  gboolean holds = hold_locked (self, registry, error);
  if (holds)
    take_in_locked (registry, announcement);
  g_mutex_unlock (&registry->lock);
  if (holds && announcement->phase != MUSTER_CHIEF_UNKNOWN)
    self->phase = announcement->phase;
  return holds;
}

static void
muster_fake_lease_dispose (GObject *object)
{
  MusterFakeLease *self = MUSTER_FAKE_LEASE (object);
  if (self->master != NULL) {
    MusterFakeChiefRegistry *registry = muster_fake_master_registry (self->master);
    g_mutex_lock (&registry->lock);
    if (registry->chief != NULL &&
        registry->chief->epoch == muster_lease_epoch (MUSTER_LEASE (self)) &&
        registry->chief->alive) {
      registry->chief->alive = FALSE;
      registry->lost_us = now_us (registry);
      g_clear_pointer (&registry->holder, g_free);
    }
    g_mutex_unlock (&registry->lock);
  }
  g_clear_object (&self->master);
  g_clear_pointer (&self->handle, g_free);
  g_clear_pointer (&self->task, g_free);
  G_OBJECT_CLASS (muster_fake_lease_parent_class)->dispose (object);
}

static void
muster_fake_lease_class_init (MusterFakeLeaseClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = muster_fake_lease_dispose;
  MUSTER_LEASE_CLASS (klass)->announce = muster_fake_lease_announce;
  MUSTER_LEASE_CLASS (klass)->check = muster_fake_lease_check;
}

static void
muster_fake_lease_init (MusterFakeLease *self G_GNUC_UNUSED)
{
}
