/** Whose spend a budget bounds: `Team Checkout`. */
import type { Budget } from '../../api/routes.ts'
import { humanize } from '../../formats.ts'
import { userText } from '../../parts/user-text.tsx'
import { type NamedKind, RecordName } from '../record-name.tsx'

const kinds: Readonly<Record<string, readonly [what: string, kind: NamedKind]>> = {
  team: ['Team', 'teams'],
  user: ['Person', 'users'],
  mcp_server: ['MCP server', 'mcp-servers'],
}

export function BudgetScope({ scope, linked = false }: { scope: Budget['scope']; linked?: boolean }) {
  const [what, kind] = kinds[scope.kind] ?? []
  if (what === undefined || kind === undefined) {
    return <>{scope.kind === 'token' ? 'The tokens that name it' : humanize(scope.kind)}</>
  }
  return (
    <>
      {what} <RecordName kind={kind} id={scope.id} linked={linked} />
      {scope.tool !== null && <>, tool {userText(scope.tool)}</>}
    </>
  )
}
