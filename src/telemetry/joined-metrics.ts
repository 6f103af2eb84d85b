/**
 * The metrics of several processes as one exposition: each metric once, with every process's samples under a label
 * `worker` that names it.
 */
import { AggregatorRegistry } from 'prom-client'
import { z } from 'zod'

/** What `getMetricsAsJSON` of a registry gives, as far as it is read here. */
export type ProcessMetrics = readonly { readonly values: readonly { readonly labels: object }[] }[]

/** The same from another process. */
export const processMetrics = z.array(
  z.looseObject({ values: z.array(z.looseObject({ labels: z.record(z.string(), z.unknown()) })) }),
)

/** prom-client adds up samples with equal labels; with the label `worker` no two are equal. */
export const joinedMetrics = (processes: readonly (readonly [worker: string, ProcessMetrics])[]): Promise<string> =>
  AggregatorRegistry.aggregate(
    processes.map(([worker, metrics]) =>
      metrics.map((metric) => ({
        ...metric,
        values: metric.values.map((value) => ({ ...value, labels: { worker, ...value.labels } })),
      })),
    ),
  ).metrics()
