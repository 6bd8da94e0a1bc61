// SPDX-License-Identifier: Apache-2.0
/* The demo: one master, one chief and two workers as four processes on loopback train on
 * handwritten digits. In the middle all four are killed; started again, they go on from the last
 * checkpoint to the end. Then it draws who waited for what. */
#include "base/clock.h"

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MUSTER  "cli/muster"
#define TRAINER "examples/digits/trainer"
#define MODEL   "tests/fixtures/digits.meta"
#define IMAGES  "tests/fixtures/digits_x.npy"
#define LABELS  "tests/fixtures/digits_y.npy"

#define UNTIL_STEP 4000
#define LIFE_2_STEPS                                                                               \
  1000 /* at the least: where a save is slow, the workers are far ahead when all die */
#define SAVE_EVERY    500
#define KILL_AFTER    1500 /* once a checkpoint of at least this step is durable … */
#define KILL_BEYOND   200  /* … and training has gone on for this many steps */
#define LEAST_PERCENT 95.0
#define PATIENCE_S    50
#define COLUMNS       60

enum { MASTER, CHIEF, WORKER_1, WORKER_2, N_TASKS };

/* A lane of the timeline changes its letter at an instant. */
typedef struct {
  gint64 at_us;
  char letter;
} Mark;

typedef struct _Demo Demo;

typedef struct {
  Demo *demo; /* (not owned) */
  int number;
  const char *name;
  char lane;
  GSubprocess *process;     /* (owned) (nullable) */
  GDataInputStream *output; /* (owned) (nullable) */
  char *last_why;           /* (owned) (nullable) */
  gboolean is_waiting;
  gboolean has_trained;
  gint64 ready_us; /* in this life; 0: not yet */
  gboolean ready_told;
  GArray *marks; /* (owned) (element-type Mark) */
} Task;

struct _Demo {
  GMainLoop *loop;
  Task tasks[N_TASKS];
  char *target;         /* (owned) (nullable) */
  char *checkpoint_dir; /* (owned) */
  int life;             /* 1 and 2 */
  gint64 until_step;    /* where life 2 ends; life 1 ends when it is killed */
  gboolean killing;
  gint64 started_us;
  gint64 saved_step;
  gint64 step, step_us; /* of the chief's last word */
  gint64 printed_step;
  double percent; /* below 0: not tested yet */
  gboolean failed;
  gboolean is_terminal;
  gboolean bar_shown;
};

static void start (Task *task);

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

static void
mark (Task *task, gint64 at_us, char letter)
{
  Mark it = {.at_us = at_us, .letter = letter};
  g_array_append_val (task->marks, it);
}

