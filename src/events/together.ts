/**
 * Several changes together or none (store/transaction.ts). Each is tried where it is made, on top of those before it,
 * so it is refused there as if it were alone. What was collected is then made as one change is (change.ts), with one
 * transaction in each step:
 *
 *  1. ledger   every change is pending; names are claimed; from now on no guarded change of the ledger is made elsewhere
 *  2. ledger   read: guarded changes that were pending before have ended, and all of this can still be made
 *  3. state    every change, each with its version and its id in `change_log`
 *  4. the new head is announced to gateways
 *  5. ledger   every change's statements and event
 *
 * A process that dies before 3 has changed nothing; one that dies after it is finished by whoever looks for pending
 * changes. Without a change of the state, step 5 is all there is. A change of the ledger alone, such as a team, goes
 * through the same steps where others are of the state.
 *
 * A guard of the ledger, such as the version of a team that is changed, would break in step 5 for good if another control
 * plane changed the team after step 2. So a change with a guard waits until the list is made: some milliseconds, and some
 * seconds where the process died that made it. Revocations of tokens have none.
 */
import { Failure } from '../failure.ts'
import type { Clock } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'
import type { Head } from '../store/propagation.ts'
import type { Statement } from '../store/statement.ts'
import type { Collected } from '../store/transaction.ts'
import {
  atVersion,
  dropPending,
  isGuarded,
  isGuardedPending,
  isListPending,
  isOfLedger,
  logChange,
  loggedChange,
  noListPending,
  pendingStatements,
  raiseVersion,
  readHead,
  rememberStateHead,
  withConfiguration,
} from './change-statements.ts'
import type { Event } from './event.ts'
import { brokenConstraint, type ChainHead } from './log/append.ts'
import type { Change, Recorder } from './recorder.ts'

export interface Together {
  /** Runs work and makes the changes that it asks the recorder for, all or none. `dryRun`: none, and they were tried. */
  together<Result>(work: () => Promise<Result>, options: { dryRun: boolean }): Promise<Result>
}

export type Append = (
  events: readonly Event[],
  transaction: {
    /** The pending changes that it ends. */
    pending: readonly string[]
    before: readonly Statement[]
    /** The chain's recent head, if known. */
    chainHead?: ChainHead | null
  },
) => Promise<void>

interface TogetherOptions {
  state: Database
  ledger: Database
  clock: Clock
  announce(head: Head, revoked: readonly string[], endRequests: readonly string[]): void
}

const changesOf = new WeakMap<Collected, Change[]>()

const readsHead: Statement = { sql: 'select version, nonce, history from state_head', args: [] }
const readsNothing: Statement = { sql: 'select 1', args: [] }

/** Tries a change on top of those that were collected, and collects it. Throws what it would throw alone. */
export async function collectChange(
  { state, ledger, clock }: Pick<TogetherOptions, 'state' | 'ledger' | 'clock'>,
  list: Collected,
  change: Change,
): Promise<Awaited<ReturnType<Recorder['change']>>> {
  const { claim } = change
  if (claim !== undefined) {
    const { rows } = await ledger.readAfter(list.ledger, claim.taken)
    if (rows.length > 0) throw claim.refusal
  }
  // One of the ledger alone raises the version too: it will if the list has one of the state.
  const ofState = stateStatements(change, clock.now())
  const { rows } = await tried(state.readAfter([...list.state, ...ofState], readsHead))
  const [version, nonce, history] = rows[0] ?? []
  const head: Head = { version: Number(version), nonce: String(nonce), history: String(history) }
  const ofLedger = atVersion(change.ledger, head.version)
  await tried(ledger.readAfter([...list.ledger, ...ofLedger], readsNothing))
  list.state.push(...ofState)
  list.ledger.push(...ofLedger)
  const changes = changesOf.get(list) ?? []
  changesOf.set(list, [...changes, change])
  return { head }
}

/** A guard that does not hold is a conflict; what else the database says is for the caller. */
const tried = <Result>(work: Promise<Result>): Promise<Result> =>
  work.catch((error: unknown) => {
    throw brokenConstraint(error) === 'check' ? new Failure('conflict', { cause: error }) : error
  })

const stateStatements = ({ event, guard, state }: Change, now: number): Statement[] => [
  raiseVersion(event.event_id),
  logChange(event.event_id, now, guard),
  ...state,
]

type Exclusively = (work: (append: Append) => Promise<void>) => Promise<void>

/**
 * Makes all that was collected, or throws `conflict` with nothing changed. Guards name versions that the trial foretold,
 * so another change in between is one too: the caller tries everything again. While `exclusively` works, nothing else is
 * appended.
 */
