// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/train_event.h"

#include "cli/output/json.h"
#include "status/goodput.h"
#include "status/saves.h"

#include <math.h>

gint64
muster_train_now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

void
muster_train_event_add_number (JsonBuilder *builder, const char *name, double number)
{
  json_builder_set_member_name (builder, name);
  if (isfinite (number))
    json_builder_add_double_value (builder, number);
  else
    json_builder_add_null_value (builder);
}

JsonBuilder *
muster_train_event_begin (const char *event, gint64 step)
{
  JsonBuilder *builder = muster_json_new_line ();
  muster_json_add_string (builder, "event", event);
  muster_train_event_add_number (
      builder, "time", (double)muster_clock_wall_us (muster_system_clock ()) / MUSTER_SECOND);
  muster_json_add_step (builder, "step", step);
  return builder;
}

void
muster_train_event_end (JsonBuilder *builder)
{
  muster_json_print_line (builder);
  g_object_unref (builder);
}

void
muster_train_event_add_state (JsonBuilder *builder, const MusterTrainingState *state)
{
  muster_json_add_step (builder, "until_step",
                        state->until_step < G_MAXINT64 ? state->until_step : -1);
  muster_train_event_add_number (builder, "steps_per_second",
                                 state->steps_per_second > 0 ? state->steps_per_second : NAN);
  muster_train_event_add_number (builder, "loss", state->loss);
  muster_train_event_add_number (builder, "seconds_left",
                                 state->left_us < 0 ? NAN : (double)state->left_us / MUSTER_SECOND);
  muster_json_add_step (builder, "durable_step", state->durable_step);
  muster_json_add_string (builder, "awaits", state->awaits);
  muster_train_event_add_number (builder, "awaits_seconds",
                                 state->awaits == NULL ? NAN
                                                       : (double)state->awaits_us / MUSTER_SECOND);
  muster_saves_json (builder, state->saves);
  muster_goodput_json (builder, &state->goodput);
}
