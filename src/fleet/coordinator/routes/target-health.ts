/**
 * `/v1/catalog/targets`: what the gateways measured of their targets, from the last heartbeats of the workers that this
 * control plane knows. It is in memory only: of several control planes each knows its own workers.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../../api/conventions.ts'
import { timestamp } from '../../../lib/clock.ts'
import { targetHealthSchema } from '../../protocol/wire.ts'
import type { FleetOptions } from '../options.ts'
import type { WorkerRegistry } from '../worker-registry.ts'

/** A worker says every three seconds how its targets are; what is older than this is not shown. */
const shownMs = 15_000

const reportedTargetSchema = targetHealthSchema.extend({
  gateway_id: z.uuid(),
  worker: z.string(),
  reported_at: z.iso.datetime(),
})

type ReportedTarget = z.infer<typeof reportedTargetSchema>

interface TargetsDependencies {
  options: Pick<FleetOptions, 'clock'>
  registry: Pick<WorkerRegistry, 'all'>
}

export const targetsRoute = (dependencies: TargetsDependencies) =>
  new Elysia({ name: 'target health' })
    .use(conventions)
    .get('/v1/catalog/targets', () => ({ targets: reportedHealth(dependencies).sort(byName) }), {
      access: 'catalog:read',
      response: z.object({ targets: z.array(reportedTargetSchema) }),
      detail: {
        tags: ['Catalog'],
        summary: 'Lists the health of each target, as each gateway process measured it in the last seconds',
      },
    })

/** What each worker said in the last seconds. */
export function reportedHealth({ options: { clock }, registry }: TargetsDependencies): ReportedTarget[] {
  const since = clock.now() - shownMs
  return [...registry.all()].flatMap(({ worker, gatewayId, targets: reported }) =>
    reported === undefined || reported.at < since
      ? []
      : reported.health.map((health) => ({
          ...health,
          gateway_id: gatewayId,
          worker,
          reported_at: timestamp(reported.at),
        })),
  )
}

interface Named {
  provider: string
  model: string
  worker: string
}

const byName = (one: Named, other: Named): number =>
  one.provider.localeCompare(other.provider) ||
  one.model.localeCompare(other.model) ||
  one.worker.localeCompare(other.worker)
