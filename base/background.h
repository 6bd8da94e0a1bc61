// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/require.h"

#include <string.h>

G_BEGIN_DECLS

/* Makes VERB_async () and VERB_finish () of a verb that blocks. Each call has a thread of its own:
 * in a pool, some could wait for others that wait for them. Arguments are kept until the call is
 * over. What the verb refuses, NULL included, finish refuses with the verb's error. A call that
 * nobody finishes is freed with its GAsyncResult. The verb's own result counts even if the
 * cancellable was cancelled, so that nothing it made is lost.
 *
 * The parameters are a list of the following kinds, in the verb's order, up to its GCancellable;
 * master/background.c has examples.
 *
 *   OBJECT (Type)                      self, a GObject, which is the result's source
 *   SELF (Type, copy, free)            self, of another type
 *   VALUE (type, name)                 what is copied as it is: a number, a callback
 *   KEPT (type, name, copy, free)      a pointer (nullable), which is copied and freed
 *   ARRAY (type, name, n, copy, free)  n elements at a pointer; n is a parameter or a number
 *   OUT (type, name, clear)            a result, for finish's parameter (nullable), on success
 *   REPORT (type, name, begin, clear)  the same, also on failure; begun before anything else
 *   OUTS (type, name, n, free)         n results; n is of the arguments: CALL->step->n_fetches
 *
 * copy and free take a value, for OUTS a pointer; begin and clear take the address of one. */

typedef struct _MusterVerb MusterVerb;

/* A call begins with it. */
typedef struct {
  const MusterVerb *verb; /* (not owned) */
  gpointer owner;         /* (nullable) self, only to compare */
  gboolean is_finished;
} MusterBackground;

struct _MusterVerb {
  const char *thread; /* its name; 15 characters at most */
  void (*run) (gpointer call, GCancellable *cancellable, GError **error);
  void (*clear) (gpointer call);
};

/* Runs call (from g_malloc (), transfer full). source (nullable) is kept alive. */
void muster_background_start (const MusterVerb *verb, gpointer source, gpointer call,
                              GCancellable *cancellable, GAsyncReadyCallback callback,
                              gpointer user_data);

/* The call of a result. NULL with INVALID_ARGUMENT for one of another verb or owner, and for one
 * that was finished before. */
gpointer muster_background_call (const MusterVerb *verb, gpointer owner, GAsyncResult *result,
                                 GError **error);

/* Finishes it: FALSE with the verb's error. */
gboolean muster_background_finish (gpointer call, GAsyncResult *result, GError **error);

/* n strings (nullable each). */
const char *const *muster_strings_copy (const char *const *strings, gsize n);
void muster_strings_free (const char *const *strings, gsize n);

/* For values. */
#define MUSTER_PLAIN(address)         (void)(address)
#define MUSTER_KEEP_STRINGS(strings)  ((const char *const *)g_strdupv ((char **)(strings)))
#define MUSTER_FREE_STRINGS(strings)  g_strfreev ((char **)(strings))
#define MUSTER_FREE_STRING(string)    g_free ((char *)(string))
#define MUSTER_CLEAR_STRING(address)  g_clear_pointer (address, g_free)
#define MUSTER_CLEAR_STRINGS(address) g_clear_pointer (address, g_strfreev)

/* blocking: the verb, or a function with its parameters. clear_result is for a result that nobody
 * fetched. */
#define MUSTER_ASYNC(verb, blocking, thread, Result, clear_result, LIST)                           \
  typedef struct {                                                                                 \
    MusterBackground parent;                                                                       \
    Result result;                                                                                 \
    LIST (MUSTER_MEMBER_)                                                                          \
  } verb##_call;                                                                                   \
  static void verb##_run (gpointer data, GCancellable *cancellable, GError **error)                \
  {                                                                                                \
    verb##_call *CALL = data;                                                                      \
    LIST (MUSTER_BEGIN_)                                                                           \
    CALL->result = blocking (LIST (MUSTER_PASS_) cancellable, error);                              \
  }                                                                                                \
  static void verb##_clear (gpointer data)                                                         \
  {                                                                                                \
    verb##_call *CALL = data;                                                                      \
    clear_result (&CALL->result);                                                                  \
    LIST (MUSTER_CLEAR_)                                                                           \
  }                                                                                                \
  static const MusterVerb verb##_verb = {thread, verb##_run, verb##_clear};                        \
  void verb##_async (LIST (MUSTER_PARAMETER_) GCancellable *cancellable,                           \
                     GAsyncReadyCallback callback, gpointer user_data)                             \
  {                                                                                                \
    verb##_call *CALL = g_new0 (verb##_call, 1);                                                   \
    gpointer source = NULL;                                                                        \
    LIST (MUSTER_KEEP_)                                                                            \
    muster_background_start (&verb##_verb, source, CALL, cancellable, callback, user_data);        \
  }                                                                                                \
  Result verb##_finish (LIST (MUSTER_OWNER_) GAsyncResult *result LIST (MUSTER_ASK_),              \
                        GError **error)                                                            \
  {                                                                                                \
    Result const nothing = (Result)0;                                                              \
    gpointer owner = NULL;                                                                         \
    gboolean is_method = FALSE;                                                                    \
    LIST (MUSTER_ASKED_)                                                                           \
    if (is_method) {                                                                               \
      const void *self = owner;                                                                    \
      muster_require (error, nothing, self);                                                       \
    }                                                                                              \
    muster_require (error, nothing, result);                                                       \
    verb##_call *CALL = muster_background_call (&verb##_verb, owner, result, error);               \
    if (CALL == NULL)                                                                              \
      return nothing;                                                                              \
    const gboolean succeeded = muster_background_finish (CALL, result, error);                     \
    LIST (MUSTER_TELL_)                                                                            \
    if (!succeeded)                                                                                \
      return nothing;                                                                              \
    Result given = CALL->result;                                                                   \
    CALL->result = nothing;                                                                        \
    return given;                                                                                  \
  }

