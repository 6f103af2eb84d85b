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
import { collected, collecting, emptyList } from '../store/transaction.ts'
import {
  atVersion,
  dropPending,
  isGuarded,
  isListPending,
  isOfLedger,
  logChange,
  loggedChange,
  noListPending,
  type Pending,
  pendingStatements,
  raiseVersion,
  readHead,
  rememberStateHead,
  withConfiguration,
} from './change-statements.ts'
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
import type { Change, Recorder } from './recorder.ts'
import { type Append, afterLists, collectChange, isStillPossible, makeTogether, type Together } from './together.ts'

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
/** How often changes are tried together when another one came between. */
const togetherAttempts = 5

export function createRecorder(options: RecorderOptions): Recorder & Together {
  const append = serialAppender(options)
  return {
    async change(change) {
      const list = collected()
      if (list !== null) {
        const made = await collectChange(options, list, change)
        for (const event of change.further ?? []) await collectChange(options, list, { event, state: [], ledger: [] })
        return made
      }
      if (isOfLedger(change)) {
        return await afterLists(options.ledger, change.ledger, () => changeLedger(options, append.inOrder, change))
      }
      await afterLists(options.ledger, change.ledger, () => writePending(options, change))
      const made = changeState(options, change)
      // Read in parallel. Another append makes it read again, and if it fails the append reads itself.
      const chainHead = readChainHead(options.ledger, controlPlaneChain).catch(() => null)
      const { head, changed } = await made
      options.announce(head, change.revoked ?? [], change.endRequests ?? [], change.onlyRevocations, changed)
      change.announced?.(head)
      await append.inOrder([withConfiguration(change.event, head)], {
        pending: [change.event.event_id],
        before: [...atVersion(change.ledger, head.version), rememberStateHead(head)],
        chainHead: await chainHead,
      })
      return { head }
    },
    append: (events) => append.inOrder(events, { pending: [], before: [] }),
    applyPending: () => applyPendingChanges(options, append.inOrder),
    async together(work, { dryRun }) {
      for (let attempt = 1; ; attempt += 1) {
        const list = emptyList()
        try {
          const result = await collecting(work, list)
          if (!dryRun) await makeTogether(options, list, append.exclusively)
          return result
        } catch (error) {
          // What a write did that was not answered is not known: nothing is tried again after it.
          const isUnknown = error instanceof Failure && error.code === 'dependency_unavailable'
          if (isUnknown || attempt === togetherAttempts || (await isStillPossible(options, list))) throw error
        }
      }
    },
  }
}

async function changeLedger({ state }: RecorderOptions, append: Append, change: Change): Promise<{ head: Head }> {
  const head = await readHead(state)
  const events = [change.event, ...(change.further ?? [])].map((event) => withConfiguration(event, head))
  await append(events, {
    pending: [],
    before: [...(isGuarded(change.ledger) ? [noListPending] : []), ...atVersion(change.ledger, head.version)],
  })
  return { head }
}

async function writePending({ ledger }: RecorderOptions, change: Change): Promise<void> {
  const { claim } = change
  await ledger.write(pendingStatements(change)).catch(async (error: unknown) => {
    const isTaken = claim !== undefined && brokenConstraint(error) === 'check' && !(await waitsForList(change, ledger))
    throw isTaken ? claim.refusal : error
  })
}

const waitsForList = async (change: Change, ledger: Database): Promise<boolean> =>
  isGuarded(change.ledger) && (await isListPending(ledger))

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

/**
 * Appends to the control plane's chain: one at a time in this process, and with guard and retry against other control
 * planes. With pending ids, nothing happens if their rows are gone, since another process has then done all of it.
 */
function serialAppender(options: RecorderOptions) {
  let last: Promise<ChainHead | null> = Promise.resolve(null)
  const next = async (work: (ours: ChainHead | null) => Promise<ChainHead | null>) => {
    const result = last.then(work)
    // The next one runs whether this one succeeds or fails. Its caller gets the error.
    last = result.catch(() => null)
    await result
  }
  const inOrder: Append = (events, transaction) =>
    next((ours) => {
      const seen = transaction.chainHead ?? null
      const chainHead = seen !== null && ours !== null && ours.seq > seen.seq ? ours : seen
      return appendToChain(options, events, { ...transaction, chainHead })
    })
  return {
    inOrder,
    /** Nothing else is appended while it works; it appends by what it is given. */
    exclusively: (work: (append: Append) => Promise<void>) =>
      next(async () => {
        await work(async (events, transaction) => {
          await appendToChain(options, events, { ...transaction, chainHead: null })
        })
        return null
      }),
  }
}

async function appendToChain(
  { ledger, clock, environment }: RecorderOptions,
  events: readonly Event[],
  { pending, before, chainHead = null }: Parameters<Append>[1],
): Promise<ChainHead | null> {
  let known = chainHead
  const written = events.map((record) => ({ record, bytes: Buffer.from(wellFormedJson({ ...record, environment })) }))
  for (let attempt = 1; ; attempt += 1) {
    const head = known ?? (await readChainHead(ledger, controlPlaneChain))
    known = null
    const receivedAt = clock.now()
    const records = written.map(({ record, bytes }) => ({ record, bytes, at: timeOf(record.timestamp, receivedAt) }))
    const end = headAfter(head, records)
    const appended = appendStatements({ chain: controlPlaneChain, head, records, digest: end.digest, receivedAt })
    const claim = pending.flatMap((id) => [stillPending(id), dropPending(id)])
    try {
      await ledger.write([...claim, ...before, ...appended])
      return end
    } catch (error) {
      if (brokenConstraint(error) !== 'check') throw error
      if (await hasRecordsBeyond(ledger, controlPlaneChain))
        throw new Failure('dependency_unavailable', { cause: error, message: beyondItsEnd })
      if (pending[0] !== undefined && !(await isPending(ledger, pending[0]))) return null
      const grown = (await readChainHead(ledger, controlPlaneChain)).digest !== head.digest
      // A guard among a ledger change's own statements. A change that the state has made cannot be refused any more.
      if (!grown) throw pending.length === 0 ? new Failure('conflict', { cause: error }) : error
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
    pending: [row.event_id],
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
