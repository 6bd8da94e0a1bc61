// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/trace.h"

#include "cli/output/json.h"

#include <unistd.h>

/* The Chrome trace format's JSON: complete events ("X") in microseconds, and one that names the
 * process. */

static void
begin_event (JsonBuilder *builder, const char *name, const char *kind)
{
  json_builder_begin_object (builder);
  muster_json_add_string (builder, "name", name);
  muster_json_add_string (builder, "ph", kind);
  muster_json_add_int (builder, "pid", getpid ());
  muster_json_add_int (builder, "tid", 1);
}

static void
begin_args (JsonBuilder *builder)
{
  json_builder_set_member_name (builder, "args");
  json_builder_begin_object (builder);
}

static void
add_span (JsonBuilder *builder, const MusterSpan *span, const MusterCliOptions *options)
{
  begin_event (builder, span->name, "X");
  muster_json_add_string (builder, "cat", "muster");
  muster_json_add_int (builder, "ts", span->started_us);
  muster_json_add_int (builder, "dur", span->duration_us);
  begin_args (builder);
  muster_json_add_string (builder, "model", options->model);
  muster_json_add_string (builder, "master", options->target);
  json_builder_end_object (builder);
  json_builder_end_object (builder);
}

static char *
draw (const MusterCliResult *self, const char *command)
{
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  GArray *timeline = self->report->timeline;
  g_autofree char *process = g_strdup_printf (
      "muster %s %s%s%s", command, self->options->model, self->options->task != NULL ? " as " : "",
      self->options->task != NULL ? self->options->task : "");
  muster_json_add_string (builder, "displayTimeUnit", "ms");
  json_builder_set_member_name (builder, "traceEvents");
  json_builder_begin_array (builder);
  begin_event (builder, "process_name", "M");
  begin_args (builder);
  muster_json_add_string (builder, "name", process);
  json_builder_end_object (builder);
  json_builder_end_object (builder);
  for (guint i = 0; timeline != NULL && i < timeline->len; i++)
    add_span (builder, &g_array_index (timeline, MusterSpan, i), self->options);
  json_builder_end_array (builder);
  return muster_json_end (builder);
}

void
muster_cli_write_trace (const MusterCliResult *self, const char *command)
{
  g_autoptr (GError) error = NULL;
  if (self->options->trace == NULL)
    return;
  g_autofree char *text = draw (self, command);
  if (!g_file_set_contents (self->options->trace, text, -1, &error))
    muster_cli_say (stderr, "warning: can't write the trace: %s\n", error->message);
}
