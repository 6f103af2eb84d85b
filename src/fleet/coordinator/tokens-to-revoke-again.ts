/**
 * A primary that was restored from an older copy has tokens as they were before they were revoked, rotated or narrowed
 * (fleet/README.md rule R1). Two sources know better, and such tokens are revoked again:
 *
 *  the ledger   was not restored with it, and has the records of ended tokens
 *  workers      refuse tokens at versions that the restored state has not reached
 *
 * A token that was only narrowed is revoked too if a worker reports it: its narrower rights are lost, and nobody may
 * have more. Each revocation is an event, `token.revoked` or `oauth.token_revoked`, with the reason `state.restored`.
 *
 * OAuth access tokens are in the state only. The ledger has their grants, and an event for each that was revoked by
 * itself. The rights of their persons are marked to be applied again.
 */
import { and, eq, isNull } from 'drizzle-orm'
import { controlPlaneEvent } from '../../events/control-plane-event.ts'
import { eventsOf } from '../../events/engine/log-of.ts'
import type { Event } from '../../events/event.ts'
import { readLogHead } from '../../events/log/segment-rows.ts'
import { type Change, versionArgument } from '../../events/recorder.ts'
import { Failure } from '../../failure.ts'
import { anonymous } from '../../identity/principal.ts'
import { condition, hasRow, newStateVersion, statement, update } from '../../store/query.ts'
import { oauthTokens, tokens } from '../../store/schema/state/tokens.ts'
import type { FleetOptions } from './options.ts'

const pageRows = 1000
/** The actor when a database was restored from an older copy. */
export const restorer = { ...anonymous, name: 'system:restore' }

type Options = Pick<FleetOptions, 'state' | 'ledger' | 'clock' | 'newId' | 'recorder'>

interface ReadmittedToken {
  id: string
  hash: string
  event_team_id: string | null
  key_class: string
}

interface RevivedAccess {
  id: string
  hash: string
  grant_id: string
  client_id: string
  user_id: string
  event_team_id: string | null
}

const accessColumns = `t.id, t.hash, t.grant_id, t.client_id, t.user_id, t.team_ids ->> '$[0]' as event_team_id`

/** Revokes tokens again that ended according to the ledger. Resolves to their number. */
export const revokeByLedger = async (options: Options): Promise<number> =>
  (await revokeTokensByLedger(options)) + (await revokeAccessByLedger(options))

async function revokeTokensByLedger(options: Options): Promise<number> {
  const { state, ledger, clock } = options
  let revoked = 0
  for (let after = ''; ; ) {
    const page = await ledger.read<{ id: string }>(
      `select id from tokens where id > ? and (revoked_at is not null or rotated_at <= ?) order by id limit ${pageRows}`,
      [after, clock.now()],
    )
    const last = page.at(-1)
    if (last === undefined) return revoked
    after = last.id
    const readmitted = await state.read<ReadmittedToken>(
      `select id, hash, event_team_id, key_class from tokens where id in (select value from json_each(?)) and deleted = 0
        and revoked_at is null and (rotated_at is null or rotated_at > ?)`,
      [JSON.stringify(page.map(({ id }) => id)), clock.now()],
    )
    for (const token of readmitted) if (await revokeAgain(options, token, 'ledger')) revoked += 1
  }
}

async function revokeAccessByLedger(options: Options): Promise<number> {
  const { state, ledger, clock } = options
  let revoked = 0
  for (let after = ''; ; ) {
    const page = await state.read<RevivedAccess>(
      `select ${accessColumns} from oauth_tokens t
        where id > ? and deleted = 0 and revoked_at is null and expires_at > ? order by id limit ${pageRows}`,
      [after, clock.now()],
    )
    const last = page.at(-1)
    if (last === undefined) return revoked
    after = last.id
    const listed = JSON.stringify(page)
    const ended = await ledger.read<{ id: string }>(
      `select value ->> 'id' as id from json_each(?)
        where exists (select 1 from oauth_grants g where g.id = value ->> 'grant_id' and g.revoked_at is not null)`,
      [listed],
    )
    const endedIds = new Set<string | null>(ended.map(({ id }) => id))
    for await (const { event } of revocationsOf(options, page)) endedIds.add(event.event_attribution.token_id)
    for (const token of page) {
      if (endedIds.has(token.id) && (await revokeAccessAgain(options, token, 'ledger'))) revoked += 1
    }
    await ledger.write([
      {
        sql: `insert into pending_permission_updates (user_id, changed_at) select distinct value ->> 'user_id', ? from json_each(?)
          where true on conflict (user_id) do update set changes = changes + 1`,
        args: [clock.now(), listed],
      },
    ])
  }
}