static void say (Task *task, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
say (Task *task, const char *format, ...)
{
  if (task->demo->bar_shown)
    printf ("\r\033[K");
  task->demo->bar_shown = FALSE;
  va_list arguments;
  va_start (arguments, format);
  printf ("%-9s ", task->name);
  vprintf (format, arguments);
  va_end (arguments);
  printf ("\n");
  fflush (stdout);
}

static void
fail (Demo *demo, const char *what)
{
  if (!demo->failed)
    fprintf (stderr, "demo: %s\n", what);
  demo->failed = TRUE;
  g_main_loop_quit (demo->loop);
}

/* What stands behind " key=" in an event's line, up to the next blank (or the line's end for the
 * last key). */
static char *
value_of (const char *line, const char *key, gboolean is_last)
{
  g_autofree char *wanted = g_strdup_printf (" %s=", key);
  const char *at = strstr (line, wanted);
  if (at == NULL)
    return g_strdup ("");
  at += strlen (wanted);
  return is_last ? g_strdup (at) : g_strndup (at, strcspn (at, " "));
}

static gint64
number_of (const char *line, const char *key)
{
  g_autofree char *text = value_of (line, key, FALSE);
  return g_ascii_strtoll (text, NULL, 10);
}

/* Progress: a bar that changes on a terminal, now and then a line elsewhere. */
static void
show_progress (Demo *demo, gint64 step, gint64 at_us, const char *loss)
{
  double rate = demo->step_us > 0 && at_us > demo->step_us
                    ? (double)(step - demo->step) * MUSTER_SECOND / (double)(at_us - demo->step_us)
                    : 0;
  demo->step = step;
  demo->step_us = at_us;
  step = MIN (step, demo->until_step); /* the tasks may overshoot by a step each */
  if (rate <= 0)
    return;
  if (demo->is_terminal) {
    printf ("\r\033[Ktraining  ");
    for (int i = 0; i < 16; i++)
      printf ("%s", i < step * 16 / demo->until_step ? "█" : "░");
    printf ("  step %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT ", %.0f steps/s, loss %s", step,
            demo->until_step, rate, loss);
    fflush (stdout);
    demo->bar_shown = TRUE;
  } else if (step >= demo->printed_step + SAVE_EVERY) {
    printf ("training  step %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT ", %.0f steps/s, loss %s\n",
            step, demo->until_step, rate, loss);
    demo->printed_step = step;
  }
}

/* A worker's readiness is told against the chief's, so it waits until both are known. */
static void
tell_ready (Demo *demo)
{
  const Task *chief = &demo->tasks[CHIEF];
  for (int i = WORKER_1; i < N_TASKS; i++) {
    Task *worker = &demo->tasks[i];
    if (worker->ready_us == 0 || chief->ready_us == 0 || worker->ready_told)
      continue;
    worker->ready_told = TRUE;
    gint64 after_us = worker->ready_us - chief->ready_us;
    g_autofree char *gap = muster_format_duration (ABS (after_us));
    if (after_us >= 0)
      say (worker, "ready %s after the chief", gap);
    else /* it heard of the last variable while the chief was still checking */
      say (worker, "ready with the chief (%s before it had checked)", gap);
  }
}

static void
on_ready (Task *task, const char *line)
{
  Demo *demo = task->demo;
  task->ready_us = number_of (line, "t");
  mark (task, task->ready_us, 'T');
  if (task->number == CHIEF) {
    g_autofree char *restored = value_of (line, "restored", TRUE);
    Mark began = g_array_index (task->marks, Mark, task->marks->len - 2);
    g_autofree char *took = muster_format_duration (task->ready_us - began.at_us);
    if (strcmp (restored, "no") == 0) {
      say (task, "no checkpoint: initialised %" G_GINT64_FORMAT " variables in %s",
           number_of (line, "variables"), took);
    } else {
      /* the letter of what it did: the checkpoint is only known now */
      g_array_index (task->marks, Mark, task->marks->len - 2).letter = 'r';
      g_autofree char *name = g_path_get_basename (restored);
      say (task, "restored %s in %s", name, took);
    }
  }
  tell_ready (demo);
}

/* What passes in a moment is left out: of a chief's phases only its work is told. */
static gboolean
is_worth_telling (const char *line)
{
  g_autofree char *component = value_of (line, "for", FALSE);
  g_autofree char *state = value_of (line, "state", FALSE);
  return strcmp (component, "chief") != 0 || strcmp (state, "never-registered") == 0 ||
         strcmp (state, "initialising") == 0 || strcmp (state, "restoring") == 0;
}

static void
on_waiting (Task *task, const char *line)
{
  g_autofree char *why = value_of (line, "why", TRUE);
  gboolean is_chief_at_work =
      strstr (line, " for=chief ") != NULL && !g_str_has_prefix (why, "no ");
  if (g_strcmp0 (why, task->last_why) != 0 && is_worth_telling (line))
    say (task, is_chief_at_work ? "waiting: the chief is %s" : "waiting: %s", why);
  g_free (task->last_why);
  task->last_why = g_steal_pointer (&why);
  task->is_waiting = TRUE;
  Demo *demo = task->demo;
  if (demo->tasks[WORKER_1].is_waiting && demo->tasks[WORKER_2].is_waiting &&
      demo->tasks[CHIEF].process == NULL)
    start (&demo->tasks[CHIEF]);
}

static void
kill_all (Demo *demo)
{
  for (int i = 0; i < N_TASKS; i++)
    if (demo->tasks[i].process != NULL)
      g_subprocess_send_signal (demo->tasks[i].process, SIGKILL);
}

/* Once a checkpoint is safe and training has gone on beyond it, everything dies. */
static void
maybe_kill (Demo *demo)
{
  if (demo->life != 1 || demo->killing || demo->saved_step < KILL_AFTER ||
      demo->step < demo->saved_step + KILL_BEYOND)
    return;
  demo->killing = TRUE;
  Task all = {.demo = demo, .name = "killed"};
  say (&all, "master, chief, worker 1, worker 2 (SIGKILL) at step %" G_GINT64_FORMAT, demo->step);
  gint64 at_us = now_us ();
  for (int i = 0; i < N_TASKS; i++)
    mark (&demo->tasks[i], at_us, 'x');
  kill_all (demo);
}

static void
on_line (Task *task, const char *line)
{
  Demo *demo = task->demo;
  if (g_str_has_prefix (line, "serving ")) {
    gint64 at_us = now_us ();
    Mark began = g_array_index (task->marks, Mark, task->marks->len - 1);
    g_autofree char *took = muster_format_duration (at_us - began.at_us);
    g_free (demo->target);
    demo->target = g_strdup (line + strlen ("serving "));
    say (task, "%s (%s after its start)", line, took);
    mark (task, at_us, 'M');
    start (&demo->tasks[WORKER_1]);
    start (&demo->tasks[WORKER_2]);
  } else if (g_str_has_prefix (line, "waiting ")) {
    on_waiting (task, line);
  } else if (g_str_has_prefix (line, "preparing ")) {
    mark (task, number_of (line, "t"), 'i');
  } else if (g_str_has_prefix (line, "ready ")) {
    on_ready (task, line);
  } else if (g_str_has_prefix (line, "step ") && task->number == CHIEF) {
    g_autofree char *loss = value_of (line, "loss", TRUE);
    show_progress (demo, number_of (line, "step"), number_of (line, "t"), loss);
    maybe_kill (demo);
  } else if (g_str_has_prefix (line, "saved ")) {
    g_autofree char *prefix = value_of (line, "prefix", TRUE);
    g_autofree char *name = g_path_get_basename (prefix);
    demo->saved_step = number_of (line, "step");
    say (task, "saved %s, durable", name);
  } else if (g_str_has_prefix (line, "trained ") || g_str_has_prefix (line, "over ")) {
    task->has_trained = TRUE;
    mark (task, number_of (line, "t"), ' ');
  } else if (g_str_has_prefix (line, "initialised ")) {
    g_autofree char *accuracy = value_of (line, "accuracy", TRUE);
    say (task, "init function: %.1f %% before training", g_ascii_strtod (accuracy, NULL) * 100);
  } else if (g_str_has_prefix (line, "tested ")) {
    g_autofree char *accuracy = value_of (line, "accuracy", TRUE);
    demo->percent = g_ascii_strtod (accuracy, NULL) * 100;
  }
}

static void read_line (Task *task);

static void
on_read (GObject *source, GAsyncResult *result, gpointer data)
{
  Task *task = data;
  g_autofree char *line =
      g_data_input_stream_read_line_finish (G_DATA_INPUT_STREAM (source), result, NULL, NULL);
  if (line == NULL || G_DATA_INPUT_STREAM (source) != task->output)
    return;
  if (!task->demo->killing)
    on_line (task, line);
  read_line (task);
}

static void
read_line (Task *task)
{
  g_data_input_stream_read_line_async (task->output, G_PRIORITY_DEFAULT, NULL, on_read, task);
}

static gboolean
all_gone (Demo *demo)
{
  for (int i = 0; i < N_TASKS; i++)
    if (demo->tasks[i].process != NULL)
      return FALSE;
  return TRUE;
}

static gboolean
all_trained (Demo *demo)
{
  return demo->tasks[CHIEF].process == NULL && demo->tasks[WORKER_1].process == NULL &&
         demo->tasks[WORKER_2].process == NULL && demo->tasks[CHIEF].has_trained &&
         demo->tasks[WORKER_1].has_trained && demo->tasks[WORKER_2].has_trained;
}

static void
begin_life (Demo *demo)
{
  demo->life++;
  demo->until_step = MAX (UNTIL_STEP, demo->saved_step + LIFE_2_STEPS);
  demo->killing = FALSE;
  demo->step_us = 0;
  for (int i = 0; i < N_TASKS; i++) {
    Task *task = &demo->tasks[i];
    task->is_waiting = task->has_trained = task->ready_told = FALSE;
    task->ready_us = 0;
    g_clear_pointer (&task->last_why, g_free);
  }
  start (&demo->tasks[MASTER]);
}

static void
on_exit_of (GObject *source, GAsyncResult *result, gpointer data)
{
  Task *task = data;
  Demo *demo = task->demo;
  GSubprocess *process = G_SUBPROCESS (source);
  g_subprocess_wait_finish (process, result, NULL);
  g_clear_object (&task->process);
  if (demo->failed)
    return;
  if (demo->killing) {
    if (all_gone (demo))
      begin_life (demo);
  } else if (task->number == MASTER || !g_subprocess_get_if_exited (process) ||
             g_subprocess_get_exit_status (process) != 0) {
    g_autofree char *what = g_strdup_printf ("%s ended before its time", task->name);
    fail (demo, what);
  } else if (all_trained (demo)) {
    g_main_loop_quit (demo->loop);
  }
}

/* In the child, before it runs: it dies with the demo, however that ends. */
static void
die_with_parent (gpointer data)
{
  (void)data;
  (void)prctl (PR_SET_PDEATHSIG, SIGKILL);
}

static void
start (Task *task)
{
  Demo *demo = task->demo;
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  if (task->number == MASTER) {
    g_ptr_array_add (words, g_strdup (MUSTER));
    g_ptr_array_add (words, g_strdup ("serve"));
    g_ptr_array_add (words, g_strdup ("--listen=localhost:0"));
  } else {
    g_ptr_array_add (words, g_strdup (TRAINER));
    g_ptr_array_add (words, g_strdup_printf ("--master=%s", demo->target));
    g_ptr_array_add (words, g_strdup ("--meta-graph=" MODEL));
    g_ptr_array_add (words, g_strdup ("--images=" IMAGES));
    g_ptr_array_add (words, g_strdup ("--labels=" LABELS));
    g_ptr_array_add (words, g_strdup_printf ("--task=worker:%d", task->number - CHIEF));
    g_ptr_array_add (words, g_strdup_printf ("--seed=%d", task->number + 10 * demo->life));
    g_ptr_array_add (words, g_strdup_printf ("--until-step=%" G_GINT64_FORMAT,
                                             demo->life == 1 ? G_MAXINT64 : demo->until_step));
    if (task->number == CHIEF) {
      g_ptr_array_add (words, g_strdup ("--chief"));
      g_ptr_array_add (words, g_strdup_printf ("--save-every=%d", SAVE_EVERY));
      g_ptr_array_add (words, g_strdup_printf ("--checkpoint-dir=%s", demo->checkpoint_dir));
    }
  }
  g_ptr_array_add (words, NULL);
  g_autoptr (GError) error = NULL;
  mark (task, now_us (), task->number == MASTER ? ' ' : task->number == CHIEF ? ' ' : 'w');
  g_autoptr (GSubprocessLauncher) launcher =
      g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_STDOUT_PIPE);
  g_subprocess_launcher_set_child_setup (launcher, die_with_parent, NULL, NULL);
  task->process =
      g_subprocess_launcher_spawnv (launcher, (const char *const *)words->pdata, &error);
  if (task->process == NULL) {
    fail (demo, error->message);
    return;
  }
  g_clear_object (&task->output);
  task->output = g_data_input_stream_new (g_subprocess_get_stdout_pipe (task->process));
  read_line (task);
  g_subprocess_wait_async (task->process, NULL, on_exit_of, task);
}

