// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"

G_BEGIN_DECLS

/* The reads of a checkpoint in the background, for programs with a main loop: master/background.h
 * has the conventions. What was begun to be read is read; a read of several tensors can be
 * cancelled between two. */

/**
 * muster_bundle_reader_open_async:
 * @storage: (nullable): the store; %NULL: local files
 * @prefix: the checkpoint
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Opens a checkpoint in the background: muster_bundle_reader_open ().
 */
void muster_bundle_reader_open_async (MusterStorage *storage, const char *prefix,
                                      GCancellable *cancellable, GAsyncReadyCallback callback,
                                      gpointer user_data);

/**
 * muster_bundle_reader_open_finish:
 * @result: what the callback was given
 *
 * The result of muster_bundle_reader_open_async ().
 *
 * Returns: (transfer full): a reader
 */
MusterBundleReader *muster_bundle_reader_open_finish (GAsyncResult *result, GError **error);

/**
 * muster_bundle_reader_read_async:
 * @self: a reader
 * @name: the tensor
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Reads and checks a whole tensor in the background: muster_bundle_reader_read ().
 */
void muster_bundle_reader_read_async (MusterBundleReader *self, const char *name,
                                      GCancellable *cancellable, GAsyncReadyCallback callback,
                                      gpointer user_data);

/**
 * muster_bundle_reader_read_finish:
 * @self: a reader
 * @result: what the callback was given
 *
 * The result of muster_bundle_reader_read_async ().
 *
 * Returns: (transfer full): the tensor
 */
MusterTensor *muster_bundle_reader_read_finish (MusterBundleReader *self, GAsyncResult *result,
                                                GError **error);

/**
 * muster_bundle_reader_read_slice_async:
 * @self: a reader
 * @name: the tensor
 * @slice: (nullable): the part, such as "0,4:-"; %NULL: the whole
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Reads a part of a tensor in the background: muster_bundle_reader_read_slice ().
 */
void muster_bundle_reader_read_slice_async (MusterBundleReader *self, const char *name,
                                            const char *slice, GCancellable *cancellable,
                                            GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_bundle_reader_read_slice_finish:
 * @self: a reader
 * @result: what the callback was given
 *
 * The result of muster_bundle_reader_read_slice_async ().
 *
 * Returns: (transfer full): the part
 */
MusterTensor *muster_bundle_reader_read_slice_finish (MusterBundleReader *self,
                                                      GAsyncResult *result, GError **error);

/**
 * muster_bundle_reader_read_many_async: (skip)
 * @self: a reader
 * @names: (array length=n): the tensors
 * @slices: (array length=n) (nullable): the parts, each nullable
 * @n: their number
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Reads several tensors, or parts of them, in the background: muster_bundle_reader_read_many ().
 */
void muster_bundle_reader_read_many_async (MusterBundleReader *self, const char *const *names,
                                           const char *const *slices, gsize n,
                                           GCancellable *cancellable, GAsyncReadyCallback callback,
                                           gpointer user_data);

/**
 * muster_bundle_reader_read_many_finish: (skip)
 * @self: a reader
 * @result: what the callback was given
 * @tensors: (out caller-allocates) (nullable): the tensors (transfer full): all, or none on
 * failure
 *
 * The result of muster_bundle_reader_read_many_async ().
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_bundle_reader_read_many_finish (MusterBundleReader *self, GAsyncResult *result,
                                                MusterTensor **tensors, GError **error);

/**
 * muster_bundle_reader_read_all_async:
 * @self: a reader
 * @names: (array zero-terminated=1): names of tensors
 * @slices: (array zero-terminated=1) (nullable): a slice of each
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Reads several tensors, or parts of them, in the background: muster_bundle_reader_read_all ().
 */
void muster_bundle_reader_read_all_async (MusterBundleReader *self, const char *const *names,
                                          const char *const *slices, GCancellable *cancellable,
                                          GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_bundle_reader_read_all_finish:
 * @self: a reader
 * @result: what the callback was given
 * @n_tensors: (out) (optional): their number
 *
 * The result of muster_bundle_reader_read_all_async ().
 *
 * Returns: (array length=n_tensors) (transfer full): the tensors
 */
MusterTensor **muster_bundle_reader_read_all_finish (MusterBundleReader *self, GAsyncResult *result,
                                                     gsize *n_tensors, GError **error);

/**
 * muster_bundle_reader_verify_async:
 * @self: a reader
 * @cancellable: (nullable): ends the call early
 * @callback: (scope async) (nullable): called when it is over
 * @user_data: for @callback
 *
 * Reads and checks every byte of the checkpoint in the background: muster_bundle_reader_verify ()
 * without its progress.
 */
void muster_bundle_reader_verify_async (MusterBundleReader *self, GCancellable *cancellable,
                                        GAsyncReadyCallback callback, gpointer user_data);

/**
 * muster_bundle_reader_verify_finish:
 * @self: a reader
 * @result: what the callback was given
 *
 * The result of muster_bundle_reader_verify_async ().
 *
 * Returns: %TRUE if all are as they were written, or %FALSE with an error
 */
gboolean muster_bundle_reader_verify_finish (MusterBundleReader *self, GAsyncResult *result,
                                             GError **error);

G_END_DECLS
