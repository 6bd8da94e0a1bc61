// SPDX-License-Identifier: Apache-2.0
/* The demo: one master (`muster serve`), one chief and two workers (`muster train`) as four
 * processes on loopback train on handwritten digits, and save in the background: often to memory,
 * now and then to disk. In the middle all four are killed; started again, they go on from the last
 * checkpoint to the end. Then it draws who waited for what. */
#include "base/clock.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MUSTER     "cli/muster"
#define MODEL      "--meta-graph=tests/fixtures/digits.meta"
#define IMAGES     "tests/fixtures/digits_x.npy"
#define LABELS     "tests/fixtures/digits_y.npy"
#define TRAIN_ROWS "--rows=0:1500" /* the rest is for the test */
#define TEST_ROWS  "--rows=1500:"
#define STEP       "global_step/Read/ReadVariableOp:0"
#define MEMORY     "/dev/shm"

#define UNTIL_STEP 4000
#define NO_END     1000000000
#define LIFE_2_STEPS                                                                               \
  1000 /* at the least: where a save is slow, the workers are far ahead when all die */
#define SAVE_EVERY      500  /* steps, to disk */
#define SAVE_FAST_EVERY 50   /* steps, to memory */
#define KILL_AFTER      2000 /* steps, once one is durable */
#define LEAST_PERCENT   95.0
#define PATIENCE_S      50
#define COLUMNS         60

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
  gboolean ready_reported;
  GArray *marks; /* (owned) (element-type Mark) */
} Task;