/* Moves n values. */
#define MUSTER_MOVE_(to, from, n)                                                                  \
  do {                                                                                             \
    memcpy (to, from, (n) * sizeof *(from));                                                       \
    memset (from, 0, (n) * sizeof *(from));                                                        \
  } while (0)

/* What a kind of parameter is, by place. */
#define MUSTER_MEMBER_(kind, ...)    MUSTER_MEMBER_##kind (__VA_ARGS__)
#define MUSTER_PARAMETER_(kind, ...) MUSTER_PARAMETER_##kind (__VA_ARGS__)
#define MUSTER_KEEP_(kind, ...)      MUSTER_KEEP_##kind (__VA_ARGS__)
#define MUSTER_BEGIN_(kind, ...)     MUSTER_BEGIN_##kind (__VA_ARGS__)
#define MUSTER_PASS_(kind, ...)      MUSTER_PASS_##kind (__VA_ARGS__)
#define MUSTER_CLEAR_(kind, ...)     MUSTER_CLEAR_##kind (__VA_ARGS__)
#define MUSTER_OWNER_(kind, ...)     MUSTER_OWNER_##kind (__VA_ARGS__)
#define MUSTER_ASK_(kind, ...)       MUSTER_ASK_##kind (__VA_ARGS__)
#define MUSTER_ASKED_(kind, ...)     MUSTER_ASKED_##kind (__VA_ARGS__)
#define MUSTER_TELL_(kind, ...)      MUSTER_TELL_##kind (__VA_ARGS__)

/* In a call. */
#define MUSTER_MEMBER_OBJECT(Type)                 Type *self;
#define MUSTER_MEMBER_SELF(Type, copy, free)       Type *self;
#define MUSTER_MEMBER_VALUE(type, name)            type name;
#define MUSTER_MEMBER_KEPT(type, name, copy, free) type name;
#define MUSTER_MEMBER_ARRAY(type, name, n, copy, free)                                             \
  type name;                                                                                       \
  gsize name##_length;
#define MUSTER_MEMBER_OUT(type, name, clear)           type name;
#define MUSTER_MEMBER_REPORT(type, name, begin, clear) type name;
#define MUSTER_MEMBER_OUTS(type, name, n, free)                                                    \
  type *name;                                                                                      \
  gsize name##_length;

/* Of async. */
#define MUSTER_PARAMETER_OBJECT(Type)                     Type *self,
#define MUSTER_PARAMETER_SELF(Type, copy, free)           Type *self,
#define MUSTER_PARAMETER_VALUE(type, name)                type name,
#define MUSTER_PARAMETER_KEPT(type, name, copy, free)     type name,
#define MUSTER_PARAMETER_ARRAY(type, name, n, copy, free) type name,
#define MUSTER_PARAMETER_OUT(...)
#define MUSTER_PARAMETER_REPORT(...)
#define MUSTER_PARAMETER_OUTS(...)

/* Into the call. */
#define MUSTER_KEEP_OBJECT(Type) source = CALL->self = CALL->parent.owner = self;
#define MUSTER_KEEP_SELF(Type, copy, free)                                                         \
  CALL->parent.owner = self;                                                                       \
  CALL->self = self != NULL ? copy (self) : NULL;
#define MUSTER_KEEP_VALUE(type, name)            CALL->name = name;
#define MUSTER_KEEP_KEPT(type, name, copy, free) CALL->name = name != NULL ? copy (name) : NULL;
#define MUSTER_KEEP_ARRAY(type, name, n, copy, free)                                               \
  CALL->name##_length = (n);                                                                       \
  CALL->name = name != NULL ? (type)copy (name, n) : NULL;
#define MUSTER_KEEP_OUT(...)
#define MUSTER_KEEP_REPORT(...)
#define MUSTER_KEEP_OUTS(...)

