/** How a change of the state reaches gateways, as those see it who make the change. */
import { z } from 'zod'

export const headSchema = z.object({
  version: z.number().int(),
  nonce: z.string(),
  history: z.string(),
})
export type Head = z.infer<typeof headSchema>

/** What a mutation that takes rights away answers with (fleet/README.md). */
export const propagationSchema = z.object({
  connected: z.number().int().describe('Workers that heartbeat within the last 3 s'),
  acknowledged: z.number().int().describe('Those of them that have made the revocation durable'),
  unreachable: z.array(
    z.object({
      gateway_id: z.string(),
      instance_id: z.string(),
      until: z.iso.datetime().describe('Last heartbeat + max_staleness'),
    }),
  ),
  effective_by: z.iso.datetime().describe('After this instant no gateway accepts the token'),
})
export type Propagation = z.infer<typeof propagationSchema>

/** The gateways that are connected, as the rest of the control plane sees them. */
export interface Fleet {
  /**
   * Tells every connected worker that state is now at `head`, which tokens to refuse at once, and of which of them also
   * to end what runs. `onlyRevocations`: refusing is all there is to do at once. `changed`: the rows of limits and
   * tokens that the change made or altered, as `<kind>/<id>`, where that is known. Never waits.
   */
  announce(
    head: Head,
    revoked: readonly string[],
    endRequests: readonly string[],
    onlyRevocations?: boolean,
    changed?: readonly string[] | null,
  ): void
  /**
   * Waits until every worker that heartbeat within 3 s has acknowledged `version`, or 2 s, and says who has and who
   * has not (fleet/README.md rule R5).
   */
  propagation(version: number): Promise<Propagation>
}
