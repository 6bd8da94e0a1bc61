// SPDX-License-Identifier: Apache-2.0
#include "bench/command.h"

#include <stdlib.h>
#include <string.h>

/* "worker:1 (HOST:PID) claimed 'model'; …" */
static int
claimant_of (const char *line, const char *claimed)
{
  const char *at = claimed;
  while (at > line && !g_ascii_isdigit (at[-1]))
    at--;
  while (at > line && g_ascii_isdigit (at[-1]))
    at--;
  return (int)strtol (at, NULL, 10);
}

static void
take_line (const char *line, gpointer data)
{
  BenchCommand *self = data;
  const char *claimed = strstr (line, " claimed '");
  g_mutex_lock (&self->lock);
  if (claimed != NULL) {
    self->claimed_s = bench_wall_s ();
    self->chief = claimant_of (line, claimed);
  } else if (strstr (line, " chief-lost ") != NULL) {
    self->lost_s = bench_wall_s ();
  } else if (g_str_has_prefix (line, "{\"event\":\"step\"")) {
    self->last_step = bench_event_number (line, "step");
    self->last_step_s = bench_event_number (line, "time");
  } else if (g_str_has_prefix (line, "{\"event\":\"saved\"")) {
    self->saved_s = bench_event_number (line, "time");
  }
  g_mutex_unlock (&self->lock);
}

BenchCommand *
bench_command_new (BenchChild *child)
{
  BenchCommand *self = g_new0 (BenchCommand, 1);
  self->child = child;
  g_mutex_init (&self->lock);
  self->reader = bench_child_read (self->child, take_line, self);
  return self;
}

void
bench_command_free (gpointer data)
{
  BenchCommand *self = data;
  g_subprocess_send_signal (self->child->process, SIGCONT);
  g_subprocess_force_exit (self->child->process);
  g_thread_join (self->reader);
  bench_child_free (self->child);
  g_mutex_clear (&self->lock);
  g_free (self);
}

double
bench_command_read (BenchCommand *self, const double *field)
{
  g_mutex_lock (&self->lock);
  const double value = *field;
  g_mutex_unlock (&self->lock);
  return value;
}

int
bench_command_chief (BenchCommand *server)
{
  g_mutex_lock (&server->lock);
  const int chief = server->chief;
  g_mutex_unlock (&server->lock);
  return chief;
}

double
bench_command_await (BenchCommand *self, const double *field, double since_s, const char *what)
{
  const double until_s = bench_now_s () + BENCH_LIMIT_S;
  while (bench_command_read (self, field) <= since_s) {
    if (bench_now_s () > until_s)
      bench_fail ("no %s for %g s", what, BENCH_LIMIT_S);
    bench_sleep_s (BENCH_LOOK_S);
  }
  return bench_command_read (self, field);
}

double
bench_most (const GArray *values)
{
  double most = 0;
  for (guint i = 0; i < values->len; i++)
    most = MAX (most, g_array_index (values, double, i));
  return most;
}
