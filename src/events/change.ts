/**
 * Makes a change and records it, although the change and its event are in two databases (events/README.md, A change
 * and its event):
 *
 *  1. ledger   the change is pending: its event, its ledger statements
 *  2. state    version + 1, the event id in `change_log` with the guard, the statements; one transaction
 *  3. the new head is announced to gateways
 *  4. ledger   the ledger statements, the event at the end of the control plane's chain, no longer pending
 *
 * `applyPending` finishes what reached 2 and drops what did not. It marks a dropped change in `change_log`, so that a
 * slow writer fails at the mark. Step 4 is guarded by the pending row, so that it is done once. A change of the ledger
 * alone is step 4 without a pending row.
 *
 * The event of a state change carries the version that the change made as its `config_version`, and the nonce of that
 * version, the id of the change that made it (`lost-…` if it was dropped), as its `config_id`.
 */
import { z } from 'zod'
import { Failure } from '../failure.ts'
import type { Clock } from '../lib/clock.ts'
import { wellFormedJson } from '../lib/json/well-formed-json.ts'
import type { Log } from '../lib/log/log.ts'
import { changedByNewest } from '../store/limit-rows.ts'
import { type Database, databaseTime } from '../store/open.ts'
import type { Head } from '../store/propagation.ts'
import type { Statement } from '../store/statement.ts'
import type { Event } from './event.ts'
import {
  appendStatements,
  brokenConstraint,
  type ChainHead,
  hasRecordsBeyond,
  headAfter,
  readChainHead,
  timeOf,
} from './log/append.ts'
import { controlPlaneChain } from './log/chain.ts'
import { type Change, type NameClaim, type Recorder, versionArgument } from './recorder.ts'

interface RecorderOptions {
  state: Database
  ledger: Database
  /**
   * Called right after the state transaction, before the ledger's; must not wait. `changed` names the rows of limits
   * and tokens that the change made or altered, as `<kind>/<id>`, if known.
   */
  announce(
    head: Head,
    revoked: readonly string[],
    endRequests: readonly string[],
    onlyRevocations?: boolean,
    changed?: readonly string[] | null,
  ): void
  /** The installation's name, part of each event. */
  environment?: string | undefined
  clock: Clock
  log: Log
}

/** The age, by the ledger's time, at which a pending change counts as abandoned. */
const abandonedAfterMilliseconds = 5000
/** How often a writer of the chain retries when another control plane was first. */
const chainAttempts = 20
const endedRequestsKeptMilliseconds = 3_600_000

/** What a pending row keeps besides its event, as JSON. */
interface Pending {
  ledger: readonly Statement[]
  revoked: readonly string[]
  endRequests: readonly string[]
  /** The name that it reserves while it is pending. */
  claim?: string | undefined
}

export function createRecorder(options: RecorderOptions): Recorder {
  const append = serialAppender(options)
  return {
    async change(change) {
      const onlyLedger = change.state.length === 0 && change.guard === undefined && (change.revoked ?? []).length === 0
      if (onlyLedger) return await changeLedger(options, append, change)
      await writePending(options, change)
      const made = changeState(options, change)
      // Read in parallel. Another append makes it read again, and if it fails the append reads itself.
      const chainHead = readChainHead(options.ledger, controlPlaneChain).catch(() => null)
      const { head, changed } = await made
      options.announce(head, change.revoked ?? [], change.endRequests ?? [], change.onlyRevocations, changed)
      change.announced?.(head)
      await append([withConfiguration(change.event, head)], {
        pendingId: change.event.event_id,
        before: [...atVersion(change.ledger, head.version), rememberStateHead(head)],
        chainHead: await chainHead,
      })
      return { head }
    },
    append: (events) => append(events, { pendingId: null, before: [] }),
    applyPending: () => applyPendingChanges(options, append),
  }
}

type Append = (
  events: readonly Event[],
  transaction: {
    pendingId: string | null
    before: readonly Statement[]
    /** The chain's recent head, if known. */
    chainHead?: ChainHead | null
  },
) => Promise<void>

async function changeLedger({ state }: RecorderOptions, append: Append, change: Change): Promise<{ head: Head }> {
  const head = await readHead(state)
  await append([withConfiguration(change.event, head)], {
    pendingId: null,
    before: atVersion(change.ledger, head.version),
  })
  return { head }
}

async function writePending(
  { ledger }: RecorderOptions,
  { event, ledger: after, revoked = [], endRequests = [], claim }: Change,
): Promise<void> {
  const pending: Pending = { ledger: after, revoked, endRequests, claim: claim?.key }
  const write = ledger.write([
    ...(claim === undefined ? [] : [unclaimed(claim)]),
    {
      sql: `insert into pending_changes (event_id, statements, event, created_at) values (?, ?, ?, ${databaseTime})`,
      args: [event.event_id, JSON.stringify(pending), JSON.stringify(event)],
    },
    ...(endRequests.length === 0 ? [] : recordEndedRequests(event.event_id, endRequests)),
  ])
  await write.catch((error: unknown) => {
    throw claim !== undefined && brokenConstraint(error) === 'check' ? claim.refusal : error
  })
}

