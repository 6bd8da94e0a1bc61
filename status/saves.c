// SPDX-License-Identifier: Apache-2.0
#include "status/saves.h"

#include "status/json.h"

static void
append_count (GString *text, guint64 n, const char *what)
{
  if (n > 0)
    g_string_append_printf (text, ", %" G_GUINT64_FORMAT " %s", n, what);
}

/* "last 133 KB: staged in 2 ms, written in 31 ms, published in 10 ms; training held for 24 ms in
 * all" */
static void
append_last (GString *text, const MusterSaveStatus *status)
{
  g_autofree char *size = muster_format_size (status->last_bytes);
  g_autofree char *staging = muster_format_duration (status->last_us[MUSTER_SAVE_STAGING]);
  g_autofree char *writing = muster_format_duration (status->last_us[MUSTER_SAVE_WRITING]);
  g_autofree char *publishing = muster_format_duration (status->last_us[MUSTER_SAVE_PUBLISHING]);
  g_autofree char *held = muster_format_duration (status->total_us[MUSTER_SAVE_BLOCKED]);

  g_string_append_printf (text, "; last %s: ", size);
  if (status->last_us[MUSTER_SAVE_STAGING] > 0)
    g_string_append_printf (text, "staged in %s, ", staging);
  g_string_append_printf (text, "written in %s, published in %s; training held for %s in all",
                          writing, publishing, held);
}

char *
muster_saves_text (const MusterSaveStatus *status)
{
  g_return_val_if_fail (status != NULL, NULL);

  GString *text = g_string_new (NULL);
  g_string_append_printf (text, "%" G_GUINT64_FORMAT " durable", status->n_durable);
  append_count (text, status->n_failed, "failed");
  append_count (text, status->n_skipped, "skipped");
  append_count (text, status->n_replaced, "replaced");
  if (status->n_durable > 0)
    append_last (text, status);
  if (status->interval_us > 0) {
    g_autofree char *interval = muster_format_duration (status->interval_us);
    g_string_append_printf (text, "; one every %s", interval);
  }
  if (status->saving != NULL) {
    g_autofree char *name = g_path_get_basename (status->saving);
    g_autofree char *age = muster_format_duration (status->saving_age_us);
    g_string_append_printf (text, "; %s %s, requested %s ago", name,
                            muster_save_state_name (status->saving_state), age);
  }
  return g_string_free (text, FALSE);
}

char *
muster_saves_news (const MusterSaveStatus *status)
{
  g_return_val_if_fail (status != NULL, NULL);

  GString *text = g_string_new (NULL);
  if (status->saving != NULL)
    g_string_append_printf (text, ", saving %" G_GINT64_FORMAT " (%s)", status->saving_step,
                            muster_save_state_name (status->saving_state));
  if (status->n_failed > 0)
    g_string_append_printf (text, ", %" G_GUINT64_FORMAT " save%s failed", status->n_failed,
                            status->n_failed == 1 ? "" : "s");
  return g_string_free (text, FALSE);
}

static void
begin (JsonBuilder *builder, const char *name)
{
  json_builder_set_member_name (builder, name);
  json_builder_begin_object (builder);
}

/* {"requested": {"step": 1200, "age": 0.4}, …}; null: none yet. */
static void
add_states (JsonBuilder *builder, const MusterSaveStatus *status)
{
  for (guint i = 0; i < MUSTER_N_SAVE_STATES; i++) {
    const char *name = muster_save_state_name ((MusterSaveState)i);
    if (status->step[i] < 0) {
      muster_json_add_string (builder, name, NULL);
      continue;
    }
    begin (builder, name);
    muster_json_add_int (builder, "step", status->step[i]);
    muster_json_add_seconds (builder, "age", status->age_us[i]);
    json_builder_end_object (builder);
  }
}

static void
add_phases (JsonBuilder *builder, const gint64 *phases_us)
{
  for (guint i = 0; i < MUSTER_N_SAVE_PHASES; i++)
    muster_json_add_seconds (builder, muster_save_phase_name ((MusterSavePhase)i), phases_us[i]);
}

static void
add_saving (JsonBuilder *builder, const MusterSaveStatus *status)
{
  if (status->saving == NULL) {
    muster_json_add_string (builder, "saving", NULL);
    return;
  }
  begin (builder, "saving");
  muster_json_add_string (builder, "checkpoint", status->saving);
  muster_json_add_string (builder, "state", muster_save_state_name (status->saving_state));
  muster_json_add_step (builder, "step", status->saving_step);
  muster_json_add_seconds (builder, "age", status->saving_age_us);
  json_builder_end_object (builder);
}

void
muster_saves_json (JsonBuilder *builder, const MusterSaveStatus *status)
{
  static const MusterJsonField counts[] = {
      MUSTER_JSON_FIELD (MusterSaveStatus, n_durable, INT64, "durable"),
      MUSTER_JSON_FIELD (MusterSaveStatus, n_failed, INT64, "failed"),
      MUSTER_JSON_FIELD (MusterSaveStatus, n_skipped, INT64, "skipped"),
      MUSTER_JSON_FIELD (MusterSaveStatus, n_replaced, INT64, "replaced"),
  };
  if (status == NULL) {
    muster_json_add_string (builder, "saves", NULL);
    return;
  }
  begin (builder, "saves");
  begin (builder, "states");
  add_states (builder, status);
  json_builder_end_object (builder);
  muster_json_add_fields (builder, counts, G_N_ELEMENTS (counts), status);
  muster_json_add_int (builder, "last_bytes", (gint64)status->last_bytes);
  begin (builder, "last_seconds");
  add_phases (builder, status->last_us);
  json_builder_end_object (builder);
  begin (builder, "total_seconds");
  add_phases (builder, status->total_us);
  json_builder_end_object (builder);
  json_builder_set_member_name (builder, "interval_seconds");
  if (status->interval_us > 0)
    json_builder_add_double_value (builder, (double)status->interval_us / MUSTER_SECOND);
  else
    json_builder_add_null_value (builder);
  add_saving (builder, status);
  json_builder_end_object (builder);
}
