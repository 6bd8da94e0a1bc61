// SPDX-License-Identifier: Apache-2.0
/* Loops over row-major matrices of T. Included once for each T by linalg.c, which defines T, NAME
 * (name), CONJ (x), SIZE (x) (the absolute value) and SQRT (x). */

/* LU decomposition with partial pivoting, in place. *sign is the permutation's. */
static void
NAME (factor) (T *a, gint64 n, gint64 *rows, int *sign)
{
  *sign = 1;
  for (gint64 i = 0; i < n; i++)
    rows[i] = i;
  for (gint64 i = 0; i < n; i++) {
    gint64 pivot = i;
    for (gint64 j = i + 1; j < n; j++)
      if (SIZE (a[j * n + i]) > SIZE (a[pivot * n + i]))
        pivot = j;
    if (pivot != i) {
      const gint64 row = rows[i];
      rows[i] = rows[pivot];
      rows[pivot] = row;
      *sign = -*sign;
      for (gint64 c = 0; c < n; c++) {
        const T x = a[i * n + c];
        a[i * n + c] = a[pivot * n + c];
        a[pivot * n + c] = x;
      }
    }
    for (gint64 j = i + 1; j < n; j++) {
      if (a[i * n + i] != 0)
        a[j * n + i] /= a[i * n + i];
      const T part = a[j * n + i]; /* 0 × NaN is NaN */
      for (gint64 c = i + 1; c < n; c++)
        a[j * n + c] -= part * a[i * n + c];
    }
  }
}

/* x := a⁻¹ × x for a triangular a; x is n × m. */
static void
NAME (substitute) (const T *a, gint64 n, gboolean lower, gboolean is_unit, T *x, gint64 m)
{
  for (gint64 step = 0; step < n; step++) {
    const gint64 i = lower ? step : n - 1 - step;
    const gint64 first = lower ? 0 : i + 1, end = lower ? i : n;
    for (gint64 j = first; j < end; j++) {
      const T part = a[i * n + j];
      for (gint64 c = 0; c < m; c++)
        x[i * m + c] -= part * x[j * m + c];
    }
    if (!is_unit)
      for (gint64 c = 0; c < m; c++)
        x[i * m + c] /= a[i * n + i];
  }
}

/* TRUE if an element of the diagonal is zero or, as in TensorFlow, the first is NaN. */
static gboolean
NAME (is_singular) (const T *a, gint64 n)
{
  for (gint64 i = 0; i < n; i++)
    if (a[i * n + i] == 0)
      return TRUE;
  return a[0] != a[0];
}

static void
NAME (adjoin) (const T *a, gint64 n, T *out)
{
  for (gint64 i = 0; i < n; i++)
    for (gint64 j = 0; j < n; j++)
      out[j * n + i] = CONJ (a[i * n + j]);
}

/* x := a⁻¹ × b; work has space for a's factors. */
static gboolean
NAME (solve) (const T *a, gint64 n, gboolean adjoint, const T *b, gint64 m, T *x, T *work,
              gint64 *rows)
{
  int sign;

  if (adjoint)
    NAME (adjoin) (a, n, work);
  else
    memcpy (work, a, (gsize)(n * n) * sizeof (T));
  NAME (factor) (work, n, rows, &sign);
  if (NAME (is_singular) (work, n))
    return FALSE;
  for (gint64 i = 0; i < n; i++)
    for (gint64 c = 0; c < m; c++)
      x[i * m + c] = b == NULL ? (rows[i] == c) : b[rows[i] * m + c];
  NAME (substitute) (work, n, TRUE, TRUE, x, m);
  NAME (substitute) (work, n, FALSE, FALSE, x, m);
  return TRUE;
}

/* The determinant, its sign, and the logarithm of its absolute value. */
static void
NAME (determine) (const T *a, gint64 n, T *work, gint64 *rows, T *determinant, T *sign, T *log_size)
{
  int swaps;

  memcpy (work, a, (gsize)(n * n) * sizeof (T));
  NAME (factor) (work, n, rows, &swaps);
  *determinant = *sign = swaps;
  *log_size = 0;
  for (gint64 i = 0; i < n; i++) {
    const T x = work[i * n + i];
    *determinant *= x;
    *sign *= SIGN (x);
    *log_size += log (SIZE (x));
  }
}

/* The lower triangular l with l × l* = a; only a's lower triangle is read. All NaN if there is
 * none, as in TensorFlow. */
static void
NAME (cholesky) (const T *a, gint64 n, T *l)
{
  gboolean fails = FALSE;

  memset (l, 0, (gsize)(n * n) * sizeof (T));
  for (gint64 i = 0; i < n; i++)
    for (gint64 j = 0; j <= i; j++) {
      T sum = a[i * n + j];
      for (gint64 c = 0; c < j; c++)
        sum -= l[i * n + c] * CONJ (l[j * n + c]);
      if (j < i) {
        l[i * n + j] = sum / l[j * n + j];
        continue;
      }
      l[i * n + i] = sqrt (REAL (sum));
      fails = fails || !(REAL (sum) > 0);
    }
  for (gint64 i = 0; fails && i < n; i++)
    for (gint64 j = 0; j <= i; j++)
      l[i * n + j] = NAN;
}

/* a := (1 - tau × v × v*) × a, from column "from" on; v starts at row k. */
static void
NAME (apply) (const T *v, gint64 k, gint64 m, T tau, T *a, gint64 n, gint64 from, T *work)
{
  for (gint64 c = from; c < n; c++)
    work[c] = 0;
  for (gint64 i = k; i < m; i++) {
    const T part = CONJ (v[i]);
    for (gint64 c = from; c < n; c++)
      work[c] += part * a[i * n + c];
  }
  for (gint64 i = k; i < m; i++) {
    const T part = tau * v[i];
    for (gint64 c = from; c < n; c++)
      a[i * n + c] -= part * work[c];
  }
}

/* Householder reflections: a (m × n) becomes r. Each row of v is one, starting at the diagonal with
 * 1; tau is its factor. */
static void
NAME (reflect) (T *a, gint64 m, gint64 n, T *v, T *tau, T *work)
{
  for (gint64 k = 0; k < MIN (m, n); k++) {
    double tail = 0;
    const T first = a[k * n + k];
    for (gint64 i = k + 1; i < m; i++)
      tail += SIZE (a[i * n + k]) * SIZE (a[i * n + k]);
    memset (v + k * m, 0, (gsize)m * sizeof (T));
    v[k * m + k] = 1;
    tau[k] = 0;
    if (tail == 0 && IMAG (first) == 0)
      continue;
    double beta = sqrt (SIZE (first) * SIZE (first) + tail);
    if (REAL (first) >= 0)
      beta = -beta;
    tau[k] = CONJ ((beta - first) / beta);
    for (gint64 i = k + 1; i < m; i++)
      v[k * m + i] = a[i * n + k] / (first - beta);
    NAME (apply) (v + k * m, k, m, tau[k], a, n, k, work);
    a[k * n + k] = beta;
    for (gint64 i = k + 1; i < m; i++)
      a[i * n + k] = 0;
  }
}

/* q (m × columns) := the product of the reflections' adjoints. */
static void
NAME (make_q) (const T *v, const T *tau, gint64 m, gint64 k, T *q, gint64 columns, T *work)
{
  memset (q, 0, (gsize)(m * columns) * sizeof (T));
  for (gint64 i = 0; i < MIN (m, columns); i++)
    q[i * columns + i] = 1;
  for (gint64 i = k - 1; i >= 0; i--)
    NAME (apply) (v + i * m, i, m, CONJ (tau[i]), q, columns, i, work);
}