/* The letter of a lane in a column's span: what it was in for longest would hide the short waits,
 * so the latest in it. */
static const char *
cell (const Task *task, gint64 until_us, gboolean is_terminal)
{
  char letter = ' ';
  for (guint i = 0; i < task->marks->len && g_array_index (task->marks, Mark, i).at_us < until_us;
       i++)
    letter = g_array_index (task->marks, Mark, i).letter;
  switch (letter) {
  case 'M':
    return "█";
  case 'x':
    return is_terminal ? "\033[31m✗\033[0m" : "✗";
  case 'T':
    return is_terminal ? "\033[32mT\033[0m" : "T";
  case 'w':
    return "w";
  case 'i':
    return "i";
  case 'r':
    return "r";
  default:
    return " ";
  }
}

/* A span shorter than a column would vanish: what a lane was in for at least a moment shows in one
 * column. */
static const char *
cell_between (const Task *task, gint64 from_us, gint64 until_us, gboolean is_terminal)
{
  for (guint i = 0; i < task->marks->len; i++) {
    const Mark *it = &g_array_index (task->marks, Mark, i);
    if (it->at_us >= from_us && it->at_us < until_us && strchr ("irx", it->letter) != NULL)
      return cell (task, it->at_us + 1, is_terminal);
  }
  return cell (task, until_us, is_terminal);
}

