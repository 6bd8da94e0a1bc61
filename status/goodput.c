// SPDX-License-Identifier: Apache-2.0
#include "status/goodput.h"

#include "status/json.h"

void
muster_goodput_json (JsonBuilder *builder, const MusterGoodput *goodput)
{
  if (goodput == NULL || goodput->began_us == 0) {
    muster_json_add_string (builder, "goodput", NULL);
    return;
  }
  json_builder_set_member_name (builder, "goodput");
  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "share");
  json_builder_add_double_value (builder, muster_goodput_share (goodput));
  muster_json_add_seconds (builder, "total_seconds", muster_goodput_total_us (goodput));
  muster_json_add_seconds (builder, "lost_seconds", muster_goodput_lost_us (goodput));
  json_builder_set_member_name (builder, "seconds");
  json_builder_begin_object (builder);
  for (guint i = 0; i < MUSTER_N_TIMES; i++)
    muster_json_add_seconds (builder, muster_time_use_name ((MusterTimeUse)i),
                             goodput->spent_us[i]);
  json_builder_end_object (builder);
  muster_json_add_int (builder, "restarts", (gint64)goodput->n_restarts);
  muster_json_add_int (builder, "failures", (gint64)goodput->n_failures);
  muster_json_add_int (builder, "steps_again", (gint64)goodput->steps_again);
  muster_json_add_boolean (builder, "at_least", goodput->is_least);
  json_builder_end_object (builder);
}
