// SPDX-License-Identifier: Apache-2.0
/* Steps of training: muster's monitored session beside TensorFlow's, on the same meta graph. */
#include "bench/bench.h"

#include "engine/session/local_master.h"
#include "graph/npy.h"
#include "train/train.h"

#define META     "tests/fixtures/digits.meta"
#define X_FILE   "tests/fixtures/digits_x.npy"
#define Y_FILE   "tests/fixtures/digits_y.npy"
#define ROWS     32
#define PIXELS   64
#define N_ROUNDS 31
/* A round of hooks is short, and twice what they do something after: a round in which the machine
 * was busy with something else is one of many. */
#define HOOK_ROUNDS 301
#define HOOK_STEPS  200

/* One job: a monitored session in this process, "muster train" as a call, or a child's. */
typedef struct {
  MusterMaster *master;            /* (not owned) (nullable) where muster_train () trains */
  MusterScaffold *scaffold;        /* (owned) (nullable) */
  MusterMonitoredSession *session; /* (owned) (nullable) */
  MusterTensor *x, *y;             /* (owned) (nullable) */
  char *directory;                 /* (owned) (nullable) for what hooks write */
  BenchChild *child;               /* (owned) (nullable) */
  GArray *seconds;                 /* (owned) of one step, a number for each round */
} Trainer;

static MusterTensor *
make_pixels (void)
{
  const gint64 dims[] = {ROWS, PIXELS};
  float pixels[ROWS * PIXELS];
  g_autoptr (GRand) random = g_rand_new_with_seed (1);
  for (gsize i = 0; i < G_N_ELEMENTS (pixels); i++)
    pixels[i] = (float)g_rand_double (random);
  return muster_tensor_new_from_data (MUSTER_FLOAT, 2, dims, pixels, sizeof pixels, NULL);
}

static MusterTensor *
make_labels (void)
{
  const gint64 dims[] = {ROWS};
  gint64 labels[ROWS];
  g_autoptr (GRand) random = g_rand_new_with_seed (2);
  for (gsize i = 0; i < ROWS; i++)
    labels[i] = g_rand_int_range (random, 0, 10);
  return muster_tensor_new_from_data (MUSTER_INT64, 1, dims, labels, sizeof labels, NULL);
}

static void
log_nothing (const char *text G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED)
{
}

/* Besides those that a checkpoint directory brings: step counter, summaries, checkpoints. */
static GPtrArray *
make_hooks (void)
{
  static const char *const tensors[] = {"loss:0", NULL};
  g_autoptr (GError) error = NULL;
  GPtrArray *hooks = g_ptr_array_new_with_free_func (g_object_unref);
  MusterHook *logging = muster_logging_hook_new (tensors, 100, 0, FALSE, NULL, &error);
  bench_check (error, "making a hook");
  g_signal_connect (logging, "line", G_CALLBACK (log_nothing), NULL);
  g_ptr_array_add (hooks, muster_stop_at_step_hook_new (0, G_MAXINT32, &error));
  bench_check (error, "making a hook");
  g_ptr_array_add (hooks, logging);
  g_ptr_array_add (hooks, muster_nan_hook_new ("loss:0", TRUE));
  return hooks;
}

static void
trainer_init (Trainer *self, MusterMaster *master, gboolean with_hooks)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) hooks = make_hooks ();
  self->scaffold = muster_scaffold_load (META, &error);
  bench_check (error, "reading the model");
  MusterMonitoredTrainingOptions options = {.scaffold = self->scaffold, .master = master};
  if (with_hooks) {
    options.hooks = (MusterHook *const *)hooks->pdata;
    options.n_hooks = hooks->len;
    options.saving.checkpoint_dir = self->directory = bench_make_folder ();
  }
  self->session = muster_monitored_training_session_new (&options, NULL, NULL, &error);
  bench_check (error, "making a monitored session");
  self->x = make_pixels ();
  self->y = make_labels ();
}

static MusterTensor *
load (const char *path)
{
  g_autoptr (GError) error = NULL;
  MusterTensor *array = muster_npy_load (path, &error);
  bench_check (error, path);
  return array;
}