static void
draw_timeline (Demo *demo, gint64 ended_us)
{
  gint64 span_us = MAX (ended_us - demo->started_us, 1);
  double column_us = (double)span_us / COLUMNS;
  int seconds = (int)(span_us / MUSTER_SECOND);
  printf ("\n    ");
  int at = 0;
  for (int s = 0; s <= seconds; s++) {
    int column = (int)(s * (double)MUSTER_SECOND / column_us);
    if (s > 0 && column < at + 5)
      continue;
    printf ("%*s", MAX (column - at, 0), "");
    at = MAX (column, at) + printf ("%d s", s);
  }
  printf ("\n");
  for (int i = 0; i < N_TASKS; i++) {
    const Task *task = &demo->tasks[i];
    printf ("  %c ", task->lane);
    for (int c = 0; c < COLUMNS; c++)
      printf ("%s",
              cell_between (task, demo->started_us + (gint64)(c * column_us),
                            demo->started_us + (gint64)((c + 1) * column_us), demo->is_terminal));
    printf ("%s\n", i == MASTER     ? ""
                    : i == CHIEF    ? "  i init, r restore, T training"
                    : i == WORKER_1 ? "  w waiting, ✗ killed"
                                    : "");
  }
}

static gboolean
on_too_long (gpointer data)
{
  fail (data, "it takes too long; is the machine very busy?");
  return G_SOURCE_REMOVE;
}

