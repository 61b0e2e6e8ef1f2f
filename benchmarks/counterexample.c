/* The lanes of the counterexample as one would write them by hand in C: the yardstick of the compiled kernels.
   The same generator, recursion, projection and compensated sum; compiled with -O3 -march=native and
   -ffp-contract=off, so that the bits are the same as well. */
#include <math.h>
#include <stdint.h>

void draw(int64_t steps, int64_t lanes, uint64_t *restrict first, uint64_t *restrict second, uint64_t threshold,
          double rare, double common, double *restrict gradients) {
    for (int64_t k = 0; k < steps; k++) {
        double *restrict row = gradients + k * lanes;
        for (int64_t i = 0; i < lanes; i++) {
            uint64_t a = first[i], b = second[i];
            row[i] = ((a + b) >> 11) < threshold ? rare : common;
            b ^= a;
            first[i] = ((a << 24) | (a >> 40)) ^ b ^ (b << 16);
            second[i] = (b << 37) | (b >> 27);
        }
    }
}

void generic_adam(int64_t steps, int64_t lanes, const double *alpha, const double *beta, const double *beta_rest,
                  const double *theta, const double *theta_rest, const double *gradients, double *restrict x,
                  double *restrict loss, double *restrict carry, double *restrict m, double *restrict v) {
    for (int64_t k = 0; k < steps; k++) {
        const double a = alpha[k], b = beta[k], br = beta_rest[k], t = theta[k], tr = theta_rest[k];
        const double *row = gradients + k * lanes;
        for (int64_t i = 0; i < lanes; i++) {
            const double g = row[i];
            const double corrected = g * x[i] - carry[i];
            const double total = loss[i] + corrected;
            carry[i] = (total - loss[i]) - corrected;
            loss[i] = total;
            v[i] = t * v[i] + tr * (g * g);
            m[i] = b * m[i] + br * g;
            double next = x[i] - a * (m[i] / sqrt(v[i]));
            next = next < -1.0 ? -1.0 : next;
            x[i] = next > 1.0 ? 1.0 : next;
        }
    }
}
