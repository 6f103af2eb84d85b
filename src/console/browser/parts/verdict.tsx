import type { Verdict } from '../api/routes.ts'
import { humanize } from '../formats.ts'
import { Icon, type IconName } from './icon.tsx'

const icons: Readonly<Record<Verdict, IconName>> = {
  allow: 'allow',
  block: 'block',
  deny: 'deny',
  redact: 'redact',
  rewrite: 'rewrite',
  escalate: 'escalate',
  approval_required: 'pending',
  pending: 'pending',
  rate_limit: 'rate_limit',
  error: 'error',
}

/** A verdict by icon, word and colour. */
export const VerdictBadge = ({ verdict, label }: { verdict: Verdict; label?: string }) => (
  <span class="badge" data-verdict={verdict}>
    <Icon name={icons[verdict]} />
    {label ?? humanize(verdict)}
  </span>
)
