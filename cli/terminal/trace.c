// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/trace.h"

#include "cli/output/json.h"

#include <unistd.h>

#define MOST_BOXES 100000

/* The Chrome trace format's JSON: complete events ("X") in microseconds, and those that name the
 * process and its lanes, which are threads there. */

typedef struct {
  guint lane;       /* from 1 */
  const char *name; /* static */
  char *detail;     /* (owned) (nullable) */
  gint64 started_us;
  gint64 duration_us;
} Box;

struct _MusterCliTrace {
  gint64 began_us;
  GPtrArray *lanes; /* (owned) (element-type utf8) static names */
  GArray *boxes;    /* (owned) (element-type Box) */
};

static void
box_clear (gpointer box)
{
  g_free (((Box *)box)->detail);
}

MusterCliTrace *
muster_cli_trace_new (gint64 began_us)
{
  MusterCliTrace *self = g_new0 (MusterCliTrace, 1);
  self->began_us = began_us;
  self->lanes = g_ptr_array_new ();
  self->boxes = g_array_new (FALSE, FALSE, sizeof (Box));
  g_array_set_clear_func (self->boxes, box_clear);
  return self;
}

void
muster_cli_trace_free (MusterCliTrace *self)
{
  if (self == NULL)
    return;
  g_ptr_array_unref (self->lanes);
  g_array_unref (self->boxes);
  g_free (self);
}

static guint
lane_of (MusterCliTrace *self, const char *name)
{
  guint at;
  if (!g_ptr_array_find_with_equal_func (self->lanes, name, g_str_equal, &at)) {
    at = self->lanes->len;
    g_ptr_array_add (self->lanes, (gpointer)name);
  }
  return at + 1;
}

void
muster_cli_trace_add (MusterCliTrace *self, const char *lane, const char *name, const char *detail,
                      gint64 from_us, gint64 until_us)
{
  if (self->boxes->len >= MOST_BOXES)
    return;
  const Box box = {.lane = lane_of (self, lane),
                   .name = name,
                   .detail = g_strdup (detail),
                   .started_us = from_us - self->began_us,
                   .duration_us = MAX (until_us - from_us, 0)};
  g_array_append_val (self->boxes, box);
}

void
muster_cli_trace_add_report (MusterCliTrace *self, const MusterSessionReport *report,
                             gint64 from_us)
{
  for (guint i = 0; report->timeline != NULL && i < report->timeline->len; i++) {
    const MusterSpan *span = &g_array_index (report->timeline, MusterSpan, i);
    const gint64 at_us = from_us + span->started_us;
    muster_cli_trace_add (self, "session", span->name, NULL, at_us, at_us + span->duration_us);
  }
}

/* --- writing --- */

static void
begin_event (JsonBuilder *builder, const char *name, const char *kind, guint lane)
{
  json_builder_begin_object (builder);
  muster_json_add_string (builder, "name", name);
  muster_json_add_string (builder, "ph", kind);
  muster_json_add_int (builder, "pid", getpid ());
  muster_json_add_int (builder, "tid", lane);
}

static void
begin_args (JsonBuilder *builder)
{
  json_builder_set_member_name (builder, "args");
  json_builder_begin_object (builder);
}

/* "process_name" or "thread_name" */
static void
add_name (JsonBuilder *builder, const char *of, guint lane, const char *name)
{
  begin_event (builder, of, "M", lane);
  begin_args (builder);
  muster_json_add_string (builder, "name", name);
  json_builder_end_object (builder);
  json_builder_end_object (builder);
}

static void
add_box (JsonBuilder *builder, const Box *box, const MusterCliOptions *options)
{
  begin_event (builder, box->name, "X", box->lane);
  muster_json_add_string (builder, "cat", "muster");
  muster_json_add_int (builder, "ts", box->started_us);
  muster_json_add_int (builder, "dur", box->duration_us);
  begin_args (builder);
  muster_json_add_string (builder, "model", options->model);
  muster_json_add_string (builder, "master", options->target);
  if (box->detail != NULL)
    muster_json_add_string (builder, "checkpoint", box->detail);
  json_builder_end_object (builder);
  json_builder_end_object (builder);
}

static char *
draw (MusterCliTrace *self, const MusterCliOptions *options, const char *command)
{
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  g_autofree char *process = g_strdup_printf ("muster %s %s%s%s", command, options->model,
                                              options->task != NULL ? " as " : "",
                                              options->task != NULL ? options->task : "");
  muster_json_add_string (builder, "displayTimeUnit", "ms");
  json_builder_set_member_name (builder, "traceEvents");
  json_builder_begin_array (builder);
  add_name (builder, "process_name", 1, process);
  for (guint i = 0; self->lanes->len > 1 && i < self->lanes->len; i++)
    add_name (builder, "thread_name", i + 1, self->lanes->pdata[i]);
  for (guint i = 0; i < self->boxes->len; i++)
    add_box (builder, &g_array_index (self->boxes, Box, i), options);
  json_builder_end_array (builder);
  return muster_json_end (builder);
}

void
muster_cli_trace_write (MusterCliTrace *self, const MusterCliOptions *options, const char *command)
{
  g_autoptr (GError) error = NULL;
  if (options->trace == NULL)
    return;
  g_autofree char *text = draw (self, options, command);
  if (!g_file_set_contents (options->trace, text, -1, &error))
    muster_cli_say (stderr, "warning: can't write the trace: %s\n", error->message);
}

void
muster_cli_write_trace (const MusterCliResult *self, const char *command)
{
  g_autoptr (MusterCliTrace) trace = muster_cli_trace_new (0);
  muster_cli_trace_add_report (trace, self->report, 0);
  muster_cli_trace_write (trace, self->options, command);
}
