/**
 * Every screen, one line each: where it is, what it is called, what one must be allowed to see it. To add one, write its
 * file in `screens/` and its line here. The menu is those with a drawing and a key, in this order.
 */

import type { Permission } from '../../identity/permissions.ts'
import type { IconName } from './parts/icon.tsx'
import type { Screen } from './screen.ts'
import { Alerts } from './screens/alerts/alerts.tsx'
import { Applications } from './screens/applications.tsx'
import { BudgetScreen } from './screens/budgets/budget.tsx'
import { Catalog } from './screens/catalog/catalog.tsx'
import { Connections } from './screens/connections.tsx'
import { Escalations } from './screens/escalations/escalations.tsx'
import { Overview } from './screens/overview/overview.tsx'
import { People } from './screens/people.tsx'
import { Policies } from './screens/policies/policies.tsx'
import { NewPolicy, PolicyScreen } from './screens/policies/policy.tsx'
import { Reports } from './screens/reports/reports.tsx'
import { Search } from './screens/search.tsx'
import { SessionScreen } from './screens/sessions/session.tsx'
import { Sessions } from './screens/sessions/sessions.tsx'
import { Settings } from './screens/settings.tsx'
import { NewToken } from './screens/tokens/new-token.tsx'
import { TokenScreen } from './screens/tokens/token.tsx'
import { Tokens } from './screens/tokens/tokens.tsx'
import { Exchange } from './screens/traffic/exchange/exchange.tsx'
import { Spend } from './screens/traffic/spend.tsx'
import { Traffic } from './screens/traffic/traffic.tsx'

type Line = readonly [
  path: string,
  title: string,
  permission: Permission | null,
  show: Screen['show'],
  icon?: IconName,
  key?: string,
]

const lines: readonly Line[] = [
  ['/', 'Overview', 'events:read', () => <Overview />, 'overview', 'o'],
  ['/traffic', 'Traffic', 'events:read', () => <Traffic />, 'traffic', 't'],
  ['/traffic/{id}', 'Exchange', 'events:read', ({ id }) => <Exchange id={id} />],
  ['/sessions', 'Sessions', 'events:read', () => <Sessions />, 'sessions', 'n'],
  ['/sessions/{id}', 'Session', 'events:read', ({ id }) => <SessionScreen id={id} />],
  ['/tokens', 'Tokens', 'tokens:read', () => <Tokens />, 'tokens', 'k'],
  ['/tokens/new', 'New token', 'tokens:write', () => <NewToken />],
  ['/tokens/{id}', 'Token', 'tokens:read', ({ id }) => <TokenScreen id={id} />],
  ['/escalations', 'Escalations', 'escalations:read', () => <Escalations />, 'escalations', 'e'],
  ['/alerts', 'Alerts', 'catalog:read', () => <Alerts />, 'alerts', 'l'],
  ['/policies', 'Policies', 'policies:read', () => <Policies />, 'policies', 'p'],
  ['/policies/new', 'New policy', 'policies:write', () => <NewPolicy />],
  ['/policies/{id}', 'Policy', 'policies:read', ({ id }) => <PolicyScreen id={id} />],
  ['/spend', 'Spend', 'events:read', () => <Spend />, 'spend', 's'],
  ['/reports', 'Reports', 'events:read', () => <Reports />, 'reports', 'r'],
  ['/budgets/{id}', 'Budget', 'catalog:read', ({ id }) => <BudgetScreen id={id} />],
  ['/catalog', 'Catalog', 'catalog:read', () => <Catalog />, 'catalog', 'c'],
  ['/connections', 'Connections', 'mcp:invoke', () => <Connections />, 'connections', 'i'],
  ['/applications', 'Applications', 'oauth-clients:read', () => <Applications />, 'applications', 'a'],
  ['/people', 'People', 'members:read', () => <People />, 'people', 'm'],
  ['/settings', 'Settings', null, () => <Settings />, 'settings', ','],
  ['/search', 'Search', null, () => <Search screens={screens} />],
]

/** Those whose time range can be chosen. */
const ranged: ReadonlySet<string> = new Set([
  ...['/', '/traffic', '/sessions', '/spend', '/tokens/{id}'],
  ...['/policies', '/policies/new', '/policies/{id}'],
])

export const screens: readonly Screen[] = lines.map(([path, title, permission, show, icon, key]) => ({
  ...{ path, title, permission, show, ranged: ranged.has(path) },
  ...(icon === undefined || key === undefined ? {} : { menu: { icon, key } }),
}))

/** The screen at a path, and the part of the path that it is about. Exact paths go before those with a part. */
export function screenAt(path: string): { screen: Screen; id: string } | null {
  const exact = screens.find((screen) => screen.path === path)
  if (exact !== undefined) return { screen: exact, id: '' }
  for (const screen of screens) {
    const [before = '', after] = screen.path.split('{id}')
    if (after === undefined || !path.startsWith(before) || !path.endsWith(after)) continue
    const id = path.slice(before.length, path.length - after.length)
    const read = id.includes('/') ? '' : decoded(id)
    if (read !== '') return { screen, id: read }
  }
  return null
}

/** A part of a path as it was meant; empty where it is no text in UTF-8, which no record is named by. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    // A mistyped address is answered by the page that says so.
    return ''
  }
}
