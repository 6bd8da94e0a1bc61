// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"
#include "cli/certs/certs.h"
#include "cli/checkpoint/checkpoint.h"
#include "cli/commands/commands.h"
#include "cli/common/cli.h"
#include "cli/common/nearest.h"
#include "cli/doctor/doctor.h"
#include "cli/output/log.h"
#include "cli/output/table.h"
#include "cli/terminal/interrupt.h"
#include "engine/session/local_master.h"
#include "session/peer/peer_storage.h"
#include "tensorflow/tensorflow_master.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const struct {
  const char *name;
  int (*run) (int argc, char **argv);
  const char *what;
} commands[] = {
    {"serve", muster_cli_serve, "serve a master: sessions and variables for others, over gRPC"},
    {"prepare", muster_cli_prepare,
     "make a model ready: restore its latest checkpoint, or initialise it"},
    {"wait", muster_cli_wait,
     "wait until another task has made a model ready, and show what is missing"},
    {"train", muster_cli_train,
     "train a model from the last checkpoint to a global step, as its chief or a worker"},
    {"evaluate", muster_cli_evaluate,
     "evaluate each checkpoint that a job saves, and mark it with the metrics"},
    {"inspect", muster_cli_inspect,
     "describe a graph: what it needs, and the commands that train, prepare and evaluate it"},
    {"status", muster_cli_status, "show a master's state: models, chiefs, waiting clients, limits"},
    {"doctor", muster_cli_doctor,
     "find what keeps a job from training or puts it at risk, with the remedy"},
    {"run", muster_cli_run, "run steps of a model: feed, fetch, train"},
    {"save", muster_cli_save, "save a model's variables as a checkpoint"},
    {"drain", muster_cli_drain, "let chiefs save and tasks hold, before servers are stopped"},
    {"finish", muster_cli_finish, "mark a job as over on the master"},
    {"certs", muster_cli_certs,
     "make certificates and tokens for a secured server and its clients"},
    {"checkpoint", muster_cli_checkpoint,
     "inspect, keep, prune and edit checkpoints: list, show, latest, verify, diff, prune, pin, "
     "unpin, mark, copy, merge, extract, rename"},
};

static const char about[] =
    "Starts and resumes TensorFlow 1-style training jobs: prepares, restores and coordinates\n"
    "their sessions. A chief prepares the model on a master; workers wait until it is ready.\n"
    "After a crash, all tasks resume from the last checkpoint.";

static const char rest[] =
    "To try it:\n"
    "  muster train --example\n"
    "Or in two terminals:\n"
    "  muster serve --listen=localhost:2222\n"
    "  muster prepare --meta-graph=model.meta --master=grpc://localhost:2222\n\n"
    "Exit codes: 0 success, 1 not ready before the timeout, 2 no answer from the master,\n"
    "3 invalid usage or input, 4 failure, 5 the job is already over, 6 preempted, can be resumed.\n"
    "Help for a command: muster help COMMAND";

static void
print_help (FILE *to)
{
  const guint columns = muster_cli_terminal_columns (to);
  g_autofree char *before = muster_cli_wrap (about, columns);
  g_autofree char *after = muster_cli_wrap (rest, columns);
  g_autoptr (MusterTable) table = muster_table_new (2);
  for (gsize i = 0; i < G_N_ELEMENTS (commands); i++) {
    g_autofree char *name = g_strconcat ("  ", commands[i].name, NULL);
    muster_table_add (table, name, commands[i].what, NULL);
  }
  muster_table_add (table, "  help", "show the help of a command", NULL);
  muster_cli_put (to, "Usage: muster COMMAND [OPTION…]\n\n%s\nCommands:\n", before);
  muster_table_print (table, to);
  muster_cli_put (to, "\n%s", after);
}

static int
refuse (const char *command)
{
  MusterNearest nearest;
  muster_nearest_begin (&nearest, command);
  for (gsize i = 0; i < G_N_ELEMENTS (commands); i++)
    muster_nearest_try (&nearest, commands[i].name);
  g_autofree char *meant = muster_nearest_text (&nearest, "");
  muster_cli_say (stderr, "muster: unknown command '%s'%s\n", command,
                  *meant != '\0' ? meant : "; `muster help` lists the commands");
  return MUSTER_EXIT_BAD_INPUT;
}

static int
run (int argc, char **argv)
{
  for (gsize i = 0; i < G_N_ELEMENTS (commands); i++)
    if (strcmp (argv[0], commands[i].name) == 0) {
      muster_take_signals (commands[i].name);
      return commands[i].run (argc, argv);
    }
  return refuse (argv[0]);
}

/* "help COMMAND [VERB]" is "COMMAND [VERB] --help". */
static int
help (int argc, char **argv)
{
  g_autofree char **words = g_new0 (char *, argc + 2);
  g_autofree char *flag = g_strdup ("--help");
  memcpy (words, argv, (gsize)argc * sizeof *words);
  words[argc] = flag;
  return run (argc + 1, words);
}

static gboolean
is_one_of (const char *word, const char *a, const char *b)
{
  return strcmp (word, a) == 0 || strcmp (word, b) == 0;
}

static int
answer (int argc, char **argv)
{
  if (argc < 2) {
    print_help (stderr);
    return MUSTER_EXIT_BAD_INPUT;
  }
  const gboolean is_help = strcmp (argv[1], "help") == 0;
  if (is_help && argc > 2 && !is_one_of (argv[2], "--help", "-h") && strcmp (argv[2], "help") != 0)
    return help (argc - 2, argv + 2);
  if (is_help || is_one_of (argv[1], "--help", "-h")) {
    print_help (stdout);
    return MUSTER_EXIT_DONE;
  }
  if (strcmp (argv[1], "--version") == 0) {
    printf ("muster %s\n", MUSTER_VERSION);
    return MUSTER_EXIT_DONE;
  }
  return run (argc - 1, argv + 1);
}

/* Else the first file that is opened becomes the output, and what is printed goes into it. Writing
 * to what was closed still fails, as reading does. */
static void
hold_closed_streams (void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl (fd, F_GETFD) < 0)
      (void)!open ("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int
main (int argc, char **argv)
{
  hold_closed_streams ();
  setlocale (LC_ALL, "");
  setlocale (LC_NUMERIC, "C"); /* numbers don't depend on the locale */
  signal (SIGPIPE, SIG_IGN);   /* output whose reader is gone ends no training and no server */
  signal (SIGXFSZ, SIG_IGN);   /* nor does a file beyond `ulimit -f`: its write fails */
  muster_local_master_offer ();
  muster_tensorflow_master_offer ();
  muster_peer_storage_offer ();
  muster_cli_log_begin ();
  return muster_cli_leave (answer (argc, argv));
}
