/** Which reasons the events of an installation can have. */
import { eq } from 'drizzle-orm'
import { z } from 'zod'
import { knownReasons } from '../../reason-words.ts'
import type { Reader } from '../../store/open.ts'
import { query } from '../../store/query.ts'
import { policies } from '../../store/schema/state/catalog.ts'

/** Reasons of sign-ins and of requests that were cut or granted, for which there are no words of their own. */
const furtherReasons = [
  ...['token.revoked', 'escalation.granted', 'attempt_missing', 'throttled', 'provider_unreachable', 'email_missing'],
  ...['email_unverified', 'domain_not_allowed', 'groups_not_listed', 'no_role', 'account_exists', 'account_disabled'],
  'identity_taken',
]

const withReason = z.object({ reason_code: z.string() })

/** Those of Gatehouse itself and of the policies that there are; `any` with a webhook, which may answer with any. */
export async function givenReasons(state: Reader): Promise<readonly string[] | 'any'> {
  const { kind, config, deleted } = policies
  const rows = await query(state).select({ kind, config }).from(policies).where(eq(deleted, 0))
  if (rows.some((policy) => policy.kind === 'webhook')) return 'any'
  const own = rows.flatMap((policy) => withReason.safeParse(JSON.parse(policy.config)).data?.reason_code ?? [])
  return [...knownReasons, ...furtherReasons, ...own]
}
