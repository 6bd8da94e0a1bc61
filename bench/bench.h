// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph.h"
#include "master/master.h"
#include "session/manager.h"

G_BEGIN_DECLS

/* What the benchmarks share. Each measures muster side by side with what it is held against, in one
 * run, and prints lines of one table; medians, since one slow round says more about the machine
 * than about muster. A number over its bound is printed as such and is no failure; only an error
 * is.
 */

/* --- numbers --- */

double bench_now_s (void);
/* Since 1970, as events of `muster train --json` have it. */
double bench_wall_s (void);
void bench_sleep_s (double seconds);
/* What an environment variable says, if it is set. */
guint bench_number_of (const char *variable, guint otherwise);

/* The median of values, which it sorts. */
double bench_median (GArray *values);

/* A share is printed in percent. */
typedef enum { BENCH_SECONDS, BENCH_BYTES, BENCH_COUNT, BENCH_SHARE } BenchUnit;

typedef struct {
  const char *what;
  BenchUnit unit;
  double muster;
  double other;       /* what it is held against; 0: nothing */
  const char *name;   /* of the other */
  double bound;       /* on muster's number; 0: none */
  double bound_ratio; /* on muster's number over the other; 0: none */
} BenchRow;

void bench_head (void);
void bench_print (const BenchRow *row);

/* Ends the run: "bench: …", exit 1. */
void bench_fail (const char *format, ...) G_GNUC_PRINTF (1, 2) G_GNUC_NORETURN;
/* Fails with error if there is one. */
void bench_check (const GError *error, const char *what);

/* --- children: servers in processes of their own, which end with this one --- */

typedef struct {
  GSubprocess *process;  /* (owned) */
  GDataInputStream *out; /* (owned) */
} BenchChild;

/* NULL-terminated argv. */
BenchChild *bench_child_new (const char *const *argv);
/* This program again, as "bench MODE ARGUMENT". */
BenchChild *bench_child_new_mode_with (const char *mode, const char *argument);
/* As new; what it says on stderr is among its lines. */
BenchChild *bench_child_new_merged (const char *const *argv);
/* This program again, as "bench MODE". */
BenchChild *bench_child_new_mode (const char *mode);
/* The next line it prints, without its end. */
char *bench_child_line (BenchChild *self);
/* A thread that takes each line it prints; join it after the child's end. */
GThread *bench_child_read (BenchChild *self, void (*take) (const char *line, gpointer data),
                           gpointer data);
/* Gives it a line to read. */
void bench_child_say (BenchChild *self, const char *line);
int bench_child_pid (BenchChild *self);
/* A number of an event, a line of JSON; 0: it has none of that name. */
double bench_event_number (const char *line, const char *name);
void bench_child_free (BenchChild *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BenchChild, bench_child_free)

/* The Python of the environment that has TensorFlow, or NULL. */
char *bench_tensorflow_python (void);
/* One of our scripts in it, or NULL where there is none. */
BenchChild *bench_tensorflow_child (const char *script, const char *const *arguments);

/* "muster serve" with these options (nullable, NULL-terminated) on a free port of the loopback;
 * HOST:PORT goes to *address (transfer full). */
BenchChild *bench_serve_command (const char *const *options, char **address);

/* The same, with that "--listen=HOST:PORT". */
BenchChild *bench_serve_command_at (const char *listen, const char *const *options, char **address);
/* HOST:PORT of the loopback that nobody listens on now; (transfer full). */
char *bench_free_address (void);

/* A temporary folder; (transfer full). */
char *bench_make_folder (void);
/* Removes a folder of files. */
void bench_remove_folder (const char *path);

/* What a process has used of the processor so far, in user and system mode, and what memory it
 * holds now, in bytes. */
double bench_cpu_s (int pid);
/* The same to the nanosecond, of the threads that live: for one that uses hardly any. */
double bench_fine_cpu_s (int pid);
double bench_resident_bytes (int pid);
double bench_peak_bytes (int pid); /* the most that was resident */
/* Fails unless this process and pid may both open n files; raises its own limit to that. */
void bench_need_files (int pid, guint n);

/* What "bench MODE" runs: serves until its input ends. */
int bench_serve_echo (void);
int bench_serve_bulk (void); /* without anything behind it; see bulk.c */
/* muster's C client at both servers, HOST:PORT: muster's, and that one. */
void bench_bulk_client (const char *ours, const char *bare);
int bench_serve_muster (void);
/* What "bench --run-apart COMMAND..." does: runs it, and prints its seconds and its most bytes. */
#define BENCH_RUN_APART "--run-apart"
int bench_run_apart (char **argv);
/* What "bench --first-save" does: prints the steps per second before and after a first save. */
#define BENCH_FIRST_SAVE "--first-save"
int bench_first_save (void);
/* What "bench --gathered gathered|sharded" does: prints the figures of one way. */
#define BENCH_GATHERED "--gathered"
int bench_gathered_apart (const char *how);
/* What "bench --cluster" does, in a network namespace of its own. */
#define BENCH_CLUSTER "--cluster"
int bench_cluster_in_namespace (void);
/* What "bench --wait-crowd HOST:PORT" runs: very many clients that wait for a server. */
int bench_wait_crowd (const char *address);

