// SPDX-License-Identifier: Apache-2.0
#include "base/version.h"
#include "cli/live.h"
#include "engine/local_master.h"
#include "runtime/tensorflow_master.h"

#include <locale.h>
#include <string.h>

static const struct {
  const char *name;
  int (*run) (int argc, char **argv);
  const char *what;
} commands[] = {
    {"serve", muster_cli_serve, "serve a master: sessions and variables for others, over gRPC"},
    {"prepare", muster_cli_prepare,
     "make a model ready: restore its latest checkpoint, or initialise it"},
    {"wait", muster_cli_wait,
     "wait until another task has made a model ready, and say what is missing"},
    {"train", muster_cli_train,
     "train a model: chief or worker, from the last checkpoint to a step"},
    {"status", muster_cli_status, "look at a master: its models, their chiefs, who waits"},
    {"run", muster_cli_run, "run steps of a model: feed, fetch, train"},
    {"save", muster_cli_save, "save a model's variables as a checkpoint"},
    {"finish", muster_cli_finish, "tell the master that a job is over"},
    {"checkpoint", muster_cli_checkpoint,
     "look at checkpoints: list, show, latest, verify, diff, prune"},
};

static void
print_help (FILE *to)
{
  fprintf (
      to, "Usage: muster COMMAND [OPTION…]\n\n"
          "Brings a graph-mode training job to its starting line: a chief prepares the model on a\n"
          "master, workers wait until it is ready, and after a crash all go on from the last "
          "checkpoint.\n\n"
          "Commands:\n");
  for (gsize i = 0; i < G_N_ELEMENTS (commands); i++)
    fprintf (to, "  %-11s %s\n", commands[i].name, commands[i].what);
  fprintf (
      to,
      "\n"
      "A first try, in two terminals:\n"
      "  muster serve --listen=localhost:2222\n"
      "  muster prepare --meta-graph=model.meta --master=grpc://localhost:2222\n\n"
      "Exit codes: 0 done, 1 not ready before the timeout, 2 no answer from the master,\n"
      "3 bad usage or input, 4 it failed, 5 the job is already over, 6 preempted, can be resumed.\n"
      "More of each: muster COMMAND --help\n");
}

int
main (int argc, char **argv)
{
  setlocale (LC_ALL, "");
  muster_local_master_offer ();
  muster_tensorflow_master_offer ();
  g_log_set_default_handler (muster_live_log, NULL);
  if (argc < 2) {
    print_help (stderr);
    return MUSTER_EXIT_BAD_INPUT;
  }
  if (strcmp (argv[1], "--help") == 0 || strcmp (argv[1], "-h") == 0 ||
      strcmp (argv[1], "help") == 0) {
    print_help (stdout);
    return MUSTER_EXIT_DONE;
  }
  if (strcmp (argv[1], "--version") == 0) {
    printf ("muster %s\n", MUSTER_VERSION);
    return MUSTER_EXIT_DONE;
  }
  for (gsize i = 0; i < G_N_ELEMENTS (commands); i++)
    if (strcmp (argv[1], commands[i].name) == 0)
      return commands[i].run (argc - 1, argv + 1);
  fprintf (stderr, "muster: there is no command '%s'; `muster --help` lists them\n", argv[1]);
  return MUSTER_EXIT_BAD_INPUT;
}
