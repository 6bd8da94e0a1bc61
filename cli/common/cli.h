// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "cli/common/usage_error.h"
#include "cli/output/sanitise.h"
#include "master/master.h"
#include "rpc/credentials.h"
#include "session/cluster/cluster_spec.h"
#include "session/manager.h"
#include "train/monitored/scaffold.h"

#include <stdio.h>

G_BEGIN_DECLS

/* What the commands share: exit codes, common options, printing of errors and results. Results go
 * to stdout, everything else to stderr; with --json each result is a line of JSON. */

typedef enum {
  MUSTER_EXIT_DONE = 0,
  MUSTER_EXIT_NOT_READY = 1, /* not ready before the timeout */
  MUSTER_EXIT_NO = 1,        /* the answer is no: checkpoints differ, or one is damaged */
  MUSTER_EXIT_NO_ANSWER = 2, /* no answer from the master */
  MUSTER_EXIT_BAD_INPUT = 3, /* bad usage or bad input */
  MUSTER_EXIT_FAILED = 4,    /* the operation failed, or another chief holds the model */
  MUSTER_EXIT_OVER = 5,      /* the job is already over */
  MUSTER_EXIT_PREEMPTED = 6, /* preempted; can be resumed */
} MusterExit;

/* The common options. Zero-initialise it. */
typedef struct {
  char *meta_graph;  /* (owned) --meta-graph=FILE */
  char **train_ops;  /* (owned) (nullable) --train-op=NAME, … */
  char *target;      /* (owned) --master=TARGET */
  char *coordinator; /* (owned) (nullable) --coordinator=TARGET, or from TF_CONFIG */
  char *timeout;     /* (owned) --timeout=SECONDS */
  gboolean json;     /* --json */
  gboolean quiet;    /* --quiet of a command that waits: it reports nothing but a failure */
  char *model;       /* (owned) --model=NAME, or the meta graph's file name without .meta */
  char **models;     /* (owned) (nullable) all of --model, where it may be repeated */
  char *task;        /* (owned) (nullable) --task=worker:3 */
  char *cluster;     /* (owned) (nullable) --cluster=ps:0=HOST:PORT,… */
  char *trace;       /* (owned) (nullable) --trace=FILE */
  char *tls_ca;      /* (owned) (nullable) --tls-ca=FILE, … */
  char *tls_cert;    /* (owned) (nullable) */
  char *tls_key;     /* (owned) (nullable) */
  char *token_file;  /* (owned) (nullable) */
  char *log_level;   /* (owned) (nullable) --log-level=LEVEL */
  char *log_format;  /* (owned) (nullable) --log-format=FORMAT */
  gint64 timeout_us; /* from timeout */
  char **addresses;  /* (owned) (nullable) from cluster, or TF_CONFIG */
  /* From TF_CONFIG, for commands that open sessions; --master, --task and --cluster override it. */
  MusterClusterSpec *spec;   /* (owned) (nullable) */
  gboolean target_from_spec; /* target is from TF_CONFIG */
  char *chief;               /* (owned) (nullable) "chief:0=HOST:PORT", if it has its own master */
  GBytes *config;            /* (owned) (nullable) a ConfigProto for each session */
} MusterCliOptions;

void muster_cli_options_clear (MusterCliOptions *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterCliOptions, muster_cli_options_clear)

/* The common options of a command. */
typedef enum {
  MUSTER_CLI_META_GRAPH = 1 << 0,
  MUSTER_CLI_MASTER = 1 << 1,
  MUSTER_CLI_TIMEOUT = 1 << 2,
  MUSTER_CLI_JSON = 1 << 3,
  MUSTER_CLI_MODEL = 1 << 4,
  MUSTER_CLI_TASK = 1 << 5,
  MUSTER_CLI_CLUSTER = 1 << 6,
  MUSTER_CLI_TRACE = 1 << 7,
  MUSTER_CLI_SECURITY = 1 << 8, /* --tls-ca, --tls-cert, --tls-key, --token-file */
  MUSTER_CLI_SHORT = 1 << 9,    /* the default timeout is 10 s; otherwise none */
  MUSTER_CLI_SHARED = 1 << 10,  /* a master in this process is refused */
  MUSTER_CLI_BY_NAME = 1 << 11, /* --model may stand for --meta-graph, and be repeated */
  MUSTER_CLI_LOG = 1 << 12,     /* --log-level, --log-format; they are applied */
  /* the options of commands that open a session … */
  MUSTER_CLI_SESSION = MUSTER_CLI_META_GRAPH | MUSTER_CLI_MASTER | MUSTER_CLI_TIMEOUT |
                       MUSTER_CLI_JSON | MUSTER_CLI_SECURITY,
  /* … and those of prepare and wait */
  MUSTER_CLI_OPERATION = MUSTER_CLI_SESSION | MUSTER_CLI_MODEL | MUSTER_CLI_TASK |
                         MUSTER_CLI_CLUSTER | MUSTER_CLI_TRACE | MUSTER_CLI_LOG,
} MusterCliWants;

