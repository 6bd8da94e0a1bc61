// SPDX-License-Identifier: Apache-2.0
#include "train/elastic/elastic_private.h"

#include "train/goodput/goodput_meter.h"
#include "train/monitored/run_context.h"

#define MUSTER_TYPE_ELASTIC_HOOK (muster_elastic_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterElasticHook, muster_elastic_hook, MUSTER, ELASTIC_HOOK, MusterHook)

struct _MusterElasticHook {
  MusterHook parent;
  MusterElastic *elastic; /* (not owned) */
};

G_DEFINE_FINAL_TYPE (MusterElasticHook, muster_elastic_hook, MUSTER_TYPE_HOOK)

static void
elastic_measure (MusterHook *hook, MusterGoodputMeter *meter)
{
  MusterElastic *elastic = MUSTER_ELASTIC_HOOK (hook)->elastic;
  if (muster_elastic_is_takeover (elastic) && muster_elastic_has_worked (elastic))
    muster_goodput_meter_set_others_train (meter);
}

static gboolean
elastic_before_run (MusterHook *hook, MusterRunContext *context G_GNUC_UNUSED, GError **error)
{
  return muster_elastic_check (MUSTER_ELASTIC_HOOK (hook)->elastic, error);
}

static void
muster_elastic_hook_class_init (MusterElasticHookClass *klass)
{
  MUSTER_HOOK_CLASS (klass)->measure = elastic_measure;
  MUSTER_HOOK_CLASS (klass)->before_run = elastic_before_run;
}

static void
muster_elastic_hook_init (MusterElasticHook *self G_GNUC_UNUSED)
{
}

MusterHook *
muster_elastic_hook_new (MusterElastic *elastic)
{
  MusterElasticHook *self = g_object_new (MUSTER_TYPE_ELASTIC_HOOK, NULL);
  self->elastic = elastic;
  return MUSTER_HOOK (self);
}