const unclaimed = ({ key, taken }: NameClaim): Statement => ({
  sql: `insert into guards (holds) select 0 where exists (${taken.sql})
    or exists (select 1 from pending_changes where statements ->> 'claim' = ?)`,
  args: [...taken.args, key],
})

/** For control planes that miss the announcement (fleet/coordinator/change-feed.ts). */
const recordEndedRequests = (eventId: string, endRequests: readonly string[]): Statement[] => [
  {
    sql: `insert into ended_requests (event_id, hashes, at) values (?, ?, ${databaseTime})`,
    args: [eventId, JSON.stringify(endRequests)],
  },
  { sql: `delete from ended_requests where at < ${databaseTime} - ?`, args: [endedRequestsKeptMilliseconds] },
]

/** The new head, and the rows that the change made or altered, as `<kind>/<id>`; null if not known. */
interface Made {
  head: Head
  changed: readonly string[] | null
}

const changedRows = z.array(z.string())

async function changeState(options: RecorderOptions, { event, state, guard }: Change): Promise<Made> {
  try {
    const [made] = await options.state.writeAndRead<{ version: number; history: string; changed: string }>([
      raiseVersion(event.event_id),
      logChange(event.event_id, options.clock.now(), guard),
      ...state,
      { sql: `select version, history, ${changedByNewest} as changed from state_head where id = 1`, args: [] },
    ])
    if (made === undefined) throw new Error('The state database has no state_head row: it was not migrated')
    const { version, history, changed } = made
    return { head: { version, history, nonce: event.event_id }, changed: changedRows.parse(JSON.parse(changed)) }
  } catch (error) {
    const broken = brokenConstraint(error)
    // Without an answer of the database the change may have happened: the pending row stays for `applyPending`.
    if (broken === null) throw error
    const logged = await loggedChange(options.state, event.event_id)
    // A broken connection has sent the same change twice: the first one made it.
    if (logged?.applied === 1) {
      const head = { ...(await readHead(options.state)), version: logged.version, nonce: event.event_id }
      return { head, changed: null }
    }
    await options.ledger.write([dropPending(event.event_id)])
    if (logged?.applied === 0) throw new Failure('dependency_unavailable', { cause: error })
    if (broken === 'check') throw new Failure('conflict', { cause: error })
    throw error
  }
}

const raiseVersion = (nonce: string): Statement => ({
  sql: 'update state_head set version = version + 1, nonce = ? where id = 1',
  args: [nonce],
})

const logChange = (eventId: string, at: number, guard: Statement | undefined): Statement => ({
  sql: `insert into change_log (event_id, version, applied, at, guard)
    values (?, (select version from state_head), 1, ?, ${guard === undefined ? '1' : `coalesce((${guard.sql}), 0)`})`,
  args: [eventId, at, ...(guard?.args ?? [])],
})

const dropPending = (eventId: string): Statement => ({
  sql: 'delete from pending_changes where event_id = ?',
  args: [eventId],
})

/** The ledger keeps the newest head, by which a restored state is found (fleet/agent/restore-detector.ts). */
export const rememberStateHead = ({ version, nonce, history }: Head): Statement => ({
  sql: `insert into known_state_head (id, version, nonce, history) values (1, ?, ?, ?)
    on conflict (id) do update set version = excluded.version, nonce = excluded.nonce
    where known_state_head.history = excluded.history and known_state_head.version < excluded.version`,
  args: [version, nonce, history],
})

export async function readHead(state: Database): Promise<Head> {
  const [head] = await state.read<Head>('select version, nonce, history from state_head')
  if (head === undefined) throw new Error('The state database has no state_head row: it was not migrated')
  return head
}

async function loggedChange(state: Database, eventId: string): Promise<{ version: number; applied: number } | null> {
  const [row] = await state.read<{ version: number; applied: number }>(
    'select version, applied from change_log where event_id = ?',
    [eventId],
  )
  return row ?? null
}

const withConfiguration = (event: Event, { version, nonce }: Pick<Head, 'version' | 'nonce'>): Event => ({
  ...{ ...event, config_version: version, config_id: nonce },
})

const atVersion = (statements: readonly Statement[], version: number): Statement[] =>
  statements.map(({ sql, args }) => ({ sql, args: args.map((value) => (value === versionArgument ? version : value)) }))

/**
 * Appends to the control plane's chain: one at a time in this process, and with guard and retry against other control
 * planes. With a pending id, nothing happens if that row is gone, since another process has then done all of it.
 */
