/**
 * Takes a gateway's report of a server's offers and decides what may be shown, which protects against definitions that
 * change after approval:
 *
 * 1. A known definition changes nothing.
 * 2. If the record says `first_use`, offers that were never seen before are approved while first use lasts
 *    (`firstUseMilliseconds` from the first report of that kind), as a change of the state that gateways follow.
 * 3. Everything else is held: another definition of a known offer, later additions, offers that no caller could read
 *    (offer-shape.ts), and everything when a person must approve. Held definitions are kept for comparison, with an
 *    event that names the digests.
 *
 * A server that offers something new each time fills at most `offersLimit` rows and is then ignored.
 */
import { and, eq, or } from 'drizzle-orm'
import { controlPlaneEvent } from '../../events/control-plane-event.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import { parseExactly } from '../../lib/json/exact-json.ts'
import type { Log } from '../../lib/log/log.ts'
import { type CatalogDependencies, isThere } from '../../providers/catalog/catalog-change.ts'
import { condition, isOneOf, query } from '../../store/query.ts'
import { mcpOffers } from '../../store/schema/ledger/policies.ts'
import { mcpBaselines, mcpServers } from '../../store/schema/state/catalog.ts'
import { type Definition, definitionOf, offerId } from './definition.ts'
import { firstUseMilliseconds, type OfferReport } from './offer-report.ts'
import { approve, approvedDigests, beginBaseline, keepOffer } from './offer-rows.ts'
import { shapeFault } from './offer-shape.ts'

/** The limit of stored definitions of one server. */
export const offersLimit = 5000

export type OfferDependencies = Pick<CatalogDependencies, 'state' | 'ledger' | 'recorder' | 'clock' | 'newId'> & {
  log: Log
}

interface Reporter {
  principal: Principal
  requestId: string
}

/** Returns how many definitions were approved and held. Throws `invalid_parameter` when one is not canonical. */
export async function takeOffers(deps: OfferDependencies, reporter: Reporter, report: OfferReport) {
  const { server_id: serverId, kind } = report
  const definitions = report.definitions.map((text) => readDefinition(kind, text))
  const there = and(eq(mcpServers.id, serverId), eq(mcpServers.deleted, 0))
  const server = await query(deps.state).select().from(mcpServers).where(there).get()
  // The server was deleted meanwhile.
  if (server === undefined) return { approved: 0, held: 0 }
  const seen = await readSeen(deps, serverId, definitions)
  const unseen = definitions.filter(({ digest }) => !seen.digests.has(digest))
  const first = server.approval === 'first_use' && (await isFirstUse(deps, serverId, kind))
  const room = Math.max(0, offersLimit - seen.count)
  const kept = unseen.slice(0, room)
  const added = kept.filter(
    ({ name, text }) => first && !seen.names.has(`${kind}\n${name}`) && shapeFault(kind, parsed(text)) === null,
  )
  const held = kept.filter((definition) => !added.includes(definition))
  const of = { serverId, server: server.name, kind }
  if (added.length > 0 || (first && definitions.length === 0)) await approveFirst(deps, reporter, of, added)
  if (held.length > 0) await hold(deps, reporter, of, held)
  if (kept.length < unseen.length) deps.log.warn({ mcp_server_id: serverId }, 'An MCP server offers too many things')
  return { approved: added.length, held: held.length }
}

function readDefinition(kind: OfferReport['kind'], text: string): Definition {
  const definition = definitionOf(kind, parsed(text))
  if (definition?.text === text) return definition
  throw new Failure('invalid_parameter', { param: 'definitions', message: 'A definition is not in canonical form' })
}

function parsed(text: string): unknown {
  try {
    return parseExactly(text)
  } catch {
    // Malformed JSON is no definition either.
    return null
  }
}

async function readSeen({ ledger }: OfferDependencies, serverId: string, definitions: readonly Definition[]) {
  const { kind, name, digest } = mcpOffers
  const own = eq(mcpOffers.serverId, serverId)
  const digests = definitions.map((definition) => definition.digest)
  const names = definitions.map((definition) => definition.name)
  const rows = await query(ledger)
    .select({ kind, name, digest })
    .from(mcpOffers)
    .where(and(own, or(isOneOf(digest, digests), isOneOf(name, names))))
  return {
    count: await query(ledger).$count(mcpOffers, own),
    digests: new Set(rows.map((row) => row.digest)),
    names: new Set(rows.map((row) => `${row.kind}\n${row.name}`)),
  }
}

async function isFirstUse({ state, clock }: OfferDependencies, serverId: string, kind: string): Promise<boolean> {
  const own = eq(mcpBaselines.id, `${serverId}/${kind}`)
  const baseline = await query(state).select().from(mcpBaselines).where(own).get()
  return baseline === undefined || clock.now() - baseline.madeAt < firstUseMilliseconds
}

interface Of {
  serverId: string
  server: string
  kind: OfferReport['kind']
}

async function approveFirst(
  deps: OfferDependencies,
  reporter: Reporter,
  of: Of,
  added: readonly Definition[],
): Promise<void> {
  const now = deps.clock.now()
  const { serverId, kind } = of
  const { gatewayId } = reporter.principal
  await deps.recorder.change({
    event: eventOf(deps, reporter, of, {
      type: 'mcp.offer_approved',
      reason: 'mcp.first_use',
      offers: added.map(({ name, digest }) => ({ name, digest, approved_digest: null })),
    }),
    guard: condition(isThere(mcpServers, serverId)),
    state: [beginBaseline(serverId, kind, now), ...added.map((definition) => approve(serverId, definition, 'first'))],
    ledger: added.flatMap((definition) =>
      keepOffer(serverId, definition, { gatewayId, now, approved: definition.digest }),
    ),
  })
}

async function hold(deps: OfferDependencies, reporter: Reporter, of: Of, held: readonly Definition[]): Promise<void> {
  const now = deps.clock.now()
  const { serverId, kind } = of
  const { gatewayId } = reporter.principal
  const approved = await approvedDigests(deps.state, serverId)
  const digestNow = ({ name }: Definition) => approved.get(offerId(serverId, kind, name)) ?? null
  const changed = held.some((definition) => digestNow(definition) !== null)
  await deps.recorder.change({
    event: eventOf(deps, reporter, of, {
      type: 'mcp.offer_changed',
      reason: changed ? 'mcp.definition_changed' : 'mcp.definition_added',
      offers: held.map((definition) => {
        const misfit = shapeFault(kind, parsed(definition.text))
        const { name, digest } = definition
        return { name, digest, approved_digest: digestNow(definition), ...(misfit !== null && { misfit }) }
      }),
    }),
    state: [],
    ledger: held.flatMap((definition) =>
      keepOffer(serverId, definition, { gatewayId, now, approved: digestNow(definition) }),
    ),
  })
}

function eventOf(
  { clock, newId }: OfferDependencies,
  { principal, requestId }: Reporter,
  { serverId, server, kind }: Of,
  {
    type,
    reason,
    offers,
  }: { type: 'mcp.offer_approved' | 'mcp.offer_changed'; reason: string; offers: readonly object[] },
) {
  return controlPlaneEvent({
    type,
    verdict: type === 'mcp.offer_approved' ? 'allow' : 'deny',
    reason,
    principal,
    requestId,
    teamId: null,
    details: { mcp_server_id: serverId, server, kind, offers },
    configVersion: 0,
    clock,
    newId,
  })
}