/* On the thread, before the verb. */
#define MUSTER_BEGIN_OBJECT(...)
#define MUSTER_BEGIN_SELF(...)
#define MUSTER_BEGIN_VALUE(...)
#define MUSTER_BEGIN_KEPT(...)
#define MUSTER_BEGIN_ARRAY(...)
#define MUSTER_BEGIN_OUT(...)
#define MUSTER_BEGIN_REPORT(type, name, begin, clear) begin (&CALL->name);
#define MUSTER_BEGIN_OUTS(type, name, n, free)                                                     \
  CALL->name = g_try_new0 (type, n);                                                               \
  CALL->name##_length = CALL->name != NULL ? (n) : 0;

/* To the verb. */
#define MUSTER_PASS_OBJECT(Type)                     CALL->self,
#define MUSTER_PASS_SELF(Type, copy, free)           CALL->self,
#define MUSTER_PASS_VALUE(type, name)                CALL->name,
#define MUSTER_PASS_KEPT(type, name, copy, free)     CALL->name,
#define MUSTER_PASS_ARRAY(type, name, n, copy, free) CALL->name,
#define MUSTER_PASS_OUT(type, name, clear)           &CALL->name,
#define MUSTER_PASS_REPORT(type, name, begin, clear) &CALL->name,
#define MUSTER_PASS_OUTS(type, name, n, free)        CALL->name,

/* At the end. */
#define MUSTER_CLEAR_OBJECT(...)
#define MUSTER_CLEAR_SELF(Type, copy, free)                                                        \
  if (CALL->self != NULL)                                                                          \
    free (CALL->self);
#define MUSTER_CLEAR_VALUE(...)
#define MUSTER_CLEAR_KEPT(type, name, copy, free)                                                  \
  if (CALL->name != NULL)                                                                          \
    free (CALL->name);
#define MUSTER_CLEAR_ARRAY(type, name, n, copy, free)                                              \
  if (CALL->name != NULL)                                                                          \
    free (CALL->name, CALL->name##_length);
#define MUSTER_CLEAR_OUT(type, name, clear)           clear (&CALL->name);
#define MUSTER_CLEAR_REPORT(type, name, begin, clear) clear (&CALL->name);
#define MUSTER_CLEAR_OUTS(type, name, n, free)                                                     \
  for (gsize i = 0; i < CALL->name##_length; i++)                                                  \
    if (CALL->name[i] != NULL)                                                                     \
      free (CALL->name[i]);                                                                        \
  g_free (CALL->name);

/* Of finish, before the result and behind it. */
#define MUSTER_OWNER_OBJECT(Type)           Type *self,
#define MUSTER_OWNER_SELF(Type, copy, free) Type *self,
#define MUSTER_OWNER_VALUE(...)
#define MUSTER_OWNER_KEPT(...)
#define MUSTER_OWNER_ARRAY(...)
#define MUSTER_OWNER_OUT(...)
#define MUSTER_OWNER_REPORT(...)
#define MUSTER_OWNER_OUTS(...)

#define MUSTER_ASK_OBJECT(...)
#define MUSTER_ASK_SELF(...)
#define MUSTER_ASK_VALUE(...)
#define MUSTER_ASK_KEPT(...)
#define MUSTER_ASK_ARRAY(...)
#define MUSTER_ASK_OUT(type, name, clear)           , type *name
#define MUSTER_ASK_REPORT(type, name, begin, clear) , type *name
#define MUSTER_ASK_OUTS(type, name, n, free)        , type *name

/* In finish, at first and at last. */
#define MUSTER_ASKED_OBJECT(Type)                                                                  \
  owner = self;                                                                                    \
  is_method = TRUE;
#define MUSTER_ASKED_SELF(Type, copy, free)                                                        \
  owner = self;                                                                                    \
  is_method = TRUE;
#define MUSTER_ASKED_VALUE(...)
#define MUSTER_ASKED_KEPT(...)
#define MUSTER_ASKED_ARRAY(...)
#define MUSTER_ASKED_OUT(...)
#define MUSTER_ASKED_REPORT(type, name, begin, clear)                                              \
  if (name != NULL)                                                                                \
    begin (name);
#define MUSTER_ASKED_OUTS(...)

#define MUSTER_TELL_OBJECT(...)
#define MUSTER_TELL_SELF(...)
#define MUSTER_TELL_VALUE(...)
#define MUSTER_TELL_KEPT(...)
#define MUSTER_TELL_ARRAY(...)
#define MUSTER_TELL_OUT(type, name, clear)                                                         \
  if (succeeded && name != NULL)                                                                   \
    MUSTER_MOVE_ (name, &CALL->name, 1);
#define MUSTER_TELL_REPORT(type, name, begin, clear)                                               \
  if (name != NULL)                                                                                \
    MUSTER_MOVE_ (name, &CALL->name, 1);
#define MUSTER_TELL_OUTS(type, name, n, free)                                                      \
  if (succeeded && name != NULL)                                                                   \
    MUSTER_MOVE_ (name, CALL->name, CALL->name##_length);

G_END_DECLS