static void
trainer_init_call (Trainer *self, MusterMaster *master)
{
  g_autoptr (GError) error = NULL;
  self->master = master;
  self->scaffold = muster_scaffold_load (META, &error);
  bench_check (error, "reading the model");
  self->x = load (X_FILE);
  self->y = load (Y_FILE);
}

static void
trainer_init_tensorflow (Trainer *self, const char *target)
{
  self->child =
      bench_tensorflow_child ("tensorflow_train.py", (const char *const[]){META, target, NULL});
  if (self->child != NULL)
    g_free (bench_child_line (self->child));
}

static void
trainer_clear (Trainer *self)
{
  g_clear_object (&self->session);
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  g_clear_pointer (&self->x, muster_tensor_unref);
  g_clear_pointer (&self->y, muster_tensor_unref);
  g_clear_pointer (&self->child, bench_child_free);
  if (self->directory != NULL)
    bench_remove_folder (self->directory);
  g_clear_pointer (&self->directory, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Trainer, trainer_clear)

static void
run_steps (Trainer *self, int n)
{
  static const char *const targets[] = {"train"};
  g_autoptr (GError) error = NULL;
  const MusterFeed feeds[] = {{"x:0", self->x}, {"y:0", self->y}};
  MusterStep step = {.feeds = feeds, .n_feeds = 2, .targets = targets, .n_targets = 1};
  for (int i = 0; i < n; i++)
    if (!muster_monitored_session_run (self->session, &step, NULL, NULL, &error))
      bench_check (error, "a step of training");
}

static void
note_ready (MusterTrainingObserver *observer G_GNUC_UNUSED,
            const MusterSessionReport *report G_GNUC_UNUSED, gint64 step G_GNUC_UNUSED,
            gpointer user_data)
{
  *(double *)user_data = bench_now_s ();
}

/* What "muster train" does, from when its session is ready to the end. */
static double
time_training (Trainer *self, int n)
{
  static const char *const feeds[] = {"x:0", "y:0"};
  double ready_s = 0;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTrainingObserver) observer = muster_training_observer_new ();
  g_signal_connect (observer, "ready", G_CALLBACK (note_ready), &ready_s);
  MusterTensor *const arrays[] = {self->x, self->y};
  g_autoptr (MusterBatches) batches = muster_batches_new (arrays, 2, ROWS, 1, &error);
  bench_check (error, "making batches");
  MusterTraining training = {.session.scaffold = self->scaffold,
                             .session.master = self->master,
                             .batches = batches,
                             .feeds = feeds,
                             .n_feeds = 2,
                             .until_step = n,
                             .observer = observer};
  (void)muster_train (&training, NULL, NULL, &error);
  bench_check (error, "training");
  return (bench_now_s () - ready_s) / n;
}

/* How long a step takes, over n of them. */
static double
time_steps (Trainer *self, int n)
{
  if (self->master != NULL)
    return time_training (self, n);
  if (self->child != NULL) {
    g_autofree char *wanted = g_strdup_printf ("%d", n);
    bench_child_say (self->child, wanted);
    g_autofree char *line = bench_child_line (self->child);
    return g_ascii_strtod (line, NULL);
  }
  double started = bench_now_s ();
  run_steps (self, n);
  return (bench_now_s () - started) / n;
}

/* Turn by turn, there and back, so that what else the machine does falls on all alike. */
static void
measure (Trainer *const *trainers, gsize n, const int *steps, int n_rounds)
{
  for (gsize i = 0; i < n; i++)
    trainers[i]->seconds = g_array_new (FALSE, FALSE, sizeof (double));
  for (int round = -2; round < n_rounds; round++)
    for (gsize i = 0; i < n; i++) {
      gsize which = round % 2 == 0 ? i : n - 1 - i;
      double each = time_steps (trainers[which], steps[which]);
      if (round >= 0) /* the first two warm up */
        g_array_append_val (trainers[which]->seconds, each);
    }
}

static void
forget (Trainer *const *trainers, gsize n)
{
  for (gsize i = 0; i < n; i++)
    g_clear_pointer (&trainers[i]->seconds, g_array_unref);
}