export async function makeTogether(options: TogetherOptions, list: Collected, exclusively: Exclusively): Promise<void> {
  const { state, ledger } = options
  const changes = changesOf.get(list) ?? []
  if (changes.length === 0) {
    if (list.beside.length > 0) await exclusively(() => ledger.write(list.beside))
    return
  }
  if (changes.every(isOfLedger)) {
    return await afterLists(ledger, list.ledger, () =>
      exclusively(async (append) => {
        const head = await readHead(state)
        const own = changes.flatMap((change) => atVersion(change.ledger, head.version))
        const before = [...(isGuarded(own) ? [noListPending] : []), ...own, ...list.beside]
        const events = changes.map(({ event }) => withConfiguration(event, head))
        await tried(append(events, { pending: [], before }))
      }),
    )
  }
  await makeInBoth(options, { changes, list, exclusively })
}

const waitMilliseconds = 25
/** Longer than an interrupted list is left to itself. */
const longestWaitMilliseconds = 12_000

/** Makes a change, again while a list is being made that its guards wait for. */
export async function afterLists<Result>(
  ledger: Database,
  statements: readonly Statement[],
  make: () => Promise<Result>,
): Promise<Result> {
  for (let waited = 0; ; waited += waitMilliseconds) {
    try {
      return await make()
    } catch (error) {
      const isConflict = brokenConstraint(error) === 'check' || (error instanceof Failure && error.code === 'conflict')
      if (!isConflict || !isGuarded(statements) || !(await isListPending(ledger))) throw error
      if (waited >= longestWaitMilliseconds)
        throw new Failure('dependency_unavailable', { cause: error, retryAfter: 5 })
    }
    await Bun.sleep(waitMilliseconds)
  }
}

/** Waits for guarded changes that began before this list: what they still write could break its guards. */
async function othersEnd(ledger: Database): Promise<void> {
  for (let waited = 0; await isGuardedPending(ledger); waited += waitMilliseconds) {
    if (waited >= longestWaitMilliseconds) throw new Failure('dependency_unavailable', { retryAfter: 5 })
    await Bun.sleep(waitMilliseconds)
  }
}

/** Whether all that was collected could be made now. If not, another change came between. */
export async function isStillPossible({ state, ledger }: TogetherOptions, list: Collected): Promise<boolean> {
  try {
    await state.readAfter(list.state, readsNothing)
    await ledger.readAfter(list.ledger, readsNothing)
    return true
  } catch (error) {
    if (brokenConstraint(error) === null) throw error
    return false
  }
}

interface Making {
  changes: readonly Change[]
  list: Collected
  exclusively: Exclusively
}

async function makeInBoth(options: TogetherOptions, { changes, list, exclusively }: Making): Promise<void> {
  const { ledger } = options
  const last = changes.length - 1
  const whole = changes.map((change, index) =>
    index === last ? { ...change, ledger: [...change.ledger, ...list.beside] } : change,
  )
  const pending = [noListPending, ...whole.flatMap((change) => pendingStatements(change, true))]
  await afterLists(ledger, pending, () => tried(ledger.write(pending)))
  let isBegun = false
  try {
    await othersEnd(ledger)
    await exclusively(async (append) => {
      // Others may have written since each was tried, and from now on do not.
      await tried(ledger.readAfter(list.ledger, readsNothing))
      isBegun = true
      await makePending(options, whole, append)
    })
  } catch (error) {
    if (!isBegun) await ledger.write(changes.map(({ event }) => dropPending(event.event_id)))
    throw error
  }
}

async function makePending(options: TogetherOptions, whole: readonly Change[], append: Append): Promise<void> {
  const { announce } = options
  const ids = whole.map(({ event }) => event.event_id)
  const last = whole.length - 1
  const head = await changeState(options, whole, ids)
  announce(
    head,
    whole.flatMap(({ revoked = [] }) => revoked),
    whole.flatMap(({ endRequests = [] }) => endRequests),
  )
  const made = whole.map((change, index) => ({
    change,
    head: { ...head, version: head.version - (last - index), nonce: change.event.event_id },
  }))
  for (const { change, head: own } of made) change.announced?.(own)
  await append(
    made.map(({ change, head: own }) => withConfiguration(change.event, own)),
    {
      pending: ids,
      before: [
        ...made.flatMap(({ change, head: own }) => atVersion(change.ledger, own.version)),
        rememberStateHead(head),
      ],
    },
  )
}

async function changeState(
  { state, ledger, clock }: TogetherOptions,
  changes: readonly Change[],
  ids: readonly string[],
): Promise<Head> {
  const lastId = ids.at(-1) ?? ''
  try {
    await state.write(changes.flatMap((change) => stateStatements(change, clock.now())))
  } catch (error) {
    const broken = brokenConstraint(error)
    // Without an answer of the database the changes may have happened: their pending rows stay.
    if (broken === null) throw error
    const logged = await loggedChange(state, lastId)
    // A broken connection has sent the same changes twice: the first time made them.
    if (logged?.applied !== 1) {
      await ledger.write(ids.map(dropPending))
      throw broken === 'check' ? new Failure('conflict', { cause: error }) : error
    }
  }
  const logged = await loggedChange(state, lastId)
  return { ...(await readHead(state)), version: logged?.version ?? 0, nonce: lastId }
}
