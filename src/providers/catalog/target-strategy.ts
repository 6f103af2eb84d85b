/** How a gateway chooses among the targets of a model that are in one tier (gateway/upstream/targets/README.md). */
export const targetStrategies = ['priority', 'weighted', 'least_busy', 'lowest_cost', 'lowest_latency'] as const
export type TargetStrategy = (typeof targetStrategies)[number]

/** The most targets of one model, and the most keys of one provider. */
export const targetLimit = 16
