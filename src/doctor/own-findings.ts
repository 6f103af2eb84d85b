/** What a control plane has found that only it can see: its host, and the ClickHouse it keeps events in. */
import { z } from 'zod'
import { controlPlaneHostChecks } from './control-plane-host.ts'
import type { NamedFinding } from './finding.ts'
import type { Probe } from './probe.ts'

const answerSchema = z.object({
  findings: z.array(
    z.object({ check: z.string(), level: z.enum(['warn', 'fail']), what: z.string(), todo: z.string() }),
  ),
})

/** None where the token may not read them. */
export async function readOwnFindings(probe: Probe, url: string, token: string | null): Promise<NamedFinding[]> {
  if (token === null) return []
  const answer = await probe(`${url}/v1/findings`, token)
  const found = answer.kind === 'answered' ? answerSchema.safeParse(answer.body).data : undefined
  return (found?.findings ?? [])
    .filter(({ check }) => check in controlPlaneHostChecks)
    .map(({ check, level, what, todo }) => ({ check, level, what, todo }))
}
