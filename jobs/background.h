// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job_runner.h"

G_BEGIN_DECLS

/* The operations of jobs in the background, for programs with a main loop: master/background.h has
 * the conventions. An object that belongs to one thread belongs to the call until that is over, and
 * the program's functions are called on the call's threads. */

/**
 * muster_cluster_open_async:
 * @self: a cluster
 * @timeout_us: microseconds, or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Creates every node's session in the background: muster_cluster_open ().
 */
void muster_cluster_open_async (MusterCluster *self, gint64 timeout_us, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_cluster_open_finish:
 * @self: a cluster
 * @result: what the callback was given
 *
 * The result of muster_cluster_open_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_cluster_open_finish (MusterCluster *self, GAsyncResult *result, GError **error);

/**
 * muster_cluster_run_async:
 * @self: a cluster
 * @group: the group
 * @deadline_us: an instant, or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Runs a group in the background: muster_cluster_run ().
 */
void muster_cluster_run_async (MusterCluster *self, MusterJobGroup *group, gint64 deadline_us,
                               GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data);

/**
 * muster_cluster_run_finish:
 * @self: a cluster
 * @result: what the callback was given
 *
 * The result of muster_cluster_run_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_cluster_run_finish (MusterCluster *self, GAsyncResult *result, GError **error);

/**
 * muster_cluster_run_task_async:
 * @self: a cluster
 * @task: the task
 * @deadline_us: an instant, or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Runs a single task in the background: muster_cluster_run_task ().
 */
void muster_cluster_run_task_async (MusterCluster *self, MusterJobTask *task, gint64 deadline_us,
                                    GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data);

/**
 * muster_cluster_run_task_finish:
 * @self: a cluster
 * @result: what the callback was given
 *
 * The result of muster_cluster_run_task_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_cluster_run_task_finish (MusterCluster *self, GAsyncResult *result, GError **error);

/**
 * muster_job_output_fetch_async:
 * @self: an output
 * @deadline_us: an instant, or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Fetches the current value in the background: muster_job_output_fetch ().
 */
void muster_job_output_fetch_async (MusterJobOutput *self, gint64 deadline_us,
                                    GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data);

/**
 * muster_job_output_fetch_finish:
 * @self: an output
 * @result: what the callback was given
 *
 * The result of muster_job_output_fetch_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_job_output_fetch_finish (MusterJobOutput *self, GAsyncResult *result,
                                         GError **error);

/**
 * muster_job_runner_train_async:
 * @self: a job runner
 * @cluster: an open cluster
 * @deadline_us: an instant, or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Trains the job in the background: muster_job_runner_train ().
 */
void muster_job_runner_train_async (MusterJobRunner *self, MusterCluster *cluster,
                                    gint64 deadline_us, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_job_runner_train_finish:
 * @self: a job runner
 * @result: what the callback was given
 * @last_epoch: (out) (optional): the last epoch
 *
 * The result of muster_job_runner_train_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_job_runner_train_finish (MusterJobRunner *self, GAsyncResult *result,
                                         gint64 *last_epoch, GError **error);

/**
 * muster_job_runner_save_async:
 * @self: a job runner
 * @cluster: an open cluster
 * @epoch: the epoch
 * @finished: whether the job is finished
 * @deadline_us: an instant, or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Saves once, with metadata and report, in the background: muster_job_runner_save ().
 */
void muster_job_runner_save_async (MusterJobRunner *self, MusterCluster *cluster, gint64 epoch,
                                   gboolean finished, gint64 deadline_us, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_job_runner_save_finish:
 * @self: a job runner
 * @result: what the callback was given
 * @saved: (out) (optional): %FALSE if the directory isn't accessible
 *
 * The result of muster_job_runner_save_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_job_runner_save_finish (MusterJobRunner *self, GAsyncResult *result,
                                        gboolean *saved, GError **error);

/**
 * muster_job_runner_load_partial_async:
 * @self: a job runner
 * @cluster: an open cluster
 * @names: (array zero-terminated=1): the variables
 * @epoch: the epoch
 * @on: (nullable): the node that loads them
 * @deadline_us: an instant, or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Loads variables of the job's nodes in the background: muster_job_runner_load_partial ().
 */
void muster_job_runner_load_partial_async (MusterJobRunner *self, MusterCluster *cluster,
                                           const char *const *names, gint64 epoch, const char *on,
                                           gint64 deadline_us, GCancellable *cancellable,
                                           GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_job_runner_load_partial_finish:
 * @self: a job runner
 * @result: what the callback was given
 * @found: (out) (optional): whether the epoch was found
 * @loaded: (out) (optional) (array zero-terminated=1): the loaded names
 *
 * The result of muster_job_runner_load_partial_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_job_runner_load_partial_finish (MusterJobRunner *self, GAsyncResult *result,
                                                gboolean *found, char ***loaded, GError **error);

G_END_DECLS