/* Elements of the tensors that make a call a bulk one: 64 MiB of floats. */
#define BENCH_BULK ((gint64)16 << 20)

/* --- clients and models --- */

/* n clients, each on a connection of its own with one call at a time; method is kept, message is
 * copied. The calling thread drives them. */
typedef struct _BenchCallers BenchCallers;
BenchCallers *bench_callers_new (const char *address, const char *method, GBytes *message, guint n);
/* Empty calls to a server that "bench --serve-echo" runs. */
BenchCallers *bench_echo_new (const char *address, guint n);
/* Makes n_calls in all, and waits until each is answered. */
void bench_callers_run (BenchCallers *self, guint n_calls);
void bench_callers_free (BenchCallers *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BenchCallers, bench_callers_free)

MusterMaster *bench_remote (const char *address);

/* What a server of muster's says of itself. */
typedef struct {
  gint64 sessions, watchers;
} BenchStatus;
BenchStatus bench_status (const char *address);

MusterSession *bench_create_session (MusterMaster *master, MusterGraph *graph);
/* Runs a model's "init". */
void bench_init (MusterSession *session);

/* A relay in this process: it passes TensorFlow's MasterService on to a server, and nothing else,
 * so that muster's server behind it is a master that can't push; and it counts the steps. */
typedef struct _BenchRelay BenchRelay;
BenchRelay *bench_relay_new (const char *address);
const char *bench_relay_address (BenchRelay *self);
gint64 bench_relay_n_steps (BenchRelay *self);
void bench_relay_free (BenchRelay *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BenchRelay, bench_relay_free)

/* Many watchers of one server, each with a session of its own, spread over connections; driven by
 * one thread, without muster's client, which would share a connection. */
typedef struct _BenchCrowd BenchCrowd;
typedef struct {
  const char *address;
  const char *ca; /* (nullable) in PEM: TLS */
  guint n_connections;
  guint n_watchers;
  MusterGraph *model;
  const char *ready_op;
} BenchCrowdOptions;
/* Connects and creates the sessions. */
BenchCrowd *bench_crowd_new (const BenchCrowdOptions *options);
/* Opens a watch in each, and waits until each has heard its first turn. */
void bench_crowd_watch (BenchCrowd *self);
/* Waits until each has heard that the model is ready; the last one's instant, in seconds. */
double bench_crowd_until_ready (BenchCrowd *self);
void bench_crowd_free (BenchCrowd *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BenchCrowd, bench_crowd_free)
/* x + 2, fetched as "sum:0". */
MusterGraph *bench_addition (void);
/* -x of a vector, and a vector for it; a step that feeds and fetches, in seconds. */
MusterGraph *bench_negation (void);
MusterTensor *bench_ones (gint64 n);
double bench_negate (MusterSession *session, MusterTensor *x);
/* n variables of four floats, with "init" and a ready op, whose name goes to *ready_op. */
MusterGraph *bench_model (guint n, char **ready_op);
/* n variables of n_elements floats each, with "init" and a saver of all of them. */
MusterMetaGraph *bench_saved_model (guint n, gint64 n_elements);
/* n float variables of side x side that every run of "train" updates in place, with "init", a
 * global step and a saver of all of them. */
MusterMetaGraph *bench_updated_model (guint n, gint32 side);
/* The same for "muster train": all of it is saved, the gradient too, so that it holds n + 1
 * variables; it is fed rows of 64 floats as "x:0", and names its ops. */
MusterMetaGraph *bench_trained_model (guint n, gint32 side);
/* Adds a float variable of its own memory with NAME/Assign, filled by an op (dims and value are
 * nodes): a constant of that size would be in the graph. */
typedef struct {
  const char *name;
  int n_dims;
  const gint64 *shape;
  const char *dims;
  MusterDType dims_type;
  const char *value;
} BenchVariable;
void bench_add_variable (MusterGraphBuilder *b, const BenchVariable *variable);
/* Writes a serialised graph or meta graph to a temporary file, for TensorFlow; the path is the
 * caller's, and so is the file. */
char *bench_model_file (GBytes *bytes);
/* With default settings. */
MusterSessionManager *bench_manager (MusterGraph *model, const char *ready_op);

/* --- the benchmarks --- */

void bench_step_remote (void);
void bench_step_local (void);
void bench_step_logged (void);
void bench_clients (void);
void bench_gateway (void);
void bench_prepare (void);
void bench_waiters (void);
void bench_wait_commands (void);
void bench_serve (void);
void bench_scale (void);
void bench_growth (void);
void bench_latency (void);
void bench_pollers (void);
void bench_sessions (void);
void bench_crowd (void);
void bench_crowd_apart (void);
void bench_crowd_tls (void);
void bench_recovery (void);
void bench_recovery_crowd (void);
void bench_outage (void);
void bench_cluster (void);
void bench_elastic (void);
void bench_coordinator (void);
void bench_python (void);
void bench_save (void);
void bench_save_memory (void);
void bench_save_small (void);
void bench_restore (void);
void bench_restore_cached (void);
void bench_restore_small (void);
void bench_async (void);
void bench_saves (void);
void bench_gathered (void);
void bench_s3 (void);
void bench_train (void);
void bench_compute (void);
void bench_bulk (void);
void bench_census (void);
void bench_census_prepare (void);

G_END_DECLS