function serialAppender(options: RecorderOptions): Append {
  let last: Promise<ChainHead | null> = Promise.resolve(null)
  return async (events, transaction) => {
    const result = last.then((ours) => {
      const seen = transaction.chainHead ?? null
      const chainHead = seen !== null && ours !== null && ours.seq > seen.seq ? ours : seen
      return appendToChain(options, events, { ...transaction, chainHead })
    })
    // The next one runs whether this one succeeds or fails. Its caller gets the error.
    last = result.catch(() => null)
    await result
  }
}

async function appendToChain(
  { ledger, clock, environment }: RecorderOptions,
  events: readonly Event[],
  { pendingId, before, chainHead = null }: Parameters<Append>[1],
): Promise<ChainHead | null> {
  let known = chainHead
  const written = events.map((record) => ({ record, text: wellFormedJson({ ...record, environment }) }))
  for (let attempt = 1; ; attempt += 1) {
    const head = known ?? (await readChainHead(ledger, controlPlaneChain))
    known = null
    const receivedAt = clock.now()
    const records = written.map(({ record, text }) => ({ record, text, at: timeOf(record.timestamp, receivedAt) }))
    const end = headAfter(head, records)
    const appended = appendStatements({ chain: controlPlaneChain, head, records, digest: end.digest, receivedAt })
    const claim = pendingId === null ? [] : [stillPending(pendingId), dropPending(pendingId)]
    try {
      await ledger.write([...claim, ...before, ...appended])
      return end
    } catch (error) {
      if (brokenConstraint(error) !== 'check') throw error
      if (await hasRecordsBeyond(ledger, controlPlaneChain))
        throw new Failure('dependency_unavailable', { cause: error, message: beyondItsEnd })
      if (pendingId !== null && !(await isPending(ledger, pendingId))) return null
      const grown = (await readChainHead(ledger, controlPlaneChain)).digest !== head.digest
      // A guard among a ledger change's own statements. A change that the state has made cannot be refused any more.
      if (!grown) throw pendingId === null ? new Failure('conflict', { cause: error }) : error
      if (attempt === chainAttempts) throw new Failure('dependency_unavailable', { cause: error, retryAfter: 1 })
    }
  }
}

const beyondItsEnd =
  'The ledger has events of the control plane beyond where it says that their chain ends: gatehouse events verify'

const stillPending = (eventId: string): Statement => ({
  sql: 'insert into guards (holds) select 0 where not exists (select 1 from pending_changes where event_id = ?)',
  args: [eventId],
})

const isPending = async (ledger: Database, eventId: string): Promise<boolean> =>
  (await ledger.read('select 1 from pending_changes where event_id = ?', [eventId])).length > 0

async function applyPendingChanges(options: RecorderOptions, append: Append): Promise<void> {
  const abandoned = await options.ledger.read<{ event_id: string; statements: string; event: string }>(
    `select event_id, statements, event from pending_changes where created_at <= ${databaseTime} - ?
      order by created_at, event_id`,
    [abandonedAfterMilliseconds],
  )
  const failed: unknown[] = []
  for (const row of abandoned) {
    try {
      await finishOrDrop(options, append, row)
    } catch (error) {
      options.log.error({ event_id: row.event_id, error: String(error) }, 'A pending change could not be finished')
      failed.push(error)
    }
  }
  if (failed.length > 0) throw new Failure('dependency_unavailable', { cause: failed[0] })
}

async function finishOrDrop(
  { state, ledger, announce, clock, log }: RecorderOptions,
  append: Append,
  row: { event_id: string; statements: string; event: string },
): Promise<void> {
  await state.write(markLostUnlessLogged(row.event_id, clock.now()))
  const logged = await loggedChange(state, row.event_id)
  if (logged === null || logged.applied === 0) {
    log.warn({ event_id: row.event_id }, 'A change that never reached the state was dropped')
    return await ledger.write([dropPending(row.event_id)])
  }
  const {
    ledger: statements,
    revoked,
    endRequests = [],
  }: Pick<Pending, 'ledger' | 'revoked'> & Partial<Pending> = JSON.parse(row.statements)
  const event: Event = JSON.parse(row.event)
  const head = await readHead(state)
  announce(head, revoked, endRequests)
  const made = { ...head, version: logged.version, nonce: row.event_id }
  await append([withConfiguration(event, made)], {
    pendingId: row.event_id,
    before: [...atVersion(statements, made.version), rememberStateHead(made)],
  })
  log.info({ event_id: row.event_id }, 'A change that was interrupted is now recorded')
}

/** Both statements do nothing if the change is in the log already. */
const markLostUnlessLogged = (eventId: string, at: number): Statement[] => [
  {
    sql: `update state_head set version = version + 1, nonce = ?
      where id = 1 and not exists (select 1 from change_log where event_id = ?)`,
    args: [`lost-${eventId}`, eventId],
  },
  {
    sql: `insert into change_log (event_id, version, applied, at, guard)
      values (?, (select version from state_head), 0, ?, 1) on conflict do nothing`,
    args: [eventId, at],
  },
]