struct _Demo {
  GMainLoop *loop;
  Task tasks[N_TASKS];
  char *target;         /* (owned) (nullable) */
  char *checkpoint_dir; /* (owned) */
  char *fast_dir;       /* (owned) */
  int life;             /* 1 and 2 */
  gint64 until_step;    /* where life 2 ends; life 1 ends when it is killed */
  gboolean killing;
  gint64 started_us;
  gint64 saved_step;
  gint64 said_step;   /* of the last save that was told */
  gint64 killed_step; /* where the model was when all were killed */
  gint64 again;       /* the steps that are trained again */
  gint64 step;        /* of the chief's last word */
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
  return muster_clock_wall_us (muster_system_clock ()); /* as the processes tell it */
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

/* --- what a line of JSON says --- */

static const char *
word_of (JsonObject *line, const char *name)
{
  const char *word = json_object_get_string_member_with_default (line, name, NULL);
  return word != NULL ? word : "";
}

static gint64
number_of (JsonObject *line, const char *name)
{
  return json_object_get_int_member_with_default (line, name, 0);
}

static gint64
us_of (JsonObject *line, const char *name)
{
  return (gint64)(json_object_get_double_member_with_default (line, name, 0) *
                  (double)MUSTER_SECOND);
}

/* Progress: a bar that changes on a terminal, now and then a line elsewhere. */
static void
show_progress (Demo *demo, JsonObject *line)
{
  demo->step = number_of (line, "step");
  double rate = json_object_get_double_member_with_default (line, "steps_per_second", 0);
  double loss = json_object_get_double_member_with_default (line, "loss", 0);
  gint64 step = MIN (demo->step, demo->until_step); /* the tasks may overshoot by a step each */
  gint64 until = demo->life == 1 ? UNTIL_STEP : demo->until_step;
  if (demo->is_terminal) {
    printf ("\r\033[Ktraining  ");
    for (int i = 0; i < 16; i++)
      printf ("%s", i < step * 16 / until ? "█" : "░");
    printf ("  step %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT ", %.0f steps/s, loss %.3f", step,
            until, rate, loss);
    fflush (stdout);
    demo->bar_shown = TRUE;
  } else if (step >= demo->printed_step + SAVE_EVERY) {
    printf ("training  step %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT
            ", %.0f steps/s, loss %.3f\n",
            step, until, rate, loss);
    demo->printed_step = step;
  }
}

/* A worker's readiness is told against the chief's, so it waits until both are known. */
static void
report_ready (Demo *demo)
{
  const Task *chief = &demo->tasks[CHIEF];
  for (int i = WORKER_1; i < N_TASKS; i++) {
    Task *worker = &demo->tasks[i];
    if (worker->ready_us == 0 || chief->ready_us == 0 || worker->ready_reported)
      continue;
    worker->ready_reported = TRUE;
    gint64 after_us = worker->ready_us - chief->ready_us;
    g_autofree char *gap = muster_format_duration (ABS (after_us));
    if (after_us >= 0)
      say (worker, "ready %s after the chief", gap);
    else /* it heard of the last variable while the chief was still checking */
      say (worker, "ready with the chief (%s before it had checked)", gap);
  }
}

static void
on_ready (Task *task, JsonObject *line)
{
  const gint64 took_us = us_of (line, "seconds");
  const gboolean restored = strcmp (word_of (line, "how"), "restored") == 0;
  task->ready_us = us_of (line, "time");
  if (task->number == CHIEF) {
    g_autofree char *took = muster_format_duration (took_us);
    mark (task, task->ready_us - took_us, restored ? 'r' : 'i');
    if (restored) {
      g_autofree char *name = g_path_get_basename (word_of (line, "restored_from"));
      const gint64 step = number_of (line, "step");
      task->demo->again = MAX (task->demo->killed_step - step, 0);
      say (task, "restored %s in %s: %" G_GINT64_FORMAT " steps before the kill", name, took,
           task->demo->again);
    } else {
      say (task, "no checkpoint: initialised %" G_GINT64_FORMAT " variables in %s",
           number_of (line, "variables"), took);
    }
  }
  mark (task, task->ready_us, 'T');
  report_ready (task->demo);
}

/* What everything else waits for. */
static JsonObject *
first_reason (JsonObject *line)
{
  JsonArray *reasons = json_object_get_array_member (line, "reasons");
  for (guint i = 0; reasons != NULL && i < json_array_get_length (reasons); i++) {
    JsonObject *it = json_array_get_object_element (reasons, i);
    if (!json_object_get_boolean_member_with_default (it, "well", TRUE))
      return it;
  }
  return NULL;
}

/* What passes in a moment is left out: of a chief's phases only its work is told. */
static gboolean
is_worth_telling (gboolean is_chief, const char *state)
{
  return !is_chief || strcmp (state, "never-registered") == 0 ||
         strcmp (state, "initialising") == 0 || strcmp (state, "restoring") == 0;
}

static void
on_waiting (Task *task, JsonObject *line)
{
  Demo *demo = task->demo;
  JsonObject *reason = first_reason (line);
  if (reason == NULL || task->number == CHIEF)
    return;
  const char *why = word_of (reason, "text");
  const gboolean is_chief = strcmp (word_of (reason, "component"), "chief") == 0;
  const gboolean is_at_work = is_chief && !g_str_has_prefix (why, "no ");
  if (g_strcmp0 (why, task->last_why) != 0 &&
      is_worth_telling (is_chief, word_of (reason, "state")))
    say (task, is_at_work ? "waiting: the chief is %s" : "waiting: %s", why);
  g_free (task->last_why);
  task->last_why = g_strdup (why);
  task->is_waiting = TRUE;
  if (demo->tasks[WORKER_1].is_waiting && demo->tasks[WORKER_2].is_waiting &&
      demo->tasks[CHIEF].process == NULL)
    start (&demo->tasks[CHIEF]);
}

static void
signal_all (Demo *demo, int first, int number)
{
  for (int i = first; i < N_TASKS; i++)
    if (demo->tasks[i].process != NULL)
      g_subprocess_send_signal (demo->tasks[i].process, number);
}

/* What a step of the model on the master fetches; below 0: it can't be asked. */
static double
fetch (Demo *demo, const char *const *more)
{
  g_autofree char *master = g_strdup_printf ("--master=%s", demo->target);
  g_autoptr (GPtrArray) words = g_ptr_array_new ();
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autofree char *out = NULL;
  const char *const own[] = {MUSTER, "run", MODEL, master, "--json", "--timeout=10"};
  for (gsize i = 0; i < G_N_ELEMENTS (own); i++)
    g_ptr_array_add (words, (gpointer)own[i]);
  for (; *more != NULL; more++)
    g_ptr_array_add (words, (gpointer)*more);
  g_ptr_array_add (words, NULL);
  g_autoptr (GSubprocess) process =
      g_subprocess_newv ((const char *const *)words->pdata, G_SUBPROCESS_FLAGS_STDOUT_PIPE, NULL);
  if (process == NULL || !g_subprocess_communicate_utf8 (process, NULL, NULL, &out, NULL, NULL) ||
      !json_parser_load_from_data (parser, out, -1, NULL) ||
      !JSON_NODE_HOLDS_OBJECT (json_parser_get_root (parser)))
    return -1;
  JsonObject *fetched = json_node_get_object (json_parser_get_root (parser));
  g_autoptr (GList) values = json_object_get_values (fetched);
  return values != NULL && JSON_NODE_HOLDS_VALUE (values->data)
             ? json_node_get_double (values->data)
             : -1;
}

/* Everything dies, at a step that is known: those who train are stopped before the master is asked
 * for it. */
static void
maybe_kill (Demo *demo)
{
  if (demo->life != 1 || demo->killing || demo->saved_step <= 0 || demo->step < KILL_AFTER)
    return;
  demo->killing = TRUE;
  signal_all (demo, CHIEF, SIGSTOP);
  const double step = fetch (demo, (const char *const[]){"--fetch=" STEP, NULL});
  const gint64 at_us = now_us ();
  signal_all (demo, MASTER, SIGKILL);
  demo->killed_step = MAX ((gint64)step, demo->step);
  Task all = {.demo = demo, .name = "killed"};
  say (&all, "master, chief, worker 1, worker 2 (SIGKILL) at step %" G_GINT64_FORMAT,
       demo->killed_step);
  for (int i = 0; i < N_TASKS; i++)
    mark (&demo->tasks[i], at_us, 'x');
}

/* The master's one line is for people as well. */
static void
on_serving (Task *task, const char *line)
{
  Demo *demo = task->demo;
  gint64 at_us = now_us ();
  Mark began = g_array_index (task->marks, Mark, task->marks->len - 1);
  g_autofree char *took = muster_format_duration (at_us - began.at_us);
  g_free (demo->target);
  demo->target = g_strdup (line + strlen ("serving "));
  say (task, "%s (%s after its start)", line, took);
  mark (task, at_us, 'M');
  start (&demo->tasks[WORKER_1]);
  start (&demo->tasks[WORKER_2]);
}

static void
on_event (Task *task, JsonObject *line)
{
  Demo *demo = task->demo;
  const char *event = word_of (line, "event");
  if (strcmp (event, "waiting") == 0) {
    on_waiting (task, line);
  } else if (strcmp (event, "ready") == 0) {
    on_ready (task, line);
  } else if (strcmp (event, "step") == 0 && task->number == CHIEF) {
    show_progress (demo, line);
    maybe_kill (demo);
  } else if (strcmp (event, "saved") == 0) {
    g_autofree char *name = g_path_get_basename (word_of (line, "checkpoint"));
    demo->saved_step = number_of (line, "step");
    if (demo->saved_step >= demo->said_step + SAVE_EVERY) {
      demo->said_step = demo->saved_step;
      say (task, "saved %s, durable", name);
    }
    maybe_kill (demo);
  } else if (strcmp (event, "trained") == 0 || strcmp (event, "over") == 0) {
    task->has_trained = TRUE;
    mark (task, us_of (line, "time"), ' ');
  }
}

static void
on_line (Task *task, const char *line)
{
  g_autoptr (JsonParser) parser = json_parser_new ();
  if (task->number == MASTER) {
    if (g_str_has_prefix (line, "serving "))
      on_serving (task, line);
  } else if (json_parser_load_from_data (parser, line, -1, NULL) &&
             JSON_NODE_HOLDS_OBJECT (json_parser_get_root (parser))) {
    on_event (task, json_node_get_object (json_parser_get_root (parser)));
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
  demo->until_step = demo->life == 1 ? NO_END : MAX (UNTIL_STEP, demo->saved_step + LIFE_2_STEPS);
  demo->killing = FALSE;
  for (int i = 0; i < N_TASKS; i++) {
    Task *task = &demo->tasks[i];
    task->is_waiting = task->has_trained = task->ready_reported = FALSE;
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
             (g_subprocess_get_exit_status (process) != 0 && !task->has_trained)) {
    g_autofree char *what = g_strdup_printf ("%s ended before its time", task->name);
    fail (demo, what);
  } else if (all_trained (demo)) {
    g_main_loop_quit (demo->loop);
  }
}

/* In the child, before it runs: it dies with the demo, however that ends. */
static void
die_with_parent (gpointer data G_GNUC_UNUSED)
{
  (void)prctl (PR_SET_PDEATHSIG, SIGKILL);
}

/* What a person would type, one command for each task. */
static void
add_training (const Task *task, GPtrArray *words)
{
  static const char *const names[N_TASKS] = {
      [CHIEF] = "chief:0", [WORKER_1] = "worker:0", [WORKER_2] = "worker:1"};
  static const char *const same[] = {
      "train",           MODEL,      "--feed=x:0=@" IMAGES, "--feed=y:0=@" LABELS, TRAIN_ROWS,
      "--batch-size=32", "--seed=1", "--loss=loss:0",       "--tasks=3",           "--json",
      "--timeout=30"};
  const Demo *demo = task->demo;
  for (gsize i = 0; i < G_N_ELEMENTS (same); i++)
    g_ptr_array_add (words, g_strdup (same[i]));
  g_ptr_array_add (words, g_strdup_printf ("--task=%s", names[task->number]));
  g_ptr_array_add (words, g_strdup_printf ("--master=%s", demo->target));
  g_ptr_array_add (words, g_strdup_printf ("--steps=%" G_GINT64_FORMAT, demo->until_step));
  if (task->number == CHIEF) {
    g_ptr_array_add (words, g_strdup_printf ("--save-every=%d", SAVE_EVERY));
    g_ptr_array_add (words, g_strdup_printf ("--checkpoint-dir=%s", demo->checkpoint_dir));
    g_ptr_array_add (words,
                     g_strdup_printf ("--fast-dir=%s,every=%d", demo->fast_dir, SAVE_FAST_EVERY));
  }
}

static void
start (Task *task)
{
  Demo *demo = task->demo;
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (words, g_strdup (MUSTER));
  if (task->number == MASTER) {
    g_ptr_array_add (words, g_strdup ("serve"));
    g_ptr_array_add (words, g_strdup ("--listen=localhost:0"));
  } else {
    add_training (task, words);
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

/* The share of the other rows that the model on the master names rightly. */
static gboolean
test (Demo *demo)
{
  demo->percent =
      100 * fetch (demo, (const char *const[]){TEST_ROWS, "--feed=x:0=@" IMAGES,
                                               "--feed=y:0=@" LABELS, "--fetch=accuracy:0", NULL});
  return demo->percent >= 0;
}

static int
finish (Demo *demo)
{
  gint64 ended_us = now_us ();
  if (!demo->failed && !test (demo))
    fail (demo, "the model can't be tested");
  signal_all (demo, MASTER, SIGKILL);
  if (demo->failed)
    return 4;
  Task model = {.demo = demo, .name = "model"};
  say (&model, "step %" G_GINT64_FORMAT ", test accuracy %.1f %%", demo->until_step, demo->percent);
  draw_timeline (demo, ended_us);
  if (demo->percent < LEAST_PERCENT) {
    fprintf (stderr, "demo: %.0f %% were expected\n", LEAST_PERCENT);
    return 4;
  }
  printf ("\nOne model, two lives, %" G_GINT64_FORMAT
          " steps trained again: next, `muster --help` or docs/architecture.md.\n",
          demo->again);
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
  g_clear_pointer (&demo->fast_dir, g_free);
}

/* In memory, where there is such a folder. */
static char *
make_fast_dir (void)
{
  const char *memory = g_file_test (MEMORY, G_FILE_TEST_IS_DIR) ? MEMORY : g_get_tmp_dir ();
  return g_mkdtemp (g_build_filename (memory, "muster-demo-XXXXXX", NULL));
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
  demo.fast_dir = make_fast_dir ();
  if (demo.checkpoint_dir == NULL || demo.fast_dir == NULL) {
    fprintf (stderr, "demo: %s\n", error != NULL ? error->message : g_strerror (errno));
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
  remove_directory (demo.fast_dir);
  demo_clear (&demo);
  return code;
}