/* The median of what one takes over what the other takes, round by round. */
static double
median_ratio (const Trainer *self, const Trainer *other)
{
  g_autoptr (GArray) ratios = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < self->seconds->len; i++) {
    double ratio =
        g_array_index (self->seconds, double, i) / g_array_index (other->seconds, double, i);
    g_array_append_val (ratios, ratio);
  }
  return bench_median (ratios);
}

static void
compare (Trainer *self, Trainer *other, const char *what, const char *name, double bound)
{
  double ratio = median_ratio (self, other);
  g_autoptr (GArray) theirs = g_array_copy (other->seconds);
  double median = bench_median (theirs);
  bench_print (&(BenchRow){
      .what = what, .muster = median * ratio, .other = median, .name = name, .bound_ratio = bound});
}

/* Between themselves first: a child of TensorFlow's keeps cores busy for a while after its turn. */
static void
compare_hooks (Trainer *plain, Trainer *hooked, const char *what)
{
  Trainer *const trainers[] = {plain, hooked};
  measure (trainers, 2, (const int[]){HOOK_STEPS, HOOK_STEPS}, HOOK_ROUNDS);
  compare (hooked, plain, what, "none", 1.05);
  forget (trainers, 2);
}

/* A chief that begins a job resets its master, so muster_train () has one of its own. */
typedef struct {
  MusterMaster *master, *of_call; /* (not owned) */
  const char *target;             /* of TensorFlow's */
  int n_ours, n_theirs;           /* steps in a round */
  const char *where;
} Place;

static void
compare_on (const Place *place)
{
  g_auto (Trainer) plain = {0}, hooked = {0}, call = {0}, theirs = {0};
  g_autofree char *step = g_strdup_printf ("a training step %s", place->where);
  g_autofree char *with_hooks = g_strdup_printf ("%s, all stock hooks", step);
  g_autofree char *by_call = g_strdup_printf ("%s, muster train", step);
  trainer_init (&plain, place->master, FALSE);
  trainer_init (&hooked, place->master, TRUE);
  compare_hooks (&plain, &hooked, with_hooks);
  trainer_init_tensorflow (&theirs, place->target);
  if (theirs.child == NULL)
    return;
  trainer_init_call (&call, place->of_call);
  Trainer *const trainers[] = {&plain, &hooked, &call, &theirs};
  int n = place->n_ours;
  measure (trainers, 4, (const int[]){n, n, 4 * n, place->n_theirs}, N_ROUNDS);
  compare (&plain, &theirs, step, "TensorFlow", 1.0 / 5);
  compare (&hooked, &theirs, with_hooks, "TensorFlow", 1.0 / 5);
  compare (&call, &theirs, by_call, "TensorFlow", 1.0 / 5);
  forget (trainers, 4);
}

static void
train_here (void)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterMaster) of_call = muster_local_master_new ();
  compare_on (&(Place){.master = master,
                       .of_call = of_call,
                       .target = "",
                       .n_ours = 1000,
                       .n_theirs = 200,
                       .where = "here"});
}

static void
train_remotely (void)
{
  g_autofree char *address = NULL, *address_of_call = NULL;
  g_autoptr (BenchChild) server = bench_serve_command (NULL, &address);
  g_autoptr (BenchChild) server_of_call = bench_serve_command (NULL, &address_of_call);
  g_autoptr (BenchChild) tensorflow = bench_tensorflow_child ("tensorflow_server.py", NULL);
  g_autofree char *tf_address = tensorflow != NULL ? bench_child_line (tensorflow) : NULL;
  g_autofree char *target = g_strconcat ("grpc://", tf_address, NULL);
  g_autoptr (MusterMaster) master = bench_remote (address);
  g_autoptr (MusterMaster) of_call = bench_remote (address_of_call);
  compare_on (&(Place){.master = master,
                       .of_call = of_call,
                       .target = target,
                       .n_ours = 300,
                       .n_theirs = 100,
                       .where = "over gRPC"});
}

void
bench_train (void)
{
  train_here ();
  train_remotely ();
}
