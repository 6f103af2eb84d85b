/** Checks of a control plane, shared by operators and gateway hosts. Each has its own check of the token. */
import { z } from 'zod'
import { version } from '../version.ts'
import type { ControlPlaneFacts } from './control-plane-facts.ts'
import { type Checks, fail, ok, warn } from './finding.ts'

const mostSkewMs = 5000

const healthSchema = z.object({ version: z.string() })
const readinessSchema = z.object({ reason: z.string().nullish() })

/** False when something else answers. */
export const isControlPlane = ({ health }: Pick<ControlPlaneFacts, 'health'>): boolean =>
  health.kind === 'silent' || (health.status === 200 && healthSchema.safeParse(health.body).success)

/** The version of what answered, where that is a control plane. */
export const versionOf = ({ health }: Pick<ControlPlaneFacts, 'health'>): string | null =>
  health.kind === 'answered' ? (healthSchema.safeParse(health.body).data?.version ?? null) : null

export const controlPlaneChecks: Checks<ControlPlaneFacts> = {
  reachable({ url, health }) {
    if (health.kind === 'silent') {
      return fail(
        `The control plane at ${url} cannot be reached: ${health.reason}`,
        'Check that it runs, that SERVICE_API_URL is its address, and that the network allows this host',
      )
    }
    if (!isControlPlane({ health })) {
      return fail(
        `What answers at ${url} is no control plane: status ${health.status}`,
        'Check SERVICE_API_URL, and any proxy in between',
      )
    }
    return ok(`The control plane at ${url} answers`)
  },

  version(facts) {
    const other = versionOf(facts)
    if (other === null) return null
    if (other === version) return ok(`It is of this version, ${version}`)
    return warn(`It is of version ${other}, this is ${version}`, 'Upgrade control planes first, then gateways')
  },

  ready({ health, readiness }) {
    if (readiness.kind === 'silent' || !isControlPlane({ health })) return null
    const said = readinessSchema.safeParse(readiness.body).data?.reason ?? null
    if (readiness.status === 200) {
      return said === null ? ok('It is ready') : warn(`It is ready, but: ${said}`, 'Check that database and its server')
    }
    const reason = said ?? `status ${readiness.status}`
    return fail(`It is not ready: ${reason}`, 'Read its log; if it waits for its databases, check those')
  },

  clock({ health }) {
    if (health.kind === 'silent' || health.aheadMs === null || !isControlPlane({ health })) return null
    const seconds = Math.abs(Math.round(health.aheadMs / 1000))
    if (Math.abs(health.aheadMs) <= mostSkewMs) return ok("This host's clock and its agree")
    const which = health.aheadMs > 0 ? 'behind' : 'ahead of'
    return warn(`This host's clock is ${seconds} s ${which} its`, 'Set both by NTP')
  },
}
