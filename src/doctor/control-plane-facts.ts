/** Reads what a control plane shows from outside: whether it runs, its version, and what it says of a token. */
import { z } from 'zod'
import { isPrivate } from '../fleet/agent/control-client.ts'
import type { Answer, Probe } from './probe.ts'

export interface ControlPlaneFacts {
  url: string
  /** Whether nothing sent there crosses a network in clear text. */
  private: boolean
  health: Answer
  readiness: Answer
  caller: TokenHolder
}

export type TokenHolder =
  | { kind: 'none' }
  /** A token was given but not sent. */
  | { kind: 'kept' }
  | { kind: 'known'; tokenId: string | null; roles: string[]; permissions: string[] }
  | { kind: 'refused'; status: number; code: string }
  | { kind: 'silent' }

const callerSchema = z.object({
  token_id: z.string().nullable(),
  roles: z.array(z.string()),
  permissions: z.array(z.string()),
})

const refusalSchema = z.object({ error: z.object({ code: z.string() }) })

/** `inTheClear`: whether to send the token over a network in clear text. */
export async function readControlPlane(
  probe: Probe,
  { url, token, inTheClear }: { url: string; token: string | null; inTheClear: boolean },
): Promise<ControlPlaneFacts> {
  const encrypted = isPrivate(url)
  const { origin } = new URL(url)
  const asked = token !== null && (encrypted || inTheClear)
  const [health, readiness, answer] = await Promise.all([
    probe(`${origin}/healthz`),
    probe(`${origin}/readyz`),
    asked ? probe(`${origin}/v1/auth/session`, token) : null,
  ])
  const unasked = { kind: token === null ? 'none' : 'kept' } as const
  return { url: origin, private: encrypted, health, readiness, caller: answer === null ? unasked : callerOf(answer) }
}

function callerOf(answer: Answer): TokenHolder {
  if (answer.kind === 'silent') return { kind: 'silent' }
  if (answer.status !== 200) {
    const code = refusalSchema.safeParse(answer.body).data?.error.code ?? 'no code'
    return { kind: 'refused', status: answer.status, code }
  }
  const caller = callerSchema.safeParse(answer.body)
  if (!caller.success) return { kind: 'silent' }
  const { token_id, roles, permissions } = caller.data
  return { kind: 'known', tokenId: token_id, roles, permissions }
}
