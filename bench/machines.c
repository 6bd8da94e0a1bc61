// SPDX-License-Identifier: Apache-2.0
/* Machines as network namespaces on a bridge. */
#include "bench/machines.h"

#include <stdio.h>

#define PROBE                                                                                      \
  "ip link set lo up && ip link add name switch type bridge && "                                   \
  "ip link add name one type veth peer name two && nsenter -t $$ -n setpriv --pdeathsig KILL true"

struct _BenchMachine {
  guint number;
  char *port;        /* (owned) of the switch */
  BenchChild *child; /* (owned) in whose namespace its processes are */
  char *pid;         /* (owned) */
  const char *enter[8];
};

static gboolean
succeeds (const char *const *argv, GSubprocessFlags flags)
{
  g_autoptr (GSubprocess) process = g_subprocess_newv (argv, flags, NULL);
  return process != NULL && g_subprocess_wait_check (process, NULL, NULL);
}

void
bench_run_in_namespace (const char *mode)
{
  static const char *const ways[] = {"-n", "-rn"};
  g_autofree char *self = g_file_read_link ("/proc/self/exe", NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (ways); i++) {
    const char *const probe[] = {"unshare", ways[i], "sh", "-c", PROBE, NULL};
    const char *const run[] = {"unshare", ways[i], self, mode, NULL};
    if (!succeeds (probe, G_SUBPROCESS_FLAGS_STDOUT_SILENCE | G_SUBPROCESS_FLAGS_STDERR_SILENCE))
      continue;
    fflush (stdout);
    if (!succeeds (run, G_SUBPROCESS_FLAGS_NONE))
      bench_fail ("'bench %s' failed", mode);
    return;
  }
  printf ("%s: skipped: the system gives no network namespace with a bridge (unshare, nsenter, "
          "setpriv, ip)\n",
          mode);
}

/* One command of "ip", in words that blanks separate. */
static void
run_words (const char *const *before, const char *words)
{
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  g_auto (GStrv) each = g_strsplit (words, " ", -1);
  for (gsize i = 0; before != NULL && before[i] != NULL; i++)
    g_ptr_array_add (argv, (char *)before[i]);
  g_ptr_array_add (argv, "ip");
  for (char **word = each; *word != NULL; word++)
    g_ptr_array_add (argv, *word);
  g_ptr_array_add (argv, NULL);
  if (!succeeds ((const char *const *)argv->pdata, G_SUBPROCESS_FLAGS_NONE))
    bench_fail ("'ip %s' failed", words);
}

void
bench_switch_new (void)
{
  run_words (NULL, "link add name switch type bridge");
  run_words (NULL, "link set switch up");
}

char *
bench_machine_address (guint number)
{
  return g_strdup_printf ("10.9.0.%u:2222", number);
}

/* Others know its hardware's address for good: a cut machine isn't found out by its silence there,
 * as it isn't behind a router. */
static void
add_neighbours (BenchMachine *self)
{
  for (guint i = 1; i < 10; i++) {
    g_autofree char *neighbour = g_strdup_printf (
        "neighbour replace 10.9.0.%u lladdr 02:00:00:00:00:%02u dev eth0 nud permanent", i, i);
    if (i != self->number)
      run_words (self->enter, neighbour);
  }
}

static void
connect_to_switch (BenchMachine *self)
{
  g_autofree char *pair = g_strdup_printf (
      "link add name %s type veth peer name eth0 address 02:00:00:00:00:%02u netns %s", self->port,
      self->number, self->pid);
  g_autofree char *up = g_strdup_printf ("link set %s up", self->port);
  g_autofree char *address = g_strdup_printf ("address add 10.9.0.%u/24 dev eth0", self->number);
  run_words (NULL, pair);
  bench_machine_set_cut (self, FALSE);
  run_words (NULL, up);
  run_words (self->enter, "link set lo up");
  run_words (self->enter, address);
  run_words (self->enter, "link set eth0 up");
  add_neighbours (self);
}

BenchMachine *
bench_machine_new (guint number)
{
  BenchMachine *self = g_new0 (BenchMachine, 1);
  self->number = number;
  self->port = g_strdup_printf ("to%u", number);
  self->child =
      bench_child_new ((const char *const[]){"unshare", "-n", "sh", "-c", "echo; exec cat", NULL});
  g_free (bench_child_line (self->child));
  self->pid = g_strdup_printf ("%d", bench_child_pid (self->child));
  const char *const enter[] = {"nsenter", "-t",          self->pid, "-n",
                               "setpriv", "--pdeathsig", "KILL",    NULL};
  for (gsize i = 0; i < G_N_ELEMENTS (enter); i++)
    self->enter[i] = enter[i];
  connect_to_switch (self);
  return self;
}

void
bench_machine_free (BenchMachine *self)
{
  g_autofree char *gone = g_strdup_printf ("link delete %s", self->port);
  run_words (NULL,
             gone); /* the namespace, and the link with it, ends some time after its process */
  bench_child_free (self->child);
  g_free (self->pid);
  g_free (self->port);
  g_free (self);
}

const char *const *
bench_machine_enter (BenchMachine *self)
{
  return self->enter;
}

void
bench_machine_set_cut (BenchMachine *self, gboolean is_cut)
{
  g_autofree char *words =
      g_strdup_printf (is_cut ? "link set %s nomaster" : "link set %s master switch", self->port);
  run_words (NULL, words);
}
