/**
 * The workers of a gateway beyond its first: each is a worker with a directory of its own, and what is wrong with one, or
 * what one has not reported, is to be found like that of the first. Those above the present number of workers have ended
 * for good; their directories are there for as long as something in them is not reported.
 */
import { examine, fail, type NamedFinding } from './finding.ts'
import { hostChecks } from './host-checks.ts'
import type { HostFacts, WorkerFacts } from './host-facts.ts'

const { fenced, instance, bootstrap, freshness, outbox, damage } = hostChecks
const workerChecks = { fenced, instance, bootstrap, freshness, outbox, damage }

/** What stands in each worker's directory, each finding with the worker's number. */
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
    { check: 'running', ...fail('it does not run, though the first does', 'Look at the log: it says why it ends') },
  ]
}

/** As if this worker were the only one; the figures that the gateway tells are of all of them. */
const factsOf = (facts: HostFacts, { holder, worker, place }: WorkerFacts): HostFacts => ({
  ...facts,
  ...{ worker, place, gateway: null },
  holders: { ...facts.holders, gateway: holder },
})
