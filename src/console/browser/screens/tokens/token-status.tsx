import type { TokenRecord } from '../../api/routes.ts'
import { humanize } from '../../formats.ts'
import { Icon, type IconName } from '../../parts/icon.tsx'

/** A status by the colour and drawing of the verdict that its requests get. */
const shown: Readonly<Record<TokenRecord['status'], readonly [tone: string, icon: IconName]>> = {
  active: ['allow', 'allow'],
  revoked: ['block', 'block'],
  expired: ['error', 'pending'],
  rotated: ['error', 'rewrite'],
  budget_exhausted: ['rate_limit', 'rate_limit'],
  request_exhausted: ['rate_limit', 'rate_limit'],
}

export function TokenStatus({ token: { status, rotated_to_id, revocation } }: { token: TokenRecord }) {
  const [tone, icon] = shown[status]
  const ending = status === 'active' && rotated_to_id !== null
  const label = ending ? 'Active, in grace' : revocation?.emergency ? 'Revoked, emergency' : humanize(status)
  return (
    <span class="badge" data-verdict={tone}>
      <Icon name={icon} />
      {label}
    </span>
  )
}
