/**
 * Checks the workers of a gateway beyond the first. Each has its own directory and gets the same checks. Workers above
 * the configured number have ended for good; their directories stay while they hold unacknowledged events.
 */
import { examine, fail, type NamedFinding } from './finding.ts'
import { hostChecks } from './host-checks.ts'
import type { HostFacts, WorkerFacts } from './host-facts.ts'

const { fenced, instance, bootstrap, freshness, outbox, damage } = hostChecks
const workerChecks = { fenced, instance, bootstrap, freshness, outbox, damage }

/** The findings of each worker's directory, with the worker's number. */
export const examineWorkers = (facts: HostFacts): NamedFinding[] =>
  facts.workers.flatMap((worker) =>
    [...notRunning(facts, worker), ...examine(workerChecks, factsOf(facts, worker))].map((finding) => ({
      ...finding,
      what: `Worker ${worker.index}: ${finding.what}`,
    })),
  )

function notRunning({ holders: { gateway }, settings }: HostFacts, { index, holder }: WorkerFacts): NamedFinding[] {
  if (gateway.kind !== 'held' || holder.kind !== 'free' || index >= settings.gateway_workers) return []
  return [
    { check: 'running', ...fail('it does not run, though the first does', 'Read the log, which says why it ends') },
  ]
}

/** The facts as if this worker were the only one; the running gateway's figures cover all workers. */
const factsOf = (facts: HostFacts, { holder, worker, place }: WorkerFacts): HostFacts => ({
  ...facts,
  ...{ worker, place, gateway: null },
  holders: { ...facts.holders, gateway: holder },
})