static void
remove_directory (const char *path)
{
  g_autoptr (GDir) directory = g_dir_open (path, 0, NULL);
  for (const char *name; directory != NULL && (name = g_dir_read_name (directory)) != NULL;) {
    g_autofree char *file = g_build_filename (path, name, NULL);
    (void)g_unlink (file); /* what can't be removed stays in the temporary folder */
  }
  (void)g_rmdir (path);
}

static int
finish (Demo *demo)
{
  gint64 ended_us = now_us ();
  demo->failed |= demo->percent < 0;
  kill_all (demo);
  if (demo->failed)
    return 4;
  Task model = {.demo = demo, .name = "model"};
  say (&model, "step %" G_GINT64_FORMAT ", %.1f %% of the test digits named rightly",
       demo->until_step, demo->percent);
  draw_timeline (demo, ended_us);
  if (demo->percent < LEAST_PERCENT) {
    fprintf (stderr, "demo: %.0f %% were expected\n", LEAST_PERCENT);
    return 4;
  }
  printf ("\nOne model, two lives, nothing lost: next, `muster --help` or docs/architecture.md.\n");
  return 0;
}

static void
demo_clear (Demo *demo)
{
  for (int i = 0; i < N_TASKS; i++) {
    Task *task = &demo->tasks[i];
    g_clear_object (&task->process);
    g_clear_object (&task->output);
    g_clear_pointer (&task->last_why, g_free);
    g_clear_pointer (&task->marks, g_array_unref);
  }
  g_clear_pointer (&demo->target, g_free);
  g_clear_pointer (&demo->checkpoint_dir, g_free);
}

int
main (void)
{
  static const char *names[N_TASKS] = {"master", "chief", "worker 1", "worker 2"};
  static const char lanes[N_TASKS] = {'M', 'C', '1', '2'};
  g_autoptr (GError) error = NULL;
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  Demo demo = {.loop = loop,
               .percent = -1,
               .is_terminal = isatty (STDOUT_FILENO) && g_getenv ("NO_COLOR") == NULL};
  demo.checkpoint_dir = g_dir_make_tmp ("muster-demo-XXXXXX", &error);
  if (demo.checkpoint_dir == NULL) {
    fprintf (stderr, "demo: %s\n", error->message);
    return 4;
  }
  for (int i = 0; i < N_TASKS; i++)
    demo.tasks[i] = (Task){.demo = &demo,
                           .number = i,
                           .name = names[i],
                           .lane = lanes[i],
                           .marks = g_array_new (FALSE, FALSE, sizeof (Mark))};
  demo.started_us = now_us ();
  begin_life (&demo);
  guint alarm = g_timeout_add_seconds (PATIENCE_S, on_too_long, &demo);
  if (!demo.failed)
    g_main_loop_run (loop);
  if (!demo.failed)
    g_source_remove (alarm);
  int code = finish (&demo);
  remove_directory (demo.checkpoint_dir);
  demo_clear (&demo);
  return code;
}
