// SPDX-License-Identifier: Apache-2.0
/* The slots of an elastic job, as the server knows them, for the hook of positions. */
#include "train/elastic/elastic_state_private.h"

#define MUSTER_TYPE_ELASTIC_SLOTS (muster_elastic_slots_get_type ())
G_DECLARE_FINAL_TYPE (MusterElasticSlots, muster_elastic_slots, MUSTER, ELASTIC_SLOTS, GObject)

struct _MusterElasticSlots {
  GObject parent;
  MusterElastic *elastic; /* (not owned) */
};

static void slots_iface (MusterPositionSlotsInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterElasticSlots, muster_elastic_slots, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_POSITION_SLOTS, slots_iface))

static guint64
slots_version (MusterPositionSlots *slots)
{
  MusterElastic *elastic = MUSTER_ELASTIC_SLOTS (slots)->elastic;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&elastic->lock);
  return elastic->roster->version;
}

/* While the server gathers its members, any slot may have one that isn't back yet. */
static gboolean
slots_has_task (MusterPositionSlots *slots, guint slot)
{
  MusterElastic *elastic = MUSTER_ELASTIC_SLOTS (slots)->elastic;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&elastic->lock);
  return elastic->roster->is_gathering || muster_roster_has (elastic->roster, slot);
}

static gboolean
slots_claim (MusterPositionSlots *slots, guint slot, gint64 deadline_us, GCancellable *cancellable,
             GError **error)
{
  MusterElastic *elastic = MUSTER_ELASTIC_SLOTS (slots)->elastic;
  MusterJoin takeover = muster_elastic_request (elastic);
  takeover.slot = (gint)slot;
  takeover.is_takeover = TRUE;
  muster_elastic_leave (&elastic->lent);
  elastic->lent =
      muster_master_join (elastic->options.master, &takeover, deadline_us, cancellable, error);
  return elastic->lent != NULL;
}

static void
slots_release (MusterPositionSlots *slots, guint slot G_GNUC_UNUSED)
{
  muster_elastic_leave (&MUSTER_ELASTIC_SLOTS (slots)->elastic->lent);
}

static void
slots_iface (MusterPositionSlotsInterface *iface)
{
  iface->version = slots_version;
  iface->has_task = slots_has_task;
  iface->claim = slots_claim;
  iface->release = slots_release;
}

static void
muster_elastic_slots_class_init (MusterElasticSlotsClass *klass G_GNUC_UNUSED)
{
}

static void
muster_elastic_slots_init (MusterElasticSlots *self G_GNUC_UNUSED)
{
}

MusterPositionSlots *
muster_elastic_slots_new (MusterElastic *elastic)
{
  MusterElasticSlots *self = g_object_new (MUSTER_TYPE_ELASTIC_SLOTS, NULL);
  self->elastic = elastic;
  return MUSTER_POSITION_SLOTS (self);
}