/** The events of access tokens that were revoked by themselves. */
async function* revocationsOf({ ledger }: Options, tokens: readonly RevivedAccess[]) {
  yield* eventsOf(ledger, {
    ...{
      order: 'oldest',
      since: 0,
      until: Number.MAX_SAFE_INTEGER,
      ceiling: (await readLogHead(ledger)).next,
      after: null,
    },
    facets: [
      { facet: 'token', values: tokens.map(({ id }) => id) },
      { facet: 'type', values: ['oauth.token_revoked'] },
    ],
    ids: [],
  })
}

/** Revokes tokens again that a worker refuses at versions the state has not reached. Resolves to their number. */
export async function revokeReported(
  options: Options,
  worker: string,
  revocations: readonly { version: number; hash: string }[],
): Promise<number> {
  const readmitted = await options.state.read<ReadmittedToken>(
    `select distinct t.id, t.hash, t.event_team_id, t.key_class from tokens t join json_each(?) revocation on t.hash = value ->> 'hash'
      where t.deleted = 0 and t.revoked_at is null and t.version < value ->> 'version'`,
    [JSON.stringify(revocations)],
  )
  const access = await options.state.read<RevivedAccess>(
    `select distinct ${accessColumns} from oauth_tokens t join json_each(?) revocation on t.hash = value ->> 'hash'
      where t.deleted = 0 and t.revoked_at is null and t.expires_at > ? and t.version < value ->> 'version'`,
    [JSON.stringify(revocations), options.clock.now()],
  )
  let revoked = 0
  for (const token of readmitted) if (await revokeAgain(options, token, worker)) revoked += 1
  for (const token of access) if (await revokeAccessAgain(options, token, worker)) revoked += 1
  return revoked
}

/** False if another control plane was faster. */
async function revokeAgain(options: Options, token: ReadmittedToken, knownBy: string): Promise<boolean> {
  const { clock } = options
  const revocation = JSON.stringify({ by: restorer.name, emergency: false, explanation: null })
  const event = restoredEvent(options, 'token.revoked', token, { known_by: knownBy })
  return await changeUnlessRevoked(options, tokens, token, {
    event,
    ledger: [
      {
        sql: `update tokens set revoked_at = coalesce(revoked_at, ?), revocation = coalesce(revocation, ?),
          version = max(version, ?) where id = ?`,
        args: [clock.now(), revocation, versionArgument, token.id],
      },
    ],
  })
}

async function revokeAccessAgain(options: Options, token: RevivedAccess, knownBy: string): Promise<boolean> {
  const { client_id, grant_id, user_id } = token
  const event = restoredEvent(options, 'oauth.token_revoked', token, { client_id, grant_id, known_by: knownBy })
  const attribution = { ...event.event_attribution, user_id, oauth_client_id: client_id }
  return await changeUnlessRevoked(options, oauthTokens, token, {
    event: { ...event, event_attribution: attribution },
    ledger: [],
  })
}

const restoredEvent = (
  { clock, newId }: Options,
  type: 'token.revoked' | 'oauth.token_revoked',
  {
    id,
    event_team_id: teamId,
    key_class: keyClass,
  }: Pick<ReadmittedToken, 'id' | 'event_team_id'> & Partial<ReadmittedToken>,
  details: Record<string, unknown>,
): Event =>
  controlPlaneEvent({
    type,
    reason: 'state.restored',
    principal: restorer,
    requestId: 'restore',
    tokenId: id,
    keyClass: keyClass ?? null,
    teamId,
    details: { token_id: id, ...details },
    configVersion: 0,
    clock,
    newId,
  })

async function changeUnlessRevoked(
  { clock, recorder }: Options,
  table: typeof tokens | typeof oauthTokens,
  { id, hash }: Pick<ReadmittedToken, 'id' | 'hash'>,
  { event, ledger }: Pick<Change, 'event' | 'ledger'>,
): Promise<boolean> {
  try {
    await recorder().change({
      event,
      guard: condition(hasRow(table, and(eq(table.id, id), isNull(table.revokedAt)))),
      state: [
        statement(update(table).set({ revokedAt: clock.now(), version: newStateVersion }).where(eq(table.id, id))),
      ],
      ledger,
      revoked: [hash],
    })
    return true
  } catch (error) {
    if (error instanceof Failure && error.code === 'conflict') return false
    throw error
  }
}