/* A number that the command line doesn't give, where a given 0 would be wrong. */
#define MUSTER_CLI_NOT_GIVEN (G_MININT + 7)

/* For a table of options that is static data (cli/common/flags.h): the place of a field in the
 * struct that the options are read into. */
#define MUSTER_CLI_AT(Type, field) ((gpointer)G_STRUCT_OFFSET (Type, field))

/* Parses a command's arguments: its own entries (NULL-terminated) and the common ones in wants, of
 * which --meta-graph and --master are required. usage is the text after the command's name ("DIR"),
 * summary a paragraph for --help, which prints and exits. *rest (nullable out, transfer full)
 * becomes the remaining words; a command without it refuses them. FALSE with a message that names
 * the option. */
gboolean muster_cli_parse (int argc, char **argv, const char *usage, const char *summary,
                           const GOptionEntry *entries, MusterCliWants wants,
                           MusterCliOptions *options, char ***rest, GError **error);

/* Improves the error of a master that gave no answer: UNAVAILABLE also where the time ran out;
 * probes the master's port, and reports if only one side uses TLS. */
void muster_cli_explain_no_answer (const MusterCliOptions *options, gint64 deadline_us,
                                   GError **error);

/* Creates a session for a graph, with the options' config. */
MusterSession *muster_cli_create_session (MusterMaster *master, MusterGraph *graph,
                                          const MusterCliOptions *options, gint64 deadline_us,
                                          GError **error);

/* INVALID_ARGUMENT for an unsupported directory or checkpoint (nullable), such as "s3://b/run". */
gboolean muster_cli_check_path (const char *option, const char *path, GError **error);
/* The same for a directory, in place of which there is no file. */
gboolean muster_cli_check_directory (const char *option, const char *path, GError **error);

/* Gives each word of argv that is flag ("--ready") an empty value ("--ready="), for an option whose
 * value may be left out: GOption would take the next word. NULL if that is there already.
 * (transfer full) */
char **muster_cli_allow_no_value (char *const *argv, const char *flag, GError **error);

/* Parses "30", "30s", "10m", "2h", "500ms" to microseconds, "forever" to MUSTER_WAIT_FOREVER. */
gboolean muster_cli_duration (const char *text, gint64 *duration_us, GError **error);

/* Prints "muster: MESSAGE" and returns the exit code. */
MusterExit muster_cli_fail (const GError *error);
/* The exit code for an error. */
MusterExit muster_cli_exit_of (const GError *error);

/* Ends a command that has nothing more to do or to say: what it printed is flushed, and the kernel
 * frees its memory and closes its connections at once, for which the libraries' own clean-up takes
 * three times as long. Where a build looks at what is left at the end (sanitizers, coverage) it
 * returns the code, for the way through main (). Output that couldn't be written is a failure,
 * unless its reader is gone, as `head` is. */
MusterExit muster_cli_leave (MusterExit code);
/* For a command whose work is done whether or not what it prints can be written: that changes no
 * exit code, for a supervisor would start a job that is complete again and again. */
void muster_cli_output_only_tells (void);

/* TRUE if the stream is a terminal. Colour is used there unless NO_COLOR is set. */
gboolean muster_cli_is_terminal (FILE *stream);

/* Reads the credentials (transfer full); NULL if no file is given and TLS isn't set. */
gboolean muster_cli_read_credentials (const MusterRpcSecurity *files,
                                      MusterRpcCredentials **credentials, GError **error);
/* The same for the options' target. */
gboolean muster_cli_credentials (const MusterCliOptions *options,
                                 MusterRpcCredentials **credentials, GError **error);

/* Creates a master with the given files, and with TLS if the target begins with grpcs://.
 * *credentials (nullable) (transfer full) become those in use. */
MusterMaster *muster_cli_master_at (const char *target, const MusterRpcSecurity *files,
                                    MusterRpcCredentials **credentials, GError **error);
/* Creates the master for the options. */
MusterMaster *muster_cli_master (const MusterCliOptions *options, GError **error);

/* The scaffold of the options' meta graph, completed. What was added is said on stderr, except with
 * --json. */
MusterScaffold *muster_cli_scaffold (const MusterCliOptions *options, GError **error);

/* A manager for a scaffold's ops, with the options' model and task; step (nullable) is what the
 * session will run, recovery_wait_us 0 is the default. */
MusterSessionManager *muster_cli_manager (MusterScaffold *scaffold, const MusterCliOptions *options,
                                          const MusterStep *step, gint64 recovery_wait_us,
                                          GError **error);

G_END_DECLS
